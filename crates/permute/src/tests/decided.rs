//! The decisions, the number of reshuffles until a decision, and the frequency of wrong decisions.

use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::{Budget, Conclusion, Decision, End, Method, Null, Question, Reshuffles, Sample, Statistic, decide};

const BETTING: Method = Method::Betting { alpha: 0.05 };

fn conclude(a: Vec<f64>, b: Vec<f64>, question: &Question, method: Method) -> Conclusion {
    let budget = Budget { max_shuffles: 4000, max_time: None };
    let mut reshuffles = Reshuffles::new(vec![Sample::new("a", a), Sample::new("b", b)], question, 3).unwrap();
    decide(&mut reshuffles, method, &budget, &mut |_| true).unwrap()
}

fn numbers(range: std::ops::Range<i32>) -> Vec<f64> {
    range.map(f64::from).collect()
}

#[test]
fn a_plain_difference_takes_50_reshuffles() {
    let conclusion = conclude(numbers(0..100), numbers(100..180), &Question::default(), BETTING);
    assert_eq!((conclusion.decision, conclusion.end), (Decision::Different, End::Decided));
    assert_eq!((conclusion.shuffles, conclusion.exceedances), (50, 0));
    assert!(conclusion.p_anytime.unwrap() <= 0.05 && conclusion.p.is_none());
}

#[test]
fn no_difference_is_given_up_soon() {
    for statistic in [Statistic::Mean, Statistic::Quantile(0.9), Statistic::StandardDeviation] {
        let question = Question { statistic, ..Question::default() };
        let conclusion = conclude(numbers(0..100), numbers(0..100), &question, BETTING);
        assert_eq!((conclusion.decision, conclusion.end), (Decision::NotShown, End::Decided), "{statistic:?}");
        assert!(conclusion.shuffles < 30, "{conclusion:?}");
    }
}

#[test]
fn csm_says_where_the_p_value_is() {
    let csm = Method::Csm { alpha: 0.01, error: 1e-9 / 3.0 };
    let conclusion = conclude(numbers(0..100), numbers(100..180), &Question::default(), csm);
    assert_eq!((conclusion.decision, conclusion.shuffles), (Decision::Different, 2967), "like the source");
    let interval = conclusion.p_interval.unwrap();
    assert_eq!((conclusion.p, interval.low, conclusion.p_anytime), (Some(0.0), 0.0, None));
    assert!(interval.high < 0.01);
    let above = conclude(numbers(0..100), numbers(1..101), &Question::default(), csm);
    assert_eq!(above.decision, Decision::NotShown);
    assert!(above.p_interval.unwrap().low > 0.01);
}

#[test]
fn budgets_end_it_undecided() {
    let reshuffles = || {
        let samples = vec![Sample::new("a", numbers(0..100)), Sample::new("b", numbers(100..200))];
        Reshuffles::new(samples, &Question::default(), 3).unwrap()
    };
    let end = |budget: Budget, watch: &mut dyn FnMut(&crate::Progress) -> bool| {
        let method = Method::Csm { alpha: 1e-7, error: 1e-9 };
        let conclusion = decide(&mut reshuffles(), method, &budget, watch).unwrap();
        assert_eq!(conclusion.decision, Decision::Undecided);
        (conclusion.end, conclusion.shuffles)
    };
    assert_eq!(end(Budget { max_shuffles: 20, max_time: None }, &mut |_| true), (End::MaxShuffles, 20));
    let none = Budget { max_shuffles: 0, max_time: None };
    assert_eq!(end(none, &mut |_| true), (End::MaxShuffles, 0));
    let brief = Budget { max_shuffles: u64::MAX, max_time: Some(Duration::from_millis(1)) };
    assert_eq!(end(brief, &mut |_| true).0, End::MaxTime);
    assert_eq!(end(Budget { max_shuffles: u64::MAX, max_time: None }, &mut |_| false).0, End::Interrupted);
}

/// The samples are skewed, and the null hypothesis with its shift and scale is true. The test must not reject it more
/// often than promised.
#[test]
fn a_true_null_is_rejected_no_more_often_than_said() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(17);
    let alpha = 0.1;
    let null = Null { shift: 2.0, scale: 3.0 };
    for statistic in [Statistic::Mean, Statistic::Quantile(0.5), Statistic::StandardDeviation] {
        let tests = 150;
        let rejected = (0..tests).filter(|_| {
            let mut draw = |count: usize| (0..count).map(|_| -random.random::<f64>().ln()).collect::<Vec<f64>>();
            let (a, b) = (draw(9), draw(6).into_iter().map(|x| null.scale * x + null.shift).collect());
            let question = Question { statistic, null, ..Question::default() };
            conclude(a, b, &question, Method::Betting { alpha }).decision == Decision::Different
        });
        let (mean, deviation) = (alpha * f64::from(tests), (alpha * (1.0 - alpha) * f64::from(tests)).sqrt());
        let rejected = rejected.count() as f64;
        assert!(rejected <= mean + 4.0 * deviation, "{statistic:?}: {rejected} of {tests}");
        assert!(
            rejected >= mean - 5.0 * deviation,
            "{statistic:?}: {rejected} of {tests}: the test has too little power"
        );
    }
}

/// Two-sided departures from a shifted null hypothesis must be found in both directions.
#[test]
fn departures_from_a_shift_are_found_on_both_sides() {
    let question = Question { null: Null { shift: 50.0, scale: 1.0 }, ..Question::default() };
    for (from, decision) in [(0, Decision::Different), (50, Decision::NotShown), (120, Decision::Different)] {
        let conclusion = conclude(numbers(0..40), numbers(from..from + 40), &question, BETTING);
        assert_eq!(conclusion.decision, decision, "from {from}");
    }
}

#[test]
fn the_seed_repeats_it() {
    let draws = |seed| {
        let samples = vec![Sample::new("a", numbers(0..100)), Sample::new("b", numbers(3..70))];
        let mut reshuffles = Reshuffles::new(samples, &Question::default(), seed).unwrap();
        (0..20).map(|_| reshuffles.draw().value).collect::<Vec<f64>>()
    };
    assert_eq!(draws(1), draws(1));
    assert_ne!(draws(1), draws(2));
}

/// All values are equal, so every reshuffle is an exceedance. In a progress report, the number of exceedances must
/// therefore equal the number of reshuffles, including the latest one.
#[test]
fn progress_counts_the_exceedances_of_all_its_reshuffles() {
    let samples = vec![Sample::new("a", vec![1.0; 3]), Sample::new("b", vec![1.0; 3])];
    let mut reshuffles = Reshuffles::new(samples, &Question::default(), 3).unwrap();
    // Alpha is so close to 1 that the test decides nothing before the first report.
    let method = Method::Csm { alpha: 1.0 - 1e-12, error: 1e-6 };
    let budget = Budget { max_shuffles: u64::MAX, max_time: None };
    let mut seen = None;
    let conclusion = decide(&mut reshuffles, method, &budget, &mut |progress| {
        seen = Some((progress.shuffles, progress.exceedances));
        false
    });
    let conclusion = conclusion.unwrap();
    assert_eq!((conclusion.end, conclusion.exceedances), (End::Interrupted, conclusion.shuffles));
    assert_eq!(seen, Some((conclusion.shuffles, conclusion.shuffles)));
}
