//! An experiment whose values are known: what a trial sees is a function of variant and trial.

use std::cell::Cell;
use std::time::Duration;

use ascertain_engine::Error;
use ascertain_engine::claim::{Bound, Claim, Effect, Judging, Test};
use ascertain_engine::experiment::{
    Arm, ArmId, Experiment, Metric, Point, Samples, Session, Setup, Spec, Status, TargetError, Trial, Unavailable,
    Variant,
};
use ascertain_engine::outcome::Outcome;
use ascertain_engine::plan::{Config, Plan, Registry};
use ascertain_engine::predicate::Predicate;
use ascertain_engine::run::{Clock, Observer, Recording, Run, Silent, run_by_clock};
use ascertain_sys::clock;
use ascertain_sys::interrupt::Stop;
use ascertain_sys::machine::Machine;

/// What an arm answers in a trial.
pub type Script = fn(variant: &str, trial: &Trial) -> Result<f64, TargetError>;

pub struct Scripted {
    pub spec: Spec,
    pub script: Script,
    /// Whether an arm's answer is right, each time that it is checked.
    pub is_right: fn(variant: &str) -> bool,
    /// What is found of an arm when it is opened.
    pub facts: fn(variant: &str) -> Result<Point, TargetError>,
    /// Arms that this machine can't measure.
    pub missing: &'static [&'static str],
    /// Metrics that this machine can't show, of arms that it can measure.
    pub hidden: &'static [usize],
    /// What each arm takes of the memory.
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
        claim(id, Test::Predicate { arm: arm(variant), predicate }, Judging::Rate, rate)
    }
}

pub fn arm(variant: &str) -> Arm {
    Arm { variant: variant.into(), point: Point::default() }
}

pub fn versus(id: &str, candidate: &str, baseline: &str, bound: Bound, judging: Judging) -> Claim {
    let (candidate, baseline) = (arm(candidate), arm(baseline));
    claim(id, Test::Versus { metric: 0, candidate, baseline, scale: Effect::Ratio, bound }, judging, 0.5)
}

fn claim(id: &str, test: Test, judging: Judging, rate: f64) -> Claim {
    Claim {
        id: id.into(),
        says: id.into(),
        source: String::new(),
        source_value: String::new(),
        analysis: String::new(),
        restated: String::new(),
        experiment: "scripted".into(),
        tests: vec![test],
        judging,
        rate,
        margin: None,
        error: None,
        look_every: 1,
        max_time: None,
        max_trials: None,
        counters: Vec::new(),
    }
}

thread_local! {
    /// The time of [`TestClock`]. It starts with the system's, so that recorded rows have a time after their run's start.
    static NOW_NS: Cell<u64> = Cell::new(clock::now_ns());
}

/// A clock that scripts move, by what they [`take`]. Each reading moves it by another nanosecond, so that nothing takes
/// no time at all.
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

/// Carries out a plan by the clock that scripts move.
pub fn run(
    plan: &Plan,
    registry: &Registry,
    recording: Recording,
    stop: &Stop,
    observer: &mut dyn Observer,
) -> Result<Run, Error> {
    run_by_clock(plan, registry, recording, stop, observer, &TestClock)
}

/// A plan without a time limit of its own ends by its trials, also by the system's clock on a busy machine.
pub fn plan(claims: Vec<Claim>, config: Config) -> Plan {
    let is_default = config.max_time == Config::default().max_time;
    let max_time = if is_default { Duration::from_secs(3600) } else { config.max_time };
    Plan { claims, tables: Vec::new(), commands: Vec::new(), config: Config { seed: 7, max_time, ..config } }
}

pub fn outcome(experiment: &Scripted, plan: &Plan) -> Outcome {
    let registry: [&dyn Experiment; 1] = [experiment];
    run(plan, &registry, Recording::None, &Default::default(), &mut Silent).unwrap().outcome
}

pub fn noisy(variant: &str, trial: &Trial) -> Result<f64, TargetError> {
    // `slow` takes 10 % longer than `fast`; the noise of a trial is shared by its arms and far larger.
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
            // It met a time limit of 30 ns.
            f64::INFINITY => out.push_with(0, 30.0, Status::Censored),
            time => out.push(0, time),
        }
        Ok(())
    }
}
