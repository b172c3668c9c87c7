//! Measures a request, and prints its result. This is the only file of this crate that calls [`ascertain::run`].

use std::path::Path;

use anyhow::{Context, anyhow};
use ascertain::{Continuation, Ending, Request, RunContext, RunResult, runs};
use ascertain_engine::claim::{Judging, Test};
use ascertain_engine::evidence;
use ascertain_engine::finding::Reason;
use ascertain_engine::outcome::{ClaimResult, Outcome, TailDecision, Verdict};
use ascertain_engine::plan::UseCase;
use ascertain_engine::unit::Unit;
use ascertain_report::exports::{self, Results};
use ascertain_report::figure::{exact_percent, percent};
use ascertain_report::options::{Format, RenderOptions};
use ascertain_report::outlook;
use ascertain_report::progress::{Line, LivePicture, ProgressObserver};
use ascertain_report::render;
use ascertain_report::terminal::escape_controls;
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
    let mut result = {
        let line = Line::new(!options.quiet);
        let evidence_options = errors::EVIDENCE_OPTIONS;
        let (files, picture) = (&mut files, LivePicture::default());
        let mut observer = ProgressObserver { line, files, is_quiet: options.quiet, evidence_options, picture };
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
    if let Some(error) = result.error.take() {
        output::note(&format!("error: {:#}", errors::with_option(ascertain::Error::from(error).into())));
    }
    let RunResult { plan, outcome, observations, folder, cleanup_failures, .. } = &result;
    for failure in cleanup_failures {
        output::note(&format!("error: {failure}"));
    }
    if exports.annotate.is_some() {
        let plan = in_repository(plan.clone());
        let results = Results::new(&plan, outcome, observations, options.layout, true);
        exports::annotations(&results).lines().for_each(output::note);
    }
    if result.measured_nothing && !outcome.interrupted && !options.quiet {
        output::note(unmeasured(&result));
    }
    if outcome.interrupted && !options.quiet && outcome.windows.is_some() {
        output::note("interrupted: the results are those of the observations so far");
    }
    if let (true, Some(how)) = (outcome.interrupted && !options.quiet, continue_hint(&result, &[])) {
        output::note(&format!("interrupted; {how}{}", interruption_cost(outcome)));
    }
    files.keep(plan, outcome, observations);
    let unexported = files.finish().err().map(|error| match continue_command(&result, &[]) {
        Some(line) => {
            format!("{error}; the run is recorded; to write the exports again, use `{line}` with the same exports")
        }
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

/// Prints the result, and how to continue the run if it is undecided or missed its precision. Writes the HTML report if
/// the run measured experiments or judged claims, or if its folder already has a report.
fn print(result: &RunResult, options: &RenderOptions) -> anyhow::Result<()> {
    let use_case = result.plan.use_case;
    render::notes(result, options).iter().for_each(|note| output::note(note));
    let text = render::render(result, options);
    if options.format == Format::Table {
        output::print_for_people(&text)?
    } else {
        output::print(&text)?
    }
    let has_open_tail = |claim: &ClaimResult| claim.tails.iter().any(|tail| tail.decision == TailDecision::Undecided);
    let mut claims = result.outcome.claims.iter();
    let is_undecided = claims.any(|claim| claim.verdict == Verdict::Undecided || has_open_tail(claim));
    let is_open = is_undecided && !result.outcome.interrupted && use_case != UseCase::CalibrateHere;
    if let (true, Some(how)) = (is_open && !options.quiet, continue_hint(result, &[])) {
        output::note(&format!("undecided; {how} without a higher chance of error"));
    }
    if let (false, Some(missed)) = (options.quiet, missed_precision(result, is_undecided)) {
        output::note(&missed);
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

/// Returns a sentence for the user about the cost of an interrupted trial: more trials are needed, because the
/// interrupted trial counts against both answers. If it did not count, users could drop slow trials by interrupting
/// them. Returns an empty text if no claim lost a trial.
fn interruption_cost(outcome: &Outcome) -> String {
    let is_cut_off = |reason: &Reason| matches!(reason, Reason::LeftOpen { has_met_limit: false, .. });
    let Some(claim) = outcome.claims.iter().find(|claim| claim.reasons.iter().any(is_cut_off)) else {
        return String::new();
    };
    let noun = if claim.asked.judging == Judging::Order { "pair" } else { "trial" };
    format!(
        ". The interrupted {noun} has no result and counts against both possible answers, so a few more {noun}s are \
         needed"
    )
}

/// Returns a hint with the command that continues the run; `None` if the run has no evidence. The command allows at
/// least the trials and the time that a verdict needs. If the number of trials was limited, the command doubles the
/// limit. The command also has the options in `more`, each with its value.
fn continue_hint(run: &RunResult, more: &[(&str, String)]) -> Option<String> {
    if run.outcome.windows.is_some() {
        // A long measurement can't be continued, because its evidence has only a part of its observations.
        return None;
    }
    let is_interrupted = run.outcome.interrupted;
    let reasons = run.outcome.claims.iter().flat_map(|claim| &claim.reasons).filter(|_| !is_interrupted);
    let (mut least_trials, mut takes_ns) = (0, 0.0_f64);
    for reason in reasons {
        if let Reason::TooEarly { least, most_trials, run_ns, .. } = reason {
            least_trials = least_trials.max(least.trials);
            // If the run ended because of its maximum number of trials, more time is not needed.
            takes_ns = takes_ns.max(run_ns.filter(|_| most_trials.is_none()).unwrap_or(0.0));
        }
    }
    let config = &run.plan.config;
    let limit = config.exact_trials.or(config.max_trials).filter(|_| !is_interrupted);
    let trials = limit.map(|limit| ("--max-trials", limit.saturating_mul(2).max(least_trials).to_string()));
    let time = (takes_ns > 0.0).then(|| ("--max-time", outlook::allowance(takes_ns / 1e9)));
    let limits: Vec<(&str, String)> = trials.into_iter().chain(time).chain(more.iter().cloned()).collect();
    let options: Vec<&str> = limits.iter().flat_map(|(option, value)| [option, value.as_str()]).collect();
    Some(format!("`{}` continues the run", continue_command(run, &options)?))
}

/// Returns the reason why a continuation measured nothing.
fn unmeasured(run: &RunResult) -> &'static str {
    let claims = &run.outcome.claims;
    let is_open = |claim: &ClaimResult| matches!(claim.verdict, Verdict::Undecided | Verdict::Deferred);
    match () {
        () if claims.iter().any(is_open) => "nothing was measured: the run has reached its limits",
        () if run.plan.use_case == UseCase::Compare && !claims.is_empty() => {
            "nothing was measured: the run already has its answers; to narrow its intervals, use --precision"
        }
        () => "nothing was measured: the run is already complete",
    }
}

/// Returns a note if a comparison ended before it reached the precision that the user requested. The note has the
/// precision that was reached, and the command that continues the run. If the run was interrupted, or if an answer is
/// undecided (`is_undecided`), another note already has the command, so this note leaves it out.
fn missed_precision(run: &RunResult, is_undecided: bool) -> Option<String> {
    let RunResult { plan, outcome, .. } = run;
    // A precision with its own time limit is the default of `compare`.
    let wanted = plan.config.precision.filter(|_| plan.config.precision_time.is_none())?;
    let is_judged = |claim: &&ClaimResult| claim.trials > 0 && claim.decision.is_some();
    let is_missed = |claim: &&ClaimResult| claim.precision().is_none_or(|reached| reached > wanted);
    let missed: Vec<&ClaimResult> = outcome.claims.iter().filter(is_judged).filter(is_missed).collect();
    let reached = missed.iter().map(|claim| {
        let candidate = claim.asked.tests.iter().find_map(|test| match test {
            Test::Versus { candidate, .. } => Some(escape_controls(&candidate.to_string())),
            Test::Predicate { .. } => None,
        });
        let reached =
            claim.precision().map_or_else(|| "no interval yet".into(), |reached| format!("±{}", percent(reached)));
        format!("`{}` {reached}", candidate.unwrap_or_default())
    });
    let reached: Vec<String> = reached.collect();
    let option = format!("{}%", exact_percent(wanted).trim_end_matches(" %"));
    // The elapsed time of a continued run lacks the recorded trials.
    let needed_s =
        missed.iter().filter(|_| run.recorded_trials == 0).filter_map(|claim| outlook::seconds_to(claim, wanted));
    let more_s = needed_s.reduce(f64::max).map(|needed_s| needed_s - run.elapsed.as_secs_f64());
    let time = more_s.filter(|more_s| *more_s > plan.config.max_time.as_secs_f64() / 1.25);
    let mut options = vec![("--precision", option.clone())];
    options.extend(time.map(|more_s| ("--max-time", outlook::allowance(more_s))));
    let hint = continue_hint(run, &options).filter(|_| !is_undecided && !outcome.interrupted);
    let hint = hint.map_or_else(String::new, |how| format!("; {how}"));
    (!missed.is_empty()).then(|| format!("--precision {option} was not reached: {}{hint}", reached.join(", ")))
}

/// Returns the command that continues a recorded run; `None` if the run has no evidence, or compared revisions whose
/// folders are removed.
fn continue_command(run: &RunResult, options: &[&str]) -> Option<String> {
    if run.plan.commands.iter().flat_map(|set| &set.commands).any(|command| command.revision.is_some()) {
        return None;
    }
    let run = render::run_argument(run.folder.as_ref()?);
    Some(process::join(&[&["ascertain", "continue", &run], options].concat()))
}
