use super::*;
use crate::bound::TrialValues;
use crate::claim::{Bound, Judging, Scale, Test};
use crate::experiment::{Arm, Better, Metric, Point, Spec};
use crate::outcome::Verdict;
use crate::predicate::Predicate;
use crate::unit::Unit;

fn spec() -> Spec {
    let metric = Metric::new("time", "", Unit::Nanosecond, Better::Lower);
    Spec { id: "judged".into(), metrics: vec![metric], ..Spec::default() }
}

fn judge(rate: f64, margin: Option<f64>, look_every: u64) -> ClaimJudge {
    let arm = Arm { variant: "a".into(), point: Point::default() };
    let predicate = Predicate::parse("time <= 1 ns", &spec().metrics).unwrap();
    let claim = Claim { rate, margin, look_every, ..Claim::order("judged", &arm, &arm) };
    let claim = Claim { judging: Judging::Rate, tests: vec![Test::Predicate { arm, predicate }], ..claim };
    let terms = Terms { error: 0.001, margin: None, precision: None, exact_trials: false };
    let mut judge = ClaimJudge::new(&claim, &spec(), &terms).unwrap();
    judge.bind(&spec(), |_| 0);
    judge
}

/// Whatever is judged, the soonest verdict is as soon as outcomes of one kind bring one.
#[test]
fn the_soonest_verdict_is_known_beforehand() {
    for (rate, margin) in [(0.5, None), (0.99, None), (0.1, None), (0.99, Some(0.005)), (0.1, Some(0.05))] {
        for look_every in [1, 7] {
            let trials = [0.0, 2.0].map(|time| {
                let mut judge = judge(rate, margin, look_every);
                let held = [0].into_iter().collect();
                while judge.is_open() && judge.trials < 100_000 {
                    judge.observe(&TrialValues { number: 0, values: &[time], metrics: 1, held }, 0);
                }
                judge.trials
            });
            let soonest = judge(rate, margin, look_every).soonest_verdict();
            assert_eq!(soonest, trials[0].min(trials[1]), "{rate} {margin:?} {look_every} {trials:?}");
        }
    }
}

/// A lane whose claim began unluckily is tried again before one that hardly moves has all the time.
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

/// What is checked once has a figure also where it is a predicate: what its one metric came to.
#[test]
fn an_exact_predicate_tells_its_value() {
    for (time, verdict) in [(0.25, Verdict::Holds), (2.0, Verdict::Refuted)] {
        let rated = judge(0.5, None, 1).claim;
        let terms = Terms { error: 0.001, margin: None, precision: None, exact_trials: false };
        let mut judge = ClaimJudge::new(&Claim { judging: Judging::Exact, ..rated }, &spec(), &terms).unwrap();
        judge.bind(&spec(), |_| 0);
        let held = [0].into_iter().collect();
        judge.observe(&TrialValues { number: 0, values: &[time], metrics: 1, held }, 0);
        let result = judge.result();
        assert_eq!((result.verdict, result.ratio), (verdict, Some(time)));
        assert_eq!((result.ratio_low, result.ratio_high), (None, None), "one value bounds nothing");
    }
}

/// A difference is no ratio: it has a unit, and no "x".
#[test]
fn a_difference_is_said_as_one() {
    let arm = |variant: &str| Arm { variant: variant.into(), point: Point::default() };
    let versus = |scale, bound| {
        let (candidate, baseline) = (arm("a"), arm("b"));
        let tests = vec![Test::Versus { metric: 0, candidate, baseline, scale, bound }];
        let claim = Claim { judging: Judging::Rate, tests, ..Claim::order("judged", &arm("a"), &arm("b")) };
        let terms = Terms { error: 0.001, margin: None, precision: None, exact_trials: true };
        let mut judge = ClaimJudge::new(&claim, &spec(), &terms).unwrap();
        judge.bind(&spec(), |arm| usize::from(arm.variant == "b"));
        let observe = |judge: &mut ClaimJudge, baseline: f64, trials: u64| {
            for number in 0..trials {
                let held = [0, 1].into_iter().collect();
                judge.observe(&TrialValues { number, values: &[1e6, baseline], metrics: 1, held }, 0);
            }
        };
        observe(&mut judge, 3e6, 200);
        let headline = judge.headline();
        observe(&mut judge, 9e6, 2000);
        (headline, judge.result().unlike)
    };
    let (headline, unlike) = versus(Scale::Difference, Bound::AtLeast(1e6));
    assert_eq!(headline, "200 trials, 100.0 %, 2.000 ms");
    assert!(unlike.iter().any(|sign| sign.contains("no one difference fits")), "{unlike:?}");
    let (headline, unlike) = versus(Scale::Ratio, Bound::AtLeast(2.0));
    assert_eq!(headline, "200 trials, 100.0 %, 3.000x");
    assert!(unlike.iter().any(|sign| sign.contains("no one ratio fits")), "{unlike:?}");
}

/// An interval that all looks so far allow does not have to hold what drifts away from it.
#[test]
fn a_rate_that_left_its_interval_has_none() {
    let mut judge = judge(0.5, None, 1);
    judge.exact_trials = true;
    let held = [0].into_iter().collect();
    let mut observe = |time: f64, trials: u64| {
        for number in 0..trials {
            judge.observe(&TrialValues { number, values: &[time], metrics: 1, held }, 0);
        }
        judge.result()
    };
    let even = (0..300).map(|_| (observe(0.0, 1), observe(2.0, 1)).1).last().unwrap();
    assert!(even.rate_low.is_some() && !even.has_lost_interval(true));
    // Until the rate is outside, and something is left of the interval still.
    let gone = (0..2000).map(|_| observe(2.0, 1)).find(|result| result.has_lost_interval(true)).unwrap();
    assert_eq!((gone.rate_low, gone.rate_high), (None, None), "{gone:?}");
    assert!(gone.unlike[0].contains("their rate left the interval") && !gone.has_lost_interval(false), "{gone:?}");
    assert!(gone.rate.is_some());
}
