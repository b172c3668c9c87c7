//! Reshuffles as one would do them by hand: the pooled values shuffled and dealt out. The reference, and for many
//! samples.

use ascertain_numeric::sum::exact;
use ascertain_stats::{Moments, quantile_sorted};
use rand::Rng;
use rand::seq::SliceRandom;

use crate::enclosure::Enclosure;
use crate::exactly;
use crate::precision::{Precision, UNIT};
use crate::question::Statistic;

/// Pooled values, to be dealt out to samples of the same sizes.
#[derive(Clone, Debug)]
pub(crate) struct Shuffled {
    pub values: Vec<f64>,
    pub sizes: Vec<usize>,
    pub statistic: Statistic,
    /// Where means are to be this times the sum, and not the sum divided by the size.
    pub weights: Option<Vec<f64>>,
    pub precision: Precision,
}

impl Shuffled {
    /// Shuffles the values (Fisher and Yates).
    pub fn shuffle<R: Rng>(&mut self, random: &mut R) {
        self.values.shuffle(random);
    }

    /// Each sample's statistic, the values being dealt out in their present order. May reorder them within a sample.
    pub fn statistics(&mut self) -> Vec<Enclosure> {
        let Shuffled { values, sizes, statistic, weights, precision } = self;
        let samples = split(values, sizes).into_iter().enumerate();
        let weight = |index: usize| weights.as_ref().map(|weights| weights[index]);
        samples.map(|(index, sample)| statistic_of(sample, *statistic, weight(index), precision)).collect()
    }

    /// The same without rounding, where they can be had.
    pub fn exact_statistics(&mut self) -> Option<exactly::Statistics> {
        exactly::statistics(&mut split(&mut self.values, &self.sizes), self.statistic)
    }
}

fn split<'a>(mut rest: &'a mut [f64], sizes: &[usize]) -> Vec<&'a mut [f64]> {
    let each = sizes.iter().map(|&size| {
        let (sample, others) = std::mem::take(&mut rest).split_at_mut(size);
        rest = others;
        sample
    });
    each.collect()
}

/// For each sample the product of the other sizes: with these, sums are means times the product of all sizes, and no
/// division rounds them. None where that product is no whole double.
pub(crate) fn mean_weights(sizes: &[usize]) -> Option<Vec<f64>> {
    let product = sizes.iter().try_fold(1_u64, |product, size| product.checked_mul(*size as u64))?;
    (product <= 1 << 53).then(|| sizes.iter().map(|size| (product / *size as u64) as f64).collect())
}

/// A sample's statistic, and how far rounding may have led it astray. May reorder the values.
pub(crate) fn statistic_of(
    values: &mut [f64],
    statistic: Statistic,
    weight: Option<f64>,
    precision: &Precision,
) -> Enclosure {
    let count = values.len();
    match statistic {
        Statistic::Mean => {
            let sum = exact(values);
            let of_rounding = if precision.adds_exactly { 0.0 } else { UNIT * sum.abs() };
            mean(Enclosure::around(sum, precision.of_sum() + of_rounding), count, weight)
        }
        Statistic::StandardDeviation => {
            let moments: Moments = values.iter().copied().collect();
            let deviation = moments.standard_deviation().unwrap_or(0.0);
            Enclosure::around(deviation, precision.of_deviation(count) + 2e-14 * deviation)
        }
        Statistic::Quantile(level) => {
            let place = Place::of(level, count);
            let (low, high) = place.select(values);
            place.between(low, high, precision)
        }
    }
}

/// The mean, from the sum, or the weight times it.
pub(crate) fn mean(sum: Enclosure, count: usize, weight: Option<f64>) -> Enclosure {
    let count = count as f64;
    match weight {
        Some(weight) => sum.times(weight),
        None => Enclosure {
            low: (sum.low / count).next_down(),
            value: sum.value / count,
            high: (sum.high / count).next_up(),
        },
    }
}

/// Where a quantile lies among sorted values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// The value at or before it, from 0.
    pub index: usize,
    /// How far it is from there to the next.
    pub fraction: f64,
}

impl Place {
    /// As [`quantile_sorted`] has it.
    pub fn of(level: f64, count: usize) -> Place {
        let last = count - 1;
        let position = level * last as f64;
        let index = (position as usize).min(last);
        Place { index, fraction: position - index as f64 }
    }

    /// The value at the index, and the next one if that matters. Reorders the values.
    pub fn select(self, values: &mut [f64]) -> (f64, f64) {
        let (_, low, above) = values.select_nth_unstable_by(self.index, f64::total_cmp);
        let low = *low;
        (low, if self.fraction > 0.0 { above.iter().copied().fold(f64::INFINITY, f64::min) } else { low })
    }

    /// The quantile, from the value at the index and the next one.
    pub fn between(self, low: f64, high: f64, precision: &Precision) -> Enclosure {
        let value = quantile_sorted(&[low, high], self.fraction).unwrap_or(low);
        let greatest = low.abs().max(high.abs());
        // Interpolation rounds three times, unless there is nothing between.
        let of_rounding =
            if low == high || self.fraction == 0.0 { 0.0 } else { 4.0 * UNIT * greatest + f64::MIN_POSITIVE };
        Enclosure::around(value, 2.0 * precision.of_value(greatest) + of_rounding)
    }
}
