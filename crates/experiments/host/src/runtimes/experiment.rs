//! The experiment `runtimes`: which runtime is faster, on these workloads and on others?

mod build_id;
mod discover;
mod languages;
mod launch;
mod levels;
mod probe;
mod pyperformance;
mod session;
mod workloads;

use std::sync::LazyLock;
use std::time::Duration;

use ascertain_engine::claim::{Bound, Claim, Effect, Hypothesis, Judging, Test};
use ascertain_engine::experiment::{
    Accepts, Arm, Better, Experiment, Factor, Level, Metric, Plot, Reduce, Session, Setup, Spec, TargetError,
    Unavailable,
};
use ascertain_engine::finding::Remark;
use ascertain_engine::unit::Unit;
use ascertain_sys::machine::Machine;

/// The experiment `runtimes`, which compares language runtimes and their builds over a suite of workloads.
pub struct Runtimes;

const PYTHON: &str = "python";
const JAVASCRIPT: &str = "javascript";
const OTHER: &str = "other";

const RUNTIME: &str = "runtime";
/// The level that stands for all runtimes of this machine.
const FOUND: &str = "found";
const WORKLOADS: &str = "workloads";
/// The level that stands for the ten workloads of this experiment.
const OWN: &str = "own";
const PHASE: &str = "phase";
const START: &str = "start";
const FIRST: &str = "first";
const WARM: &str = "warm";

const SUITE: usize = 0;
const TIME: usize = 1;
const PASS: usize = 2;
const STARTED: usize = 3;
const DRIFT: usize = 4;

/// The key of the negative control.
const CONTROL: &str = "control";

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    title: "Which runtime is faster, on these workloads and on others like them".into(),
    variants: vec![
        (PYTHON, "Python, with ten workloads of this experiment").into(),
        (JAVASCRIPT, "JavaScript, with the same ten workloads").into(),
        (OTHER, "any other program that runs a file, with your own workloads").into(),
    ],
    factors: vec![
        Factor::new(
            RUNTIME,
            "program or path, also as NAME=PATH; the first is the baseline; `found` stands for all runtimes of this \
             machine",
            FOUND,
            Accepts::Anything,
        ),
        Factor::new(
            WORKLOADS,
            "`own`, names of its workloads, `pyperformance`, `pyperformance:NAME` or your own files, with commas",
            OWN,
            Accepts::List,
        ),
        Factor::one_of(
            PHASE,
            "sample: a pass after `warm_ms` of passes, the first pass, or the time from process start to first result",
            [WARM, FIRST, START],
        ),
        Factor::integer("warm_ms", "duration of the passes before the measured pass, in ms", 30, 0..=600_000),
        Factor::integer("limit_s", "time after which a process counts as timed out, in s", 20, 1..=86_400),
        Factor::one_of("follow", "measure the program that a wrapper starts, instead of the wrapper", ["yes", "no"]),
    ],
    metrics: metrics(),
    plots: vec![
        Plot::Forest {
            metric: "time".into(),
            mean: "suite".into(),
            factor: RUNTIME.into(),
            drift: "drift".into(),
            control: CONTROL.into(),
        },
        Plot::Curve { metric: "pass".into() },
    ],
    ..Spec::new("runtimes", include_str!("README.md"))
});

fn metrics() -> Vec<Metric> {
    let median = |metric: Metric| Metric { reduce: Reduce::Quantile(0.5), ..metric };
    vec![
        Metric::time("suite", "geometric mean of the times of all workloads that every runtime completes"),
        median(Metric::time("time", "time of each workload, for the sample that `phase` names")).by_key(),
        median(Metric::time("pass", "time of each pass, by the time since the process started")),
        median(Metric::time("start", "time from the start of the process to its first result")).by_key(),
        median(Metric::new(
            "drift",
            "measured pass divided by the geometric mean of the passes before it, without the first",
            Unit::One,
            Better::Lower,
        ))
        .by_key(),
    ]
}

impl Experiment for Runtimes {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn has(&self, arm: &Arm, factor: &str) -> bool {
        let has_files = levels::has_files(arm);
        match factor {
            PHASE => !has_files,
            "warm_ms" => !has_files && levels::text(arm, PHASE) == WARM,
            _ => true,
        }
    }

    fn settled(&self, factor: &str, level: Level) -> Result<Level, String> {
        levels::settled(factor, level)
    }

    /// Replaces the level `found` by the runtimes of this machine. Drops each arm whose runtime is not of
    /// the language that its variant names.
    fn chosen(&self, arms: Vec<Arm>, are_named: bool) -> Result<Vec<Arm>, String> {
        levels::chosen(arms, are_named)
    }

    /// Returns the claim that each runtime is faster than the first one, by the geometric mean.
    fn claims_about(&self, arms: &[Arm]) -> Vec<Claim> {
        let others = |arm: &Arm| arm.point.only(|factor, _| factor != RUNTIME);
        let order = |candidate: &Arm| {
            let first = arms.iter().find(|arm| others(arm) == others(candidate)).filter(|first| *first != candidate)?;
            let [name, base] = [candidate, first].map(levels::name);
            let test = Test::Versus {
                measure: (&SPEC.metrics[SUITE]).into(),
                candidate: candidate.clone(),
                baseline: first.clone(),
                scale: Effect::Ratio,
                bound: Bound::AtLeast(1.0),
            };
            let says = format!("{name} is faster than {base} on this suite");
            let claim = Claim::in_half("runtimes", format!("runtimes.{name}"), says, test);
            let asked = Hypothesis { judging: Judging::Order, ..claim.asked };
            Some(Claim { restated: String::new(), asked, ..claim })
        };
        arms.iter().filter_map(order).collect()
    }

    fn notices(&self, arms: &[Arm], _: u64) -> Result<Vec<Remark>, String> {
        Ok(pyperformance::notice(arms).into_iter().collect())
    }

    fn available(&self, arm: &Arm, _: &Machine) -> Result<(), Unavailable> {
        let runtime = levels::runtime(arm).map_err(|error| Unavailable::Program {
            program: format!("the runtime `{}`", levels::text(arm, RUNTIME)),
            error,
        })?;
        workloads::select(arm, runtime.language).map(drop).map_err(Unavailable::levels)
    }

    fn run_time(&self) -> Option<Duration> {
        Some(Duration::from_secs(100))
    }

    fn open(&self, arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
        Ok(Box::new(session::RuntimesSession::open(arms, setup)?))
    }
}

#[cfg(test)]
#[path = "tests/mod.rs"]
mod tests;
