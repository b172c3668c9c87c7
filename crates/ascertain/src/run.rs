//! Measures a request and returns its result.

use std::path::{Path, PathBuf};

use ascertain_engine::evidence;
use ascertain_engine::plan::{Plan, Registry};
use ascertain_engine::result::RunResult;
use ascertain_engine::run::{self, Observer, Recording};
use ascertain_report::options::RenderOptions;
use ascertain_sys::interrupt::Stop;

#[cfg(feature = "commands")]
use crate::calibrate_here::CalibrateHere;
#[cfg(feature = "claims")]
use crate::check::Check;
#[cfg(feature = "commands")]
use crate::compare::Compare;
use crate::error::Error;
use crate::experiments::Experiments;
use crate::revision;
#[cfg(feature = "commands")]
use crate::slo::Slo;

/// A request to measure something, as plain data. `run.json` stores its [plan](Request::plan), so that a continued run
/// measures the same claims even if claims files have changed.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "a program has few requests")]
pub enum Request {
    /// Compares commands: which one is faster, and by how much?
    #[cfg(feature = "commands")]
    Compare(Compare),
    /// Checks an objective: does a command succeed often enough, and in time?
    #[cfg(feature = "commands")]
    Slo(Slo),
    /// Judges the claims of claims files.
    #[cfg(feature = "claims")]
    Check(Check),
    /// Measures experiments, and judges claims about them.
    Run(Experiments),
    /// Measures how noisy this machine is.
    #[cfg(feature = "commands")]
    CalibrateHere(CalibrateHere),
    /// Compares functions. The value is the [plan](crate::bench::plan) for one group of them.
    Bench(Plan),
}

impl Request {
    /// Returns the plan: the arms to measure and the claims to judge.
    ///
    /// # Errors
    /// If a command, a metric or a predicate is invalid.
    pub fn plan(self) -> Result<Plan, Error> {
        match self {
            #[cfg(feature = "commands")]
            Request::Compare(compare) => compare.plan(),
            #[cfg(feature = "commands")]
            Request::Slo(slo) => slo.plan(),
            #[cfg(feature = "claims")]
            Request::Check(check) => Ok(check.plan()),
            Request::Run(experiments) => Ok(experiments.plan()),
            #[cfg(feature = "commands")]
            Request::CalibrateHere(calibrate) => calibrate.plan(),
            Request::Bench(plan) => Ok(plan),
        }
    }
}

/// Everything that a run needs in addition to its request, such as the experiments, the folder for evidence, and an
/// observer.
pub struct RunContext<'a> {
    /// The experiments that the program knows. A request can only name these.
    pub registry: &'a Registry<'a>,
    /// Folder for the evidence of all runs; `None` to record no evidence.
    pub evidence: Option<PathBuf>,
    /// The command line that is recorded in `run.json` for readers. Bytes that are not UTF-8 are replaced.
    pub command_line: Vec<String>,
    /// The label of the run, for `run.json`.
    pub label: Option<String>,
    /// Options for printing the result. `run.json` stores them, so that a continued run prints in the same way.
    pub render: RenderOptions,
    /// Handle for stopping the run early. The default also stops on signals, if the program has installed handlers for
    /// them.
    pub stop: Stop,
    /// Receives progress reports between trials.
    pub observer: &'a mut dyn Observer,
}

impl<'a> RunContext<'a> {
    /// Returns a context without experiments, which records evidence in the default folder.
    pub fn new(observer: &'a mut dyn Observer) -> RunContext<'a> {
        RunContext {
            registry: &[],
            evidence: Some(evidence::runs_folder()),
            command_line: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
            label: None,
            render: RenderOptions::default(),
            stop: Stop::default(),
            observer,
        }
    }
}

/// Measures a request. Recorded evidence contains the git revision of the working directory.
///
/// # Errors
/// If the request is invalid, or its plan can't be carried out.
pub fn run(request: Request, context: RunContext) -> Result<RunResult, Error> {
    let plan = request.plan()?;
    let recording = match context.evidence {
        None => Recording::None,
        Some(runs) => Recording::New {
            runs,
            command_line: context.command_line,
            render: serde_json::to_value(&context.render).unwrap_or_default(),
            label: context.label,
            revision: revision::of_folder(Path::new(".")),
            known: Some(evidence::known_folder()),
        },
    };
    Ok(run::run(&plan, context.registry, recording, &context.stop, context.observer)?)
}
