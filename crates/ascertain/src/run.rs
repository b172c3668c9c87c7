//! From a plan and a request to a run.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ascertain_engine::experiment::{Accepts, Experiment};
use ascertain_engine::plan::{Plan, Registry};
use ascertain_engine::run::{Observer, Recording, Run};
use ascertain_sys::clock;
use ascertain_sys::interrupt::Stop;

use crate::error::Error;
use crate::request::{Ending, Request};
use crate::revision;

/// Where a run happens: what it may measure besides commands, where its evidence goes, and who hears of it.
pub struct RunContext<'a> {
    /// The experiments that it may name; commands are always there.
    pub registry: &'a Registry<'a>,
    /// The folder of runs; without one no evidence is kept.
    pub evidence: Option<PathBuf>,
    /// The command line that `run.json` shows to readers. Bytes that are not UTF-8 are replaced.
    pub command_line: Vec<String>,
    /// The label that `run.json` gets.
    pub label: Option<String>,
    /// Ends it in order when somebody asks; by default signals do, where the program has them caught.
    pub stop: Stop,
    /// Hears of it between trials.
    pub observer: &'a mut dyn Observer,
}

impl<'a> RunContext<'a> {
    /// Evidence is kept where Ascertain keeps it, and no experiments are needed.
    pub fn new(observer: &'a mut dyn Observer) -> RunContext<'a> {
        let evidence = Some(ascertain_engine::evidence::runs_folder());
        let command_line = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
        RunContext { registry: &[], evidence, command_line, label: None, stop: Stop::default(), observer }
    }
}

/// A run that has ended.
#[derive(Debug)]
pub struct Done {
    /// What was asked for.
    pub request: Request,
    /// What was measured and judged.
    pub plan: Plan,
    /// What came of it.
    pub run: Run,
    /// How long it took, with what was made ready for it; of a run that went on, since then.
    pub elapsed: Duration,
    /// Trials that had been recorded before it went on.
    pub recorded_trials: usize,
    /// Commands that were to clean up, and failed.
    pub cleanup_failures: Vec<String>,
}

impl Done {
    /// What it came to, as an exit code says it.
    #[must_use]
    pub fn ending(&self) -> Ending {
        match self.request.ending(&self.plan, &self.run) {
            Ending::Interrupted => Ending::Interrupted,
            // What it left behind may be in the way of the next run.
            _ if !self.cleanup_failures.is_empty() => Ending::TargetFailed,
            ending => ending,
        }
    }
}

/// Carries out a plan with the context's experiments and the plan's own commands. If evidence is kept, it has the git
/// revision of the working directory, which is looked up before anything is measured.
///
/// # Errors
/// When the plan can't be carried out, or evidence can't be begun.
pub fn carry_out(request: Request, plan: Plan, context: RunContext) -> Result<Done, Error> {
    let recording = match context.evidence {
        None => Recording::None,
        Some(runs) => Recording::New {
            runs,
            command_line: context.command_line,
            request: serde_json::to_value(&request).unwrap_or_default(),
            label: context.label,
            revision: revision::of_folder(Path::new(".")),
            known: Some(ascertain_engine::evidence::known_folder()),
        },
    };
    go(request, plan, (recording, 0), context.registry, (&context.stop, context.observer))
}

pub(crate) fn go(
    request: Request,
    plan: Plan,
    (recording, recorded_trials): (Recording, usize),
    registry: &Registry,
    (stop, observer): (&Stop, &mut dyn Observer),
) -> Result<Done, Error> {
    let commands = commands(&plan)?;
    let mut all: Vec<&dyn Experiment> = registry.to_vec();
    all.extend(commands.iter().map(Box::as_ref));
    check_addresses(&plan, &all)?;
    let start_ns = clock::now_ns();
    let run = ascertain_engine::run::run(&plan, &all, recording, stop, observer)?;
    let elapsed = Duration::from_nanos(clock::now_ns().saturating_sub(start_ns));
    let cleanup_failures = all.iter().flat_map(|experiment| experiment.cleanup_failures()).collect();
    Ok(Done { request, plan, run, elapsed, recorded_trials, cleanup_failures })
}

/// Looks up the addresses that environment variables have, before anything is measured.
fn check_addresses(plan: &Plan, registry: &Registry) -> Result<(), Error> {
    for (id, arm) in plan.arms() {
        let experiment = registry.iter().find(|experiment| experiment.spec().id == id);
        for factor in experiment.iter().flat_map(|experiment| &experiment.spec().factors) {
            if let Accepts::Address { none, from_variable: true, .. } = &factor.accepts {
                arm.address(&factor.name, none)?;
            }
        }
    }
    Ok(())
}

/// The plan's own commands.
#[cfg(feature = "commands")]
fn commands(plan: &Plan) -> Result<Vec<Box<dyn Experiment>>, Error> {
    let commands = plan.commands.iter().cloned().map(|set| {
        let experiment = ascertain_engine::command::CommandExperiment::new(set)?;
        Ok(Box::new(experiment) as Box<dyn Experiment>)
    });
    commands.collect()
}

/// A plan that has some names an experiment which is not there.
#[cfg(not(feature = "commands"))]
fn commands(_: &Plan) -> Result<Vec<Box<dyn Experiment>>, Error> {
    Ok(Vec::new())
}
