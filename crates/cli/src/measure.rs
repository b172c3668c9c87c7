//! Measures a request, and prints its result. This is the only file of this crate that calls [`ascertain::run`].

use std::path::Path;

use anyhow::{Context, anyhow};
use ascertain::{Continuation, Ending, Request, RunContext, RunResult, runs};
use ascertain_engine::claim::Judging;
use ascertain_engine::evidence;
use ascertain_engine::finding::Reason;
use ascertain_engine::outcome::{Outcome, Verdict};
use ascertain_engine::plan::UseCase;
use ascertain_engine::unit::Unit;
use ascertain_report::exports::{self, Results};
use ascertain_report::options::{Format, RenderOptions};
use ascertain_report::outlook;
use ascertain_report::progress::{Line, ProgressObserver};
use ascertain_report::render;
use ascertain_sys::{interrupt, process};

use crate::cmd::report;
use crate::errors;
use crate::exports::{Exports, in_repository};
use crate::options::Common;
use crate::output;

/// The kind of measurement: a new run, or the continuation of a recorded one.
pub enum Start<'a> {
    New(Box<Request>, &'a Common),
    Recorded(Continuation),
}

/// Measures, writes the exports, and prints the result.
///
/// # Errors
/// If the request is invalid, or a file can't be written. After an error in an export, the result is still printed.
pub fn measure(start: Start, options: &RenderOptions, exports: &Exports) -> anyhow::Result<Ending> {
    // Open the files first, so that a missing permission is reported before anything is measured.
    let mut files = exports.open(options)?;
    interrupt::install().context("can't handle Ctrl-C")?;
    let result = {
        let line = Line::new(!options.quiet);
        let evidence_options = errors::EVIDENCE_OPTIONS;
        let mut observer = ProgressObserver { line, files: &mut files, is_quiet: options.quiet, evidence_options };
        let registry = &ascertain_experiments::registry();
        let context = RunContext { registry, render: options.clone(), ..RunContext::new(&mut observer) };
        match start {
            Start::New(request, common) => {
                let folder = || common.evidence.clone().unwrap_or_else(evidence::runs_folder);
                let (evidence, label) = ((!common.no_evidence).then(folder), common.label.clone());
                ascertain::run(*request, RunContext { evidence, label, ..context })
            }
            Start::Recorded(continuation) => ascertain::continue_run(continuation, context),
        }?
    };
    let RunResult { plan, outcome, observations, folder, cleanup_failures, .. } = &result;
    for failure in cleanup_failures {
        output::note(&format!("error: {failure}"));
    }
    if exports.annotate.is_some() {
        let plan = in_repository(plan.clone());
        let results = Results::new(&plan, outcome, observations, options.layout, true);
        exports::annotations(&results).lines().for_each(output::note);
    }
    if let (true, Some(how)) = (outcome.interrupted && !options.quiet, continue_hint(&result)) {
        output::note(&format!("interrupted; {how}{}", interruption_cost(outcome)));
    }
    files.keep(plan, outcome, observations);
    let unexported = files.finish().err().map(|error| match continue_command(&result, &[]) {
        Some(line) => format!("{error}; the run is recorded: run `{line}` with the same exports to write them again"),
        None => error.to_string(),
    });
    let printed = print(&result, options);
    // Print the answer first, then where the evidence is.
    if let (Some(folder), false) = (folder, options.quiet) {
        output::note(&format!("evidence: {}", folder.display()));
        note_many_bytes(folder.parent().unwrap_or(folder));
    }
    printed?;
    unexported.map_or_else(|| Ok(result.ending()), |unexported| Err(anyhow!(unexported)))
}

/// Prints the result, and how to continue the run if it is undecided. Writes the HTML report if the run measured
/// experiments or judged claims, or if its folder already has a report.
fn print(result: &RunResult, options: &RenderOptions) -> anyhow::Result<()> {
    let use_case = result.plan.use_case;
    render::notes(result, options).iter().for_each(|note| output::note(note));
    let text = render::render(result, options);
    if options.format == Format::Table {
        output::print_for_people(&text)?
    } else {
        output::print(&text)?
    }
    let is_undecided = result.outcome.claims.iter().any(|claim| claim.verdict == Verdict::Undecided);
    let is_open = is_undecided && !result.outcome.interrupted && use_case != UseCase::CalibrateHere;
    if let (true, Some(how)) = (is_open && !options.quiet, continue_hint(result)) {
        output::note(&format!("undecided; {how} without a higher chance of error"));
    }
    match &result.folder {
        Some(folder) if matches!(use_case, UseCase::Check | UseCase::Run) || folder.join("report.html").is_file() => {
            report::write(folder, options.quiet)
        }
        _ => Ok(()),
    }
}

/// If the runs in this folder use much space, prints a command that deletes old ones. Runs are never deleted
/// automatically.
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
        output::note(&format!("the runs in {folder} use {size}; to delete old ones, run `{}`", process::join(&words)));
    }
}

/// Returns a sentence about the trial that a signal interrupted: it counts like any other. Otherwise users could drop
/// slow trials by interrupting them.
fn interruption_cost(outcome: &Outcome) -> String {
    let is_cut_off = |reason: &Reason| matches!(reason, Reason::LeftOpen { has_met_limit: false, .. });
    let Some(claim) = outcome.claims.iter().find(|claim| claim.reasons.iter().any(is_cut_off)) else {
        return String::new();
    };
    let noun = if claim.asked.judging == Judging::Order { "pair" } else { "trial" };
    format!(". The interrupted {noun} counts against either answer, so a few more {noun}s are needed")
}

/// Returns a hint with the command that continues the run; `None` if the run has no evidence. The command allows at
/// least the trials and the time that a verdict needs. If the run ended at its maximum number of trials, the command
/// doubles this number.
fn continue_hint(run: &RunResult) -> Option<String> {
    let is_interrupted = run.outcome.interrupted;
    let reasons = run.outcome.claims.iter().flat_map(|claim| &claim.reasons).filter(|_| !is_interrupted);
    let (mut least_trials, mut takes_ns) = (0, 0.0_f64);
    for reason in reasons {
        if let Reason::TooEarly { least, is_shared, most_trials, .. } = reason {
            least_trials = least_trials.max(least.trials);
            // If the run ended because of its maximum number of trials, more time is not needed.
            let is_by_time = !is_shared && most_trials.is_none();
            takes_ns = takes_ns.max(least.takes_ns.filter(|_| is_by_time).unwrap_or(0.0));
        }
    }
    let config = &run.plan.config;
    let limit = config.exact_trials.or(config.max_trials).filter(|_| !is_interrupted);
    let trials = limit.map(|limit| ("--max-trials", limit.saturating_mul(2).max(least_trials).to_string()));
    let time = (takes_ns > 0.0).then(|| ("--max-time", outlook::allowance(takes_ns / 1e9)));
    let limits: Vec<(&str, String)> = trials.into_iter().chain(time).collect();
    let options: Vec<&str> = limits.iter().flat_map(|(option, value)| [option, value.as_str()]).collect();
    Some(format!("`{}` continues the run", continue_command(run, &options)?))
}

/// Returns the command that continues a recorded run; `None` if the run has no evidence.
fn continue_command(run: &RunResult, options: &[&str]) -> Option<String> {
    let run = render::run_argument(run.folder.as_ref()?);
    Some(process::join(&[&["ascertain", "continue", &run], options].concat()))
}
