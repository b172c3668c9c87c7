//! Sums of subsets, compared with a simple loop over the selected numbers; and difficult inputs.

use ascertain_numeric::subset;
use ascertain_numeric::sum::exact;
use proptest::collection::vec;
use proptest::prelude::*;

fn selected(numbers: &[f64], mask: &[u64]) -> Vec<f64> {
    let is_set = |index: usize| mask.get(index / 64).is_some_and(|word| word >> (index % 64) & 1 == 1);
    numbers.iter().enumerate().filter(|(index, _)| is_set(*index)).map(|(_, number)| *number).collect()
}

/// Numbers that span 400 powers of two, and whose sums do not overflow.
fn number() -> impl Strategy<Value = f64> {
    (-1.0..1.0_f64, -200..200_i32).prop_map(|(x, exponent)| x * 2.0_f64.powi(exponent))
}

proptest! {
    #[test]
    fn sums_are_within_their_bound(numbers in vec(number(), 0..700), mask in vec(any::<u64>(), 0..12)) {
        let chosen = selected(&numbers, &mask);
        let magnitude = exact(&chosen.iter().map(|x| x.abs()).collect::<Vec<_>>());
        let bound = subset::additions(numbers.len()) as f64 * 2f64.powi(-53) * magnitude * (1.0 + 1e-9);
        let error = (subset::sum(&numbers, &mask) - exact(&chosen)).abs();
        prop_assert!(error <= bound, "{error} > {bound}");
    }

    /// Small whole numbers have exact sums in any order, wherever the slice begins in memory.
    #[test]
    fn whole_numbers_are_summed_exactly(
        numbers in vec(-1_000_000..1_000_000_i64, 0..700),
        mask in vec(any::<u64>(), 11),
        before in 0..9_usize,
    ) {
        let numbers: Vec<f64> = numbers.into_iter().map(|x| x as f64).collect();
        let around = [vec![f64::NAN; before], numbers.clone(), vec![f64::NAN; 64]].concat();
        let slice = &around[before..before + numbers.len()];
        prop_assert_eq!(subset::sum(slice, &mask), selected(&numbers, &mask).iter().sum::<f64>() + 0.0);
    }
}

#[test]
fn what_is_not_selected_has_no_influence() {
    let awkward = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, -0.0, 5e-324];
    for count in [1, 31, 32, 63, 64, 65, 200] {
        for index in 0..count {
            for value in awkward {
                let mut numbers = vec![1.0; count];
                numbers[index] = value;
                let mut mask = vec![u64::MAX; count.div_ceil(64)];
                mask[index / 64] &= !(1 << (index % 64));
                assert_eq!(subset::sum(&numbers, &mask), count as f64 - 1.0, "{value} at {index} of {count}");
            }
        }
    }
    assert_eq!(subset::sum(&[1.0, f64::INFINITY], &[2]), f64::INFINITY);
    assert!(subset::sum(&[f64::NEG_INFINITY, f64::INFINITY], &[3]).is_nan());
}

#[test]
fn masks_may_be_shorter_or_longer() {
    assert_eq!(subset::sum(&[], &[]), 0.0);
    assert_eq!(subset::sum(&[], &[u64::MAX; 3]), 0.0);
    assert_eq!(subset::sum(&[1.0; 70], &[]), 0.0);
    assert_eq!(subset::sum(&[1.0; 70], &[u64::MAX]), 64.0);
    assert_eq!(subset::sum(&[1.0; 70], &[u64::MAX; 2]), 70.0);
    assert_eq!(subset::sum(&[1.0; 64], &[u64::MAX; 9]), 64.0);
}
