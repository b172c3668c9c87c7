//! An experiment with known values: each value is a function of the variant and the trial.

use std::cell::Cell;
use std::time::Duration;

use ascertain_engine::Error;
use ascertain_engine::claim::{Bound, Claim, Effect, Hypothesis, Judging, Test};
use ascertain_engine::experiment::{
    Arm, ArmId, Experiment, Metric, Point, Samples, Session, Setup, Spec, Status, TargetError, Trial, Unavailable,
    Variant,
};
use ascertain_engine::outcome::Outcome;
use ascertain_engine::plan::{Config, Plan, Registry};
use ascertain_engine::predicate::Predicate;
use ascertain_engine::result::RunResult;
use ascertain_engine::run::{Clock, Observer, Recording, Silent, run_by_clock};
use ascertain_sys::clock;
use ascertain_sys::interrupt::Stop;
use ascertain_sys::machine::Machine;

/// A function that returns the value of an arm in a trial.
pub type Script = fn(variant: &str, trial: &Trial) -> Result<f64, TargetError>;

pub struct Scripted {
    pub spec: Spec,
    pub script: Script,
    /// Function that returns whether an arm's answer is right; called at each verification.
    pub is_right: fn(variant: &str) -> bool,
    /// Function that returns the facts of an arm when the arm is opened.
    pub facts: fn(variant: &str) -> Result<Point, TargetError>,
    /// Arms that this machine cannot measure.
    pub missing: &'static [&'static str],
    /// Indices of the metrics that this machine cannot observe, although it can measure the arms.
    pub hidden: &'static [usize],
    /// Memory that each arm needs, in bytes.
    pub bytes_each: u64,
}

impl Scripted {
    pub fn new(variants: &[&str], script: Script) -> Scripted {
        let variants = variants.iter().map(|name| Variant { name: name.to_string(), about: String::new() });
        let spec = Spec {
            id: "scripted".into(),
            variants: variants.collect(),
            metrics: vec![Metric::time("time", "")],
            ..Spec::default()
        };
        Scripted {
            spec,
            script,
            is_right: |_| true,
            facts: |_| Ok(Point::default()),
            missing: &[],
            hidden: &[],
            bytes_each: 0,
        }
    }

    pub fn predicate(&self, id: &str, variant: &str, predicate: &str, rate: f64) -> Claim {
        let predicate = Predicate::parse(predicate, &self.spec.metrics).unwrap();
        Claim {
            rate,
            restated: String::new(),
            ..Claim::in_half("scripted", id.into(), id.into(), Test::predicate(arm(variant), predicate))
        }
    }
}

pub fn arm(variant: &str) -> Arm {
    Arm { variant: variant.into(), point: Point::default() }
}

pub fn versus(id: &str, candidate: &str, baseline: &str, bound: Bound, judging: Judging) -> Claim {
    let (candidate, baseline) = (arm(candidate), arm(baseline));
    let measure = (&Metric::time("time", "")).into();
    let tests = vec![Test::Versus { measure, candidate, baseline, scale: Effect::Ratio, bound }];
    let claim = Claim::in_half("scripted", id.into(), id.into(), tests[0].clone());
    Claim { restated: String::new(), asked: Hypothesis { judging, margin: None, tests }, ..claim }
}

pub fn with_margin(mut claim: Claim, margin: f64) -> Claim {
    claim.asked.margin = Some(margin);
    claim
}

thread_local! {
    /// The time of [`TestClock`]. It starts at the system's time, so that recorded rows have a time after the start of
    /// their run.
    static NOW_NS: Cell<u64> = Cell::new(clock::now_ns());
}

/// A clock that tests move with [`take`]. Each reading moves the clock by one nanosecond, so that every duration is
/// above zero.
pub struct TestClock;

impl Clock for TestClock {
    fn now_ns(&self) -> u64 {
        NOW_NS.set(NOW_NS.get() + 1);
        NOW_NS.get()
    }

    fn sleep(&self, duration: Duration) {
        take(duration);
    }
}

/// Moves the clock of this test's runs.
pub fn take(duration: Duration) {
    NOW_NS.set(NOW_NS.get() + duration.as_nanos() as u64);
}

/// Carries out a plan with [`TestClock`].
pub fn run(
    plan: &Plan,
    registry: &Registry,
    recording: Recording,
    stop: &Stop,
    observer: &mut dyn Observer,
) -> Result<RunResult, Error> {
    run_by_clock(plan, registry, recording, stop, observer, &TestClock)
}

/// Returns a plan. If `config` has the default time limit, the plan's limit is an hour. The number of trials then ends
/// the run, even on a busy machine.
pub fn plan(claims: Vec<Claim>, config: Config) -> Plan {
    let is_default = config.max_time == Config::default().max_time;
    let max_time = if is_default { Duration::from_secs(3600) } else { config.max_time };
    Plan { claims, tables: Vec::new(), config: Config { seed: 7, max_time, ..config }, ..Plan::default() }
}

pub fn outcome(experiment: &Scripted, plan: &Plan) -> Outcome {
    let registry: [&dyn Experiment; 1] = [experiment];
    run(plan, &registry, Recording::None, &Default::default(), &mut Silent).unwrap().outcome
}

pub fn noisy(variant: &str, trial: &Trial) -> Result<f64, TargetError> {
    // `slow` takes 10 % longer than `fast`. The noise of a trial is the same for its arms, and far larger.
    let noise = 1.0 + (trial.seed % 1000) as f64;
    Ok(match variant {
        "fast" => 100.0 * noise,
        "slow" => 110.0 * noise,
        "even" => 105.0 + (trial.seed % 2) as f64,
        _ => 105.0 + 1.0 - (trial.seed % 2) as f64,
    })
}

impl Experiment for Scripted {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn available(&self, arm: &Arm, _: &Machine) -> Result<(), Unavailable> {
        match self.missing.contains(&arm.variant.as_str()) {
            true => Err(Unavailable::other("needs a unicorn")),
            false => Ok(()),
        }
    }

    fn shows(&self, _: &Arm, metric: usize, _: &Machine) -> Result<(), Unavailable> {
        match self.hidden.contains(&metric) {
            true => Err(Unavailable::other("needs a spyglass")),
            false => Ok(()),
        }
    }

    fn memory_bytes(&self, arms: &[Arm]) -> u64 {
        self.bytes_each.saturating_mul(arms.len() as u64)
    }

    fn open(&self, arms: &[Arm], _: &Setup) -> Result<Box<dyn Session>, TargetError> {
        let variants = arms.iter().map(|arm| arm.variant.clone()).collect();
        Ok(Box::new(Playing { variants, script: self.script, is_right: self.is_right, facts: self.facts }))
    }
}

struct Playing {
    variants: Vec<String>,
    script: Script,
    is_right: fn(variant: &str) -> bool,
    facts: fn(variant: &str) -> Result<Point, TargetError>,
}

impl Session for Playing {
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        match (self.is_right)(&self.variants[arm]) {
            true => Ok(()),
            false => Err(TargetError::WrongAnswer("42".into())),
        }
    }

    fn facts(&mut self, arm: ArmId) -> Result<Point, TargetError> {
        (self.facts)(&self.variants[arm])
    }

    fn measure(&mut self, arm: ArmId, trial: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        match (self.script)(&self.variants[arm], trial)? {
            // It reached a time limit of 30 ns.
            f64::INFINITY => out.push_with(0, 30.0, Status::Censored),
            time => out.push(0, time),
        }
        Ok(())
    }
}
