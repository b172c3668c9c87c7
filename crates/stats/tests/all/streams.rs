//! Moments and quantiles of streams against plain computations on all values.

use ascertain_stats::{Error, Moments, StreamQuantiles, median_sorted, quantile_sorted};
use proptest::prelude::*;

/// A whole number in 0..1024 that looks random, so that sums are exact in integers.
fn noise(i: u64) -> u64 {
    (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) % 1024
}

/// The mean and variance of `offset + noise(i)` from exact integer sums.
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

#[test]
fn a_stream_of_awkward_values_has_quantiles() {
    let mut stream = StreamQuantiles::new();
    assert_eq!((stream.count(), stream.min(), stream.max(), stream.quantile(0.5)), (0, None, None, None));
    let awkward = [f64::MAX, -0.0, f64::INFINITY, 5e-324, f64::NEG_INFINITY, -1.0, f64::MIN_POSITIVE, 0.0];
    for value in awkward {
        stream.push(value).unwrap();
    }
    assert_eq!(stream.push(f64::NAN), Err(Error::NotANumber));
    assert_eq!(stream.count(), 8);
    let quantiles = [0.0, 0.25, 0.5, 1.0].map(|q| stream.quantile(q).unwrap());
    assert_eq!(quantiles[..3], [f64::NEG_INFINITY, -1.0 - StreamQuantiles::RELATIVE_ERROR, 0.0]);
    assert_eq!(quantiles[3], f64::INFINITY);
    assert!(stream.quantile(5.0 / 8.0).unwrap() < 2.2e-311);
    assert!((stream.quantile(7.0 / 8.0).unwrap() / f64::MAX - 1.0).abs() <= StreamQuantiles::RELATIVE_ERROR);
    assert_eq!(stream.quantile(1.5), None);
}

fn finite() -> impl Strategy<Value = f64> {
    prop_oneof![
        (-1e6..1e6_f64),
        (-300.0..300.0_f64, any::<bool>()).prop_map(|(exponent, negative)| {
            let value = 10_f64.powf(exponent);
            if negative { -value } else { value }
        }),
        Just(0.0),
    ]
}

proptest! {
    /// Every quantile of the stream is within the stated error of the value of that rank, and both ends are exact.
    #[test]
    fn stream_quantiles_keep_their_promise(values in prop::collection::vec(finite(), 1..300), q in 0.0..=1.0_f64) {
        let mut stream = StreamQuantiles::new();
        for &value in &values {
            stream.push(value).unwrap();
        }
        let mut sorted = values;
        sorted.sort_by(f64::total_cmp);
        let rank = ((q * sorted.len() as f64).ceil() as usize).max(1);
        let (exact, estimate) = (sorted[rank - 1], stream.quantile(q).unwrap());
        prop_assert!((estimate - exact).abs() <= StreamQuantiles::RELATIVE_ERROR * exact.abs(), "{estimate} {exact}");
        prop_assert_eq!((stream.min().unwrap(), stream.max().unwrap()), (sorted[0], sorted[sorted.len() - 1]));
    }

    /// Two streams merged are the stream of all values.
    #[test]
    fn merged_streams_are_one(left in prop::collection::vec(finite(), 0..100), right in prop::collection::vec(finite(), 1..100)) {
        let stream_of = |values: &[f64]| {
            let mut stream = StreamQuantiles::new();
            values.iter().for_each(|&value| stream.push(value).unwrap());
            stream
        };
        let mut merged = stream_of(&left);
        merged.merge(&stream_of(&right));
        let whole = stream_of(&[left, right].concat());
        for q in [0.0, 0.1, 0.5, 0.9, 0.99, 1.0] {
            prop_assert_eq!(merged.quantile(q), whole.quantile(q));
        }
        prop_assert_eq!(merged.count(), whole.count());
    }

    /// Moments merged in any split are the moments of the whole.
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

    /// The interpolated quantile lies between its neighbours and rises with q.
    #[test]
    fn sorted_quantiles_rise(values in prop::collection::vec(any::<f64>().prop_filter("finite", |x| x.is_finite()), 1..50), q in 0.0..=1.0_f64, r in 0.0..=1.0_f64) {
        let mut sorted = values;
        sorted.sort_by(f64::total_cmp);
        let (low, high) = (quantile_sorted(&sorted, q.min(r)).unwrap(), quantile_sorted(&sorted, q.max(r)).unwrap());
        prop_assert!(low <= high, "{low} {high}");
        prop_assert!(sorted[0] <= low && high <= sorted[sorted.len() - 1]);
    }
}
