//! Reshuffles as one would do them by hand: the pooled values shuffled and dealt out. The reference, and for many samples.

use ascertain_numeric::sum::sum;
use ascertain_stats::{Moments, quantile_sorted};
use rand::Rng;
use rand::seq::SliceRandom;

use super::enclosure::Enclosure;
use super::precision::{Precision, UNIT};
use super::question::Statistic;

/// Pooled values, to be dealt out to samples of the same sizes.
#[derive(Clone, Debug)]
pub(super) struct Shuffled {
    pub values: Vec<f64>,
    pub sizes: Vec<usize>,
    pub statistic: Statistic,
    pub precision: Precision,
}

impl Shuffled {
    /// Shuffles the values (Fisher and Yates).
    pub fn shuffle<R: Rng>(&mut self, random: &mut R) {
        self.values.shuffle(random);
    }

    /// Each sample's statistic, the values being dealt out in their present order. May reorder them within a sample.
    pub fn statistics(&mut self) -> Vec<Enclosure> {
        let mut rest = self.values.as_mut_slice();
        let each = self.sizes.iter().map(|&size| {
            let (sample, others) = std::mem::take(&mut rest).split_at_mut(size);
            rest = others;
            statistic_of(sample, self.statistic, &self.precision)
        });
        each.collect()
    }
}

/// A sample's statistic, and how far rounding may have led it astray. May reorder the values.
pub(super) fn statistic_of(values: &mut [f64], statistic: Statistic, precision: &Precision) -> Enclosure {
    let count = values.len();
    match statistic {
        Statistic::Mean => {
            let mean = sum(values) / count as f64;
            // The sum's own error and the division's: each at most half a unit in the last place of the sum's magnitude.
            Enclosure::around(mean, precision.of_mean(count) + 4.0 * UNIT * mean.abs())
        }
        Statistic::StandardDeviation => {
            let moments: Moments = values.iter().copied().collect();
            let deviation = moments.standard_deviation().unwrap_or(0.0);
            Enclosure::around(deviation, precision.of_deviation(count) + 2e-14 * deviation)
        }
        Statistic::Quantile(level) => {
            let place = Place::of(level, count);
            let (_, low, above) = values.select_nth_unstable_by(place.index, f64::total_cmp);
            let low = *low;
            let high = if place.fraction > 0.0 { above.iter().copied().fold(f64::INFINITY, f64::min) } else { low };
            place.between(low, high, precision)
        }
    }
}

/// Where a quantile lies among sorted values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
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

    /// The quantile, from the value at the index and the next one.
    pub fn between(self, low: f64, high: f64, precision: &Precision) -> Enclosure {
        let value = quantile_sorted(&[low, high], self.fraction).unwrap_or(low);
        Enclosure::around(value, 2.0 * precision.of_value(low.abs().max(high.abs())))
    }
}
