//! Difficult numbers for the tests of sums.

use proptest::collection::vec;
use proptest::prelude::*;

/// Finite numbers of every kind: random bits, numbers between −1 and 1, small integers, zeros of both signs,
/// subnormals, and the largest numbers.
pub fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<u64>().prop_map(f64::from_bits).prop_filter("finite", |x| x.is_finite()),
        -1.0..1.0_f64,
        (-4..4_i8).prop_map(f64::from),
        Just(-0.0),
        (0..4_u64).prop_map(f64::from_bits),
        Just(f64::MAX),
        Just(-f64::MAX),
    ]
}

/// Numbers that span 400 powers of two, and whose sums do not overflow.
pub fn moderate_number() -> impl Strategy<Value = f64> {
    prop_oneof![-1.0..1.0_f64, (-1.0..1.0_f64, -200..200_i32).prop_map(|(x, exponent)| x * 2.0_f64.powi(exponent)),]
}

/// Slices of numbers from the given strategy. Half of the slices also contain the negatives of most of their numbers,
/// so that almost everything cancels.
pub fn slice(number: impl Strategy<Value = f64>, lengths: std::ops::Range<usize>) -> impl Strategy<Value = Vec<f64>> {
    (vec(number, lengths), any::<bool>(), 0..4_usize)
        .prop_map(|(mut xs, cancel, keep)| {
            if cancel {
                xs.extend(xs.clone().iter().skip(keep).map(|x| -x));
            }
            xs
        })
        .prop_shuffle()
}
