//! From options to a run: the plan's configuration, where its evidence goes, Ctrl-C, progress.

use std::time::Duration;

use anyhow::{Context, anyhow};
use ascertain_engine::command::CommandExperiment;
use ascertain_engine::experiment::{Arm, Experiment};
use ascertain_engine::observations::Observations;
use ascertain_engine::outcome::{LeftOut, Outcome, Verdict};
use ascertain_engine::plan::{Config, Plan};
use ascertain_engine::run::{Observer, Progress, Recording, Run};
use ascertain_report::exports::{self, Files, Purpose, Results};
use ascertain_report::sentence;
use ascertain_sys::{clock, interrupt, process};

use crate::exit::Code;
use crate::exports::Exports;
use crate::options::{Common, Display};
use crate::output;
use crate::progress::Line;

/// The configuration that the common options ask for.
pub fn config(common: &Common, max_time: Duration) -> Config {
    Config {
        error: common.error,
        max_time: common.max_time.unwrap_or(max_time),
        max_trials: common.max_trials,
        seed: seed(common.seed),
        ..Config::default()
    }
}

/// The seed that was given, or any: the one taken is printed and stored.
pub fn seed(given: Option<u64>) -> u64 {
    given.unwrap_or_else(|| (clock::unix_ns() ^ u64::from(std::process::id())) % 1_000_000_007)
}

/// Carries out a plan with the shipped experiments and the plan's own commands. `purpose` is what exports
/// say beside the results; `say` prints what came of it, and tells the exit code.
pub fn carry_out(
    plan: &Plan,
    common: &Common,
    purpose: Purpose,
    say: impl FnOnce(&Run) -> anyhow::Result<Code>,
) -> anyhow::Result<Code> {
    let recording = match common.no_evidence {
        true => Recording::None,
        false => Recording::New {
            runs: common.evidence.clone().unwrap_or_else(ascertain_engine::evidence::runs_folder),
            command_line: std::env::args().collect(),
        },
    };
    carry_out_with(plan, recording, &common.exports, purpose, &common.display, |run| {
        if let (Some(folder), false) = (&run.folder, common.display.quiet) {
            output::note(&format!("evidence: {}", folder.display()));
        }
        say(run)
    })
}

/// Carries out a plan, its evidence going where it is told to. A file that can't be written any more is an error that
/// comes after the result.
pub fn carry_out_with(
    plan: &Plan,
    recording: Recording,
    exports: &Exports,
    purpose: Purpose,
    display: &Display,
    say: impl FnOnce(&Run) -> anyhow::Result<Code>,
) -> anyhow::Result<Code> {
    let quiet = display.quiet;
    // Opened before anything is measured: a folder that can't be written to is found now.
    let purpose = Purpose { tables: plan.tables.clone(), ..purpose };
    let files = exports.open(purpose.clone(), display)?;
    interrupt::install().context("Ctrl-C can't be caught")?;
    let commands = plan.commands.iter().cloned().map(CommandExperiment::new);
    let commands = commands.collect::<Result<Vec<_>, _>>()?;
    let mut registry: Vec<&dyn Experiment> = ascertain_experiments::registry().to_vec();
    registry.extend(commands.iter().map(|command| command as &dyn Experiment));
    let mut watching = Watching { plan, quiet, line: Line::new(quiet), files };
    let run = ascertain_engine::run::run(plan, &registry, recording, &mut watching)?;
    let Watching { line, mut files, .. } = watching;
    drop(line);
    for failure in commands.iter().flat_map(CommandExperiment::cleanup_failures) {
        output::note(&format!("warning: {failure}"));
    }
    if exports.annotate.is_some() {
        let results = Results::new(&run.outcome, &run.observations, &purpose, true);
        exports::annotations(&results).lines().for_each(output::note);
    }
    let how_to_go_on = how_to_go_on(&run, &plan.config);
    let is_undecided = run.outcome.claims.iter().any(|claim| claim.verdict == Verdict::Undecided);
    match &how_to_go_on {
        Some(how) if !quiet && run.outcome.interrupted => output::note(&format!("interrupted: {how}")),
        Some(how) if !quiet && is_undecided => output::note(&format!("undecided: {how}, at no cost in error")),
        _ => {}
    }
    files.keep(&run.outcome, &run.observations);
    let unexported = files.finish().err().map(|error| match continuing(&run, &[]) {
        Some(line) => format!("{error}; the run is kept: `{line}` with the same exports writes them anew"),
        None => error.to_string(),
    });
    let code = say(&run)?;
    let unkept = run.unkept.as_ref().map(ToString::to_string);
    let unwritten: Vec<String> = unkept.into_iter().chain(unexported).collect();
    if unwritten.is_empty() { Ok(code) } else { Err(anyhow!(unwritten.join("\nerror: "))) }
}

/// The command that measures further; of a run that was to have so many trials, with twice as many.
fn how_to_go_on(run: &Run, config: &Config) -> Option<String> {
    let limit = config.exact_trials.or(config.max_trials).filter(|_| !run.outcome.interrupted);
    let twice = limit.map(|trials| trials.saturating_mul(2).to_string());
    let options: Vec<&str> = twice.iter().flat_map(|trials| ["--max-trials", trials]).collect();
    Some(format!("`{}` goes on with it", continuing(run, &options)?))
}

/// The command that takes up a run that was kept.
fn continuing(run: &Run, options: &[&str]) -> Option<String> {
    let folder = run.folder.as_ref()?.to_string_lossy();
    Some(process::join(&[&["ascertain", "continue", &folder], options].concat()))
}

/// Who hears of a run: the line of progress, and the files that are written meanwhile.
struct Watching<'p> {
    plan: &'p Plan,
    quiet: bool,
    line: Line,
    files: Files,
}

impl Observer for Watching<'_> {
    fn unavailable(&mut self, left_out: &[LeftOut]) {
        let is_left_out =
            |(experiment, arm): (&str, &Arm)| left_out.iter().any(|left_out| left_out.is_of(experiment, arm));
        // Where nothing is left to be measured, what is printed says it at once.
        if !self.quiet && !self.plan.arms().all(is_left_out) {
            sentence::unavailable(left_out, self.plan).iter().for_each(|sentence| output::note(sentence));
        }
    }

    fn progress(&mut self, progress: &Progress) {
        self.line.progress(progress);
    }

    fn outcome_due(&mut self, now_ns: u64) -> bool {
        self.files.outcome_due(now_ns)
    }

    fn outcome(&mut self, outcome: &Outcome, observations: &Observations) {
        self.files.outcome(outcome, observations);
    }
}
