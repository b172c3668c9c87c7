//! The interval must contain exactly the rates for which there is no verdict.

use ascertain_stats::{
    Error, Interval, RateSequence, Tally, credible_interval, log_e_holds, log_e_refuted, rate_interval,
};
use proptest::prelude::*;

/// The smallest distance at which rates next to 1 can be told apart.
const FEW_ULPS: f64 = 5e-16;

fn tallies() -> impl Strategy<Value = Tally> {
    (0.0..7.0, 0.0..=1.0, 0..3u8).prop_map(|(magnitude, share, kind): (f64, f64, u8)| {
        let trials = 10f64.powf(magnitude) as u64;
        let few = (share * 5.0) as u64;
        let successes = match kind {
            0 => (share * trials as f64) as u64,
            1 => few.min(trials),
            _ => trials - few.min(trials),
        };
        Tally::new(trials, successes).unwrap()
    })
}

fn errors() -> impl Strategy<Value = f64> {
    (0.1..20.0).prop_map(|nats: f64| (-nats).exp())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn an_interval_holds_the_observed_share(tally in tallies(), error_low in errors(), error_high in errors()) {
        if tally.trials == 0 {
            return Ok(());
        }
        let interval = rate_interval(tally, error_low, error_high).unwrap();
        prop_assert!(interval.contains(tally.successes as f64 / tally.trials as f64), "{:?}", interval);
        prop_assert!(interval.low >= 0.0 && interval.high <= 1.0);
    }

    #[test]
    fn outside_of_it_a_rate_is_rejected_and_inside_it_is_not(
        tally in tallies(), error_low in errors(), error_high in errors(), shift in 1e-9..3.0f64,
    ) {
        let Interval { low, high } = rate_interval(tally, error_low, error_high).unwrap();
        let moved = |rate: f64, by: f64| -> f64 { 1.0 / (1.0 + (1.0 - rate) / rate * (-by).exp()) };
        let rejects_low = |rate: f64| log_e_holds(tally, rate) >= -error_low.ln();
        let rejects_high = |rate: f64| log_e_refuted(tally, rate) >= -error_high.ln();
        if low > 0.0 {
            prop_assert!(rejects_low(low), "{}", low);
            prop_assert!(rejects_low(moved(low, -shift)), "{}", low);
            let inside = moved(low, shift);
            prop_assert!((low > 0.5 && inside - low < FEW_ULPS) || !rejects_low(inside), "{}", low);
        }
        if high < 1.0 {
            prop_assert!(rejects_high(high), "{}", high);
            prop_assert!(moved(high, shift) == 1.0 || rejects_high(moved(high, shift)), "{}", high);
            let inside = moved(high, -shift);
            prop_assert!((high > 0.5 && high - inside < FEW_ULPS) || !rejects_high(inside), "{}", high);
        }
    }

    #[test]
    fn success_and_failure_mirror_each_other(tally in tallies(), error_low in errors(), error_high in errors()) {
        let mirrored = Tally::new(tally.trials, tally.failures()).unwrap();
        for (one, other) in [
            (rate_interval(tally, error_low, error_high), rate_interval(mirrored, error_high, error_low)),
            (credible_interval(tally, error_low), credible_interval(mirrored, error_low)),
        ] {
            let (one, other) = (one.unwrap(), other.unwrap());
            prop_assert!((one.low - (1.0 - other.high)).abs() <= 3e-16, "{:?} {:?}", one, other);
            prop_assert!((one.high - (1.0 - other.low)).abs() <= 3e-16, "{:?} {:?}", one, other);
        }
    }

    #[test]
    fn less_error_is_more_width(tally in tallies(), error in errors()) {
        for interval in [|tally, error| rate_interval(tally, error, error), credible_interval] {
            let (wide, narrow) = (interval(tally, error / 2.0).unwrap(), interval(tally, error).unwrap());
            prop_assert!(wide.low <= narrow.low && narrow.high <= wide.high);
        }
    }

    /// Each end must be that of a tally in which all unknown outcomes count against that end.
    #[test]
    fn what_is_unknown_counts_against_both_ends(tally in tallies(), unknown in 0..1000u64, error in errors()) {
        let mut sequence = RateSequence::new(error, error).unwrap();
        let interval = sequence.update_with_unknown(tally, unknown);
        let trials = tally.trials + unknown;
        let low = rate_interval(Tally::new(trials, tally.successes).unwrap(), error, error).unwrap().low;
        let high = rate_interval(Tally::new(trials, tally.successes + unknown).unwrap(), error, error).unwrap().high;
        prop_assert_eq!(interval, Interval { low, high });
        prop_assert_eq!(sequence.update(Tally { trials: Tally::MAX_TRIALS + 1, successes: 0 }), interval);
        prop_assert_eq!(sequence.update_with_unknown(tally, u64::MAX), interval);
    }

    #[test]
    fn a_credible_interval_has_its_share_in_each_tail(tally in tallies(), error in errors()) {
        if tally.trials >= 100_000 || error < 1e-6 {
            return Ok(());
        }
        let interval = credible_interval(tally, error).unwrap();
        let beta = |a: u64, b: u64, x: f64| statrs::function::beta::beta_reg(a as f64 + 1.0, b as f64 + 1.0, x);
        let below = beta(tally.successes, tally.failures(), interval.low);
        let above = beta(tally.failures(), tally.successes, 1.0 - interval.high);
        prop_assert!((below / (error / 2.0) - 1.0).abs() < 1e-6, "{} below {:?}", below, interval);
        prop_assert!(interval.high > 1.0 - 1e-9 || (above / (error / 2.0) - 1.0).abs() < 1e-6, "{} above {:?}", above, interval);
    }
}

#[test]
fn without_successes_nothing_bounds_the_rate_from_below() {
    let interval = rate_interval(Tally::new(100, 0).unwrap(), 0.05, 0.05).unwrap();
    assert!(interval.low == 0.0 && interval.high < 0.06, "{interval:?}");
    let interval = rate_interval(Tally::new(100, 100).unwrap(), 0.05, 0.05).unwrap();
    assert!(interval.high == 1.0 && interval.low > 0.94, "{interval:?}");
    assert_eq!(rate_interval(Tally::default(), 0.05, 0.05), Ok(Interval::ALL));
}

#[test]
fn huge_tallies_have_narrow_intervals() {
    let trials = 1 << 48;
    for successes in [trials / 2, trials / 1000, trials - 5, 3] {
        let tally = Tally::new(trials, successes).unwrap();
        let share = successes as f64 / trials as f64;
        let deviation = (share * (1.0 - share) / trials as f64).sqrt();
        for interval in [rate_interval(tally, 0.001, 0.001).unwrap(), credible_interval(tally, 0.001).unwrap()] {
            assert!(interval.contains(share), "{interval:?}");
            let width = (interval.high - interval.low) / deviation;
            assert!((6.0..30.0).contains(&width), "{interval:?} is {width} deviations wide");
        }
    }
}

#[test]
fn a_sequence_only_shrinks_and_shows_when_trials_are_not_alike() {
    let mut sequence = RateSequence::new(0.01, 0.01).unwrap();
    assert_eq!(sequence.interval(), Interval::ALL);
    let mut last = Interval::ALL;
    for trials in (10..2000).step_by(97) {
        let tally = Tally::new(trials, trials * 3 / 4).unwrap();
        let interval = sequence.update(tally);
        assert!(last.low <= interval.low && interval.high <= last.high);
        let once = rate_interval(tally, 0.01, 0.01).unwrap();
        assert_eq!(interval, last.intersection(once));
        last = interval;
    }
    assert!(!last.is_empty());
    // An invalid tally must change nothing.
    assert_eq!(sequence.update(Tally { trials: 3, successes: 4 }), last);
    assert!(sequence.update(Tally::new(20_000, 1500).unwrap()).is_empty());
    assert!(sequence.update(Tally::new(30_000, 22_500).unwrap()).is_empty());
}

#[test]
fn what_is_no_error_or_tally_is_refused() {
    let tally = Tally::new(10, 5).unwrap();
    for error in [0.0, 1.0, f64::NAN] {
        assert!(matches!(rate_interval(tally, error, 0.1), Err(Error::ErrorProbability { .. })));
        assert!(matches!(rate_interval(tally, 0.1, error), Err(Error::ErrorProbability { .. })));
        assert!(matches!(credible_interval(tally, error), Err(Error::ErrorProbability { .. })));
        assert!(RateSequence::new(0.1, error).is_err());
    }
    let impossible = Tally { trials: 5, successes: 6 };
    assert!(rate_interval(impossible, 0.1, 0.1).is_err());
    assert!(credible_interval(impossible, 0.1).is_err());
}
