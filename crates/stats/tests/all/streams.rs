//! Compares moments of streams, and quantiles of sorted values, with plain computations on all values.

use ascertain_stats::{Moments, median_sorted, quantile_sorted};
use proptest::prelude::*;

/// Returns a pseudo-random whole number in 0..1024, so that sums are exact in integers.
fn noise(i: u64) -> u64 {
    (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) % 1024
}

/// Returns the mean and variance of `offset + noise(i)` from exact integer sums.
fn exact_noise_moments(count: u64) -> (f64, f64) {
    let (mut sum, mut squares) = (0_u128, 0_u128);
    for i in 0..count {
        let value = u128::from(noise(i));
        sum += value;
        squares += value * value;
    }
    let n = u128::from(count);
    let scaled = n * squares - sum * sum;
    (sum as f64 / n as f64, scaled as f64 / (n as f64 * (n - 1) as f64))
}

#[test]
fn a_large_offset_costs_no_digits_in_ten_million_values() {
    const COUNT: u64 = 10_000_000;
    let (mean, variance) = exact_noise_moments(COUNT);
    for offset in [0.0, 1e9, 1e15] {
        let moments: Moments = (0..COUNT).map(|i| offset + noise(i) as f64).collect();
        let spacing = offset.next_up() - offset;
        assert!((moments.mean().unwrap() - (offset + mean)).abs() <= spacing.max(1e-13), "{offset}");
        assert!((moments.variance().unwrap() / variance - 1.0).abs() < 1e-14, "{offset}");
    }
}

#[test]
fn a_first_value_far_away_does_no_harm() {
    let mut moments = Moments::new();
    moments.push(1e9);
    for i in 0..1_000_000 {
        moments.push(noise(i) as f64 * 1e-9);
        moments.push(-(noise(i) as f64) * 1e-9);
    }
    let n = 2_000_001.0_f64;
    assert!((moments.mean().unwrap() - 1e9 / n).abs() < 1e-13);
    assert!((moments.variance().unwrap() / (1e18 / n) - 1.0).abs() < 1e-14);
}

#[test]
fn infinities_and_nan_show_in_the_moments() {
    let timed_out: Moments = [1.0, f64::INFINITY, 2.0].into_iter().collect();
    assert_eq!(timed_out.mean(), Some(f64::INFINITY));
    assert!(timed_out.variance().unwrap().is_nan());
    assert_eq!((timed_out.min(), timed_out.max()), (Some(1.0), Some(f64::INFINITY)));
    let broken: Moments = [1.0, f64::NAN].into_iter().collect();
    assert!(broken.mean().unwrap().is_nan());
    assert_eq!((broken.min(), broken.max()), (Some(1.0), Some(1.0)));
    let both: Moments = [f64::NEG_INFINITY, f64::INFINITY].into_iter().collect();
    assert!(both.mean().unwrap().is_nan());
}

#[test]
fn few_values_have_few_moments() {
    let none = Moments::new();
    assert_eq!((none.count(), none.mean(), none.variance(), none.min(), none.max()), (0, None, None, None, None));
    let one: Moments = [3.0].into_iter().collect();
    assert_eq!((one.mean(), one.variance(), one.standard_deviation()), (Some(3.0), None, None));
}

#[test]
fn sorted_quantiles_handle_the_edges() {
    let values = [f64::NEG_INFINITY, -1.0, 0.0, 1.0, f64::INFINITY];
    assert_eq!(quantile_sorted(&values, 0.0), Some(f64::NEG_INFINITY));
    assert_eq!(quantile_sorted(&values, 0.1), Some(f64::NEG_INFINITY));
    assert_eq!(quantile_sorted(&values, 0.25), Some(-1.0));
    assert_eq!(quantile_sorted(&values, 0.375), Some(-0.5));
    assert_eq!(quantile_sorted(&values, 1.0), Some(f64::INFINITY));
    for q in [-0.1, 1.1, f64::NAN] {
        assert_eq!(quantile_sorted(&values, q), None);
    }
    assert_eq!(median_sorted(&[f64::INFINITY; 4]), Some(f64::INFINITY));
    assert_eq!(median_sorted(&[-f64::MAX, f64::MAX]), Some(0.0));
    assert_eq!(median_sorted(&[]), None);
}

proptest! {
    /// The merged moments of any two parts must be the moments of the whole.
    #[test]
    fn merged_moments_are_one(values in prop::collection::vec(-1e6..1e6_f64, 2..100), cut in 0_usize..100, offset in -1e12..1e12_f64) {
        let values: Vec<f64> = values.iter().map(|value| value + offset).collect();
        let (left, right) = values.split_at(cut.min(values.len()));
        let mut merged: Moments = left.iter().copied().collect();
        merged.merge(&right.iter().copied().collect());
        let whole: Moments = values.iter().copied().collect();
        prop_assert_eq!((merged.count(), merged.min(), merged.max()), (whole.count(), whole.min(), whole.max()));
        prop_assert_eq!(merged.mean(), whole.mean());
        let (split, straight) = (merged.variance().unwrap(), whole.variance().unwrap());
        prop_assert!((split - straight).abs() <= 1e-14 * straight, "{split} {straight}");
    }

    /// The interpolated quantile must lie between its neighbours and rise with q.
    #[test]
    fn sorted_quantiles_rise(values in prop::collection::vec(any::<f64>().prop_filter("finite", |x| x.is_finite()), 1..50), q in 0.0..=1.0_f64, r in 0.0..=1.0_f64) {
        let mut sorted = values;
        sorted.sort_by(f64::total_cmp);
        let (low, high) = (quantile_sorted(&sorted, q.min(r)).unwrap(), quantile_sorted(&sorted, q.max(r)).unwrap());
        prop_assert!(low <= high, "{low} {high}");
        prop_assert!(sorted[0] <= low && high <= sorted[sorted.len() - 1]);
    }
}
