//! The page as a whole.

use ascertain_engine::outcome::{Outcome, Verdict};
use ascertain_engine::recorded::RecordedRun;
use askama::Template;

use super::aligned::{Aligned, aligned};
use super::claim::{Claim, claims};
use super::experiment::{Experiment, experiments};
use super::facts::{Fact, facts, in_short, moment, notice};
use super::lead::lead;
use super::markup::Html;
use super::missing::missing_trials;
use super::picture::{Figure, Room, figures, prefix};
use super::policy::policy;
use crate::finding;
use crate::grids;
use crate::pictures;
use crate::plot::svg;
use crate::sentence::left_out;
use crate::text::{command_line, ended, quoted};

const STYLE: &str = include_str!("../../web/report.css");
const SCRIPT: &str = include_str!("../../web/plot.js");

#[derive(Template)]
#[template(path = "report.html")]
struct Page {
    title: String,
    style: String,
    script: &'static str,
    policy: String,
    /// Where there are several runs: their claims side by side.
    aligned: Option<Aligned>,
    runs: Vec<Run>,
}

/// A run as the template draws it.
struct Run {
    /// What its addresses begin with.
    prefix: String,
    title: String,
    /// What was concluded.
    lead: Option<Html>,
    subtitle: String,
    /// What must be said first of it.
    notices: Vec<Html>,
    tally: Vec<Count>,
    facts: Vec<Fact>,
    threats: Vec<Html>,
    overview: Vec<Figure>,
    /// The claims that the overview does not show.
    undrawn: Option<Html>,
    claims: Vec<Claim>,
    experiments: Vec<Experiment>,
    /// The pictures that are left out for the page's size, and how they are had.
    smaller: Option<Html>,
    /// Left out of experiments that the header does not describe.
    left_out: Vec<Html>,
    command_line: String,
    seed: u64,
    run_id: String,
}

/// How many claims came to a verdict.
struct Count {
    verdict: &'static str,
    answer: &'static str,
    count: usize,
}

/// The page of a run, or of several side by side, as HTML that is also well-formed XML.
///
/// It holds everything that it shows, and fetches nothing. Texts that others chose (commands, names, reasons)
/// show as they are and do nothing.
///
/// # Panics
/// Never: the templates are checked when the program is compiled, and nothing in them can fail.
pub fn page(runs: &[RecordedRun]) -> String {
    let views: Vec<Run> = runs.iter().enumerate().map(|(index, run)| view(run, index, runs.len())).collect();
    let title = match views.as_slice() {
        [run] => run.title.clone(),
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
    };
    page.render().expect("texts go into a String")
}

/// The style sheet, with the colours of pictures before it: those for a dark ground not on paper.
fn style() -> String {
    let [light, dark] = [false, true].map(svg::properties);
    let plots = svg::sheet();
    format!(":root{{{light}}}\n@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}\n{plots}\n{STYLE}")
}

fn view(run: &RecordedRun, index: usize, runs: usize) -> Run {
    let prefix = prefix(index, runs);
    let described = |id: &str| run.header.experiments.iter().any(|spec| spec.id == id);
    let left_out = left_out::of_outcome_where(&run.outcome, |experiment| !described(experiment));
    let (claims, experiments) = (claims(run, &prefix), experiments(run, &prefix));
    let undrawn_pictures = claims.iter().map(|claim| claim.undrawn).chain(experiments.iter().map(|e| e.undrawn)).sum();
    Run {
        title: title(run),
        subtitle: format!("{}, on {}", moment(&run.header.started), in_short(&run.outcome.machine)),
        lead: lead(run),
        notices: notice(run.state)
            .map(str::to_string)
            .into_iter()
            .chain(missing_trials(run))
            .chain(run.faults.iter().map(|fault| ended(fault)))
            .map(|notice| Html::prose(&notice))
            .collect(),
        tally: tally(&run.outcome),
        facts: facts(run),
        threats: run.outcome.threats.iter().map(|threat| Html::prose(&finding::threat_sentence(threat))).collect(),
        overview: overview(run, &prefix),
        undrawn: undrawn(run),
        smaller: smaller(run, undrawn_pictures),
        claims,
        experiments,
        left_out: left_out.iter().map(|sentence| Html::sentence(sentence)).collect(),
        command_line: command_line(&run.header.command_line),
        seed: run.outcome.seed,
        run_id: run.header.run_id.clone(),
        prefix,
    }
}

/// All claims at once. Where room is shortest without tables, since figures stand beside the rows.
fn overview(run: &RecordedRun, prefix: &str) -> Vec<Figure> {
    let mut drawn = figures(pictures::overview(run), prefix, "o", Room::Full);
    if Room::of(run) == Room::Least {
        drawn.iter_mut().for_each(|figure| figure.table = None);
    }
    drawn
}

fn undrawn(run: &RecordedRun) -> Option<Html> {
    let claims = pictures::undrawn(run);
    let each = claims.iter().map(|claim| format!("{} ({})", quoted(&claim.id), grids::answer(claim)));
    let all = each.collect::<Vec<_>>().join(", ");
    (!claims.is_empty()).then(|| Html::sentence(&format!("Not drawn, for want of a ratio or a rate: {all}.")))
}

/// That pictures are left out so that the page stays small, and how they are had.
fn smaller(run: &RecordedRun, undrawn: usize) -> Option<Html> {
    let tables = if Room::of(run) == Room::Least { ", and the tables of those that are here" } else { "" };
    let pictures = if undrawn == 1 { "1 picture that says".into() } else { format!("{undrawn} pictures that say") };
    let id = &run.header.run_id;
    let [list, draw] = ["--plots", "--svg ID"].map(|how| quoted(&format!("ascertain report {id} {how}")));
    let text = format!(
        "Left out to keep this page small: {pictures} more of what sentences and other pictures here say in short{tables}. \
         {list} lists all, and {draw} prints one."
    );
    (undrawn > 0).then(|| Html::sentence(&text))
}

/// What the run was for, in a few words.
fn title(run: &RecordedRun) -> String {
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

/// How many claims came to which verdict, or which answer where they are `compare`'s. Nothing to count where there is
/// only one.
fn tally(outcome: &Outcome) -> Vec<Count> {
    const ORDER: [Verdict; 6] = [
        Verdict::Holds,
        Verdict::Refuted,
        Verdict::Undecided,
        Verdict::Failed,
        Verdict::Unavailable,
        Verdict::Deferred,
    ];
    let mut counts: Vec<Count> = Vec::new();
    if outcome.claims.len() == 1 {
        return counts;
    }
    for verdict in ORDER {
        for claim in outcome.claims.iter().filter(|claim| claim.verdict == verdict) {
            let answer = grids::answer(claim);
            match counts.iter_mut().find(|count| count.answer == answer) {
                Some(count) => count.count += 1,
                None => counts.push(Count { verdict: verdict.word(), answer, count: 1 }),
            }
        }
    }
    counts
}
