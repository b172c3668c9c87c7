//! Polynomials in slices: every variant compared with the exact value.

use ascertain_numeric::polynomial::{Fill, VARIANTS, chosen, fill};
use ascertain_numeric::sum::exact;
use proptest::prelude::*;

/// The largest number of values that a recurrence covers before it restarts: 256 steps of 40 values each.
const RUN: usize = 256 * 40;

/// Half of the distance from 1 to the next double.
const U: f64 = f64::EPSILON / 2.0;

/// Number of fraction bits: coefficients are whole multiples of 2^−40.
const UNIT_BITS: i32 = 40;

/// An integer of 384 bits in units of 2^−40. The last digit has the sign.
#[derive(Clone, Copy)]
struct Wide([i64; 12]);

impl Wide {
    /// Returns `self · factor + term`, for a factor below 2^31.
    fn times_plus(self, factor: usize, term: i64) -> Wide {
        let mut carry = i128::from(term);
        let mut digits = self.0;
        let last = digits.len() - 1;
        for digit in &mut digits[..last] {
            carry += i128::from(*digit) * factor as i128;
            *digit = carry as i64 & i64::from(u32::MAX);
            carry >>= 32;
        }
        digits[last] = digits[last] * factor as i64 + carry as i64;
        Wide(digits)
    }

    /// Returns the double nearest to this number minus `subtracted`.
    fn less(self, subtracted: f64) -> f64 {
        // Every digit fits into a double. So does the last one, because the integer is small.
        let digit = |(i, &digit): (usize, &i64)| digit as f64 * 2.0_f64.powi(32 * i as i32 - UNIT_BITS);
        exact(&self.0.iter().enumerate().map(digit).chain([-subtracted]).collect::<Vec<_>>())
    }
}

/// A polynomial with its coefficients in two forms: as doubles, which the variants take, and in units of 2^−40.
#[derive(Clone, Debug)]
struct Polynomial {
    coefficients: Vec<f64>,
    units: Vec<i64>,
}

impl Polynomial {
    fn of_units(units: Vec<i64>) -> Polynomial {
        let coefficients = units.iter().map(|&units| units as f64 * 2.0_f64.powi(-UNIT_BITS)).collect();
        Polynomial { coefficients, units }
    }

    /// Returns the exact value at `i`.
    fn at(&self, i: usize) -> Wide {
        self.units.iter().rfold(Wide([0; 12]), |value, &units| value.times_plus(i, units))
    }

    /// Returns the sum of the magnitudes of the terms at `i`.
    fn size_at(&self, i: usize) -> f64 {
        self.units.iter().rfold(Wide([0; 12]), |value, units| value.times_plus(i, units.abs())).less(0.0)
    }
}

/// Polynomials up to the twelfth degree, with coefficients of every size from 2^−40 to 2^12 and of both signs.
fn polynomials() -> impl Strategy<Value = Polynomial> {
    let units = (-(1_i64 << 52)..1 << 52, 0..52_u32).prop_map(|(units, shift)| units >> shift);
    proptest::collection::vec(units, 0..14).prop_map(Polynomial::of_units)
}

/// Returns the error bound of a variant at `i` as stated in `src/polynomial/README.md`, plus a little for terms of
/// order u².
fn bound(name: &str, polynomial: &Polynomial, i: usize) -> f64 {
    let n = polynomial.coefficients.len().saturating_sub(1) as f64;
    let most = match name {
        "direct" | "direct-sse2" => 2.0 * n * U * polynomial.size_at(i),
        _ if name.starts_with("direct-") => n * U * polynomial.size_at(i),
        // The rounding error of a recurrence is bounded by the sizes at the end of its run.
        _ => 260.0 * (n + 1.0) * U * polynomial.size_at(i + RUN),
    };
    most * (1.0 + 1e-12)
}

/// Returns the variants that round once for each multiplication and addition.
fn fused() -> impl Iterator<Item = (&'static str, Fill)> {
    functions().filter(|(name, _)| name.starts_with("direct-") && *name != "direct-sse2")
}

/// Returns all variants except the one whose error has no bound.
fn functions() -> impl Iterator<Item = (&'static str, Fill)> {
    let bounded = VARIANTS.iter().filter(|variant| variant.is_polynomial && variant.name != "additions");
    bounded.filter_map(|variant| Some((variant.name, variant.function()?)))
}

/// Returns the positions that are checked: those near the ends of the slice and of the parts into which variants divide
/// it, and some between.
fn places(length: usize) -> impl Iterator<Item = usize> {
    (0..length).filter(move |i| {
        let is_near_an_end = *i < 50 || length - i < 50;
        is_near_an_end || i % 4096 < 2 || i % RUN < 2 || i % RUN > RUN - 3 || i % 61 == 0
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Tests all degrees, slices that begin at any offset, and lengths slightly below and above every variant's block
    /// length.
    #[test]
    fn every_variant_is_within_its_bound(
        polynomial in polynomials(),
        length in prop_oneof![4 => 0..300_usize, 1 => 4_060..4_140_usize, 1 => 10_210..10_290_usize],
        start in 0..8_usize,
    ) {
        let values: Vec<_> = places(length).map(|i| (i, polynomial.at(i))).collect();
        for (name, function) in functions() {
            let mut out = vec![f64::NAN; start + length + 1];
            function(&polynomial.coefficients, &mut out[start..start + length]);
            prop_assert!(out[..start].iter().all(|x| x.is_nan()), "{name} writes before its slice");
            prop_assert!(out[start + length].is_nan(), "{name} writes beyond its slice");
            for &(i, exact) in &values {
                let (error, bound) = (exact.less(out[start + i]).abs(), bound(name, &polynomial, i));
                prop_assert!(error <= bound, "{name} at {i}: {error:e} > {bound:e}");
            }
        }
    }

    /// Tests registers of any width, slices that begin at any offset, and some degrees for which no loop is unrolled.
    #[test]
    fn fused_variants_have_the_bits_of_the_fused_rule(
        polynomial in polynomials(),
        length in 0..150_usize,
        start in 0..8_usize,
    ) {
        let rule = |i: usize| polynomial.coefficients.iter().rfold(0.0_f64, |value, &c| value.mul_add(i as f64, c));
        let expected: Vec<u64> = (0..length).map(|i| (rule(i) + 0.0).to_bits()).collect();
        for (name, function) in fused() {
            let mut out = vec![f64::NAN; start + length];
            function(&polynomial.coefficients, &mut out[start..]);
            let bits: Vec<u64> = out[start..].iter().map(|value| (value + 0.0).to_bits()).collect();
            prop_assert_eq!(&bits, &expected, "{}", name);
        }
    }
}

/// On this input, the error is more than n·u·Σ|cₖ|·iᵏ if Horner's rule rounds after each multiplication and again after
/// each addition. Variants that round only once for both must have a smaller error.
#[test]
fn the_fused_bound_holds_beyond_the_fourth_degree() {
    let coefficients = [
        0.10825475040050747,
        0.6167200617467262,
        0.8624317259579236,
        0.8139471498033428,
        0.5487325295997628,
        0.9468229823610816,
    ];
    for (name, function) in fused() {
        let mut out = [0.0; 4];
        function(&coefficients, &mut out);
        // All terms are positive, so their sum is the value itself.
        let error = (out[3] - 306.2221931252759).abs();
        assert!(error <= 5.0 * U * 306.2221931252759, "{name}: {error:e}");
    }
}

#[test]
fn whole_numbers_are_exact_in_every_variant() {
    for variant in VARIANTS.iter().filter(|variant| variant.is_polynomial) {
        let Some(function) = variant.function() else { continue };
        for (coefficients, length) in [
            (&[3.0, -2.0, 5.0][..], RUN + 331),
            (&[3.0, -2.0, 5.0, 1.0], 500),
            (&[3.0, -2.0, 5.0, 1.0, -4.0, 0.0, 7.0], 100),
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
    let (mut plain, mut named) = ([0.0; 100], [0.0; 100]);
    fill(&[0.1, 0.7, 0.3], &mut plain);
    chosen().function().unwrap()(&[0.1, 0.7, 0.3], &mut named);
    assert_eq!(plain, named);
    fill(&[f64::INFINITY, 1.0], &mut out);
    assert_eq!(out, [f64::INFINITY; 3]);
    fill(&[1.0, f64::NAN], &mut out);
    assert!(out.iter().all(|x| x.is_nan()), "{out:?}");
    fill(&[], &mut []);
    fill(&[1.0, 2.0, 3.0], &mut []);
}
