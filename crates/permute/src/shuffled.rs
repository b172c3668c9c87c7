//! The direct method of reshuffling: shuffles the pooled values and deals them out to the samples. This method is
//! always used for more than two samples. It is the reference in tests of the bit mask method.

use ascertain_numeric::sum::exact;
use ascertain_stats::{Moments, quantile_sorted};
use rand::Rng;
use rand::seq::SliceRandom;

use crate::enclosure::Enclosure;
use crate::exactly;
use crate::precision::{Precision, UNIT};
use crate::question::Statistic;

/// The pooled values of all samples, and the sizes of the samples to which they are dealt out.
#[derive(Clone, Debug)]
pub(crate) struct ShuffledPool {
    pub values: Vec<f64>,
    pub sizes: Vec<usize>,
    pub statistic: Statistic,
    /// The weights of [`mean_weights`], one for each sample, if they are used. The product of a sample's sum and its
    /// weight then takes the place of the sample's mean. A mean would be rounded by the division; the product is
    /// computed without a division.
    pub weights: Option<Vec<f64>>,
    pub precision: Precision,
}

impl ShuffledPool {
    /// Shuffles the values (Fisher and Yates).
    pub fn shuffle<R: Rng>(&mut self, random: &mut R) {
        self.values.shuffle(random);
    }

    /// Returns each sample's statistic, if the values are dealt out in their present order. May reorder the values
    /// within a sample.
    pub fn statistics(&mut self) -> Vec<Enclosure> {
        let ShuffledPool { values, sizes, statistic, weights, precision } = self;
        let samples = split(values, sizes).into_iter().enumerate();
        let weight = |index: usize| weights.as_ref().map(|weights| weights[index]);
        samples.map(|(index, sample)| statistic_of(sample, *statistic, weight(index), precision)).collect()
    }

    /// Returns each sample's statistic without rounding, or `None` if that is not possible.
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

/// Returns, for each sample, the product of the other samples' sizes. A sample's sum times this weight is its mean
/// times the product of all sizes, computed without a division. Returns `None` if the product of all sizes is not an
/// exact double.
pub(crate) fn mean_weights(sizes: &[usize]) -> Option<Vec<f64>> {
    let product = sizes.iter().try_fold(1_u64, |product, size| product.checked_mul(*size as u64))?;
    (product <= 1 << 53).then(|| sizes.iter().map(|size| (product / *size as u64) as f64).collect())
}

/// Returns the statistic of one sample, with bounds of its rounding error. May reorder the values.
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
            let place = QuantilePosition::new(level, count);
            let (low, high) = place.select(values);
            place.between(low, high, precision)
        }
    }
}

/// Returns a sample's mean: the sum divided by the count. If there is a weight, returns the sum times the weight
/// instead, which avoids the rounding of a division.
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

/// The position of a quantile among sorted values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QuantilePosition {
    /// The index of the value at or before the quantile, from 0.
    pub index: usize,
    /// Distance from the value at `index` to the quantile, as a share of the distance to the next value.
    pub fraction: f64,
}

impl QuantilePosition {
    /// Computes the position of the quantile as [`quantile_sorted`] does.
    pub fn new(level: f64, count: usize) -> QuantilePosition {
        let last = count - 1;
        let position = level * last as f64;
        let index = (position as usize).min(last);
        QuantilePosition { index, fraction: position - index as f64 }
    }

    /// Returns the two values between which the quantile lies. If the quantile is exactly at the index, returns the
    /// value at the index twice. Reorders the values.
    pub fn select(self, values: &mut [f64]) -> (f64, f64) {
        let (_, low, above) = values.select_nth_unstable_by(self.index, f64::total_cmp);
        let low = *low;
        (low, if self.fraction > 0.0 { above.iter().copied().fold(f64::INFINITY, f64::min) } else { low })
    }

    /// Returns the quantile, given the values `low` at the index and `high` after it.
    pub fn between(self, low: f64, high: f64, precision: &Precision) -> Enclosure {
        let value = quantile_sorted(&[low, high], self.fraction).unwrap_or(low);
        let greatest = low.abs().max(high.abs());
        // Interpolation rounds three times, unless both values are equal.
        let of_rounding =
            if low == high || self.fraction == 0.0 { 0.0 } else { 4.0 * UNIT * greatest + f64::MIN_POSITIVE };
        Enclosure::around(value, 2.0 * precision.of_value(greatest) + of_rounding)
    }
}
