//! The exact sum against a wide integer, and its special cases.

#[expect(dead_code, reason = "other tests use the rest")]
mod common;

use std::cmp::Ordering;

use ascertain_numeric::sum::exact;
use proptest::prelude::*;

/// A two's complement integer of 2,304 bits that counts in units of 2^−1074.
#[derive(Clone, PartialEq, Eq)]
struct Wide([u64; 36]);

impl Wide {
    /// The units in `x`; an infinity counts as the double that would follow [`f64::MAX`].
    fn of(x: f64) -> Wide {
        let magnitude = x.abs().to_bits();
        let mut wide = Wide([0; 36]);
        wide.0[0] = magnitude & ((1 << 52) - 1);
        if magnitude >> 52 > 0 {
            wide.0[0] |= 1 << 52;
            for _ in 1..magnitude >> 52 {
                wide = wide.plus(&wide);
            }
        }
        if x < 0.0 { wide.negated() } else { wide }
    }

    fn plus(&self, other: &Wide) -> Wide {
        let mut carry = false;
        Wide(std::array::from_fn(|i| {
            let (partial, first) = self.0[i].overflowing_add(other.0[i]);
            let (word, second) = partial.overflowing_add(u64::from(carry));
            carry = first || second;
            word
        }))
    }

    fn negated(&self) -> Wide {
        let mut one = Wide([0; 36]);
        one.0[0] = 1;
        Wide(self.0.map(|word| !word)).plus(&one)
    }

    fn distance(&self, other: &Wide) -> Wide {
        let difference = self.plus(&other.negated());
        if difference.0[35] >> 63 == 1 { difference.negated() } else { difference }
    }
}

/// Whether `rounded` is the double nearest to `sum`, and the even one of two.
fn is_nearest(rounded: f64, sum: &Wide) -> bool {
    let distance = sum.distance(&Wide::of(rounded));
    [rounded.next_down(), rounded.next_up()].iter().all(|&neighbour| {
        let other = sum.distance(&Wide::of(neighbour));
        match distance.0.iter().rev().cmp(other.0.iter().rev()) {
            Ordering::Less => true,
            Ordering::Equal => rounded.to_bits() & 1 == 0,
            Ordering::Greater => false,
        }
    })
}

fn wide_sum(xs: &[f64]) -> Wide {
    xs.iter().fold(Wide([0; 36]), |sum, &x| sum.plus(&Wide::of(x)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn is_the_nearest_double(xs in common::slice(common::number(), 0..24)) {
        let rounded = exact(&xs);
        prop_assert!(is_nearest(rounded, &wide_sum(&xs)), "{rounded:e}");
    }

    #[test]
    fn rounds_ties_to_even(
        significand in 1_u64 << 52..1 << 53,
        exponent in -300..300_i32,
        tail in prop_oneof![Just(0.0), Just(1e-300), Just(-1e-300)],
    ) {
        // Half a unit of the last place, and perhaps a little more or less.
        let scale = 2.0_f64.powi(exponent);
        let xs = [significand as f64 * scale, scale / 2.0, tail];
        prop_assert!(is_nearest(exact(&xs), &wide_sum(&xs)));
    }

    #[test]
    fn same_bits_in_any_order(
        (xs, shuffled) in common::slice(common::number(), 0..60)
            .prop_flat_map(|xs| (Just(xs.clone()), Just(xs).prop_shuffle()))
    ) {
        prop_assert_eq!(exact(&xs).to_bits(), exact(&shuffled).to_bits());
    }

    #[test]
    fn singles_are_widened(bits in proptest::collection::vec(any::<u32>(), 0..40)) {
        let singles: Vec<f32> = bits.into_iter().map(f32::from_bits).collect();
        let doubles: Vec<f64> = singles.iter().map(|&x| f64::from(x)).collect();
        let (a, b) = (exact(&singles), exact(&doubles));
        prop_assert!(a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan());
    }
}

#[test]
fn infinities_and_nan() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    assert!(exact(&[1.0, nan]).is_nan());
    assert!(exact(&[inf, 1.0, -inf]).is_nan());
    assert!(exact(&[inf, nan]).is_nan());
    assert_eq!(exact(&[f64::MAX, f64::MAX, -inf]), -inf);
    assert_eq!(exact(&[inf, -f64::MAX, -f64::MAX, inf]), inf);
}

#[test]
fn zeros_keep_their_sign() {
    for (xs, negative) in [
        (&[] as &[f64], true),
        (&[-0.0], true),
        (&[-0.0; 5], true),
        (&[0.0], false),
        (&[-0.0, 0.0], false),
        (&[1.0, -1.0], false),
        (&[-1.0, -0.0, 1.0], false),
    ] {
        let sum = exact(xs);
        assert_eq!((sum, sum.is_sign_negative()), (0.0, negative), "{xs:?}");
    }
}

#[test]
fn the_ends_of_the_range() {
    let tiny = f64::from_bits(1);
    let max = f64::MAX;
    let half_ulp_of_max = 2.0_f64.powi(970);
    assert_eq!(exact(&[tiny, tiny, -tiny]), tiny);
    assert_eq!(exact(&[f64::MIN_POSITIVE, -tiny]), f64::MIN_POSITIVE.next_down());
    assert_eq!(exact(&[f64::MIN_POSITIVE.next_down(), tiny]), f64::MIN_POSITIVE);
    assert_eq!(exact(&[max, max, -max]), max);
    assert_eq!(exact(&[max, max]), f64::INFINITY);
    assert_eq!(exact(&[-max, -max]), f64::NEG_INFINITY);
    assert_eq!(exact(&[max, half_ulp_of_max]), f64::INFINITY);
    assert_eq!(exact(&[max, half_ulp_of_max, -tiny]), max);
    assert_eq!(exact(&[1.0, f64::EPSILON / 2.0]), 1.0);
    assert_eq!(exact(&[1.0, f64::EPSILON / 2.0, tiny]), 1.0 + f64::EPSILON);
    assert_eq!(exact(&[1e300, 1.0, -1e300, tiny]), 1.0);
    assert_eq!(exact(&vec![max; 100_000]), f64::INFINITY);
}
