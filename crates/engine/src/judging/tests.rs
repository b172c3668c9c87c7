use super::*;
use crate::experiment::{Better, Metric, Point, Reduce};
use crate::predicate::Predicate;
use crate::unit::Unit;

fn spec() -> Spec {
    let metric = Metric {
        name: "time".into(),
        about: String::new(),
        unit: Unit::Nanosecond,
        better: Better::Lower,
        reduce: Reduce::Value,
    };
    Spec {
        id: "judged".into(),
        title: String::new(),
        readme: String::new(),
        variants: Vec::new(),
        factors: Vec::new(),
        metrics: vec![metric],
        plots: Vec::new(),
    }
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
