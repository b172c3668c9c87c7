//! Polynomials over slices: every variant against the plain rule.
#![allow(missing_docs)]

use ascertain_numeric::polynomial::{VARIANTS, fill};
use ascertain_numeric::sum::sum;
use proptest::prelude::*;

/// The most values that a recurrence covers before it begins anew: 256 steps of 40.
const RUN: usize = 256 * 40;

/// The value at `i`, summed in twice the working precision, and the sum of its terms' magnitudes.
fn reference(coefficients: &[f64], i: usize) -> (f64, f64) {
    let mut terms = [0.0; 8];
    for (k, (term, c)) in terms.iter_mut().zip(coefficients).enumerate() {
        *term = c * (i as f64).powi(k as i32);
    }
    (sum(&terms), terms.iter().map(|term| term.abs()).sum())
}

/// Places that methods may get wrong: the ends of the slice, of runs and of rows, and some between.
fn places(length: usize) -> impl Iterator<Item = usize> {
    (0..length).filter(move |i| {
        let is_near_an_end = *i < 50 || length - i < 50;
        is_near_an_end || i % 4096 < 2 || i % RUN < 2 || i % RUN > RUN - 3 || i % 61 == 0
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Lengths on both sides of the blocks of every variant, all degrees, and slices that begin anywhere.
    #[test]
    fn every_variant_is_within_its_bound(
        coefficients in proptest::collection::vec(-1e3..1e3_f64, 0..8),
        length in prop_oneof![4 => 0..300_usize, 1 => 4_060..4_140_usize, 1 => 10_210..10_290_usize],
        start in 0..8_usize,
    ) {
        let expected: Vec<_> = places(length)
            .map(|i| (i, reference(&coefficients, i), reference(&coefficients, i + RUN).1))
            .collect();
        for variant in VARIANTS.iter().filter(|variant| variant.is_polynomial && variant.name != "additions") {
            let Some(function) = variant.function() else { continue };
            let mut out = vec![f64::NAN; start + length + 1];
            function(&coefficients, &mut out[start..start + length]);
            prop_assert!(out[..start].iter().all(|x| x.is_nan()), "{} writes before its slice", variant.name);
            prop_assert!(out[start + length].is_nan(), "{} writes beyond its slice", variant.name);
            for &(i, (exact, size), size_at_end) in &expected {
                let value = out[start + i];
                // What a recurrence rounds off is bounded by the sizes at the end of its run.
                let (roundings, size) = match variant.name.starts_with("direct") {
                    true => (2.0, size),
                    false => (260.0, size_at_end),
                };
                let bound = roundings * coefficients.len() as f64 * size * f64::EPSILON / 2.0;
                prop_assert!((value - exact).abs() <= bound, "{} {i}: {value} {exact}", variant.name);
            }
        }
    }
}

#[test]
fn whole_numbers_are_exact_in_every_variant() {
    for variant in VARIANTS.iter().filter(|variant| variant.is_polynomial) {
        let Some(function) = variant.function() else { continue };
        for (coefficients, length) in [
            (&[3.0, -2.0, 5.0][..], RUN + 331),
            (&[3.0, -2.0, 5.0, 1.0], 500),
            (&[1.0], 70),
            (&[0.0, 1.0], 9),
            (&[], 5),
        ] {
            let mut out = vec![f64::NAN; length];
            function(coefficients, &mut out);
            for (i, value) in out.iter().enumerate() {
                let i = i as i64;
                let expected: i64 = coefficients.iter().rev().fold(0, |sum, &c| sum * i + c as i64);
                assert_eq!(*value, expected as f64, "{} at {i}", variant.name);
            }
        }
    }
}

#[test]
fn what_is_no_polynomial_stores_the_first_coefficient() {
    for variant in VARIANTS.iter().filter(|variant| !variant.is_polynomial) {
        let Some(function) = variant.function() else { continue };
        for length in [0, 1, 7, 8, 100] {
            let mut out = vec![f64::NAN; length + 1];
            function(&[1.5, 2.0], &mut out[..length]);
            assert!(out[..length].iter().all(|&x| x == 1.5) && out[length].is_nan(), "{} {length}", variant.name);
        }
    }
}

#[test]
fn the_plain_call_is_one_of_them() {
    let mut out = [0.0; 3];
    fill(&[1.5, 0.25], &mut out);
    assert_eq!(out, [1.5, 1.75, 2.0]);
    fill(&[f64::INFINITY, 1.0], &mut out);
    assert_eq!(out, [f64::INFINITY; 3]);
    fill(&[1.0, f64::NAN], &mut out);
    assert!(out.iter().all(|x| x.is_nan()), "{out:?}");
    fill(&[], &mut []);
    fill(&[1.0, 2.0, 3.0], &mut []);
}
