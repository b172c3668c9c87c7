//! The HTML page as a whole.

use ascertain_engine::claim::Judging;
use ascertain_engine::outcome::Verdict;
use ascertain_engine::recorded::RecordedRun;
use askama::Template;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use sha2::{Digest as _, Sha256};

use super::claim::{ClaimView, claims, figure_claimed, heading, here, reach, sentence, statistics, warnings};
use super::experiment::{self, ExperimentView};
use super::facts::{facts, in_short, moment, notice};
use super::lead::{Answer, claimed_and_measured, furthest, missing_trials};
use super::mark::{SharedAxis, squares};
use super::markup::Html;
use super::pack::Pack;
use super::picture::{figures, in_addresses, prefix};
use super::table::{RunsTable, runs_table};
use crate::plot::svg;
use crate::sentence::{left_out, overshoot};
use crate::series::SeriesDigest;
use crate::standing::{Count, of_so_many, tally};
use crate::text::{command_line, ended, grouped};
use crate::{finding, grid, pictures, windows};

const STYLE: &str = include_str!("../../web/report.css");
const SCRIPT: &str = concat!(include_str!("../../web/plot.js"), include_str!("../../web/report.js"));

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    title: String,
    style: String,
    script: &'static str,
    policy: String,
    /// A table of the claims with a column for each run; `None` for a single run.
    aligned: Option<RunsTable<'a>>,
    runs: Vec<RunView<'a>>,
    /// A note about biased ratios. A ratio is biased if the run ended as soon as the claim about this ratio had a
    /// verdict. `None` if there is no such ratio.
    overshoot: Option<&'static str>,
    /// The compressed pictures of the sections that are closed when the page loads.
    packed: String,
}

/// The data of a run that the HTML template uses.
struct RunView<'a> {
    /// The prefix of all anchors and ids of the run.
    prefix: String,
    recorded: &'a RecordedRun,
    answer: Answer,
    /// Notices at the top of the page.
    notices: Vec<Html>,
    tally: Vec<Count>,
    /// Pictures that show all claims. Pictures of comparisons are above the claims, other pictures are below.
    overview: Html,
    is_order: bool,
    axis: SharedAxis,
    groups: Vec<GroupView<'a>>,
    /// Sentences about arms that were left out and whose experiment has no section on the page. The header of the run
    /// does not list such an experiment.
    left_out: Vec<String>,
    /// The derived series that the user requested.
    derived: Vec<DerivedView>,
    /// The windows of a long measurement; `None` for any other run.
    windows: Option<WindowsView>,
}

/// The windows of a long measurement.
struct WindowsView {
    sentences: Vec<String>,
    pictures: Html,
}

/// A derived series.
struct DerivedView {
    expression: String,
    sentence: String,
    picture: Html,
    plan: String,
}

/// An experiment with the claims about it.
struct GroupView<'a> {
    anchor: String,
    id: String,
    title: String,
    claims: Vec<ClaimView<'a>>,
    /// The data of the experiment; `None` if it is not in the header of the run.
    experiment: Option<ExperimentView>,
}

impl GroupView<'_> {
    fn tally(&self) -> Vec<Count> {
        tally(self.claims.iter().map(|claim| claim.result))
    }

    /// Returns how many claims hold, in words: "12 of 21 hold".
    fn hold(&self) -> String {
        let hold = self.claims.iter().filter(|claim| grid::class(claim.result) == Verdict::Holds.word()).count();
        let word = of_so_many(hold, Verdict::Holds.word());
        format!("{hold} of {} {word}", self.claims.len())
    }
}

/// Returns a page with one run, or with several side by side. It is HTML and also well-formed XML.
///
/// The page fetches nothing, because it contains all that it shows. Texts from users (commands, names, reasons) are
/// escaped.
///
/// # Panics
/// Never, because the compiler checks the templates, and writing them to a string can't fail.
pub fn page(runs: &[RecordedRun]) -> String {
    page_with_series(runs, &[])
}

/// Returns a page with derived series: for each run, those in the list at the run's index.
///
/// # Panics
/// Never, like [`page`].
pub fn page_with_series(runs: &[RecordedRun], series: &[Vec<SeriesDigest>]) -> String {
    let mut pack = Pack::default();
    let mut views: Vec<RunView> =
        runs.iter().enumerate().map(|(index, run)| view(run, index, runs.len(), &mut pack)).collect();
    for (view, series) in views.iter_mut().zip(series) {
        view.derived = derived(series, &view.prefix, &mut pack);
    }
    let title = match views.as_slice() {
        [run] => run.answer.title.clone(),
        runs => format!("{} runs side by side", runs.len()),
    };
    let style = style();
    let page = Page {
        title,
        policy: policy(&style, SCRIPT),
        style,
        script: SCRIPT,
        aligned: (runs.len() > 1).then(|| runs_table(runs)),
        runs: views,
        overshoot: runs.iter().find_map(|run| overshoot(&run.outcome.claims)),
        packed: pack.packed(),
    };
    page.render().expect("writing to a String can't fail")
}

/// Returns the style sheet of the page, with the colours of pictures. Colours for dark backgrounds are not used for
/// printing.
fn style() -> String {
    let [light, dark] = [false, true].map(svg::properties);
    let plots = svg::sheet();
    format!(":root{{{light}}}\n@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}\n{plots}\n{STYLE}")
}

fn view<'a>(run: &'a RecordedRun, index: usize, runs: usize, pack: &mut Pack) -> RunView<'a> {
    let prefix = prefix(index, runs);
    let claims = &run.outcome.claims;
    let described = |id: &str| run.header.experiments.iter().any(|spec| spec.id == id);
    let is_order = !claims.is_empty() && claims.iter().all(|claim| claim.asked.judging == Judging::Order);
    RunView {
        recorded: run,
        answer: Answer::new(run, &purpose(run)),
        notices: notice(run.state)
            .map(str::to_string)
            .into_iter()
            .chain(missing_trials(run))
            .chain(sample(run))
            .chain(run.faults.iter().map(|fault| ended(fault)))
            .map(|notice| Html::prose(&notice))
            .collect(),
        tally: tally(claims.iter()),
        overview: figures(pictures::overview(run), &prefix, "o", is_order, pack),
        is_order,
        axis: SharedAxis::new(claims),
        groups: groups(run, &prefix, pack),
        left_out: left_out::of_outcome_where(&run.outcome, |experiment| !described(experiment)),
        derived: Vec::new(),
        windows: run.outcome.windows.is_some().then(|| WindowsView {
            sentences: windows::sentences(&run.outcome),
            pictures: figures(pictures::windows(&run.outcome), &prefix, "w", true, pack),
        }),
        prefix,
    }
}

/// Returns a notice if the pictures of single observations show only a part of them.
fn sample(run: &RecordedRun) -> Option<String> {
    let every = run.outcome.windows.as_ref()?.recorded.every;
    (every > 1).then(|| {
        format!(
            "The pictures by quantile and trial by trial show one observation in {}, because only these were recorded at \
             equal distances. The tables and the windows are about all observations.",
            grouped(every)
        )
    })
}

/// Returns the derived series of a run. Their pictures are open, because the user requested them.
fn derived(series: &[SeriesDigest], prefix: &str, pack: &mut Pack) -> Vec<DerivedView> {
    let view = |(index, digest): (usize, &SeriesDigest)| DerivedView {
        expression: digest.header().expression.clone(),
        sentence: digest.sentence(),
        picture: figures(digest.picture(index).into_iter().collect(), prefix, &format!("d{index}-"), true, pack),
        plan: digest.plan(),
    };
    series.iter().enumerate().map(view).collect()
}

/// Returns the claims grouped by experiment. The experiments in the header of the run come first, in that order.
/// Experiments that only the claims name come after them. All anchors begin with `prefix`. Pictures of closed sections
/// are added to `pack`.
fn groups<'a>(run: &'a RecordedRun, prefix: &str, pack: &mut Pack) -> Vec<GroupView<'a>> {
    let experiments = &run.header.experiments;
    let mut groups: Vec<GroupView> = Vec::new();
    for (index, spec) in experiments.iter().enumerate() {
        groups.push(GroupView {
            anchor: format!("{prefix}experiment-{}", in_addresses(&spec.id)),
            id: spec.id.clone(),
            title: experiment::title(run, spec),
            claims: Vec::new(),
            experiment: Some(experiment::experiment(run, index, prefix, pack)),
        });
    }
    for (claim, view) in run.outcome.claims.iter().zip(claims(run, prefix, pack)) {
        match groups.iter_mut().find(|group| group.id == claim.experiment) {
            Some(group) => group.claims.push(view),
            None => groups.push(GroupView {
                anchor: format!("{prefix}experiment-{}-{}", groups.len() + 1, in_addresses(&claim.experiment)),
                id: claim.experiment.clone(),
                title: String::new(),
                claims: vec![view],
                experiment: None,
            }),
        }
    }
    groups
}

/// Returns a few words about what the run was for.
fn purpose(run: &RecordedRun) -> String {
    let claims = run.outcome.claims.len();
    let commands = run.header.plan.commands.first();
    let ids: Vec<&str> = run.header.experiments.iter().map(|spec| spec.id.as_str()).collect();
    match commands.map(|set| (set.id.as_str(), set.commands.len())) {
        Some(("compare", 1)) => "1 command measured".into(),
        Some(("compare", commands)) => format!("{commands} commands compared"),
        Some(("slo", _)) => "A service level tested".into(),
        _ if !run.header.plan.tables.is_empty() => format!("Measured: {}", ids.join(", ")),
        _ if claims == 1 => "1 claim tested".into(),
        _ => format!("{claims} claims tested"),
    }
}

/// Returns the content security policy of a page. It allows only the page's own style and script, identified by their
/// SHA-256 digests.
fn policy(style: &str, script: &str) -> String {
    let [style, script] = [style, script].map(|text| BASE64_STANDARD.encode(Sha256::digest(text)));
    format!(
        "default-src 'none'; style-src 'sha256-{style}'; style-src-attr 'unsafe-inline'; \
         script-src 'sha256-{script}'; base-uri 'none'; form-action 'none'"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected digest was computed with `printf abc | openssl dgst -sha256 -binary | base64`.
    #[test]
    fn digests_are_those_that_browsers_compute() {
        let policy = policy("", "abc");
        assert!(policy.contains("style-src 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"), "{policy}");
        assert!(policy.contains("script-src 'sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0='"), "{policy}");
    }
}
