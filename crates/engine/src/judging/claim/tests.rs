use ascertain_stats as stats;

use super::*;
use crate::claim::Bound;
use crate::experiment::{Arm, Better, Metric, Point, Spec};
use crate::finding::{AtError, Estimated, Unavailable, Unlike};
use crate::judging::bound::TrialValues;
use crate::outcome::{Decision, Gate, Verdict};
use crate::predicate::Predicate;
use crate::unit::Unit;
use crate::values::Bounds;

fn spec() -> Spec {
    let metric = Metric::time("time", "");
    Spec { id: "judged".into(), metrics: vec![metric], ..Spec::default() }
}

const EASIER: Option<(f64, f64)> = Some((0.05, 0.05));

/// The claim of `compare` that `a` is faster than `b`.
fn order() -> Claim {
    Claim::order("judged", &spec().metrics[0], &arm("a"), &arm("b"))
}

/// A trial of one metric, with one arm per value.
fn trial(values: &[Bounds]) -> TrialValues<'_> {
    let held = (0..values.len()).collect();
    TrialValues { number: 0, values, metrics: 1, held, last: None, is_interrupted: false, whole_ns: None }
}

fn arm(variant: &str) -> Arm {
    Arm { variant: variant.into(), point: Point::default() }
}

/// A claim that compares `a` with `b`, and that counts trials after its answer.
fn versus(scale: Effect, bound: Bound) -> ClaimJudge {
    let measure = (&spec().metrics[0]).into();
    let tests = vec![Test::Versus { measure, candidate: arm("a"), baseline: arm("b"), scale, bound }];
    let claim = Claim { asked: Hypothesis { judging: Judging::Rate, margin: None, tests }, ..order() };
    let config = Config { until_time_is_up: true, ..Config::default() };
    let mut judge = ClaimJudge::new(&claim, &spec(), &config, EASIER).unwrap();
    judge.bind(&spec(), |arm| usize::from(arm.variant == "b"));
    judge
}

fn judge(rate: f64, margin: Option<f64>, look_every: u64) -> ClaimJudge {
    let arm = arm("a");
    let predicate = Predicate::parse("time <= 1 ns", &spec().metrics).unwrap();
    let tests = vec![Test::predicate(arm, predicate)];
    let claim = Claim { rate, look_every, asked: Hypothesis { judging: Judging::Rate, margin, tests }, ..order() };
    let mut judge = ClaimJudge::new(&claim, &spec(), &Config::default(), EASIER).unwrap();
    judge.bind(&spec(), |_| 0);
    judge
}

/// The smallest number of trials for a verdict must be the number that a judge needs if all outcomes are equal.
#[test]
fn the_soonest_verdict_is_known_beforehand() {
    for (rate, margin) in [(0.5, None), (0.99, None), (0.1, None), (0.99, Some(0.005)), (0.1, Some(0.05))] {
        for look_every in [1, 7] {
            let trials = [0.0, 2.0].map(|time| {
                let mut judge = judge(rate, margin, look_every);
                while judge.is_open() && judge.trials < 100_000 {
                    judge.observe(&trial(&[Bounds::exact(time)]), 0);
                }
                judge.trials
            });
            let soonest = judge(rate, margin, look_every).soonest_verdict();
            assert_eq!(soonest, trials[0].min(trials[1]), "{rate} {margin:?} {look_every} {trials:?}");
        }
    }
}

/// The least effort for a comparison is the number of pairs that a judge needs if one command wins all of them. This
/// must be true without a margin, with a margin, with a gate, and for the hint about a higher error.
#[test]
fn what_a_comparison_takes_is_what_a_judge_takes_who_sees_one_win_all() {
    let judge = |error, margin, gate| {
        let config = Config { error, margin, gate, ..Config::default() };
        let mut judge = ClaimJudge::new(&order(), &spec(), &config, EASIER).unwrap();
        judge.bind(&spec(), |arm| usize::from(arm.variant == "b"));
        judge
    };
    for (margin, gate) in [(None, None), (Some(0.05), None), (Some(0.05), Some(Gate::Slower))] {
        let pairs = |error: f64| {
            let decides = |times: f64| {
                let mut judge = judge(error, margin, gate);
                while judge.is_open() {
                    judge.observe(&trial(&[1.0, times].map(Bounds::exact)), 10);
                    let is_early = matches!(judge.verdict().1[..], [Reason::TooEarly { .. }]);
                    let is_before = judge.trials < judge.least(None).trials;
                    assert_eq!(is_early, is_before, "after {} pairs", judge.trials);
                }
                judge.trials
            };
            [1.00024, 1.1, 3.0].map(decides).into_iter().min().unwrap()
        };
        for error in [0.001, 0.0002, 0.05] {
            let least = judge(error, margin, gate).least(Some(2e9));
            assert_eq!((least.verdict, least.trials), (None, pairs(error)), "{margin:?} {gate:?} at {error}");
            assert_eq!(least.takes_ns, Some(2e9 * least.trials as f64));
            let at_error = (error < 0.05).then(|| AtError { error: 0.05, trials: pairs(0.05) });
            assert_eq!(least.at_error, at_error, "{margin:?} {gate:?} at {error}");
        }
    }
}

/// For a claim about a rate, the least effort is estimated for the verdict that the trials support so far.
#[test]
fn what_a_rate_takes_depends_on_what_was_seen() {
    let mut judge = judge(0.99, None, 1);
    let least = judge.least(None);
    assert_eq!((least.verdict, least.takes_ns), (Some(Verdict::Holds), None));
    assert_eq!(least.trials, stats::soonest(stats::Verdict::Holds, 0.99, 0.001));
    for _ in 0..5 {
        judge.observe(&TrialValues { whole_ns: Some(3.0), ..trial(&[Bounds::exact(0.0)]) }, 3);
    }
    // A trial that was read back or cut off has no known duration.
    judge.observe(&trial(&[Bounds::exact(0.0)]), 1);
    let (_, reasons) = judge.verdict();
    let [Reason::TooEarly { least, most_trials: None, .. }] = reasons[..] else { panic!("{reasons:?}") };
    assert_eq!((least.verdict, least.takes_ns), (Some(Verdict::Holds), Some(3.0 * least.trials as f64)));
    judge.observe(&trial(&[Bounds::exact(2.0)]), 3);
    let least = judge.least(None);
    assert_eq!((least.verdict, least.trials), (Some(Verdict::Refuted), judge.soonest_verdict()));
    assert_eq!(judge.verdict(), (Verdict::Undecided, vec![]), "there are enough trials to refute, but no answer yet");
}

/// After few trials, the expected growth is high even if these trials were unfavourable. The run therefore measures
/// such a claim further, instead of spending all its time on a claim that is known to grow slowly.
#[test]
fn what_few_trials_say_does_not_starve_a_claim() {
    let of = |trials: u64, share: f64| {
        let mut judge = judge(0.5, None, 1);
        (judge.trials, judge.successes) = (trials, (trials as f64 * share) as u64);
        judge.expected_growth()
    };
    assert!(of(10, 0.5) > of(100_000, 0.505));
    assert!(of(0, 0.0) > of(100, 0.8));
    assert!(of(1000, 0.9) > of(1000, 0.6));
}

/// An exact predicate also has an estimate: the value of its single metric.
#[test]
fn an_exact_predicate_tells_its_value() {
    for (time, verdict) in [(0.25, Verdict::Holds), (2.0, Verdict::Refuted)] {
        let rated = judge(0.5, None, 1).claim;
        let claim = Claim { asked: Hypothesis { judging: Judging::Exact, ..rated.asked.clone() }, ..rated };
        let mut judge = ClaimJudge::new(&claim, &spec(), &Config::default(), EASIER).unwrap();
        judge.bind(&spec(), |_| 0);
        judge.observe(&trial(&[Bounds::exact(time)]), 0);
        let result = judge.result();
        assert_eq!((result.verdict, result.ratio), (verdict, Some(time)));
        assert_eq!((result.ratio_low, result.ratio_high), (None, None), "a single value has no interval");
    }
}

/// A difference is not a ratio: it has a unit, and is not printed as "x".
#[test]
fn a_difference_is_said_as_one() {
    let said = |scale, bound| {
        let mut judge = versus(scale, bound);
        let observe = |judge: &mut ClaimJudge, baseline: f64, trials: u64| {
            (0..trials).for_each(|_| judge.observe(&trial(&[1e6, baseline].map(Bounds::exact)), 0));
        };
        observe(&mut judge, 3e6, 200);
        let Standing { trials, successes, estimate, is_ratio, unit, .. } = judge.standing();
        assert_eq!((trials, successes, unit), (200, 200, Some(Unit::Nanosecond)));
        observe(&mut judge, 9e6, 2000);
        ((estimate, is_ratio), judge.result().unlike)
    };
    let (estimate, unlike) = said(Effect::Difference, Bound::AtLeast(1e6));
    assert_eq!(estimate, (Some(2e6), false));
    assert!(unlike.contains(&Unlike::NoneFits { of: Estimated::Difference }), "{unlike:?}");
    let (estimate, unlike) = said(Effect::Ratio, Bound::AtLeast(2.0));
    assert_eq!(estimate, (Some(3.0), true));
    assert!(unlike.contains(&Unlike::NoneFits { of: Estimated::Ratio }), "{unlike:?}");
}

/// If the rate falls from 54 % to 15 % during the run, the result must be marked as drifted.
#[test]
fn a_verdict_on_a_changing_rate_is_marked_as_drifted() {
    let refuted = |late: u64| {
        let mut judge = judge(0.9, None, 1);
        judge.to_the_end = true;
        for number in 0..400 {
            let share = if number < 200 { 54 } else { late };
            let time = if number * 37 % 100 < share { 0.0 } else { 2.0 };
            judge.observe(&trial(&[Bounds::exact(time)]), 0);
        }
        let result = judge.result();
        assert_eq!(result.verdict, Verdict::Refuted);
        result.drifted
    };
    assert_eq!([refuted(15), refuted(54)], [true, false]);
}

#[test]
fn a_small_difference_is_excluded_and_a_large_one_is_not_called_small() {
    assert_eq!(difference_below(1.0 / 1.25, 1.125), Some(0.25));
    assert_eq!(difference_below(0.99, 1.125), Some(0.125));
    assert_eq!(difference_below(0.5, 1.01), None, "it may take twice as long");
    assert_eq!(difference_below(1.01, 1.02), None, "there is a difference");
    assert_eq!(difference_below(1.0, 1.0), None, "ties exclude nothing");
}

/// The interval is the intersection of all intervals so far. A rate that drifts may therefore leave it.
#[test]
fn a_rate_that_left_its_interval_has_none() {
    let mut judge = judge(0.5, None, 1);
    judge.to_the_end = true;
    let mut observe = |time: f64, trials: u64| {
        for _ in 0..trials {
            judge.observe(&trial(&[Bounds::exact(time)]), 0);
        }
        judge.result()
    };
    let even = (0..300).map(|_| (observe(0.0, 1), observe(2.0, 1)).1).last().unwrap();
    assert!(even.rate_low.is_some() && !even.has_lost_interval(true));
    // Continues until the rate is outside of the interval, which is not empty at that time.
    let gone = (0..2000).map(|_| observe(2.0, 1)).find(|result| result.has_lost_interval(true)).unwrap();
    assert_eq!((gone.rate_low, gone.rate_high), (None, None), "{gone:?}");
    assert_eq!(gone.unlike[0], Unlike::Left { of: Estimated::Rate });
    assert!(!gone.has_lost_interval(false), "{gone:?}");
    assert!(gone.rate.is_some());
}

fn comparison(margin: Option<f64>, gate: Option<Gate>, to_the_end: bool) -> ClaimJudge {
    let config = Config { margin, gate, until_time_is_up: to_the_end, ..Config::default() };
    let mut judge = ClaimJudge::new(&order(), &spec(), &config, EASIER).unwrap();
    judge.bind(&spec(), |arm| usize::from(arm.variant == "b"));
    judge
}

/// Observes trials with these times of the candidate and the baseline, while the claim is open.
fn compare(judge: &mut ClaimJudge, trials: impl IntoIterator<Item = (Bounds, Bounds)>) {
    for (candidate, baseline) in trials {
        judge.observe(&trial(&[candidate, baseline]), 0);
    }
}

/// Tests a command that takes 1 ms in its first 20 runs and 60 ms later. The other command always takes about 30 ms.
#[test]
fn an_answer_that_later_trials_contradict_is_withdrawn() {
    let steady = |times: u64, time: f64| {
        let jitter = move |run: u64| 1.0 + 0.001 * (run * 7 % 10) as f64;
        (0..times).map(move |run| (Bounds::exact(time * jitter(run)), Bounds::exact(30.0)))
    };
    for margin in [None, Some(0.05)] {
        let mut judge = comparison(margin, None, true);
        compare(&mut judge, steady(20, 1.0));
        let result = judge.result();
        assert_eq!((result.decision, result.verdict), (Some(Decision::Faster), Verdict::Holds));
        let then = result.decided.unwrap();
        assert!(then.trials <= 20 && then.successes == then.trials);
        compare(&mut judge, steady(100, 60.0));
        let result = judge.result();
        assert_eq!((result.decision, result.verdict), (Some(Decision::Undecided), Verdict::Undecided), "{margin:?}");
        assert_eq!((result.decided, result.successes, result.trials), (Some(then), 20, 120));
        let withdrawn = |decision| Reason::Withdrawn { verdict: Verdict::Holds, decision, trials: then.trials };
        assert_eq!(result.reasons, [withdrawn(Some(Decision::Faster))]);
    }
    // Even if the later commands are stopped at the time limit, the median ratio is known to be lower.
    let stopped = (0..60).map(|_| (Bounds::above(60.0), Bounds::exact(30.0)));
    for gate in [None, Some(Gate::Slower)] {
        let mut judge = comparison(Some(0.05), gate, true);
        compare(&mut judge, steady(20, 1.0));
        assert_eq!(judge.result().verdict, Verdict::Holds);
        compare(&mut judge, stopped.clone());
        assert_eq!(judge.result().decision, Some(Decision::Undecided), "{gate:?}");
    }
    // If later trials are like the first ones, the answer stands, with the counts at its decision.
    let mut judge = comparison(None, None, true);
    compare(&mut judge, steady(120, 1.0));
    let result = judge.result();
    assert_eq!((result.decision, result.trials), (Some(Decision::Faster), 120));
    assert!(result.decisive().trials < 30);
}

/// Tests a claim about a rate whose test is true in the first trials and false in the later ones.
#[test]
fn a_rate_that_later_trials_contradict_is_withdrawn() {
    let mut judge = judge(0.9, None, 1);
    judge.to_the_end = true;
    let mut observe = |time: f64, trials: u64| {
        for _ in 0..trials {
            judge.observe(&trial(&[Bounds::exact(time)]), 0);
        }
        judge.result()
    };
    assert_eq!(observe(0.0, 200).verdict, Verdict::Holds);
    let result = observe(2.0, 200);
    assert_eq!(result.verdict, Verdict::Undecided);
    assert!(matches!(result.reasons[..], [Reason::Withdrawn { verdict: Verdict::Holds, .. }]), "{:?}", result.reasons);
}

/// Tests `sleep 1` against `sleep 5` with a limit of 20 ms. Both are stopped, so it is unknown which is faster.
#[test]
fn two_time_outs_decide_nothing() {
    let stopped = Bounds::above(20e6);
    for margin in [None, Some(0.05)] {
        let mut judge = comparison(margin, None, true);
        compare(&mut judge, (0..500).map(|_| (stopped, stopped)));
        let result = judge.result();
        assert_eq!((result.decision, result.ties), (Some(Decision::Undecided), 500), "{margin:?}");
        assert_eq!((result.ratio, result.ratio_high), (None, None));
        assert!(result.ratio_low.is_none_or(|low| low == 0.0));
    }
}

/// Tests `sleep 0.015` against `sleep 0.05` with a limit of 40 ms. The first is more than 2.67 times as fast, but it is
/// unknown whether it is 8 times as fast.
#[test]
fn a_time_out_is_no_more_than_its_limit() {
    let verdict = |bound: Bound, limit: f64| {
        let mut judge = versus(Effect::Ratio, bound);
        compare(&mut judge, (0..500).map(|_| (Bounds::exact(15e6), Bounds::above(limit))));
        let result = judge.result();
        if result.verdict == Verdict::Undecided {
            assert_eq!(result.unknown, 500);
            let open = Reason::LeftOpen { trials: 500, all: 500, has_met_limit: true };
            assert_eq!(result.reasons, [open]);
        }
        assert_eq!((result.ratio, result.ratio_low, result.ratio_high), (None, Some(limit / 15e6), None));
        result.verdict
    };
    assert_eq!(verdict(Bound::AtLeast(8.0), 40e6), Verdict::Undecided);
    assert_eq!(verdict(Bound::AtLeast(2.5), 40e6), Verdict::Holds);
    assert_eq!(verdict(Bound::AtMost(2.5), 40e6), Verdict::Refuted);
    assert_eq!(verdict(Bound::AtLeast(8.0), 120e6), Verdict::Holds);
    assert_eq!(verdict(Bound::Within(2.0, 8.0), 40e6), Verdict::Undecided);
}

/// A gate only needs to know that a command is not slower by more than the margin, not whether it is faster or the
/// same.
#[test]
fn a_gate_ends_when_its_end_is_settled() {
    // 6 % faster: clearly beyond 3 %, but 40 pairs cannot show on which side of 5 % it is.
    let trials = |count: u64| {
        let spread = |pair: u64| 1.0 + 0.01 * ((pair * 7 % 11) as f64 - 5.0);
        (0..count).map(move |pair| (Bounds::exact(100.0), Bounds::exact(105.0 * spread(pair))))
    };
    let settled = |gate| {
        let mut judge = comparison(Some(0.05), gate, false);
        (1..2000).find(|_| {
            compare(&mut judge, trials(11));
            !judge.is_open()
        });
        let result = judge.result();
        (result.decision.unwrap(), result.trials)
    };
    let (decision, pairs) = settled(Some(Gate::Slower));
    assert_eq!(decision, Decision::NotSlower);
    let (undecided, more) = settled(None);
    assert!(undecided != Decision::NotSlower && more > 2 * pairs, "{undecided:?} after {more}, not {pairs}");
    // If the command is slower, the gate fails as soon as this is decided.
    let mut judge = comparison(Some(0.05), Some(Gate::Slower), false);
    compare(&mut judge, (0..200).map(|_| (Bounds::exact(110.0), Bounds::exact(100.0))));
    assert_eq!(judge.result().decision, Some(Decision::Slower));
}

/// Unknown outcomes count as evidence against both answers, so that stopping unfavourable trials gains nothing.
#[test]
fn trials_that_were_cut_off_count_against_either_answer() {
    let pairs = |cut_off: u64| {
        let mut judge = comparison(None, None, false);
        compare(&mut judge, (0..cut_off).map(|_| (Bounds::UNKNOWN, Bounds::exact(2.0))));
        compare(&mut judge, (0..200).map(|_| (Bounds::exact(1.0), Bounds::exact(2.0))));
        let result = judge.result();
        (result.decision.unwrap(), result.trials - result.unknown)
    };
    let (decision, undisturbed) = pairs(0);
    assert_eq!(decision, Decision::Faster);
    let (decision, disturbed) = pairs(3);
    assert!(decision == Decision::Faster && disturbed > undisturbed, "{disturbed} and {undisturbed}");
}

/// By cutting off the slower command just after the faster one has ended, a user chooses the size of the difference.
/// Such a pair counts as evidence against both answers.
#[test]
fn the_size_of_an_interrupted_pair_is_nobodys_coin() {
    let mut judge = comparison(None, None, true);
    for _ in 0..50 {
        let values = [Bounds::exact(1.0), Bounds::above(1.001)];
        judge.observe(&TrialValues { is_interrupted: true, ..trial(&values) }, 0);
    }
    let result = judge.result();
    assert_eq!((result.decision, result.unknown), (Some(Decision::Undecided), 50));
    assert!(matches!(result.reasons[..], [Reason::LeftOpen { has_met_limit: false, .. }]), "no trial reached a limit");
}

/// The outcome of an interrupted trial is unknown, however early the signal came. A trial that had already missed its
/// limit is a failure, even if it was interrupted.
#[test]
fn an_interrupted_trial_counts_however_early_the_signal_came() {
    let mut judge = judge(0.5, None, 1);
    for cut_off_at in [0.0, 0.5, 2.0] {
        let values = [Bounds::above(cut_off_at)];
        judge.observe(&TrialValues { is_interrupted: true, ..trial(&values) }, 0);
    }
    let result = judge.result();
    assert_eq!((result.trials, result.successes, result.unknown), (3, 0, 2), "`time <= 1 ns` is false in one trial");
}

/// Counters (other metrics) must be compared in the same trials as the claim's own metric. Their values may be zero.
#[test]
fn other_metrics_are_compared_in_the_same_trials() {
    let metric = |name: &str| Metric::new(name, "", Unit::One, Better::Lower);
    let metrics = ["time", "faults", "same", "missing", "unshown"].map(metric).into();
    let spec = Spec { id: "judged".into(), metrics, ..Spec::default() };
    let claim = Claim { counters: vec![1, 2, 3, 4], ..order() };
    let config = Config { margin: Some(0.05), ..Config::default() };
    let mut judge = ClaimJudge::new(&claim, &spec, &config, EASIER).unwrap();
    judge.bind(&spec, |arm| usize::from(arm.variant == "b"));
    let lack = || Reason::Unavailable { arm: None, lack: Unavailable::other("no such counter") };
    judge.close_counters(|claim| claim.says.contains("unshown").then(lack));
    let mut trials = 0;
    while judge.is_open() {
        trials += 1;
        let candidate = [10.0 + 0.01 * (trials % 7) as f64, 0.0, 7.0, f64::NAN, 1.0];
        let baseline = [30.0, 3.0 + (trials % 2) as f64, 7.0, 2.0, 1.0];
        let values = [candidate, baseline].concat().into_iter().map(Bounds::exact).collect::<Vec<_>>();
        judge.observe(&TrialValues { metrics: 5, held: [0, 1].into_iter().collect(), ..trial(&values) }, 0);
        assert!(trials < 1_000);
    }
    let result = judge.result();
    assert_eq!((result.decision, result.trials), (Some(Decision::Faster), trials));
    let [faults, same, missing, unshown] = &result.counters[..] else { panic!("{:?}", result.counters) };
    assert_eq!((faults.decision, faults.successes, faults.trials), (Some(Decision::Faster), trials, trials));
    assert_eq!((faults.ratio, faults.ratio_low, faults.ratio_high), (None, None, None), "3 and 0 have no ratio");
    assert_eq!((faults.error, faults.asked.margin), (Config::default().error, None));
    assert_eq!((same.decision, same.ties), (Some(Decision::Undecided), trials), "neither has fewer");
    assert_eq!(same.ratio, Some(1.0));
    assert_eq!((missing.verdict, missing.trials), (Verdict::Unavailable, 0));
    assert!(
        matches!(&missing.reasons[..], [Reason::Unavailable { lack: Unavailable::Metric { metric }, .. }] if metric == "missing")
    );
    assert_eq!((unshown.verdict, &unshown.reasons), (Verdict::Unavailable, &vec![lack()]));
}

/// A time limit is the reason why outcomes of a long measurement are unknown.
#[cfg(feature = "recorded")]
#[test]
fn unknown_trials_of_a_batch_have_met_a_time_limit() {
    let mut judge = judge(0.5, None, 1);
    judge.count_batch(Tally { trials: 500, successes: 250 }, 500);
    let open = Reason::LeftOpen { trials: 500, all: 1000, has_met_limit: true };
    assert!(judge.result().reasons.contains(&open), "{:?}", judge.result().reasons);
}

/// The requests of a set come in random order, and each comes once. The trials within a set therefore depend on each
/// other, so an answer in the middle of a set would have an unknown error.
#[cfg(feature = "recorded")]
#[test]
fn batches_are_judged_only_after_whole_sets() {
    let mut judge = judge(0.5, None, 100);
    judge.count_batch(Tally { trials: 150, successes: 150 }, 0);
    assert_eq!((judge.seen().known.trials, judge.answer.is_some()), (0, false));
    judge.count_batch(Tally { trials: 48, successes: 48 }, 2);
    assert_eq!((judge.seen().known.trials, judge.seen().unknown, judge.answer.is_some()), (198, 2, true));
}
