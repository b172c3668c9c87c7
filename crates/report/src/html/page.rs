//! The page as a whole.

use ascertain::outcome::{Outcome, Verdict};
use ascertain::recorded::RecordedRun;
use askama::Template;

use super::aligned::{Aligned, aligned};
use super::claim::{Claim, claims};
use super::experiment::{Experiment, experiments};
use super::facts::{Fact, command_line, facts, moment, notice};
use super::markup::Html;
use super::picture::{Figure, overview};
use super::policy::policy;
use crate::sentence::marked;

const STYLE: &str = include_str!("../../../../web/report.css");
const SCRIPT: &str = include_str!("../../../../web/plot.js");

#[derive(Template)]
#[template(path = "report.html")]
struct Page {
    title: String,
    style: &'static str,
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
    subtitle: String,
    notice: Option<&'static str>,
    tally: Vec<Count>,
    facts: Vec<Fact>,
    threats: Vec<Html>,
    overview: Vec<Figure>,
    claims: Vec<Claim>,
    experiments: Vec<Experiment>,
    /// Left out of experiments that the header does not describe.
    left_out: Vec<Html>,
    command_line: String,
    seed: u64,
    run_id: String,
}

/// How many claims came to a verdict.
struct Count {
    verdict: &'static str,
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
    let page = Page {
        title,
        style: STYLE,
        script: SCRIPT,
        policy: policy(STYLE, SCRIPT),
        aligned: (runs.len() > 1).then(|| aligned(runs)),
        runs: views,
    };
    page.render().expect("texts go into a String")
}

fn view(run: &RecordedRun, index: usize, runs: usize) -> Run {
    let prefix = if runs > 1 { format!("run-{}-", index + 1) } else { String::new() };
    let described = |id: &str| run.header.experiments.iter().any(|spec| spec.id == id);
    let left_out = run.outcome.left_out.iter().filter(|arm| !described(&arm.experiment));
    Run {
        title: title(run),
        subtitle: format!("{}, {}", moment(&run.header.started), run.outcome.machine.cpu_model),
        notice: notice(run.state),
        tally: tally(&run.outcome),
        facts: facts(run),
        threats: run.outcome.threats.iter().map(|threat| Html::prose(threat)).collect(),
        overview: overview(run, &prefix),
        claims: claims(run, &prefix),
        experiments: experiments(run, &prefix),
        left_out: left_out.map(|arm| Html::sentence(&marked::left_out(arm))).collect(),
        command_line: command_line(&run.header.command_line),
        seed: run.outcome.seed,
        run_id: run.header.run_id.clone(),
        prefix,
    }
}

/// What the run was for, in a few words.
fn title(run: &RecordedRun) -> String {
    let claims = run.outcome.claims.len();
    let commands = run.header.plan.commands.first();
    let ids: Vec<&str> = run.header.experiments.iter().map(|spec| spec.id.as_str()).collect();
    match commands.map(|set| (set.id.as_str(), set.commands.len())) {
        Some(("compare", commands)) => format!("{commands} commands compared"),
        Some(("slo", _)) => "A service level on trial".into(),
        _ if !run.header.plan.tables.is_empty() => format!("Measured: {}", ids.join(", ")),
        _ if claims == 1 => "1 claim on trial".into(),
        _ => format!("{claims} claims on trial"),
    }
}

fn tally(outcome: &Outcome) -> Vec<Count> {
    let verdicts = [
        Verdict::Holds,
        Verdict::Refuted,
        Verdict::Undecided,
        Verdict::Failed,
        Verdict::Unavailable,
        Verdict::Deferred,
    ];
    let count = |verdict: Verdict| Count {
        verdict: verdict.word(),
        count: outcome.claims.iter().filter(|claim| claim.verdict == verdict).count(),
    };
    verdicts.map(count).into_iter().filter(|count| count.count > 0).collect()
}
