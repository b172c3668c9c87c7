//! The page as a whole.

use ascertain_engine::claim::Judging;
use ascertain_engine::outcome::Verdict;
use ascertain_engine::recorded::RecordedRun;
use askama::Template;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use sha2::{Digest as _, Sha256};

use super::claim::{ClaimView, claims};
use super::experiment::{self, ExperimentView};
use super::facts::{Fact, facts, in_short, moment, notice};
use super::lead::{Answer, Furthest, furthest, missing_trials};
use super::mark::SharedAxis;
use super::markup::Html;
use super::pack::Pack;
use super::picture::{figures, in_addresses, prefix};
use super::table::{Aligned, aligned};
use crate::plot::svg;
use crate::sentence::{left_out, overshoot};
use crate::standing::{Count, of_so_many, tally};
use crate::text::{command_line, ended};
use crate::{finding, pictures};

const STYLE: &str = include_str!("../../web/report.css");
const SCRIPT: &str = concat!(include_str!("../../web/plot.js"), include_str!("../../web/report.js"));

#[derive(Template)]
#[template(path = "report.html")]
struct Page {
    title: String,
    style: String,
    script: &'static str,
    policy: String,
    /// Where there are several runs: their claims side by side.
    aligned: Option<Aligned>,
    runs: Vec<RunView>,
    /// What a ratio does whose trials ended with its verdict, where there is one.
    overshoot: Option<&'static str>,
    /// What is drawn when it is opened.
    packed: String,
}

/// A run as the template draws it.
struct RunView {
    /// What its addresses begin with.
    prefix: String,
    /// Of the experiments' headings.
    level: u8,
    answer: Answer,
    /// When and where, in a few words.
    subtitle: String,
    /// What must be said first of it.
    notices: Vec<Html>,
    tally: Vec<Count>,
    claims: usize,
    furthest: Vec<Furthest>,
    facts: Vec<Fact>,
    threats: Vec<Html>,
    /// All claims in pictures, before the rows where these are `compare`'s and else behind them.
    overview: Html,
    is_order: bool,
    axis: Html,
    groups: Vec<GroupView>,
    /// Left out of experiments that the header does not describe.
    left_out: Vec<Html>,
    command_line: String,
    seed: u64,
    run_id: String,
}

/// An experiment with the claims on it.
struct GroupView {
    anchor: String,
    id: String,
    title: String,
    tally: Vec<Count>,
    claims: Vec<ClaimView>,
    /// `None` where the header does not describe it.
    experiment: Option<ExperimentView>,
}

impl GroupView {
    /// "12 of 21 hold".
    fn hold(&self) -> String {
        let hold = self.claims.iter().filter(|claim| claim.verdict == Verdict::Holds.word()).count();
        let word = of_so_many(hold, Verdict::Holds.word());
        format!("{hold} of {} {word}", self.claims.len())
    }
}

/// The page of a run, or of several side by side, as HTML that is also well-formed XML.
///
/// It holds everything that it shows, and fetches nothing. Texts that others chose (commands, names, reasons)
/// show as they are and do nothing.
///
/// # Panics
/// Never: the templates are checked when the program is compiled, and nothing in them can fail.
pub fn page(runs: &[RecordedRun]) -> String {
    let mut pack = Pack::default();
    let views: Vec<RunView> =
        runs.iter().enumerate().map(|(index, run)| view(run, index, runs.len(), &mut pack)).collect();
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
        aligned: (runs.len() > 1).then(|| aligned(runs)),
        runs: views,
        overshoot: runs.iter().find_map(|run| overshoot(&run.outcome.claims)),
        packed: pack.packed(),
    };
    page.render().expect("texts go into a String")
}

/// The style sheet, with the colours of pictures before it: those for a dark ground not on paper.
fn style() -> String {
    let [light, dark] = [false, true].map(svg::properties);
    let plots = svg::sheet();
    format!(":root{{{light}}}\n@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}\n{plots}\n{STYLE}")
}

fn view(run: &RecordedRun, index: usize, runs: usize, pack: &mut Pack) -> RunView {
    let prefix = prefix(index, runs);
    let claims = &run.outcome.claims;
    let described = |id: &str| run.header.experiments.iter().any(|spec| spec.id == id);
    let left_out = left_out::of_outcome_where(&run.outcome, |experiment| !described(experiment));
    let is_order = !claims.is_empty() && claims.iter().all(|claim| claim.asked.judging == Judging::Order);
    let axis = SharedAxis::of(claims);
    RunView {
        level: if runs > 1 { 3 } else { 2 },
        answer: Answer::of(run, &purpose(run)),
        subtitle: format!("{}, on {}", moment(&run.header.started), in_short(&run.outcome.machine)),
        notices: notice(run.state)
            .map(str::to_string)
            .into_iter()
            .chain(missing_trials(run))
            .chain(run.faults.iter().map(|fault| ended(fault)))
            .map(|notice| Html::prose(&notice))
            .collect(),
        tally: tally(claims.iter()),
        claims: claims.len(),
        furthest: furthest(claims, &prefix),
        facts: facts(run),
        threats: run.outcome.threats.iter().map(|threat| Html::prose(&finding::threat_sentence(threat))).collect(),
        overview: figures(pictures::overview(run), &prefix, "o", is_order, pack),
        is_order,
        axis: axis.drawn(),
        groups: groups(run, &prefix, axis, pack),
        left_out: left_out.iter().map(|sentence| Html::sentence(sentence)).collect(),
        command_line: command_line(&run.header.command_line),
        seed: run.outcome.seed,
        run_id: run.header.run_id.clone(),
        prefix,
    }
}

/// The experiments in the order of the header, each with the claims on it; then the claims on others.
fn groups(run: &RecordedRun, prefix: &str, axis: SharedAxis, pack: &mut Pack) -> Vec<GroupView> {
    let experiments = &run.header.experiments;
    let mut groups: Vec<GroupView> = Vec::new();
    for (index, spec) in experiments.iter().enumerate() {
        groups.push(GroupView {
            anchor: format!("{prefix}experiment-{}", in_addresses(&spec.id)),
            id: spec.id.clone(),
            title: experiment::title(run, spec),
            tally: Vec::new(),
            claims: Vec::new(),
            experiment: Some(experiment::experiment(run, index, prefix, pack)),
        });
    }
    for (claim, view) in run.outcome.claims.iter().zip(claims(run, prefix, axis, pack)) {
        match groups.iter_mut().find(|group| group.id == claim.experiment) {
            Some(group) => group.claims.push(view),
            None => groups.push(GroupView {
                anchor: format!("{prefix}experiment-{}-{}", groups.len() + 1, in_addresses(&claim.experiment)),
                id: claim.experiment.clone(),
                title: String::new(),
                tally: Vec::new(),
                claims: vec![view],
                experiment: None,
            }),
        }
    }
    for group in &mut groups {
        group.tally = tally(run.outcome.claims.iter().filter(|claim| claim.experiment == group.id));
    }
    groups
}

/// What the run was for, in a few words.
fn purpose(run: &RecordedRun) -> String {
    let claims = run.outcome.claims.len();
    let commands = run.header.plan.commands.first();
    let ids: Vec<&str> = run.header.experiments.iter().map(|spec| spec.id.as_str()).collect();
    match commands.map(|set| (set.id.as_str(), set.commands.len())) {
        Some(("compare", 1)) => "A command measured".into(),
        Some(("compare", commands)) => format!("{commands} commands compared"),
        Some(("slo", _)) => "A service level on trial".into(),
        _ if !run.header.plan.tables.is_empty() => format!("Measured: {}", ids.join(", ")),
        _ if claims == 1 => "1 claim on trial".into(),
        _ => format!("{claims} claims on trial"),
    }
}

/// The content security policy of a page: its one style and script, by their digests, and nothing else.
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

    /// As `printf abc | openssl dgst -sha256 -binary | base64` has it.
    #[test]
    fn digests_are_those_that_browsers_compute() {
        let policy = policy("", "abc");
        assert!(policy.contains("style-src 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"), "{policy}");
        assert!(policy.contains("script-src 'sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0='"), "{policy}");
    }
}
