//! From a request to what is printed: where evidence goes, Ctrl-C, progress.

use std::path::Path;

use anyhow::{Context, anyhow};
use ascertain::{Done, Ending, Request, RunContext, Terms, runs};
use ascertain_engine::claim::Judging;
use ascertain_engine::command::Output;
use ascertain_engine::evidence;
use ascertain_engine::finding::Reason;
use ascertain_engine::outcome::{ClaimResult, Outcome, Verdict};
use ascertain_engine::plan::{Config, Plan};
use ascertain_engine::run::{Observer, Run};
use ascertain_engine::unit::Unit;
use ascertain_report::exports::{self, Purpose, Results};
use ascertain_report::progress::{Line, Watching};
use ascertain_report::terminal::Style;
use ascertain_report::{csv, json, markdown, outlook, sentence};
use ascertain_sys::{clock, interrupt, process};

use crate::cmd::{self, report};
use crate::exports::{Exports, in_repository};
use crate::options::{Common, Display, Format};
use crate::output;

/// The terms that the common options ask for.
pub fn terms(common: &Common) -> Terms {
    Terms { error: common.error, max_time: common.max_time, max_trials: common.max_trials, seed: seed(common.seed) }
}

/// The seed that was given, or any: the one taken is printed and stored.
pub fn seed(given: Option<u64>) -> u64 {
    given.unwrap_or_else(|| (clock::unix_ns() ^ u64::from(std::process::id())) % 1_000_000_007)
}

/// Carries out what was asked for with the shipped experiments, and prints what came of it.
pub fn carry_out((request, plan): (Request, Plan), common: &Common) -> anyhow::Result<Ending> {
    let purpose = request.purpose(&plan);
    let watched = plan.clone();
    let evidence = (!common.no_evidence).then(|| common.evidence.clone().unwrap_or_else(evidence::runs_folder));
    let carry_out = |observer: &mut dyn Observer| {
        let registry = ascertain_experiments::registry();
        let context = RunContext { registry, evidence, label: common.label.clone(), ..RunContext::new(observer) };
        Ok(ascertain::carry_out(request, plan, context)?)
    };
    let shown = (&common.display, common.explain);
    with_observer(&watched, &purpose, &common.exports, shown, carry_out)
}

/// What a use case prints where formats leave it a choice.
pub struct Printed {
    /// In CSV, which has room for one table: the claims, or else the metrics.
    pub asks_verdicts: bool,
    /// Whether a report of many claims is made without being asked for. One that stands there is made anew in any case.
    pub has_report: bool,
}

/// Prints what came of a run as asked, and how one that is undecided goes on. `text` is for people, of the arms that
/// were asked for. Where that or CSV leaves no room for why something failed or is missing, standard error has it.
pub fn print(
    done: &Done,
    display: &Display,
    printed: &Printed,
    text: impl FnOnce(&Outcome, &Style) -> String,
) -> anyhow::Result<()> {
    let Done { plan, run, .. } = done;
    let outcome = &run.outcome;
    let is_undecided = outcome.claims.iter().any(|claim| claim.verdict == Verdict::Undecided);
    let is_said = is_undecided && !outcome.interrupted && !display.quiet;
    let says_why = match display.format {
        Format::Table => !display.quiet,
        Format::Csv => printed.asks_verdicts,
        Format::Json | Format::Markdown => true,
    };
    if !says_why {
        missing(run, display.quiet).iter().for_each(|sentence| output::note(sentence));
    }
    match display.format {
        Format::Json => output::print(&json::outcome(outcome))?,
        Format::Csv if printed.asks_verdicts => output::print(&csv::claims(outcome))?,
        Format::Csv => output::print(&csv::outcome(outcome))?,
        Format::Markdown => output::print(&markdown::outcome(&outcome.asked_for(&plan.tables), &done.request.layout))?,
        Format::Table if display.quiet => {}
        Format::Table => output::say(&text(&outcome.asked_for(&plan.tables), &output::style(display)))?,
    }
    if let (true, Some(how)) = (is_said, how_to_go_on(run, &plan.config)) {
        output::note(&format!("undecided: {how}; the error stays the same"));
    }
    match &run.folder {
        Some(folder) if printed.has_report || folder.join("report.html").is_file() => {
            report::write(folder, display.quiet)
        }
        _ => Ok(()),
    }
}

/// Why a target failed, or why nothing was measured: said by claims, or, where none says it, of arms. Unless it is to
/// be quiet, also what could not be measured beside the rest.
fn missing(run: &Run, is_quiet: bool) -> Vec<String> {
    let outcome = &run.outcome;
    let is_empty = outcome.points.iter().all(|point| point.n == 0);
    if !run.target_failed && !is_empty && is_quiet {
        return Vec::new();
    }
    let says_why = |claim: &&ClaimResult| claim.verdict == Verdict::Failed || (is_empty && !claim.reasons.is_empty());
    let is_named = |claim: &ClaimResult| outcome.claims.len() > 1 && claim.decision.is_none();
    let said = outcome.claims.iter().filter(says_why).map(|claim| match is_named(claim) {
        true => format!("{}: {}", claim.id, sentence::claim(claim)),
        false => sentence::claim(claim),
    });
    let said: Vec<String> = said.collect();
    if said.is_empty() { sentence::left_out(outcome) } else { said }
}

/// Has a run watched, and what came of it printed, with what that rests on where it is to be explained. A file that
/// can't be written any more is an error that comes after the result.
pub fn with_observer(
    plan: &Plan,
    purpose: &Purpose,
    exports: &Exports,
    (display, explain): (&Display, bool),
    carry_out: impl FnOnce(&mut dyn Observer) -> anyhow::Result<Done>,
) -> anyhow::Result<Ending> {
    let quiet = display.quiet;
    // Opened before anything is measured: a folder that can't be written to is found now.
    let mut files = exports.open(purpose.clone(), display)?;
    interrupt::install().context("Ctrl-C can't be caught")?;
    // Commands that write to the terminal themselves would have a line in their way.
    let shows_output = plan.commands.iter().any(|set| set.output == Output::Inherit);
    let line = Line::new(!quiet && !shows_output);
    let done = carry_out(&mut Watching { line, files: &mut files, is_quiet: quiet })?;
    let run = &done.run;
    for failure in &done.cleanup_failures {
        output::note(&format!("error: {failure}"));
    }
    if exports.annotate.is_some() {
        let purpose = in_repository(purpose.clone());
        let results = Results::new(&run.outcome, &run.observations, &purpose, true);
        exports::annotations(&results).lines().for_each(output::note);
    }
    if let (true, Some(how)) = (run.outcome.interrupted && !quiet, how_to_go_on(run, &done.plan.config)) {
        output::note(&format!("interrupted: {how}{}", price(&run.outcome)));
    }
    files.keep(&run.outcome, &run.observations);
    let unexported = files.finish().err().map(|error| match continuing(run, &[]) {
        Some(line) => format!("{error}; the run is kept: `{line}` with the same exports writes them anew"),
        None => error.to_string(),
    });
    let printed = (cmd::printer(&done.request.use_case))(&done, display);
    // The answer comes first.
    if let (Some(folder), false) = (&run.folder, quiet) {
        output::note(&format!("evidence: {}", folder.display()));
        note_many_bytes(folder.parent().unwrap_or(folder));
    }
    printed?;
    if explain {
        output::explained(&run.outcome, display)?;
    }
    unexported.map_or_else(|| Ok(done.ending()), |unexported| Err(anyhow!(unexported)))
}

/// Names the command that deletes old runs if those in this folder take much space: nothing deletes them by itself.
fn note_many_bytes(below: &Path) {
    const MUCH: u64 = 1_000_000_000;
    let bytes = runs::total_bytes(below);
    if bytes > MUCH {
        let mut words = vec!["ascertain", "history", "prune", "--keep", "50"];
        let folder = below.to_string_lossy();
        if below != evidence::runs_folder() {
            words.extend(["--evidence", &folder]);
        }
        let size = Unit::Byte.human(bytes as f64);
        output::note(&format!("the runs in {folder} take {size}; to delete old ones: {}", process::join(&words)));
    }
}

/// What the interruption costs: what it cut off is kept, so that nobody can drop the slow ones.
fn price(outcome: &Outcome) -> String {
    let is_cut_off = |reason: &Reason| matches!(reason, Reason::LeftOpen { has_met_limit: false, .. });
    let Some(claim) = outcome.claims.iter().find(|claim| claim.reasons.iter().any(is_cut_off)) else {
        return String::new();
    };
    let noun = if claim.asked.judging == Judging::Order { "pair" } else { "trial" };
    format!(". The interrupted {noun} counts against either answer, so a few more {noun}s are needed")
}

/// The command that continues the run, with twice the trials if they were limited, and with the trials and the time that
/// a verdict needs at the least.
fn how_to_go_on(run: &Run, config: &Config) -> Option<String> {
    let is_interrupted = run.outcome.interrupted;
    let reasons = run.outcome.claims.iter().flat_map(|claim| &claim.reasons).filter(|_| !is_interrupted);
    let (mut least_trials, mut takes_ns) = (0, 0.0_f64);
    for reason in reasons {
        if let Reason::TooEarly { least, is_shared, most_trials, .. } = reason {
            least_trials = least_trials.max(least.trials);
            // A claim whose trials were limited does not need more time.
            let is_by_time = !is_shared && most_trials.is_none();
            takes_ns = takes_ns.max(least.takes_ns.filter(|_| is_by_time).unwrap_or(0.0));
        }
    }
    let limit = config.exact_trials.or(config.max_trials).filter(|_| !is_interrupted);
    let trials = limit.map(|limit| ("--max-trials", limit.saturating_mul(2).max(least_trials).to_string()));
    let time = (takes_ns > 0.0).then(|| ("--max-time", outlook::allowance(takes_ns / 1e9)));
    let limits: Vec<(&str, String)> = trials.into_iter().chain(time).collect();
    let options: Vec<&str> = limits.iter().flat_map(|(option, value)| [option, value.as_str()]).collect();
    Some(format!("`{}` goes on with it", continuing(run, &options)?))
}

/// The command that takes up a run that was kept.
fn continuing(run: &Run, options: &[&str]) -> Option<String> {
    let run = report::argument(run.folder.as_ref()?);
    Some(process::join(&[&["ascertain", "continue", &run], options].concat()))
}
