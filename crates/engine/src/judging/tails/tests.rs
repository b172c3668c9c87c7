use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus as Random;

use super::*;
use crate::claim::Claim;
use crate::experiment::{Arm, Metric, Point, Spec};
use crate::judging::ClaimJudge;
use crate::judging::bound::TrialValues;
use crate::observations::Observations;
use crate::outcome::Gate;
use crate::plan::Config;
use crate::unit::Unit;

fn arm(variant: &str) -> Arm {
    Arm { variant: variant.into(), point: Point::default() }
}

fn spec(better: Better) -> Spec {
    let metric = Metric::new("time", "", Unit::Nanosecond, better);
    Spec { id: "judged".into(), metrics: vec![metric], ..Spec::default() }
}

/// Returns a judge of `b` against the reference `a`. It counts trials until every question has an answer.
fn judge(better: Better, tails: &[f64], error: f64) -> ClaimJudge {
    judge_with(better, tails, Config { error, ..Config::default() })
}

/// Returns the same judge. It counts all trials.
fn judge_to_the_end(better: Better, tails: &[f64], error: f64) -> ClaimJudge {
    judge_with(better, tails, Config { error, until_time_is_up: true, ..Config::default() })
}

fn judge_with(better: Better, tails: &[f64], config: Config) -> ClaimJudge {
    let spec = spec(better);
    let claim = Claim::order("judged", &spec.metrics[0], &arm("b"), &arm("a"));
    let claim = Claim { tails: tails.to_vec(), ..claim };
    let mut judge = ClaimJudge::new(&claim, &spec, &config, Some((0.5, 0.5))).unwrap();
    judge.bind(&spec, |arm| usize::from(arm.variant == "a"));
    judge
}

fn observe_as(judge: &mut ClaimJudge, values: [Bounds; 2], is_interrupted: bool) {
    let (held, last) = ([0, 1].into_iter().collect(), None);
    let trial = TrialValues { number: 0, values: &values, metrics: 1, held, last, is_interrupted, whole_ns: None };
    judge.observe(&trial, 0);
}

fn observe(judge: &mut ClaimJudge, values: [f64; 2]) {
    observe_as(judge, values.map(Bounds::exact), false);
}

fn normal(random: &mut Random) -> f64 {
    let radius = (-2.0 * (1.0 - random.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.random::<f64>()).cos()
}

/// `b` is faster in nine of ten trials, and three times as slow in the tenth. Both answers must be found. The claim must
/// stay open as long as a level has no answer.
#[test]
fn a_faster_arm_can_have_the_worse_tail() {
    let mut judge = judge(Better::Lower, &[0.95, 0.99], 0.03);
    (0..1000).for_each(|trial| observe(&mut judge, [if trial % 10 == 9 { 30.0 } else { 9.0 }, 10.0]));
    assert!(judge.is_open());
    let result = judge.result();
    assert_eq!((result.decision, result.error), (Some(Decision::Faster), 0.01), "three questions share 0.03");
    let [low, high] = &result.tails[..] else { panic!("{:?}", result.tails) };
    assert_eq!((low.level, low.decision, low.error, low.pairs_before), (0.95, TailDecision::MoreOften, 0.01, 50));
    assert_eq!((low.pairs, low.candidate_beyond, low.reference_beyond), (950, 95, 0));
    assert!(low.decided.unwrap() < low.pairs && low.log_e_more > 200f64.ln() && low.log_e_less < 0.0, "{low:?}");
    assert_eq!((low.threshold_low, low.threshold_high), (Some(10.0), Some(10.0)));
    // A twentieth of all values is 30, so at 99 % the threshold is 30, and no value is above it.
    assert_eq!((high.level, high.decision, high.candidate_beyond), (0.99, TailDecision::Undecided, 0));
    assert!(low.fails(Gate::Slower) && !low.fails(Gate::Faster) && !high.fails(Gate::Slower));
}

/// A share of 3 % of one arm's intervals drops to a tenth. As a rate, this is the worse tail; as a time, it is not in
/// the tail at all.
#[test]
fn the_tail_is_on_the_worse_side() {
    let decided = |better| {
        let mut judge = judge(better, &[0.98], 0.01);
        (0..1500_u32).for_each(|trial| observe(&mut judge, [if trial % 33 == 7 { 10.0 } else { 100.0 }, 100.0]));
        let result = judge.result();
        let [tail] = &result.tails[..] else { panic!("one level") };
        (tail.decision, tail.threshold_low, tail.threshold_high)
    };
    assert_eq!(decided(Better::Higher), (TailDecision::MoreOften, Some(100.0), Some(100.0)));
    assert_eq!(decided(Better::Lower).0, TailDecision::Undecided);
}

/// A time limit is a value above it. A signal is not: the pair counts against both answers, and leaves the past alone.
#[test]
fn a_limit_is_beyond_and_a_signal_counts_against_both() {
    let (fast, stopped) = (Bounds::exact(10.0), Bounds::above(40.0));
    let tail = |pair: [Bounds; 2], is_interrupted| {
        let mut judge = judge_to_the_end(Better::Lower, &[0.9], 0.01);
        (0..25).for_each(|_| observe_as(&mut judge, [fast; 2], false));
        (0..20).for_each(|_| observe_as(&mut judge, pair, is_interrupted));
        judge.result().tails.remove(0)
    };
    let limited = tail([stopped, fast], false);
    assert_eq!((limited.decision, limited.candidate_beyond), (TailDecision::MoreOften, 20));
    assert!(limited.threshold_high <= Some(40.0));
    let cut_off = tail([stopped, fast], true);
    assert_eq!((cut_off.decision, cut_off.unknown, cut_off.candidate_beyond), (TailDecision::Undecided, 20, 0));
    assert!(cut_off.log_e_more < 0.0 && cut_off.log_e_less < 0.0, "{cut_off:?}");
    let of_others = tail([Bounds::exact(50.0), fast], true);
    assert_eq!(of_others.unknown, 0, "the signal came after both had ended");
}

#[test]
fn later_trials_take_an_answer_back() {
    let mut judge = judge_to_the_end(Better::Lower, &[0.5], 0.01);
    (0..10).for_each(|_| observe(&mut judge, [1.0, 1.0]));
    (0..20).for_each(|_| observe(&mut judge, [2.0, 1.0]));
    assert_eq!(judge.result().tails[0].decision, TailDecision::MoreOften);
    (0..500).for_each(|_| observe(&mut judge, [1.0, 2.0]));
    let tail = judge.result().tails.remove(0);
    assert_eq!((tail.decision, tail.is_withdrawn), (TailDecision::Undecided, true));
}

/// The prediction must be the number of trials that a judge needs if one arm is beyond the threshold in each trial.
#[test]
fn the_fewest_trials_for_all_tails_are_known_beforehand() {
    let mut judge = judge(Better::Lower, &[0.5, 0.9], 0.001);
    let least = judge.least_with_tails(Some(2.0));
    assert_eq!(least.takes_ns, Some(2.0 * least.trials as f64));
    assert!(least.trials > judge.least(None).trials && least.at_error.is_none());
    let mut trials = 0_u32;
    while judge.is_open() {
        // Rising values keep the candidate above every quantile of the past.
        observe(&mut judge, [1000.0 + f64::from(trials), 1.0]);
        trials += 1;
    }
    assert_eq!(u64::from(trials), least.trials);
    let without_tails = self::judge(Better::Lower, &[], 0.001);
    assert_eq!(without_tails.least_with_tails(None), without_tails.least(None));
}

/// A run of `compare` without `--tail`: the judge of the comparison, and the values for the hint.
fn hint_after(pairs: impl Fn(&mut Random) -> [f64; 2], (fewest, most): (u64, u64), seed: u64) -> Option<TailHint> {
    let mut random = Random::seed_from_u64(seed);
    let (mut judge, mut observations) = (judge(Better::Lower, &[], 0.001), Observations::default());
    let places = ["b", "a"].map(|variant| observations.arm(&spec(Better::Lower), &arm(variant)));
    judge.look_at_the_end();
    let mut trials = 0;
    while trials < fewest || (judge.is_open() && trials < most) {
        let values = pairs(&mut random);
        observe(&mut judge, values);
        places.iter().zip(values).for_each(|(&place, value)| observations.push(place, trials, &[Bounds::exact(value)]));
        trials += 1;
    }
    let [b, a] = observations.arms() else { panic!("two arms") };
    hint(&judge.result(), [b, a], 0, None)
}

/// `b` is faster, and its tail is no worse. Without the test, the hint would be false in 11 to 25 % of such runs.
#[test]
fn hints_are_false_in_at_most_one_of_a_hundred_runs() {
    const RUNS: u64 = 2000;
    // The bursts of both arms take equally long, and come equally often.
    let pairs = |random: &mut Random| {
        [0.9, 1.0].map(|factor| match random.random_bool(0.08) {
            true => 3.0 + normal(random).abs(),
            false => factor * (0.05 * normal(random)).exp(),
        })
    };
    for trials in [(15, 15), (0, 1000), (300, 300)] {
        let hints = (0..RUNS).filter(|&seed| hint_after(pairs, trials, seed).is_some()).count() as u64;
        assert!(hints <= RUNS / 100, "{hints} of {RUNS} for {trials:?} trials");
    }
}

/// `b` is faster, and 5 % of its runs take three times as long.
#[test]
fn a_worse_tail_of_the_faster_arm_gives_a_hint() {
    let pairs = |random: &mut Random| {
        let slow = if random.random_bool(0.05) { 3.0 } else { 1.0 };
        [0.9 * slow, 1.0].map(|factor| factor * (0.05 * normal(random)).exp())
    };
    let hints: Vec<_> = (0..20).filter_map(|seed| hint_after(pairs, (600, 600), seed)).collect();
    assert!(hints.len() >= 18, "{hints:?}");
    assert!(hints.iter().all(|hint| hint.faster_beyond > hint.slower_beyond && hint.p_value <= 0.004), "{hints:?}");
}

/// A value that a signal cut off is left out, a time-out is beyond the threshold.
#[test]
fn hints_know_a_limit_from_a_signal() {
    let mut judge = judge(Better::Lower, &[], 0.001);
    let mut observations = Observations::default();
    let places = ["b", "a"].map(|variant| observations.arm(&spec(Better::Lower), &arm(variant)));
    for trial in 0..400 {
        let slow = if trial % 25 == 0 { Bounds::above(40.0) } else { Bounds::exact(9.0) };
        let pair = [slow, Bounds::exact(10.0)];
        observe_as(&mut judge, pair, false);
        places.iter().zip(pair).for_each(|(&place, value)| observations.push(place, trial, &[value]));
    }
    let [b, a] = observations.arms() else { panic!("two arms") };
    let result = judge.result();
    assert_eq!(result.decision, Some(Decision::Faster));
    let found = hint(&result, [b, a], 0, Some(40.0)).unwrap();
    assert_eq!((found.faster_beyond, found.slower_beyond, found.pairs), (16, 0, 400));
    assert_eq!(hint(&result, [b, a], 0, Some(50.0)), None);
    let slower = ClaimResult { decision: Some(Decision::Slower), ..result };
    assert_eq!(hint(&slower, [b, a], 0, Some(40.0)), None, "the reference won, and its tail is fine");
}
