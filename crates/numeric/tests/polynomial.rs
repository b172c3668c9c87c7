//! Polynomials over slices: every variant against the plain rule.
#![allow(missing_docs)]

use ascertain_numeric::polynomial::{VARIANTS, fill};
use proptest::prelude::*;

/// The most values that a recurrence covers before it begins anew: 256 steps of 32.
const RUN: usize = 256 * 32;

/// The value, and the sum of its terms' magnitudes, in twice the working precision or near it.
fn reference(coefficients: &[f64], i: usize) -> (f64, f64) {
    let x = i as f64;
    let terms = coefficients.iter().enumerate().map(|(k, c)| c * x.powi(k as i32));
    (ascertain_numeric::sum::sum(&terms.clone().collect::<Vec<f64>>()), terms.map(f64::abs).sum())
}

proptest! {
    /// Lengths on both sides of the blocks of every variant, and all degrees.
    #[test]
    fn every_variant_is_within_its_bound(
        coefficients in proptest::collection::vec(-1e3..1e3_f64, 0..8),
        length in prop_oneof![0..70_usize, 2_030..2_070_usize, 8_100..8_300_usize, 16_300..16_500_usize],
    ) {
        for variant in VARIANTS.iter().filter(|variant| variant.is_polynomial && variant.name != "additions") {
            let Some(function) = variant.function() else { continue };
            let mut out = vec![f64::NAN; length + 1];
            function(&coefficients, &mut out[..length]);
            prop_assert!(out[length].is_nan(), "{} writes beyond its slice", variant.name);
            for (i, value) in out[..length].iter().enumerate() {
                let (expected, size) = reference(&coefficients, i);
                // What a recurrence rounds off is bounded by the sizes at the end of its run.
                let (roundings, size) = match variant.name.starts_with("direct") {
                    true => (2.0, size),
                    false => (260.0, reference(&coefficients, i + RUN).1),
                };
                let bound = roundings * coefficients.len() as f64 * size;
                prop_assert!((value - expected).abs() <= bound * f64::EPSILON, "{} {i}: {value} {expected}", variant.name);
            }
        }
    }
}

#[test]
fn whole_numbers_are_exact_in_every_variant() {
    for variant in VARIANTS.iter().filter(|variant| variant.is_polynomial) {
        let Some(function) = variant.function() else { continue };
        for (coefficients, length) in [(&[3.0, -2.0, 5.0][..], 10_000), (&[1.0], 70), (&[0.0, 1.0], 9), (&[], 5)] {
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
fn the_plain_call_is_one_of_them() {
    let mut out = [0.0; 3];
    fill(&[1.5, 0.25], &mut out);
    assert_eq!(out, [1.5, 1.75, 2.0]);
    fill(&[f64::INFINITY, 1.0], &mut out);
    assert_eq!(out, [f64::INFINITY; 3]);
    fill(&[], &mut []);
}
