//! Difficult inputs: every length and offset, signed zeros, subnormals, infinities and NaN, sums that overflow.

use ascertain_numeric::sum::exact;

use super::*;

/// Calls the test with every function, for slices of each length at each offset in memory, surrounded by NaN.
fn for_lengths_and_offsets<T: Element>(number: impl Fn(usize) -> T, nan: T, test: impl Fn(&str, &[T], f64)) {
    for (name, accumulators, function) in functions::<T>() {
        let widest = 8 * accumulators as usize;
        for length in (0..=70).chain([2 * widest - 1, 2 * widest, 2 * widest + 1]) {
            for offset in 0..3 {
                let mut memory = vec![nan; offset];
                memory.extend((0..length).map(&number));
                memory.extend([nan; 9]);
                let xs = &memory[offset..offset + length];
                test(name, xs, function(xs));
            }
        }
    }
}

#[test]
fn every_length_is_summed_whole_and_nothing_else() {
    let expected = |n: usize| (n * (n + 1) / 2) as f64;
    for_lengths_and_offsets(
        |i| (i + 1) as f32,
        f32::NAN,
        |name, xs, got| {
            assert_eq!(got, expected(xs.len()), "{name}, {} elements", xs.len());
        },
    );
    for_lengths_and_offsets(
        |i| (i + 1) as f64,
        f64::NAN,
        |name, xs, got| {
            assert_eq!(got, expected(xs.len()), "{name}, {} elements", xs.len());
        },
    );
}

#[test]
fn negative_zeros_stay_negative() {
    for_lengths_and_offsets(
        |_| -0.0_f32,
        f32::NAN,
        |name, xs, got| {
            assert_eq!(got.to_bits(), (-0.0_f64).to_bits(), "{name}, {} elements", xs.len());
        },
    );
    for_lengths_and_offsets(
        |_| -0.0_f64,
        f64::NAN,
        |name, xs, got| {
            assert_eq!(got.to_bits(), (-0.0_f64).to_bits(), "{name}, {} elements", xs.len());
        },
    );
}

#[test]
fn one_positive_zero_makes_the_sum_positive() {
    for (name, accumulators, function) in functions::<f64>() {
        for position in 0..70 {
            let mut xs = [-0.0; 70];
            xs[position] = 0.0;
            let got = function(&xs);
            assert_eq!(got.to_bits(), 0, "{name} × {accumulators}, at {position}");
        }
    }
}

#[test]
fn sums_of_subnormals_are_exact() {
    for_lengths_and_offsets(
        |i| f64::from_bits(i as u64),
        f64::NAN,
        |name, xs, got| {
            assert_eq!(got, exact(xs), "{name}, {} elements", xs.len());
        },
    );
    for_lengths_and_offsets(
        |i| f32::from_bits(i as u32),
        f32::NAN,
        |name, xs, got| {
            assert_eq!(got, exact(xs), "{name}, {} elements", xs.len());
        },
    );
}

/// Tests subnormals, the smallest and the largest numbers, and both signs at each position of a block of `f32`.
/// Variants with `-bits` widen half of the positions by integer operations, so every position is tested. Other variants
/// widen all positions with the same instruction, so a few positions are enough.
#[test]
fn singles_of_every_kind_are_widened_alike_in_every_place_of_a_block() {
    let kinds =
        [f32::from_bits(1), -f32::from_bits(3), f32::MIN_POSITIVE, -f32::MAX, f32::MAX, 1.5, -0.0, 0.0, -2.5e-40];
    for (name, accumulators, function) in functions::<f32>() {
        let (step, special_step) = if name.ends_with("-bits") { (1, 7) } else { (5, 23) };
        for kind in kinds {
            for place in (0..128).step_by(step) {
                let mut xs = vec![-0.0_f32; 16 * 8 * 8];
                xs[place] = kind;
                let sum = function(&xs);
                assert_eq!(sum.to_bits(), f64::from(kind).to_bits(), "{name} × {accumulators}, {kind:e} at {place}");
            }
        }
        for special in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            for place in (0..1024).step_by(special_step) {
                let mut xs = vec![1.0_f32; 1024];
                xs[place] = special;
                let sum = function(&xs);
                let same = sum == f64::from(special) || sum.is_nan() && special.is_nan();
                assert!(same, "{name} × {accumulators}, {special} at {place}: {sum}");
            }
        }
    }
}

#[test]
fn what_is_not_finite_comes_out_wherever_it_is() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    for (name, accumulators, function) in functions::<f64>().into_iter().chain([plain()]) {
        for position in 0..70 {
            let with = |special: &[f64]| {
                let mut xs = vec![1.0; 72];
                xs[position..position + special.len()].copy_from_slice(special);
                function(&xs)
            };
            let what = format!("{name} × {accumulators}, at {position}");
            assert!(with(&[nan]).is_nan(), "{what}");
            assert_eq!(with(&[inf]), inf, "{what}");
            assert_eq!(with(&[inf, inf]), inf, "{what}");
            assert_eq!(with(&[-inf]), -inf, "{what}");
            assert!(with(&[inf, -inf]).is_nan(), "{what}");
        }
    }
    for (name, accumulators, function) in functions::<f32>() {
        let what = format!("{name} × {accumulators}");
        assert!(function(&[1.0, f32::NAN]).is_nan(), "{what}");
        assert_eq!(function(&[f32::INFINITY, f32::MAX, -1.0]), inf, "{what}");
    }
}

#[test]
fn partial_sums_may_overflow() {
    let max = f64::MAX;
    let compensated = functions::<f64>().into_iter().filter(|(name, ..)| is_compensated(name));
    for (name, accumulators, function) in compensated.chain([plain()]) {
        let what = format!("{name} × {accumulators}");
        assert_eq!(function(&[max, max, -max]), max, "{what}");
        assert_eq!(function(&[max, max, -max, -max]), 0.0, "{what}");
        assert_eq!(function(&[max, max]), f64::INFINITY, "{what}");
        assert_eq!(function(&[max, max, f64::NEG_INFINITY]), f64::NEG_INFINITY, "{what}");
        // The signs alternate. Each chain therefore overflows if the number of chains is even.
        let alternating: Vec<f64> = (0..256).map(|i| if i % 2 == 0 { max } else { -max }).collect();
        assert_eq!(function(&alternating), 0.0, "{what}");
    }
    // The range of `f32` limits no method, because all sums are `f64`.
    for (name, accumulators, function) in functions::<f32>() {
        let expected = 1000.0 * f64::from(f32::MAX);
        assert_eq!(function(&[f32::MAX; 1000]), expected, "{name} × {accumulators}");
    }
}
