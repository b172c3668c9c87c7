//! The error bounds of the methods, and which variants return the same bits.

use ascertain_numeric::sum::exact;
use proptest::prelude::*;

use super::*;

/// Half of the distance from 1 to the next double.
const U: f64 = f64::EPSILON / 2.0;

/// Returns the error bound of a method for these numbers.
fn bound<T>(name: &str, xs: &[f64]) -> f64 {
    let n = xs.len() as f64;
    // Error bound of 32 registers that are added without compensation in a tree.
    let of_block = if size_of::<T>() == 4 { 5.0 * U } else { 0.0 };
    let absolute = exact(&xs.iter().map(|x| x.abs()).collect::<Vec<_>>());
    match method(name) {
        "naive" => n * U * absolute,
        "pairwise" => n.min(128.0 + n.max(1.0).log2()) * U * absolute,
        "kahan" => (2.0 * U + 16.0 * n * U * U) * absolute,
        "neumaier" => U * exact(xs).abs() + (n * U).powi(2) * absolute,
        "block-twosum" | "sum()" => U * exact(xs).abs() + ((n * U).powi(2) + of_block) * absolute,
        "babuska" => U * exact(xs).abs() + (U + 16.0 * n * U * U + of_block) * absolute,
        "exact" => U * exact(xs).abs(),
        other => panic!("no bound for {other}"),
    }
}

/// Checks that the error of every function for `xs` is within its bound.
fn check_bounds<T: Element>(xs: &[T]) -> Result<(), TestCaseError> {
    let mut widened: Vec<f64> = xs.iter().map(|&x| x.into()).collect();
    for (name, accumulators, function) in functions::<T>().into_iter().chain([plain()]) {
        let bound = bound::<T>(name, &widened);
        let got = function(xs);
        widened.push(-got);
        let error = exact(&widened).abs();
        widened.pop();
        prop_assert!(error <= bound, "{name} × {accumulators}: {error:e} > {bound:e}");
    }
    Ok(())
}

fn bits_equal<T: Element>(xs: &[T], these: &[(&str, u32)]) -> Result<(), TestCaseError> {
    let results: Vec<_> =
        these.iter().filter_map(|&(name, n)| Some((name, n, T::variant(name).unwrap().function(n)?(xs)))).collect();
    for (name, n, result) in &results {
        prop_assert!(result.to_bits() == results[0].2.to_bits(), "{name} × {n}: {results:?}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn errors_are_within_their_bounds(xs in crate::common::slice(crate::common::moderate_number(), 0..700)) {
        check_bounds(&xs)?;
        let singles: Vec<f32> = xs.iter().map(|&x| x as f32).filter(|x| x.is_finite()).collect();
        check_bounds(&singles)?;
    }

    /// In each list, the number of accumulators times the number of lanes is eight. All variants of the list therefore
    /// make the same eight chains of additions, so vector code and scalar code must return the same bits.
    #[test]
    fn lanes_and_accumulators_are_interchangeable(xs in crate::common::slice(crate::common::number(), 0..200)) {
        let singles: Vec<f32> = xs.iter().map(|&x| x as f32).collect();
        for chains in [
            &[("neumaier", 8), ("neumaier-neon", 4), ("neumaier-avx2", 2), ("neumaier-avx512", 1)][..],
            &[("naive", 8), ("naive-sse2", 4), ("naive-neon", 4), ("naive-avx2", 2), ("naive-avx512", 1)],
        ] {
            // If there are several NaN, any of them may be the result.
            if xs.iter().map(|x| x.abs()).sum::<f64>() < f64::MAX {
                bits_equal(&xs, chains)?;
            }
            if singles.iter().all(|x| x.is_finite()) {
                bits_equal(&singles, chains)?;
            }
        }
        // In Kahan's method, adding −0.0 in an unused lane may move a part of the lane's compensation to the lane's
        // sum.
        let mut aligned = vec![0.0; singles.len() + 16];
        let start = aligned.as_ptr().align_offset(64);
        let whole = &mut aligned[start..][..singles.len() / 8 * 8];
        whole.copy_from_slice(&singles[..whole.len()]);
        if whole.iter().all(|x| x.is_finite()) {
            bits_equal(whole, &[("kahan", 8), ("kahan-neon", 4), ("kahan-avx2", 2), ("kahan-avx512", 1)])?;
        }
    }

    #[test]
    fn multiplying_by_one_changes_nothing(xs in crate::common::slice(crate::common::number(), 0..200)) {
        for accumulators in [1, 2, 4, 8] {
            bits_equal(&xs, &[("kahan-avx2", accumulators), ("kahan-avx2-fma", accumulators)])?;
            bits_equal(&xs, &[("kahan-avx512", accumulators), ("kahan-avx512-fma", accumulators)])?;
            bits_equal(&xs, &[("babuska-avx512", accumulators), ("babuska-avx512-fma", accumulators)])?;
            bits_equal(&xs, &[("babuska-avx2", accumulators), ("babuska-avx2-fma", accumulators)])?;
        }
    }

    /// All `block-twosum` variants compute with eight lanes, so `sum()` may use any of them.
    #[test]
    fn block_twosum_has_the_same_bits_with_any_instructions(xs in crate::common::slice(crate::common::number(), 0..1500)) {
        let singles: Vec<f32> = xs.iter().map(|&x| x as f32).collect();
        for accumulators in [1, 2, 4, 8] {
            let names = f64::VARIANTS.iter().map(|variant| variant.name).filter(|name| method(name) == "block-twosum");
            let these: Vec<_> = names.map(|name| (name, accumulators)).collect();
            prop_assert_eq!(these.len(), 8);
            bits_equal(&xs, &these)?;
            // If there are several NaN, any of them may be the result.
            if !exact(&singles).is_nan() {
                bits_equal(&singles, &these)?;
            }
        }
    }

    #[test]
    fn naive_is_the_loop_that_everybody_writes(xs in crate::common::slice(crate::common::number(), 0..100)) {
        let naive = f64::variant("naive").unwrap().function(1).unwrap()(&xs);
        let loop_sum: f64 = xs.iter().sum();
        prop_assert!(naive.to_bits() == loop_sum.to_bits() || naive.is_nan() && loop_sum.is_nan());
    }

    /// Partial sums may overflow; the compensated sums must still be finite.
    #[test]
    fn compensated_sums_are_finite_when_the_exact_sum_is(
        xs in crate::common::slice(crate::common::number(), 0..60)
    ) {
        let expected = exact(&xs);
        for (name, accumulators, function) in functions::<f64>() {
            let got = function(&xs);
            if is_compensated(name) {
                prop_assert!(got.is_finite() == expected.is_finite() || expected.abs() > 1e307,
                    "{name} × {accumulators}: {got:e} for {expected:e}");
                prop_assert!(!got.is_nan(), "{name} × {accumulators}");
            }
        }
    }

    #[test]
    fn load_reads_every_word_once(xs in crate::common::slice(crate::common::number(), 0..200)) {
        let singles: Vec<f32> = xs.iter().map(|&x| x as f32).collect();
        let words = xs.iter().fold(0, |all, x| all ^ x.to_bits());
        let word_of_pair = |pair: &[f32]| {
            pair.iter().rev().fold(0, |word, x| word << 32 | u64::from(x.to_bits()))
        };
        let pairs = singles.chunks(2).fold(0, |all, pair| all ^ word_of_pair(pair));
        for name in ["load-avx2", "load-avx512"] {
            let (of_f32, of_f64) = (f32::variant(name).unwrap(), f64::variant(name).unwrap());
            prop_assert!(!of_f32.is_sum && !of_f64.is_sum);
            for &n in of_f64.accumulators {
                let Some(load) = of_f64.function(n) else { continue };
                prop_assert_eq!(load(&xs), words as f64, "{} × {}", name, n);
                let load = of_f32.function(n).unwrap();
                prop_assert_eq!(load(&singles), pairs as f64, "{} × {}", name, n);
            }
        }
    }
}

#[test]
fn kahan_keeps_what_the_accumulators_lost() {
    for (name, accumulators, function) in functions::<f64>() {
        let lanes = if name.contains("avx512") {
            8
        } else if name.contains("avx2") {
            4
        } else if name.contains("neon") || name.contains("sse2") {
            2
        } else {
            1
        };
        let chains = lanes * accumulators as usize;
        if method(name) != "kahan" || chains < 4 {
            continue;
        }
        let what = format!("{name} × {accumulators}");
        let mut xs = vec![0.0; chains + 1];
        (xs[0], xs[1], xs[chains]) = (1.0, -1.0, 1e-20);
        assert_eq!(function(&xs), 1e-20, "{what}: in one accumulator");
        // The first accumulator is merged with the middle one, and only then with the second.
        (xs[0], xs[chains / 2], xs[1], xs[chains]) = (1.0, 1e-20, -1.0, 0.0);
        assert_eq!(function(&xs), 1e-20, "{what}: in merging two accumulators");
    }
}

#[test]
fn corrections_are_merged_in_the_same_order_too() {
    // An example in which (a + b) + c differs from a + (b + c).
    let (tiny, small, less) = (f64::from_bits(1), 2.0 * f64::MIN_POSITIVE, 8e-292);
    let z = 0.0;
    let xs = [z, tiny, -small, z, -z, z, -z, -z, small, z, -less, -z, -tiny, less, z, z, -z, -z];
    let chains = [("neumaier", 8), ("neumaier-neon", 4), ("neumaier-avx2", 2), ("neumaier-avx512", 1)];
    bits_equal(&xs, &chains).unwrap();
}

/// Tests the error bound of a block in the worst case: numbers lose their low bits in the block, and no later step can
/// recover these bits.
#[test]
fn blocks_of_singles_lose_no_more_than_their_bound() {
    let large = 2.0_f32.powi(100);
    for length in [16, 128, 129, 256, 257, 1000, 4099] {
        for period in 1..20 {
            let number = |i: usize| [large, 1.0, -large, 3.0, 0.1][i / period % 5];
            check_bounds(&(0..length).map(number).collect::<Vec<f32>>()).unwrap();
        }
    }
}

#[test]
fn many_equal_numbers() {
    // A tenth is rounded in the same direction each time, so errors add up unless the method prevents that.
    check_bounds(&vec![0.1_f64; 100_003]).unwrap();
    check_bounds(&vec![0.1_f32; 100_003]).unwrap();
}
