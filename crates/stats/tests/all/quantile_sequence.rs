//! Tests of the ranks between which a quantile lies.

use ascertain_stats::{Error, QuantileRanks, Tally, log_e_holds, log_e_refuted, log_level, quantile_ranks};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

fn ranks(n: u64, q: f64, error: f64) -> QuantileRanks {
    quantile_ranks(n, q, error, error).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn ranks_are_the_first_that_are_rejected(n in 0..3000u64, q in 0.001..0.999, nats in 0.2..12.0f64) {
        let error = (-nats).exp();
        let ranks = ranks(n, q, error);
        let threshold = -error.ln();
        let tally = |successes| Tally::new(n, successes).unwrap();
        let above_rejected = |strictly_below| log_e_holds(tally(strictly_below), q) >= threshold;
        let below_rejected = |at_or_below| log_e_refuted(tally(at_or_below), q) >= threshold;
        match ranks.high {
            Some(high) => prop_assert!(above_rejected(high + 1) && !above_rejected(high)),
            None => prop_assert!(!above_rejected(n)),
        }
        match ranks.low {
            Some(low) => prop_assert!(below_rejected(low) && !below_rejected(low + 1)),
            None => prop_assert!(!below_rejected(0)),
        }
        if let QuantileRanks { low: Some(low), high: Some(high) } = ranks {
            prop_assert!(low < high && high < n);
        }
    }

    #[test]
    fn small_and_large_values_mirror_each_other(n in 1..5000u64, q in 1..1024u32, nats in 0.2..12.0f64) {
        let (q, error) = (f64::from(q) / 1024.0, (-nats).exp());
        let (ranks, mirrored) = (ranks(n, q, error), ranks(n, 1.0 - q, error));
        prop_assert_eq!(ranks.low, mirrored.high.map(|high| n - 1 - high));
    }
}

#[test]
fn p99_has_no_upper_end_before_343_values() {
    for n in 0..343 {
        assert_eq!(ranks(n, 0.99, 0.025).high, None, "{n}");
    }
    let first = (343..1000).find(|&n| ranks(n, 0.99, 0.025).high.is_some());
    assert!(first.is_some_and(|n| n < 450), "{first:?}");
}

#[test]
fn p99_of_ten_thousand_values_is_narrower_than_by_robbins() {
    let n = 10_000;
    for (error, at_most) in [(0.05, 0.82), (0.001, 0.87)] {
        let ranks = ranks(n, 0.99, error / 2.0);
        let width = ranks.high.unwrap() - ranks.low.unwrap();
        let rejects = |successes: &u64| {
            let level = log_level(Tally::new(n, *successes).unwrap(), 0.99);
            level <= (error / 2.0f64).ln()
        };
        let low = (0..=9900).rev().find(rejects).unwrap();
        let high = (9900..=n).find(rejects).unwrap() - 1;
        let share = width as f64 / (high - low) as f64;
        assert!(share <= at_most, "{width} ranks are {share} of {}", high - low);
    }
}

/// Looks after every value of a stream with many ties. The median of a die is 3, 4 or any number between; its quantile
/// at 0.9 is 6.
#[test]
fn ties_do_no_harm() {
    let error: f64 = 0.05;
    for (q, least, greatest) in [(0.5, 3, 4), (0.9, 6, 6), (0.1, 1, 1), (1.0 / 6.0, 1, 2)] {
        let mut misses = 0;
        for seed in 0..200 {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            let mut values: Vec<u32> = Vec::new();
            let missed = (1..60).any(|_| {
                values.extend((0..5).map(|_| rng.random_range(1..=6u32)));
                values.sort_unstable();
                let ranks = ranks(values.len() as u64, q, error / 2.0);
                let above = ranks.low.is_some_and(|rank| values[rank as usize] > greatest);
                let below = ranks.high.is_some_and(|rank| values[rank as usize] < least);
                above || below
            });
            misses += u32::from(missed);
        }
        assert!(f64::from(misses) <= error * 200.0, "{misses} of 200 at {q}");
    }
}

#[test]
fn many_values_have_ranks_too() {
    let n = 1 << 40;
    let QuantileRanks { low, high } = ranks(n, 0.5, 0.001);
    let half = n / 2;
    let (below, above) = (half - low.unwrap(), high.unwrap() - half);
    assert!(below.abs_diff(above) <= 1, "{below} {above}");
    assert!((1 << 20..1 << 22).contains(&above), "{above}");
}

#[test]
fn what_has_no_ranks_is_refused() {
    for q in [0.0, 1.0, -1.0, f64::NAN] {
        assert!(matches!(quantile_ranks(10, q, 0.1, 0.1), Err(Error::Quantile { .. })), "{q}");
    }
    assert!(matches!(quantile_ranks(10, 0.5, 0.0, 0.1), Err(Error::ErrorProbability { .. })));
    assert!(matches!(quantile_ranks(10, 0.5, 0.1, 1.0), Err(Error::ErrorProbability { .. })));
    assert!(matches!(quantile_ranks(u64::MAX, 0.5, 0.1, 0.1), Err(Error::TooManyTrials { .. })));
    assert_eq!(ranks(0, 0.5, 0.1), QuantileRanks { low: None, high: None });
}
