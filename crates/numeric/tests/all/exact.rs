//! Tests of the exact sum: comparisons with the sum in a wide integer, and special cases.

use std::cmp::Ordering;

use ascertain_numeric::sum::{Element, Exact, exact, sum_of};
use proptest::prelude::*;

/// A two's complement integer of 2,304 bits, in units of 2^−1074.
#[derive(Clone, PartialEq, Eq)]
struct Wide([u64; 36]);

impl Wide {
    /// Converts `x` to a multiple of 2^−1074. An infinity counts as the double that would follow [`f64::MAX`].
    fn new(x: f64) -> Wide {
        let magnitude = x.abs().to_bits();
        let (exponent, fraction) = ((magnitude >> 52) as usize, magnitude & ((1 << 52) - 1));
        // A number with an exponent of 0 has no leading one, and has the same unit as those with an exponent of 1.
        let (significand, shift) = if exponent > 0 { (1 << 52 | fraction, exponent - 1) } else { (fraction, 0) };
        let shifted = u128::from(significand) << (shift % 64);
        let mut wide = Wide([0; 36]);
        wide.0[shift / 64] = shifted as u64;
        wide.0[shift / 64 + 1] = (shifted >> 64) as u64;
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

/// Returns whether `rounded` is the double nearest to `sum`; if two are equally near, it must be the even one.
fn is_nearest(rounded: f64, sum: &Wide) -> bool {
    let distance = sum.distance(&Wide::new(rounded));
    [rounded.next_down(), rounded.next_up()].iter().all(|&neighbour| {
        let other = sum.distance(&Wide::new(neighbour));
        match distance.0.iter().rev().cmp(other.0.iter().rev()) {
            Ordering::Less => true,
            Ordering::Equal => rounded.to_bits() & 1 == 0,
            Ordering::Greater => false,
        }
    })
}

/// Adds the numbers one by one, and compares the result with the wide integer. Then compares every variant of the exact
/// sum with the same result.
fn each_way<T: Element>(xs: &[T]) -> Result<(), TestCaseError> {
    let mut one_by_one = Exact::new();
    xs.iter().for_each(|&x| one_by_one.add(x.into()));
    let expected = one_by_one.round();
    if xs.iter().all(|&x| x.into().is_finite()) {
        prop_assert!(is_nearest(expected, &wide_sum(xs)), "{expected:e}");
    }
    prop_assert_eq!(exact(xs).to_bits(), expected.to_bits());
    prop_assert_eq!(sum_of(xs.iter().copied()).to_bits(), expected.to_bits());
    for variant in T::VARIANTS.iter().filter(|variant| variant.name.starts_with("exact")) {
        for function in variant.accumulators.iter().filter_map(|&n| variant.function(n)) {
            prop_assert_eq!(function(xs).to_bits(), expected.to_bits(), "{}", variant.name);
        }
    }
    Ok(())
}

fn wide_sum<T: Element>(xs: &[T]) -> Wide {
    xs.iter().fold(Wide([0; 36]), |sum, &x| sum.plus(&Wide::new(x.into())))
}

/// Returns a generator of pseudo-random integers.
fn random(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        state ^ state >> 29
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn is_the_nearest_double(xs in crate::common::slice(crate::common::number(), 0..24)) {
        let rounded = exact(&xs);
        prop_assert!(is_nearest(rounded, &wide_sum(&xs)), "{rounded:e}");
    }

    #[test]
    fn rounds_ties_to_even(
        significand in 1_u64 << 52..1 << 53,
        exponent in -300..300_i32,
        tail in prop_oneof![Just(0.0), Just(1e-300), Just(-1e-300)],
    ) {
        // The second number is half a unit in the last place of the first. The third makes the sum slightly more or
        // less.
        let scale = 2.0_f64.powi(exponent);
        let xs = [significand as f64 * scale, scale / 2.0, tail];
        prop_assert!(is_nearest(exact(&xs), &wide_sum(&xs)));
    }

    #[test]
    fn same_bits_in_any_order(
        (xs, shuffled) in crate::common::slice(crate::common::number(), 0..60)
            .prop_flat_map(|xs| (Just(xs.clone()), Just(xs).prop_shuffle()))
    ) {
        prop_assert_eq!(exact(&xs).to_bits(), exact(&shuffled).to_bits());
    }

    /// The sum must not depend on the split of the slice, on the order of the additions, or on a conversion to bytes.
    #[test]
    fn same_bits_in_any_split(
        xs in crate::common::slice(crate::common::number(), 0..120),
        cuts in proptest::collection::vec(0..240_usize, 0..4),
        special in prop_oneof![4 => Just(None), 1 => Just(Some(f64::INFINITY)), 1 => Just(Some(f64::NAN))],
    ) {
        let mut xs = xs;
        xs.extend(special);
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(xs.len())).chain([0, xs.len()]).collect();
        cuts.sort_unstable();
        let mut merged = Exact::new();
        for (i, cut) in cuts.windows(2).enumerate() {
            let part = &xs[cut[0]..cut[1]];
            let mut sum = Exact::new();
            match i % 3 {
                0 => sum.add_slice(part),
                1 => part.iter().for_each(|&x| sum.add(x)),
                _ => sum.extend(part.iter().copied()),
            }
            merged.merge(&Exact::from_bytes(&sum.to_bytes()).unwrap());
        }
        let mut whole = Exact::new();
        whole.add_slice(&xs);
        prop_assert_eq!(whole.to_bytes(), merged.to_bytes());
        prop_assert_eq!(whole.round().to_bits(), merged.round().to_bits());
    }

    /// Tests blocks of `f32` of every width. Some are summed as 64-bit integers, and many of these sums wrap around.
    /// Others are one bit too wide for that, or follow blocks of other sizes. The blocks have zeros of both signs, and
    /// any length.
    #[test]
    fn blocks_of_singles_are_exact(
        blocks in proptest::collection::vec((-126..128_i32, 0..44_i32, 0..3_u8, 0..5_u64), 1..4),
        seed in any::<u64>(),
        length in prop_oneof![Just(4096), Just(4095), Just(4097), 16..4200_usize],
        start in 0..16_usize,
    ) {
        let mut random = random(seed);
        let mut singles = vec![0.0; start];
        for (least, width, sign, zeros) in blocks {
            for _ in 0..length {
                let exponent = (least + (random() >> 40) as i32 % (width + 1)).min(127);
                // The significand is often the largest one, which makes the sums as large as possible.
                let fraction = if random().is_multiple_of(2) { u32::MAX >> 9 } else { random() as u32 >> 9 };
                let negative = match sign { 0 => false, 1 => true, _ => random().is_multiple_of(2) };
                let is_zero = random() % 5 < zeros;
                let magnitude = if is_zero { 0 } else { ((exponent + 127) as u32) << 23 | fraction };
                singles.push(f32::from_bits(magnitude | u32::from(negative) << 31));
            }
        }
        each_way(&singles[start..])?;
    }

    /// Tests blocks of every width. Some are split into one, two or three sums; others are too wide to be split.
    #[test]
    fn blocks_of_every_width_are_exact(
        centre in -1000..960_i32,
        width in 0..130_i32,
        seed in any::<u64>(),
        length in 16..5000_usize,
    ) {
        let mut random = random(seed);
        let mut number = |of_single: bool| {
            let state = random();
            let (centre, bits) = if of_single { (centre / 10, 24) } else { (centre, 53) };
            let exponent = centre + ((state >> 20) as i32).rem_euclid(width + 1) - bits;
            let significand = (state >> (64 - bits)) as f64 * if state & 1 == 0 { 1.0 } else { -1.0 };
            // Multiplies in two steps because the power alone may be subnormal.
            significand * 2_f64.powi(exponent / 2) * 2_f64.powi(exponent - exponent / 2)
        };
        let singles: Vec<f32> = (0..length).map(|_| number(true) as f32).collect();
        let doubles: Vec<f64> = (0..length).map(|_| number(false)).collect();
        each_way(&singles)?;
        each_way(&doubles)?;
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
        (&[-0.0; 5000], true),
        (&[0.0; 5000], false),
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

/// Merged sums of several threads have the same bits as the sum of one thread.
#[test]
fn threads_give_the_same_bits() {
    let xs: Vec<f32> = (0..100_000_u32).map(|i| f32::from_bits(i.wrapping_mul(2_654_435_761) & 0xbf7f_ffff)).collect();
    let mut merged = Exact::new();
    std::thread::scope(|scope| {
        let parts: Vec<_> =
            xs.chunks(7_777).map(|part| scope.spawn(|| part.iter().copied().collect::<Exact>())).collect();
        parts.into_iter().rev().for_each(|part| merged.merge(&part.join().unwrap()));
    });
    assert_eq!(merged.round().to_bits(), exact(&xs).to_bits());
}

/// Sums 10^8 numbers of all exponents, which cancel in pairs, and one more number, which must be the result. This takes
/// a while: `cargo test --release -- --ignored`.
fn a_hundred_million_cancel<T: Element>(mut number: impl FnMut() -> T, negated: fn(T) -> T, kept: T) {
    let mut xs: Vec<T> = Vec::with_capacity(100_000_001);
    while xs.len() < 100_000_000 {
        let x = number();
        if x.into().is_finite() {
            xs.extend([x, negated(x)]);
        }
    }
    // The two numbers of a pair are so far apart that no block has both.
    for i in 0..25_000_000 {
        xs.swap(2 * i, 99_999_999 - 2 * i);
    }
    xs.push(kept);
    assert_eq!(exact(&xs), kept.into());
    // The sum of a part of the numbers does not cancel.
    let some = &xs[..10_000_000];
    assert!(is_nearest(exact(some), &wide_sum(some)));
}

#[test]
#[ignore = "takes 1 GB and some seconds"]
fn a_hundred_million_doubles_cancel_to_the_last_bit() {
    let mut random = random(1);
    a_hundred_million_cancel(|| f64::from_bits(random()), |x| -x, 1e-300);
}

#[test]
#[ignore = "takes half a GB and some seconds"]
fn a_hundred_million_singles_cancel_to_the_last_bit() {
    let mut random = random(2);
    a_hundred_million_cancel(|| f32::from_bits(random() as u32), |x| -x, 1e-40);
}
