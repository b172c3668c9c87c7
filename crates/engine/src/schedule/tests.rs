//! Blocks that run elsewhere: their records come late, twice, or never.

use ascertain_sys::interrupt::Stop as Asked;
use ascertain_sys::machine::Machine;

use super::*;
use crate::block::{Failures, MeasuredArm};
use crate::claim::{Bound, Claim, Judging, Scale, Test};
use crate::experiment::{
    Arm, Better, Experiment, Metric, Point, Samples, Session, Setup, Spec, TargetError, Unavailable,
};
use crate::outcome::{ClaimResult, Verdict};
use crate::plan::{Config, Plan};
use crate::planning::{self, Grouping};
use crate::run::Silent;
use crate::unit::Unit;

/// Measured by the executor alone.
struct Remote(Spec);

impl Experiment for Remote {
    fn spec(&self) -> &Spec {
        &self.0
    }

    fn available(&self, _: &Arm, _: &Machine) -> Result<(), Unavailable> {
        Ok(())
    }

    fn open(&self, _: &[Arm], _: &Setup) -> Result<Box<dyn Session + '_>, TargetError> {
        Err(TargetError::Failed("it is elsewhere".into()))
    }
}

/// A worker far away, whose answers are late, come twice, and are lost.
struct FarAway {
    rng: Xoshiro256PlusPlus,
    /// How often the candidate wins.
    wins: f64,
    /// Which records it drops: by its own chance, and whether the candidate won.
    drops: fn(f64, bool) -> bool,
    dropped: u64,
    on_its_way: Vec<TrialRecord>,
    candidate: usize,
    closed: Vec<usize>,
}

impl FarAway {
    fn new(seed: u64, wins: f64, drops: fn(f64, bool) -> bool) -> FarAway {
        let rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        FarAway { rng, wins, drops, dropped: 0, on_its_way: Vec::new(), candidate: 0, closed: Vec::new() }
    }

    fn measure(&mut self, block: Block) -> (TrialRecord, bool) {
        let has_won = self.rng.random::<f64>() < self.wins;
        let mut samples = Samples::default();
        let measured = block.arms.iter().enumerate().map(|(index, slot)| {
            samples.push(0, if (slot == self.candidate) == has_won { 1.0 } else { 2.0 });
            MeasuredArm { slot, start_ns: 1, samples: index..index + 1 }
        });
        let measured = measured.collect();
        (TrialRecord { block: Some(block), measured, samples, ..TrialRecord::default() }, has_won)
    }
}

impl Executor for FarAway {
    fn open(&mut self, _: usize, _: &str, arms: &[(usize, Arm)]) -> Result<Failures, TargetError> {
        self.candidate = arms.iter().find(|(_, arm)| arm.variant == "candidate").unwrap().0;
        Ok(Failures::new())
    }

    fn close(&mut self, lane: usize) {
        self.closed.push(lane);
    }

    fn run(&mut self, block: Block, record: &mut TrialRecord) {
        let (first, has_won) = self.measure(block);
        let is_dropped = (self.drops)(self.rng.random(), has_won);
        self.dropped += u64::from(is_dropped);
        if !is_dropped {
            let copies = self.rng.random_range(1..3);
            self.on_its_way.extend((0..copies).map(|_| first.clone()));
        }
        if self.rng.random() || !self.collect(record) {
            record.clear();
        }
    }

    fn collect(&mut self, record: &mut TrialRecord) -> bool {
        if self.on_its_way.is_empty() {
            return false;
        }
        let any = self.rng.random_range(0..self.on_its_way.len());
        *record = self.on_its_way.swap_remove(any);
        true
    }
}

/// Whether the candidate is faster than the baseline in half of the pairs, judged from far away.
fn judged(far_away: &mut FarAway, max_trials: u64) -> ClaimResult {
    let metrics = vec![Metric::new("time", "", Unit::Nanosecond, Better::Lower)];
    let remote = Remote(Spec { id: "remote".into(), metrics, ..Spec::default() });
    let arm = |variant: &str| Arm { variant: variant.into(), point: Point::default() };
    let bound = Bound::AtLeast(1.5);
    let test =
        Test::Versus { metric: 0, candidate: arm("candidate"), baseline: arm("baseline"), scale: Scale::Ratio, bound };
    let claim = Claim {
        tests: vec![test],
        judging: Judging::Rate,
        rate: 0.5,
        experiment: "remote".into(),
        ..Claim::order("claim", &arm("candidate"), &arm("baseline"))
    };
    let config = Config { error: 0.05, max_trials: Some(max_trials), ..Config::default() };
    let plan = Plan { claims: vec![claim], tables: vec![], commands: vec![], config };
    let registry: [&dyn Experiment; 1] = [&remote];
    let machine = Machine::default();
    let (mut judge, _) = planning::lanes(&plan, &registry, &machine, Grouping::ByPlan).unwrap();
    let setting =
        Setting { registry: &registry, machine: &machine, cpu_times: None, commands: &[], run_id: "", seed: 0 };
    let (stop, mut silent) = (Asked::default(), Silent);
    let mut schedule = Schedule::new(far_away, &mut judge, None, &setting, (&stop, &mut silent), 0..u64::MAX);
    assert!(schedule.go().is_ok());
    judge.lose_the_rest(None);
    judge.results().remove(0)
}

#[test]
fn records_that_come_late_or_twice_count_once() {
    let mut far_away = FarAway::new(1, 1.0, |_, _| false);
    let result = judged(&mut far_away, 1_000);
    assert_eq!((result.verdict, result.unknown), (Verdict::Holds, 0), "{result:?}");
    assert!(result.decided.unwrap().trials < 10, "{result:?}");
    assert_eq!(far_away.closed, [0], "what was opened is closed");
}

/// With no difference between the two either verdict is a mistake at a rate of a half, if trials that are bad for one
/// answer could be made to disappear.
#[test]
fn records_that_never_come_count_against_both() {
    let verdicts = |drops: fn(f64, bool) -> bool, wins: f64| {
        let runs = (0..40).map(|seed| judged(&mut FarAway::new(seed, wins, drops), 60));
        runs.filter(|result| result.verdict == Verdict::Holds).count()
    };
    // A rate of 0.4 is not half; whoever loses three defeats of four would make it 0.73.
    let holds = verdicts(|chance, has_won| !has_won && chance < 0.75, 0.4);
    assert!(holds <= 40 / 20 + 5, "{holds}");
    // Losses that have nothing to do with what was seen cost trials, and no truth.
    let holds = verdicts(|chance, _| chance < 0.05, 0.95);
    assert!(holds > 35, "{holds}");
}
