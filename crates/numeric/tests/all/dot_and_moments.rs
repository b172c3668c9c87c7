//! Dot products, means and variances, compared with exact results.

use ascertain_numeric::sum::{
    Element, Exact, dot, dot_of, exact, mean, mean_of, strided, sum_of, variance, variance_of,
};
use proptest::prelude::*;

/// Half of the distance from 1 to the next double.
const U: f64 = f64::EPSILON / 2.0;

/// Returns each product as two parts whose sum is exact, for numbers that are neither huge nor tiny.
fn parts<T: Element>(xs: &[T], ys: &[T]) -> Vec<f64> {
    let pairs = xs.iter().zip(ys).map(|(&x, &y)| -> (f64, f64) { (x.into(), y.into()) });
    pairs.flat_map(|(x, y)| [x * y, x.mul_add(y, -(x * y))]).collect()
}

fn check_dots<T: Element>(xs: &[T], ys: &[T]) -> Result<(), TestCaseError> {
    let mut parts = parts(xs, ys);
    let (expected, n) = (exact(&parts), xs.len() as f64);
    let absolute = exact(&parts.iter().map(|x| x.abs()).collect::<Vec<_>>());
    let of_block = if size_of::<T>() == 4 { 3.0 * U } else { 0.0 };
    let twice = U * expected.abs() + (4.0 * (n * U).powi(2) + of_block) * absolute;
    let plain = 2.0 * n * U * absolute;
    let products = T::DOT_VARIANTS.iter().filter(|variant| variant.is_product);
    let named = products.filter_map(|variant| Some((variant.name, variant.function()?)));
    for (name, function) in named.chain([("dot()", dot as fn(&[T], &[T]) -> f64)]) {
        let bound = if name.starts_with("dot2") || name == "dot()" { twice } else { plain };
        let got = function(xs, ys);
        parts.push(-got);
        let error = exact(&parts).abs();
        parts.pop();
        prop_assert!(error <= bound, "{name}: {error:e} > {bound:e}");
    }
    let of_iterators = dot_of(xs.iter().copied(), ys.iter().copied());
    prop_assert_eq!(of_iterators, expected);
    Ok(())
}

/// Numbers whose square has a rounding error that fits in a double.
fn number() -> impl Strategy<Value = f64> {
    (-1.0..1.0_f64, -60..60_i32).prop_map(|(x, exponent)| x * 2_f64.powi(exponent))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn dots_are_within_their_bounds(xs in crate::common::slice(number(), 0..300), seed in any::<u64>()) {
        let mut ys = xs.clone();
        ys.rotate_left(seed as usize % xs.len().max(1));
        check_dots(&xs, &ys)?;
        let single = |xs: &[f64]| xs.iter().map(|&x| x as f32).collect::<Vec<f32>>();
        check_dots(&single(&xs), &single(&ys))?;
    }

    /// All `dot2` variants compute with eight lanes, so `dot()` may use any of them.
    #[test]
    fn dot2_has_the_same_bits_with_any_instructions(xs in crate::common::slice(number(), 0..600), seed in any::<u64>()) {
        fn all<T: Element>(xs: &[T], ys: &[T]) -> Vec<u64> {
            let dots = T::DOT_VARIANTS.iter().filter(|variant| variant.name.starts_with("dot2"));
            dots.filter_map(|variant| Some(variant.function()?(xs, ys).to_bits())).collect()
        }
        let mut ys = xs.clone();
        ys.rotate_left(seed as usize % xs.len().max(1));
        let single = |xs: &[f64]| xs.iter().map(|&x| x as f32).collect::<Vec<f32>>();
        prop_assert_eq!(all(&xs, &ys), vec![dot(&xs, &ys).to_bits(); all(&xs, &ys).len()]);
        let (xs, ys) = (single(&xs), single(&ys));
        prop_assert_eq!(all(&xs, &ys), vec![dot(&xs, &ys).to_bits(); all(&xs, &ys).len()]);
    }

    /// Tests that the result is right even if large products cancel.
    #[test]
    fn dots_bear_cancellation(xs in crate::common::slice(number(), 1..100)) {
        let (mut left, mut right) = (xs.clone(), xs.clone());
        left.extend(xs.iter().map(|x| -x));
        right.extend(&xs);
        left.push(3.0);
        right.push(2_f64.powi(-40));
        check_dots(&left, &right)?;
    }

    #[test]
    fn means_are_near_the_exact_one(xs in crate::common::slice(number(), 1..300)) {
        let expected = exact(&xs) / xs.len() as f64;
        let (n, absolute) = (xs.len() as f64, exact(&xs.iter().map(|x| x.abs()).collect::<Vec<_>>()));
        let near = |mean: f64| (mean - expected).abs() <= 3.0 * U * expected.abs() + n * U * U * absolute;
        prop_assert!(near(mean(&xs).unwrap()));
        prop_assert!(near(mean_of(xs.iter().copied()).unwrap()));
    }

    /// Compares the variance with one that is computed from the squared differences of all pairs of numbers, in which
    /// nothing cancels.
    #[test]
    fn variances_are_near_the_exact_one(
        xs in crate::common::slice(-1.0..1.0_f64, 2..150),
        offset in prop_oneof![Just(0.0), Just(1e3), Just(-1e9), Just(1e15)],
    ) {
        let xs: Vec<f64> = xs.into_iter().map(|x| x + offset).collect();
        let n = xs.len() as f64;
        let pairs = xs.iter().enumerate().flat_map(|(i, x)| xs[..i].iter().map(move |y| (x - y) * (x - y)));
        let expected = sum_of(pairs) / n / (n - 1.0);
        let centre = xs.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
        let bound = 16.0 * U * expected + 4.0 * n * (U * centre).powi(2) * U;
        for got in [variance(&xs).unwrap(), variance_of(xs.iter().copied()).unwrap()] {
            prop_assert!((got - expected).abs() <= bound.max(1e-300), "{got:e} instead of {expected:e}");
        }
    }

    #[test]
    fn strided_is_every_so_many(xs in crate::common::slice(crate::common::number(), 0..200), stride in 1..9_usize) {
        let gathered: Vec<f64> = xs.iter().copied().step_by(stride).collect();
        prop_assert_eq!(sum_of(strided(&xs, stride)).to_bits(), exact(&gathered).to_bits());
        let collected: Exact = strided(&xs, stride).collect();
        prop_assert_eq!(collected.round().to_bits(), exact(&gathered).to_bits());
    }
}

#[test]
fn every_length_is_multiplied_whole() {
    for length in 0..600_usize {
        let xs: Vec<f64> = (0..length).map(|i| i as f64).collect();
        let singles: Vec<f32> = xs.iter().map(|&x| x as f32).collect();
        let expected = xs.iter().map(|x| x * x).sum::<f64>() + 0.0;
        for variant in f64::DOT_VARIANTS.iter().filter(|variant| variant.is_product) {
            let Some(function) = variant.function() else { continue };
            assert_eq!(function(&xs, &xs).to_bits(), expected.to_bits(), "{}, {length}", variant.name);
        }
        for variant in f32::DOT_VARIANTS.iter().filter(|variant| variant.is_product) {
            let Some(function) = variant.function() else { continue };
            assert_eq!(function(&singles, &singles).to_bits(), expected.to_bits(), "{}, {length}", variant.name);
        }
    }
}

#[test]
fn special_products() {
    let (inf, nan, max) = (f64::INFINITY, f64::NAN, f64::MAX);
    assert_eq!(dot::<f64>(&[], &[]).to_bits(), 0);
    assert_eq!(dot(&[-0.0], &[1.0]).to_bits(), 0, "a result of zero is +0.0");
    assert!(dot(&[nan, 1.0], &[1.0, 1.0]).is_nan());
    assert!(dot(&[inf, 1.0], &[0.0, 1.0]).is_nan());
    assert!(dot(&[inf, inf], &[1.0, -1.0]).is_nan());
    assert_eq!(dot(&[inf, 1.0], &[-2.0, 1.0]), -inf);
    assert_eq!(dot(&[max, max, -max], &[1.0, 1.0, 1.0]), max, "a partial sum may overflow");
    assert_eq!(dot(&[max], &[2.0]), inf);
    assert_eq!(dot_of([max, max, -max], [1.0, 1.0, 1.0]), max);
    assert_eq!(dot_of([1.0, 2.0, 3.0], [1.0]), 1.0, "it stops at the end of the shorter one");
    let singles = vec![f32::MAX; 1000];
    assert_eq!(dot(&singles, &singles), 1000.0 * f64::from(f32::MAX) * f64::from(f32::MAX));
    let (mut with_nan, ones) = (vec![1.0_f32; 300], vec![1.0_f32; 300]);
    with_nan[200] = f32::NAN;
    assert!(dot(&with_nan, &ones).is_nan());
}

#[test]
#[should_panic(expected = "two slices of the same length")]
fn lengths_must_agree() {
    dot(&[1.0], &[1.0, 2.0]);
}

#[test]
#[should_panic(expected = "the stride must be at least 1")]
fn a_stride_of_zero_is_refused() {
    let _ = strided(&[1.0], 0);
}

#[test]
fn special_moments() {
    let (inf, nan, max) = (f64::INFINITY, f64::NAN, f64::MAX);
    assert_eq!((mean::<f32>(&[]), variance::<f32>(&[]), variance(&[1.0])), (None, None, None));
    assert_eq!((mean_of::<f64>([]), variance_of([1.0])), (None, None));
    assert_eq!(mean(&[-0.0]).unwrap().to_bits(), (-0.0_f64).to_bits());
    assert!(mean(&[1.0, nan]).unwrap().is_nan() && variance(&[1.0, nan]).unwrap().is_nan());
    assert_eq!(mean(&[1.0, inf]), Some(inf));
    assert!(variance(&[1.0, inf]).unwrap().is_nan());
    assert_eq!(mean(&[max; 1000]), Some(max));
    assert_eq!(mean_of([max, max, 0.0, 0.0]), Some(max / 2.0));
    assert_eq!(variance(&[0.1; 1000]), Some(0.0));
    assert_eq!(variance(&[1.0_f32, 2.0, 4.0, 5.0]), Some(10.0 / 3.0));
    let next = 1.0 + f64::EPSILON;
    assert_eq!(variance(&[1.0, next]), Some(f64::EPSILON * f64::EPSILON / 2.0), "a spread of one ulp");
}

#[test]
fn equal_numbers_have_no_variance() {
    for length in 2..300 {
        for x in [0.1, 1.0 / 3.0, 1e9 + 0.1, -7e-5] {
            assert_eq!(variance(&vec![x; length]), Some(0.0), "{length} times {x}");
            assert_eq!(variance_of(vec![x; length]), Some(0.0), "{length} times {x}");
        }
    }
}

#[test]
fn iterators_longer_than_their_blocks() {
    let numbers = (0..10_000_u32).map(f64::from);
    assert_eq!(sum_of(numbers.clone()), 49_995_000.0);
    assert_eq!(mean_of(numbers.clone()), Some(4999.5));
    assert_eq!(variance_of(numbers.clone()), Some(10_000.0 * 10_001.0 / 12.0));
    assert_eq!(dot_of(numbers.clone(), numbers), 333_283_335_000.0);
}
