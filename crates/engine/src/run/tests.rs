//! Tests of runs with executors that are remote, that cannot open lanes, or whose durations are simulated.

use std::cell::Cell;

use ascertain_sys::interrupt::Stop;
use ascertain_sys::machine::Machine;

use super::*;
use crate::block::{FactsBySlot, MeasuredArm};
use crate::claim::{Bound, Claim, Effect, Test};
use crate::experiment::{Arm, Experiment, Level, Metric, Point, Samples, Session, Setup, Spec, TargetError};
use crate::finding::Unavailable;
use crate::outcome::{ClaimResult, Verdict};
use crate::plan::{self, Config, Plan, Table};
use crate::predicate::Predicate;
use crate::run::Silent;

/// An experiment that this process cannot measure; only the executor can. Only arms with a level below [`AVAILABLE`]
/// are available.
struct Remote(Spec);

const AVAILABLE: u64 = 60;

impl Experiment for Remote {
    fn spec(&self) -> &Spec {
        &self.0
    }

    fn available(&self, arm: &Arm, _: &Machine) -> Result<(), Unavailable> {
        match arm.point.get("number") {
            Some(Level::Integer(AVAILABLE..)) => Err(Unavailable::other("it is nowhere")),
            _ => Ok(()),
        }
    }

    fn open(&self, _: &[Arm], _: &Setup) -> Result<Box<dyn Session + '_>, TargetError> {
        Err(TargetError::Failed("it is elsewhere".into()))
    }
}

/// A remote worker whose records arrive late or twice, or are lost.
struct FarAway {
    rng: Xoshiro256PlusPlus,
    /// Probability that the candidate wins a trial.
    wins: f64,
    /// Decides whether a record is lost. The arguments are a random number in [0, 1) and whether the candidate won.
    drops: fn(f64, bool) -> bool,
    measured: u64,
    on_its_way: Vec<TrialRecord>,
    /// The index of each open lane, with the slot of its candidate.
    candidates: Vec<(usize, usize)>,
    closed: Vec<usize>,
}

impl FarAway {
    fn new(seed: u64, wins: f64, drops: fn(f64, bool) -> bool) -> FarAway {
        let rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (on_its_way, candidates, closed) = (Vec::new(), Vec::new(), Vec::new());
        FarAway { rng, wins, drops, measured: 0, on_its_way, candidates, closed }
    }

    fn measure(&mut self, block: Block) -> (TrialRecord, bool) {
        let has_won = self.rng.random::<f64>() < self.wins;
        let mut samples = Samples::default();
        let measured = block.arms.iter().enumerate().map(|(index, slot)| {
            let is_candidate = self.candidates.contains(&(block.lane, slot));
            samples.push(0, if is_candidate == has_won { 1.0 } else { 2.0 });
            MeasuredArm { slot, start_ns: 1, samples: index..index + 1 }
        });
        let measured = measured.collect();
        (TrialRecord { block: Some(block), measured, samples, ..TrialRecord::default() }, has_won)
    }
}

impl Executor for FarAway {
    fn open(&mut self, lane: usize, _: &str, arms: &[(usize, Arm)]) -> Result<FactsBySlot, TargetError> {
        self.candidates.push((lane, arms.iter().find(|(_, arm)| arm.variant == "candidate").unwrap().0));
        Ok(FactsBySlot::new())
    }

    fn close(&mut self, lane: usize) {
        self.closed.push(lane);
    }

    fn run(&mut self, block: Block, record: &mut TrialRecord) {
        let (first, has_won) = self.measure(block);
        let is_dropped = (self.drops)(self.rng.random(), has_won);
        self.measured += 1;
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

/// A clock that stands still until a test moves it.
impl Clock for Cell<u64> {
    fn now_ns(&self) -> u64 {
        self.get()
    }

    fn sleep(&self, duration: Duration) {
        self.update(|now_ns| now_ns + duration.as_nanos() as u64);
    }
}

/// Runs the claims, and returns their results. `time` contains the clock, and the start and end of the run as readings
/// of this clock.
fn results(
    remote: &Remote,
    claims: Vec<Claim>,
    config: Config,
    executor: &mut dyn Executor,
    time: (Range<u64>, &dyn Clock),
    now: Now,
) -> Vec<ClaimResult> {
    let plan = Plan { claims, config, ..Plan::default() };
    carried_out(remote, &plan, executor, time, now).0
}

/// Carries out a plan. Returns the results of the claims, and the number of table trials in each lane.
fn carried_out(
    remote: &Remote,
    plan: &Plan,
    executor: &mut dyn Executor,
    time: (Range<u64>, &dyn Clock),
    now: Now,
) -> (Vec<ClaimResult>, Vec<u64>) {
    let registry: [&dyn Experiment; 1] = [remote];
    let machine = Machine::default();
    let lack = |experiment: &dyn Experiment, arm: &Arm| experiment.available(arm, &machine).err();
    let (mut judge, _) = plan::lanes(plan, &registry, &machine, &lack).unwrap();
    let facts = RunFacts { registry: &registry, machine: &machine, cpu_times: None, plan, run_id: "" };
    let (stop, mut silent) = (Stop::default(), Silent);
    let mut trial_loop = TrialLoop::new(executor, &mut judge, None, &facts, (&stop, &mut silent), time, now);
    assert!(trial_loop.run().is_ok());
    judge.lose_the_rest(None);
    let of_tables = judge.lanes.iter().map(|lane| lane.table_trials).collect();
    (judge.results(), of_tables)
}

/// Judges three claims. The first states that the candidate is at least 1.5 times as fast as the baseline in half of
/// the trials. The second states that the candidate takes at most 1.5 ns in half of the trials. The third, in another
/// lane, states that another candidate is faster than its baseline.
fn judged(executor: &mut dyn Executor, max_trials: u64, now: Now) -> Vec<ClaimResult> {
    let metrics = vec![Metric::time("time", "")];
    let remote = Remote(Spec { id: "remote".into(), metrics, ..Spec::default() });
    let arm = |variant: &str, lane: u64| Arm { variant: variant.into(), point: Point::default().with("lane", lane) };
    let pair = |lane| ["candidate", "baseline"].map(|variant| arm(variant, lane));
    let ([candidate, baseline], [another, its_baseline]) = (pair(1), pair(2));
    let (scale, bound) = (Effect::Ratio, Bound::AtLeast(1.5));
    let claim = |id: &str, test: Test| Claim::in_half("remote", id.into(), String::new(), test);
    let time = &remote.0.metrics[0];
    let predicate = Test::predicate(candidate.clone(), Predicate::at_most(time, 1.5));
    let (candidate, baseline) = (candidate.clone(), baseline.clone());
    let claims = vec![
        claim("ratio", Test::Versus { measure: time.into(), candidate, baseline, scale, bound }),
        claim("predicate", predicate),
        Claim::order("remote", time, &another, &its_baseline),
    ];
    let config = Config { error: 0.01, max_trials: Some(max_trials), ..Config::default() };
    results(&remote, claims, config, executor, (0..u64::MAX, &Cell::new(0)), now)
}

/// An executor that cannot open any lane.
struct Shut;

impl Executor for Shut {
    fn open(&mut self, _: usize, _: &str, _: &[(usize, Arm)]) -> Result<FactsBySlot, TargetError> {
        Err(TargetError::Failed("it is shut".into()))
    }

    fn close(&mut self, _: usize) {}

    fn run(&mut self, _: Block, _: &mut TrialRecord) {
        panic!("it is shut");
    }
}

#[test]
fn what_can_not_be_opened_is_not_waited_for() {
    let now = Now::default();
    let results = judged(&mut Shut, 10, now.clone());
    assert!(results.iter().all(|result| result.verdict == Verdict::Failed) && now.activity().is_none(), "{results:?}");
}

#[test]
fn records_that_come_late_or_twice_count_once() {
    let mut far_away = FarAway::new(1, 1.0, |_, _| false);
    let results = judged(&mut far_away, 1_000, Now::default());
    for result in &results {
        assert_eq!((result.verdict, result.unknown), (Verdict::Holds, 0), "{result:?}");
        assert!(result.decided.unwrap().trials < 20, "{result:?}");
    }
    assert!(results[0].trials + results[2].trials <= far_away.measured, "{results:?}");
    far_away.closed.sort_unstable();
    assert_eq!(far_away.closed, [0, 1], "what was opened is closed");
}

/// Lost records must count as evidence against both verdicts. Otherwise an executor could drop the trials that speak
/// against the verdict that it prefers. If each of 40 runs is wrong with a probability of 0.01, the probability that
/// more than 3 are wrong is 0.0007.
#[test]
fn records_that_never_come_count_against_both() {
    let holding = |runs: u64, drops: fn(f64, bool) -> bool, wins: f64| {
        let runs = (0..runs).map(|seed| judged(&mut FarAway::new(seed, wins, drops), 60, Now::default()));
        let holding = runs.map(|results| results.iter().filter(|result| result.verdict == Verdict::Holds).count());
        holding.collect::<Vec<_>>()
    };
    // The true rate of 0.4 is less than half. If three of four defeats could be dropped, it would look like 0.73.
    let wrong = holding(40, |chance, has_won| !has_won && chance < 0.75, 0.4);
    assert!(wrong.iter().filter(|claims| **claims > 0).count() <= 3, "{wrong:?}");
    // If losing a record does not depend on the outcome, the verdict stays right and only needs more trials.
    let right = holding(10, |chance, _| chance < 0.05, 0.95);
    assert!(right.iter().filter(|claims| **claims == 3).count() > 8, "{right:?}");
}

/// An executor with simulated durations for opening a lane, for a trial, and for each arm. If `always_wins` is set, the
/// first arm wins every trial, otherwise every second trial.
struct Costly<'c> {
    now_ns: &'c Cell<u64>,
    opening_ns: u64,
    trial_ns: u64,
    arm_ns: u64,
    always_wins: bool,
}

impl Executor for Costly<'_> {
    fn open(&mut self, _: usize, _: &str, _: &[(usize, Arm)]) -> Result<FactsBySlot, TargetError> {
        self.now_ns.update(|now_ns| now_ns + self.opening_ns);
        Ok(FactsBySlot::new())
    }

    fn close(&mut self, _: usize) {}

    fn run(&mut self, block: Block, record: &mut TrialRecord) {
        let elapsed_ns = self.trial_ns + self.arm_ns * block.arms.iter().count() as u64;
        self.now_ns.update(|now_ns| now_ns + elapsed_ns);
        let mut samples = Samples::default();
        let wins = self.always_wins || block.trial.is_multiple_of(2);
        let measured = block.arms.iter().enumerate().map(|(index, slot)| {
            samples.push(0, if (slot == 0) == wins { 1.0 } else { 2.0 });
            MeasuredArm { slot, start_ns: 1, samples: index..index + 1 }
        });
        let measured = measured.collect();
        *record = TrialRecord { block: Some(block), measured, samples, elapsed_ns, ..TrialRecord::default() };
    }
}

/// Returns the claim that the candidate is at least `bound` times as fast as the baseline.
fn compared(id: String, candidate: Arm, baseline: Arm, bound: f64) -> Claim {
    let (measure, bound) = ((&Metric::time("time", "")).into(), Bound::AtLeast(bound));
    let test = Test::Versus { measure, candidate, baseline, scale: Effect::Ratio, bound };
    Claim::in_half("remote", id, String::new(), test)
}

/// Judges `claims` claims, each with its own arms, within `seconds` seconds.
fn judged_within(seconds: u64, claims: u64, opening_ns: u64, trial_ns: u64) -> Vec<ClaimResult> {
    let metrics = vec![Metric::time("time", "")];
    let remote = Remote(Spec { id: "remote".into(), metrics, ..Spec::default() });
    let claim = |number: u64| {
        let arm = |variant: &str| Arm { variant: variant.into(), point: Point::default().with("number", number) };
        compared(format!("claim-{number}"), arm("candidate"), arm("baseline"), 1.0)
    };
    let claims: Vec<Claim> = (0..claims).map(claim).collect();
    let (config, now_ns) = (Config { error: 0.01, ..Config::default() }, Cell::new(0));
    let mut executor = Costly { now_ns: &now_ns, opening_ns, trial_ns, arm_ns: 0, always_wins: true };
    results(&remote, claims, config, &mut executor, (0..seconds * 1_000_000_000, &now_ns), Now::default())
}

#[test]
fn pilots_that_would_take_all_of_the_time_leave_some_for_verdicts() {
    let of = |results: &[ClaimResult], verdict| results.iter().filter(|one| one.verdict == verdict).count();
    // The pilots take 60 s in all. With a shorter time limit, they would use it up if they all came first.
    let (second_ns, millisecond_ns) = (1_000_000_000, 1_000_000);
    for (seconds, least) in [(8, 4), (25, 12), (40, 20), (90, 60)] {
        let results = judged_within(seconds, 60, second_ns, 10 * millisecond_ns);
        let decided = of(&results, Verdict::Holds) + of(&results, Verdict::Refuted);
        let deferred = of(&results, Verdict::Deferred);
        assert!(decided >= least && decided + deferred == 60, "{seconds} s: {decided} decided, {deferred} deferred");
    }
    // Claims that were not tried report how long trying every claim would take, estimated from the claims that were
    // tried. Claims that cannot be measured do not count.
    let results = judged_within(25, 80, second_ns, 10 * millisecond_ns);
    let [Reason::TimeUp { was_tried: false, all_tried_ns: Some(all_tried_ns) }] = results[59].reasons[..] else {
        panic!("{:?}", results[59].reasons)
    };
    assert!((60e9..62e9).contains(&all_tried_ns), "{all_tried_ns}");
    // Claims that cannot be judged in time are deferred, which leaves time to try the others.
    let results = judged_within(25, 60, 0, 3 * second_ns);
    assert!(matches!(results[0].reasons[..], [Reason::TooLong { needed_ns, .. }] if needed_ns > 25e9));
    assert_eq!(results.iter().map(|one| one.trials).sum::<u64>(), 0);
}

/// A higher error is only suggested if the trials at this error fit in the remaining time.
#[test]
fn no_error_is_advised_that_takes_too_long_as_well() {
    let too_long = |seconds: u64| match judged_within(seconds, 2, 0, 1_000_000_000)[0].reasons[..] {
        [Reason::TooLong { trials, at_error, .. }] => (trials, at_error),
        ref reasons => panic!("{seconds} s: {reasons:?}"),
    };
    let (trials, none) = too_long(3);
    assert_eq!(none, None);
    let (_, at_error) = too_long(trials);
    assert!(at_error.is_some_and(|at| at.trials < trials), "{at_error:?} of {trials}");
}

/// Tests one claim that cannot be decided, one that cannot be measured, and one that is decided soon, each in its own
/// lane. The lane that cannot be measured must not delay the others.
#[test]
fn a_lane_without_an_open_claim_stops_no_other() {
    let remote = Remote(Spec { id: "remote".into(), metrics: vec![Metric::time("time", "")], ..Spec::default() });
    let claim = |number: u64, bound| {
        let arm = |variant: &str| Arm { variant: variant.into(), point: Point::default().with("number", number) };
        compared(format!("claim-{number}"), arm("candidate"), arm("baseline"), bound)
    };
    // The first arm wins every second trial; the third claim is true in all trials.
    let claims = vec![claim(0, 1.0), claim(AVAILABLE, 1.0), claim(1, 0.1)];
    let now_ns = Cell::new(0);
    let mut executor = Costly { now_ns: &now_ns, opening_ns: 0, trial_ns: 100_000_000, arm_ns: 0, always_wins: false };
    let config = Config { error: 0.01, ..Config::default() };
    let time = 0..100 * 1_000_000_000;
    let results = results(&remote, claims, config, &mut executor, (time, &now_ns), Now::default());
    let decided_after = results[2].decided.map(|decided| decided.trials);
    assert_eq!((results[0].verdict, results[2].verdict), (Verdict::Undecided, Verdict::Holds), "{results:?}");
    assert!(decided_after.is_some_and(|trials| trials < 20), "{results:?}");
    // The third claim is decided early, so the first one gets nearly all of the 1,000 trials that fit in the time.
    assert!(results[0].trials > 900, "{}", results[0].trials);
}

/// Tests a table of twelve servers, and three claims about two servers each. A trial of all twelve servers takes 6 s,
/// and a verdict needs 14 trials.
#[test]
fn a_wide_table_keeps_no_claim_from_its_verdict() {
    const ARM_NS: u64 = 500_000_000;
    let remote = Remote(Spec { id: "remote".into(), metrics: vec![Metric::time("time", "")], ..Spec::default() });
    let arm = |number: u64| Arm { variant: format!("server-{number}"), point: Point::default() };
    let run = |always_wins| {
        let claim = |number: u64| compared(format!("claim-{number}"), arm(2 * number), arm(2 * number + 1), 1.0);
        let tables = vec![Table { experiment: "remote".into(), arms: (0..12).map(arm).collect() }];
        let config = Config { error: 0.001, table_trials: Some(100), ..Config::default() };
        let plan = Plan { claims: (0..3).map(claim).collect(), tables, config, ..Plan::default() };
        let now_ns = Cell::new(0);
        let mut executor = Costly { now_ns: &now_ns, opening_ns: 0, trial_ns: 0, arm_ns: ARM_NS, always_wins };
        carried_out(&remote, &plan, &mut executor, (0..80 * 1_000_000_000, &now_ns), Now::default())
    };
    let (results, of_tables) = run(true);
    assert!(results.iter().all(|claim| claim.verdict != Verdict::Undecided), "{results:?}");
    assert!(results.iter().all(|claim| claim.verdict != Verdict::Deferred), "{results:?}");
    assert!(of_tables.iter().all(|trials| *trials > 0), "tables get the remaining time: {of_tables:?}");
    // If claims cannot be decided, tables get slices in the last quarter of the time, so each lane gets trials for
    // them.
    let (results, of_tables) = run(false);
    assert!(results.iter().all(|claim| claim.verdict == Verdict::Undecided), "{results:?}");
    assert!(of_tables.iter().all(|trials| *trials > 0), "{of_tables:?}");
}
