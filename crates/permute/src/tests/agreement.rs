//! The mask technique and the shuffle technique must give the same statistics for the same split.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::precision::Precision;
use crate::question::Statistic;
use crate::shuffled::ShuffledPool;
use crate::subset_statistics::SubsetStatistics;

fn statistic() -> impl Strategy<Value = Statistic> {
    prop_oneof![
        Just(Statistic::Mean),
        Just(Statistic::StandardDeviation),
        Just(Statistic::Quantile(0.5)),
        (0.0..=1.0).prop_map(Statistic::Quantile),
        prop_oneof![Just(0.0), Just(1.0), Just(0.99)].prop_map(Statistic::Quantile),
    ]
}

/// Values of similar size, with an added offset that may be much larger. Some values are equal.
fn values() -> impl Strategy<Value = Vec<(f64, bool)>> {
    (vec((-1.0..1.0_f64, any::<bool>()), 4..300), prop_oneof![Just(0.0), -10.0..10.0, Just(1e6)], -30..30_i32).prop_map(
        |(values, offset, exponent)| {
            let place = |x: f64| ((x * 50.0).round() / 50.0 + offset) * 2f64.powi(exponent);
            values.into_iter().map(|(x, second)| (place(x), second)).collect()
        },
    )
}

proptest! {
    #[test]
    fn both_enclose_the_same_statistic(mut values in values(), statistic in statistic(), is_exact: bool) {
        let second = values.iter().filter(|(_, second)| *second).count();
        let sizes = [values.len() - second, second];
        prop_assume!(sizes.iter().all(|size| *size >= 2));
        if matches!(statistic, Statistic::Quantile(_)) {
            // For quantiles, the mask refers to sorted values.
            values.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        let mut mask = vec![0_u64; values.len().div_ceil(64)];
        for (index, _) in values.iter().enumerate().filter(|(_, (_, second))| *second) {
            mask[index / 64] |= 1 << (index % 64);
        }
        let pooled: Vec<f64> = values.iter().map(|(x, _)| *x).collect();
        let precision = Precision::new(&pooled, 0.0, is_exact);
        let of = |wanted: bool| values.iter().filter(move |(_, second)| *second == wanted).map(|(x, _)| *x);
        let dealt: Vec<f64> = of(false).chain(of(true)).collect();
        let shuffled = |values| ShuffledPool { values, sizes: sizes.to_vec(), statistic, weights: None, precision };
        let by_hand = shuffled(dealt).statistics();
        let by_mask = SubsetStatistics::new(shuffled(pooled.clone()), false).unwrap().for_mask(&mask);
        let magnitude = pooled.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
        for (hand, mask) in by_hand.iter().zip(by_mask) {
            prop_assert!(hand.low <= mask.high && mask.low <= hand.high, "{hand:?} {mask:?}");
            for each in [*hand, mask] {
                prop_assert!(each.low <= each.value && each.value <= each.high, "{each:?}");
                // The bounds must be narrow. If a sum of squares is almost zero, its root has only half of the digits.
                let vague = if statistic == Statistic::StandardDeviation { 1e-7 } else { 1e-12 };
                prop_assert!(each.high - each.low <= vague * magnitude + 1e-150, "{each:?} of {magnitude}");
            }
        }
    }
}
