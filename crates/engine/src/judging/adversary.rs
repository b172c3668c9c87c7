//! Simulates an adversary who wants a false verdict. The adversary sees the outcome of each trial before it ends, and
//! may interrupt and continue the run at any time. Even so, the verdict must be false no more often than the stated
//! error allows.

use ascertain_sys::machine::Machine;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::RunJudge;
use crate::block::{Block, End, MeasuredArm, TrialRecord};
use crate::claim::{Bound, Claim, Effect, Hypothesis, Judging, Test};
use crate::experiment::{Arm, Better, Experiment, Metric, Point, Samples, Session, Setup, Spec, Status, TargetError};
use crate::outcome::{ClaimResult, Verdict};
use crate::plan::{self, Config, Plan};
use crate::predicate::Predicate;
use crate::unit::Unit;

const WALL: usize = 0;
const EXIT: usize = 1;
/// Highest probability that the verdict of a simulated run is false.
const ERROR: f64 = 0.05;
const RUNS: u64 = 2000;
/// Maximum number of runs with a false verdict. This many are expected if each run is false with probability [`ERROR`].
const MOST_FALSE: u64 = 100;

/// An experiment that measures nothing, because its records are simulated.
struct MadeUp(Spec);

impl Experiment for MadeUp {
    fn spec(&self) -> &Spec {
        &self.0
    }

    fn open(&self, _: &[Arm], _: &Setup) -> Result<Box<dyn Session + '_>, TargetError> {
        Err(TargetError::Failed("it is made up".into()))
    }
}

/// A claim on the border between true and false, where false verdicts are most likely.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Question {
    /// The claim is that at least 80 % of calls succeed within 1 ns. Exactly 80 % do.
    Calls,
    /// The claim is that one command is faster. Both are equally fast.
    Order,
    /// The claim is that one command is faster, with a margin of 5 %. The median ratio is 1.05, which is on the border.
    OrderWithin,
    /// The claim is that one command is at least 1.5 times as fast in at least half of the trials. The command is this
    /// much faster in exactly half of the trials.
    Ratio,
    /// The claim is that one command is at least 1.5 times as fast in at least 70 % of the trials. Its margin is 10 %.
    /// The command is this much faster in 60 % of the trials if the adversary wants "holds", otherwise in 80 %.
    RatioWithMargin,
}

/// The verdict that the adversary wants.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Aim {
    Holds,
    Refuted,
}

/// The moment when the adversary interrupts a trial whose outcome speaks against the aim.
#[derive(Clone, Copy, Debug)]
enum Interrupts {
    /// Interrupts the trial during its preparation, before anything is measured.
    InPreparation,
    /// Interrupts the trial shortly before its last arm would have ended.
    AtTheEnd,
    /// Interrupts the trial when its second arm begins, if the difference between the two arms would be small. Lets all
    /// other trials end.
    SmallDefeats,
    /// Interrupts a random half of the trials that speak against the aim. Each is interrupted either shortly before its
    /// end or during its preparation.
    Half,
}

fn arm(variant: &str) -> Arm {
    Arm { variant: variant.into(), point: Point::default() }
}

fn claim(question: Question) -> Claim {
    let (candidate, baseline) = (arm("candidate"), arm("baseline"));
    let wall = &Metric::time("wall", "");
    let order = Claim { id: "claim".into(), ..Claim::order("made-up", wall, &candidate, &baseline) };
    let predicate = Test::predicate(candidate.clone(), Predicate::at_most(wall, 1.0));
    let (measure, scale, bound) = (wall.into(), Effect::Ratio, Bound::AtLeast(1.5));
    let ratio = Test::Versus { measure, candidate, baseline, scale, bound };
    let with_margin = |claim: Claim, margin| {
        let asked = Hypothesis { margin: Some(margin), ..claim.asked.clone() };
        Claim { asked, ..claim }
    };
    let rate = |test, rate| {
        let asked = Hypothesis { judging: Judging::Rate, margin: None, tests: vec![test] };
        Claim { asked, rate, ..order.clone() }
    };
    match question {
        Question::Calls => rate(predicate, 0.8),
        Question::Order => order,
        Question::OrderWithin => with_margin(order, 0.05),
        Question::Ratio => rate(ratio, 0.5),
        Question::RatioWithMargin => with_margin(rate(ratio, 0.7), 0.1),
    }
}

/// The outcome that a simulated trial has if it is not interrupted. It consists of the result of the claim's test, the
/// times of the candidate and the baseline, and the success of the candidate's call.
struct Fate {
    is_true: bool,
    times: [f64; 2],
    is_call_fine: bool,
}

fn fate(question: Question, aim: Aim, rng: &mut Xoshiro256PlusPlus) -> Fate {
    let (share, border) = match question {
        Question::Calls => (0.8, 1.0),
        Question::Order => (0.5, 1.0),
        Question::OrderWithin => (0.5, 1.05),
        Question::Ratio => (0.5, 1.5),
        Question::RatioWithMargin => (if aim == Aim::Holds { 0.6 } else { 0.8 }, 1.5),
    };
    let is_true = rng.random::<f64>() < share;
    // Most differences are small, and some are large.
    let away = 1.0 + 0.3 * rng.random::<f64>().powi(3) + 1e-6;
    let ratio = if is_true { border * away } else { border / away };
    if question == Question::Calls {
        // Some of the unsuccessful calls fail at once, and the others take too long.
        let is_slow = !is_true && rng.random();
        let time = if is_slow { away } else { 0.9 / away };
        return Fate { is_true, times: [time, 1.0], is_call_fine: is_true || is_slow };
    }
    Fate { is_true, times: [1.0, ratio], is_call_fine: true }
}

/// Returns the record of a trial. `is_swapped` reverses the order of the arms. `cut` is `None` for a complete trial.
/// Otherwise it has two values: the position of the arm that is interrupted, and the share of this arm's duration that
/// was measured before the interruption.
fn record(block: Block, judge: &RunJudge, fate: &Fate, cut: Option<(usize, f64)>, is_swapped: bool) -> TrialRecord {
    let lane = &judge.lanes[block.lane];
    let mut slots: Vec<usize> = block.arms.iter().collect();
    if is_swapped {
        slots.reverse();
    }
    let (mut samples, mut measured) = (Samples::default(), Vec::new());
    for (place, slot) in slots.into_iter().enumerate() {
        let before = samples.0.len();
        let time = fate.times[usize::from(lane.arms[slot].variant == "baseline")];
        match cut {
            Some((at, _)) if place > at => {}
            Some((at, share)) if place == at => {
                if share > 0.0 {
                    samples.push_with(WALL, share * time, Status::Censored);
                }
            }
            _ => {
                samples.push(WALL, time);
                samples.push(EXIT, if fate.is_call_fine { 0.0 } else { 1.0 });
            }
        }
        measured.push(MeasuredArm { slot, start_ns: 1, samples: before..samples.0.len() });
    }
    let end = if cut.is_some() { End::CutOff } else { End::Whole };
    let mut record = TrialRecord { block: Some(block), measured, samples, end, ..TrialRecord::default() };
    if cut.is_some() {
        record.lose_the_rest(&lane.experiment.spec().metrics);
    }
    record
}

/// Decides whether and when the adversary interrupts a trial; `is_against` is `true` if the trial speaks against the
/// adversary's aim. Returns `None` if the trial may end. Otherwise returns the position of the arm that is interrupted,
/// and the share of this arm's duration that is measured before the interruption.
fn cut(
    interrupts: Interrupts,
    is_against: bool,
    fate: &Fate,
    arms: usize,
    rng: &mut Xoshiro256PlusPlus,
) -> Option<(usize, f64)> {
    let (preparation, end) = ((0, 0.0), (arms - 1, 0.99));
    let is_small = (fate.times[0] / fate.times[1]).ln().abs() < 0.45;
    match interrupts {
        _ if !is_against => None,
        Interrupts::InPreparation => Some(preparation),
        Interrupts::AtTheEnd => Some(end),
        Interrupts::SmallDefeats => is_small.then_some((arms - 1, 0.0)),
        Interrupts::Half => rng.random::<bool>().then(|| if rng.random() { preparation } else { end }),
    }
}

/// Simulates a run with several parallel workers, in which the adversary interrupts trials. The run ends with a
/// verdict, or after `TRIALS` trials.
fn simulate(
    experiment: &MadeUp,
    (question, aim): (Question, Aim),
    interrupts: Interrupts,
    workers: usize,
    seed: u64,
) -> ClaimResult {
    const TRIALS: u64 = 50;
    let config = Config { error: ERROR, max_trials: Some(TRIALS), seed, ..Config::default() };
    let plan = Plan { claims: vec![claim(question)], config, ..Plan::default() };
    let registry: [&dyn Experiment; 1] = [experiment];
    let (mut judge, _) = plan::lanes(&plan, &registry, &Machine::default(), &|_, _| None).unwrap();
    judge.claims[0].look_at_the_end();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    while judge.wants_more(0) {
        let mut under_way = Vec::new();
        while under_way.len() < workers && judge.wants_more(0) {
            under_way.push((judge.issue(0, None), fate(question, aim, &mut rng)));
        }
        // Outcomes that favour the aim are returned first.
        under_way.sort_by_key(|(_, fate)| fate.is_true != (aim == Aim::Holds));
        for (block, fate) in under_way {
            let is_against = fate.is_true != (aim == Aim::Holds);
            let cut = cut(interrupts, is_against, &fate, block.arms.iter().count(), &mut rng);
            let is_swapped = rng.random();
            // With several workers, a worker whose trial is cut off returns no record.
            if workers == 1 || cut.is_none() {
                judge.observe(&record(block, &judge, &fate, cut, is_swapped), None);
            }
        }
        // The run ends here, and is continued.
        judge.lose_the_rest(None);
    }
    judge.results().remove(0)
}

/// Returns how many of [`RUNS`] simulated runs end with the verdict that the adversary wants.
fn successes(question: Question, aim: Aim, interrupts: Interrupts, workers: usize) -> u64 {
    let metrics = vec![Metric::time("wall", ""), Metric::new("exit", "", Unit::One, Better::Lower)];
    let experiment = MadeUp(Spec { id: "made-up".into(), metrics, ..Spec::default() });
    let verdict = if aim == Aim::Holds { Verdict::Holds } else { Verdict::Refuted };
    let run = |seed| simulate(&experiment, (question, aim), interrupts, workers, seed);
    (0..RUNS).filter(|seed| run(*seed).verdict == verdict).count() as u64
}

#[test]
fn interruptions_make_no_call_succeed() {
    for (aim, interrupts, workers) in [
        (Aim::Holds, Interrupts::AtTheEnd, 1),
        (Aim::Holds, Interrupts::Half, 4),
        (Aim::Refuted, Interrupts::InPreparation, 1),
    ] {
        let count = successes(Question::Calls, aim, interrupts, workers);
        assert!(count <= MOST_FALSE, "{aim:?}, {interrupts:?}, {workers} workers: {count} of {RUNS}");
    }
}

#[test]
fn interruptions_make_no_command_faster() {
    for (aim, interrupts, workers) in
        [(Aim::Holds, Interrupts::SmallDefeats, 1), (Aim::Refuted, Interrupts::InPreparation, 4)]
    {
        let count = successes(Question::Order, aim, interrupts, workers);
        assert!(count <= MOST_FALSE, "{aim:?}, {interrupts:?}, {workers} workers: {count} of {RUNS}");
    }
}

#[test]
fn interruptions_change_no_ratio() {
    for (question, aim, interrupts, workers) in [
        (Question::OrderWithin, Aim::Holds, Interrupts::AtTheEnd, 1),
        (Question::Ratio, Aim::Refuted, Interrupts::Half, 1),
        (Question::RatioWithMargin, Aim::Holds, Interrupts::InPreparation, 4),
        (Question::RatioWithMargin, Aim::Refuted, Interrupts::AtTheEnd, 1),
    ] {
        let count = successes(question, aim, interrupts, workers);
        assert!(count <= MOST_FALSE, "{question:?}, {aim:?}, {interrupts:?}, {workers} workers: {count} of {RUNS}");
    }
}
