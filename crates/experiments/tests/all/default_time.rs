//! Checks that the default time of `run` is enough for the shipped claims. All peers count as installed, and the costs
//! and the clock are simulated.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use ascertain_engine::claim::{Claim, Judging};
use ascertain_engine::experiment::{Arm, ArmId, Experiment, Samples, Session, Setup, Spec, TargetError, Trial};
use ascertain_engine::outcome::Verdict;
use ascertain_engine::plan::{Config, Plan, Registry, Table};
use ascertain_engine::run::{Clock, Recording, Silent, run_by_clock};
use ascertain_experiments::{registry, shipped_claims};

/// The default time of `run` for one experiment.
const DEFAULT_TIME: Duration = Duration::from_secs(45);

/// Approximate durations of one measurement, for arms that need more than 10 ms. Each entry has the experiment, a
/// variant or level of the arm, and milliseconds. The durations were measured on a Zen 5 with two CPUs.
const COSTS_MS: &[(&str, &str, u64)] = &[
    ("barrier", "plain", 30),
    ("barrier", "", 8),
    ("cache-race", "", 150),
    ("dns-load", "", 1_100),
    ("dns-propagation", "", 600),
    ("favouritism", "", 400),
    ("fill-rate", "", 50),
    ("first-flight", "bytes=0", 600),
    ("first-flight", "", 150),
    ("format-scaling", "", 30),
    ("https-throughput", "mb=256", 400),
    ("https-throughput", "", 200),
    ("link-throughput", "measured_ms=160", 600),
    ("link-throughput", "", 1_300),
    ("link-truth", "", 250),
    ("polynomial", "", 15),
    ("reclamation", "", 40),
    ("reshuffle", "", 60),
    ("transfer", "", 85),
];

/// Smallest number of trials after which a verdict is possible. It is small, because a few failures are enough to
/// refute a claim that nearly all trials succeed.
const FEWEST_TRIALS: usize = 3;

/// Claims that this test leaves out, because the time that Route 53 takes cannot be predicted.
const LEFT_OUT: &[&str] = &["dns-propagation.insync-within-60-s"];

struct SimulatedClock(Rc<Cell<u64>>);

impl Clock for SimulatedClock {
    fn now_ns(&self) -> u64 {
        self.0.get()
    }

    fn sleep(&self, duration: Duration) {
        self.0.update(|now_ns| now_ns + duration.as_nanos() as u64);
    }
}

/// An experiment whose arms are all available, take their simulated time, and return the value 1 for each metric.
struct Simulated {
    real: &'static dyn Experiment,
    now_ns: Rc<Cell<u64>>,
    measured: Rc<RefCell<Vec<Arm>>>,
}

struct SimulatedSession {
    id: String,
    arms: Vec<Arm>,
    metrics: usize,
    now_ns: Rc<Cell<u64>>,
    measured: Rc<RefCell<Vec<Arm>>>,
}

impl Experiment for Simulated {
    fn spec(&self) -> &Spec {
        self.real.spec()
    }

    fn has(&self, arm: &Arm, factor: &str) -> bool {
        self.real.has(arm, factor)
    }

    fn open(&self, arms: &[Arm], _: &Setup) -> Result<Box<dyn Session>, TargetError> {
        let (id, metrics) = (self.spec().id.clone(), self.spec().metrics.len());
        let (now_ns, measured) = (self.now_ns.clone(), self.measured.clone());
        Ok(Box::new(SimulatedSession { id, arms: arms.to_vec(), metrics, now_ns, measured }))
    }
}

impl Session for SimulatedSession {
    fn verify(&mut self, _: ArmId) -> Result<(), TargetError> {
        Ok(())
    }

    fn measure(&mut self, arm: ArmId, _: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let arm = &self.arms[arm];
        let levels = format!("{} {}", arm.variant, arm.point);
        let is_of = |(id, level, _): &&(&str, &str, u64)| *id == self.id && levels.contains(level);
        let cost_ms = COSTS_MS.iter().find(is_of).map_or(10, |(.., ms)| *ms);
        self.now_ns.update(|now_ns| now_ns + cost_ms * 1_000_000);
        self.measured.borrow_mut().push(arm.clone());
        (0..self.metrics).for_each(|metric| out.push(metric, 1.0));
        Ok(())
    }
}

/// Claims are measured first, with the arms that they need. The remaining time is for the table.
#[test]
fn the_default_time_decides_every_claim_with_all_peers_installed() {
    let shipped = shipped_claims().unwrap().claims;
    for real in registry() {
        let id = &real.spec().id;
        let now_ns = Rc::new(Cell::new(0));
        let simulated = Simulated { real, now_ns: now_ns.clone(), measured: Rc::default() };
        let is_wanted = |claim: &&Claim| claim.experiment == *id && !LEFT_OUT.contains(&&*claim.id);
        let claims: Vec<Claim> = shipped.iter().filter(is_wanted).cloned().collect();
        let arms: Vec<Arm> = real.table_arms().iter().map(|arm| real.trimmed(arm)).collect();
        let of_claims: Vec<Arm> = claims.iter().flat_map(|claim| claim.arms()).cloned().collect();
        let tables = vec![Table { experiment: id.clone(), arms: arms.clone() }];
        let config = Config { max_time: DEFAULT_TIME, table_trials: Some(1), ..Config::default() };
        let plan = Plan { claims, tables, config, ..Plan::default() };
        let (registry, clock): ([&dyn Experiment; 1], _) = ([&simulated], SimulatedClock(now_ns));
        let registry: &Registry = &registry;
        let ran = run_by_clock(&plan, registry, Recording::None, &Default::default(), &mut Silent, &clock);
        for claim in ran.unwrap().outcome.claims {
            let is_decided = matches!(claim.verdict, Verdict::Holds | Verdict::Refuted);
            assert!(is_decided, "{}: {:?} {:?} after {}", claim.id, claim.verdict, claim.reasons, claim.trials);
        }
        let measured = simulated.measured.borrow();
        let first_of_table = measured.iter().position(|arm| !of_claims.contains(arm)).unwrap_or(measured.len());
        // A metric that is the same in each trial is judged after one trial.
        let by_rate = shipped.iter().filter(is_wanted).filter(|claim| claim.asked.judging == Judging::Rate);
        for arm in by_rate.flat_map(|claim| claim.arms()) {
            let before = measured[..first_of_table].iter().filter(|other| *other == arm).count();
            assert!(
                before >= FEWEST_TRIALS,
                "{id}: {arm} has {before} trials before the run measures arms that no claim needs"
            );
        }
        assert!(arms.iter().all(|arm| measured.contains(arm)), "{id}: the table gets the remaining time");
    }
}
