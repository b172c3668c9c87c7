//! From a plan and a request to a run, and further with one that is recorded.

use std::path::PathBuf;
use std::time::Duration;

use ascertain_engine::command::CommandExperiment;
use ascertain_engine::evidence;
use ascertain_engine::experiment::Experiment;
use ascertain_engine::outcome::Gate;
use ascertain_engine::plan::{Plan, Registry};
use ascertain_engine::run::{Observer, Recording, Run};
use ascertain_sys::clock;
use ascertain_sys::interrupt::Stop;

use crate::compare;
use crate::error::Error;
use crate::request::{Ending, GatedVerdict, Request};

/// Where a run happens: what it may measure besides commands, where its evidence goes, and who hears of it.
pub struct RunContext<'a> {
    /// The experiments that it may name; commands are always there.
    pub registry: &'a Registry<'a>,
    /// The folder of runs; without one no evidence is kept.
    pub evidence: Option<PathBuf>,
    /// Said in `run.json`, for those who read it.
    pub command_line: Vec<String>,
    /// Ends it in order when somebody asks; by default signals do, where the program has them caught.
    pub stop: Stop,
    /// Hears of it between trials.
    pub observer: &'a mut dyn Observer,
}

impl<'a> RunContext<'a> {
    /// Evidence is kept where Ascertain keeps it, and no experiments are needed.
    pub fn new(observer: &'a mut dyn Observer) -> RunContext<'a> {
        let evidence = Some(evidence::runs_folder());
        RunContext {
            registry: &[],
            evidence,
            command_line: std::env::args().collect(),
            stop: Stop::default(),
            observer,
        }
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

/// Carries out a plan with the context's experiments and the plan's own commands.
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
        },
    };
    go(request, plan, recording, context.registry, (&context.stop, context.observer))
}

/// A recorded run, and what is to be otherwise from now on.
#[derive(Clone, Debug, PartialEq)]
pub struct Continue {
    /// The run's folder.
    pub folder: PathBuf,
    /// Time for the continuation; without it, as much as the run had.
    pub max_time: Option<Duration>,
    /// Trials of each lane in all; without it, as many as the run had.
    pub max_trials: Option<u64>,
    /// Verdicts that fail, instead of those that the run said.
    pub fail_on: Option<Vec<GatedVerdict>>,
    /// What it fails for, of a run of the first version, whose plan does not have it.
    pub gate: Option<Gate>,
}

impl Continue {
    /// Goes on with the run. Its error budget stays what it was, and so do its tables, gates and purpose: `run.json`
    /// has them, and [`Request::of_recorded`] reads the request there.
    ///
    /// # Errors
    /// When the run can't be read, or goes on elsewhere, or its experiments are not here.
    pub fn carry_out(self, mut request: Request, context: RunContext) -> Result<Done, Error> {
        let parts = Box::new(evidence::Writer::resume(&self.folder).map_err(ascertain_engine::Error::from)?);
        let mut plan = parts.1.header.plan.clone();
        if let Some(max_time) = self.max_time {
            // A time of one's own is kept to, also where no answer is possible within.
            (plan.config.max_time, plan.config.longest_time) = (max_time, None);
        }
        if self.max_trials.is_some() {
            // It takes the place of `compare -r`, too.
            (plan.config.max_trials, plan.config.exact_trials) = (self.max_trials, None);
        }
        plan.config.gate = plan.config.gate.or(self.gate);
        if let Some(fail_on) = self.fail_on {
            if plan.commands.iter().any(|set| set.id == compare::USE_CASE) {
                let way_out = "and its --fail-if stays what it was";
                return Err(Error::Request(format!("--fail-on is for claims; this run compares commands, {way_out}")));
            }
            request.fail_on = fail_on;
        }
        go(request, plan, Recording::Continue(parts), context.registry, (&context.stop, context.observer))
    }
}

fn go(
    request: Request,
    plan: Plan,
    recording: Recording,
    registry: &Registry,
    (stop, observer): (&Stop, &mut dyn Observer),
) -> Result<Done, Error> {
    let commands = plan.commands.iter().cloned().map(CommandExperiment::new);
    let commands = commands.collect::<Result<Vec<_>, _>>()?;
    let mut all: Vec<&dyn Experiment> = registry.to_vec();
    all.extend(commands.iter().map(|command| command as &dyn Experiment));
    let recorded_trials = match &recording {
        Recording::Continue(parts) => parts.1.trials.count(),
        Recording::None | Recording::New { .. } => 0,
    };
    let start_ns = clock::now_ns();
    let run = ascertain_engine::run::run(&plan, &all, recording, stop, observer)?;
    let elapsed = Duration::from_nanos(clock::now_ns().saturating_sub(start_ns));
    let cleanup_failures = commands.iter().flat_map(CommandExperiment::cleanup_failures).collect();
    Ok(Done { request, plan, run, elapsed, recorded_trials, cleanup_failures })
}
