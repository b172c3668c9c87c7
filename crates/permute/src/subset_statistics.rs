//! Computes the statistics of two samples that share a pool of values. A bit mask selects the values of the second
//! sample; all other values belong to the first.

use ascertain_numeric::subset;
use ascertain_numeric::sum::sum;

use crate::dyadic::Dyadic;
use crate::enclosure::Enclosure;
use crate::error::Error;
use crate::exactly::{self, has_exact_squares};
use crate::pool;
use crate::precision::{Precision, UNIT, adds_exactly};
use crate::question::Statistic;
use crate::shuffled::{QuantilePosition, ShuffledPool, mean};

/// The pooled values of two samples, prepared for computing statistics by masks.
#[derive(Clone, Debug)]
pub(crate) struct SubsetStatistics {
    /// The number of values of each sample.
    sizes: [usize; 2],
    statistic: Statistic,
    weights: Option<Vec<f64>>,
    precision: Precision,
    prepared: PreparedPool,
}

#[derive(Clone, Debug)]
enum PreparedPool {
    Mean(Sums),
    StandardDeviation { values: Vec<f64>, sums: Sums, squares: Sums },
    Quantile { sorted: Vec<f64>, places: [QuantilePosition; 2] },
}

impl SubsetStatistics {
    /// Prepares the values of two samples. `is_difference` means that only the difference of the statistics is needed.
    ///
    /// # Errors
    /// Fails if there is no memory for the squares in addition to the values.
    pub fn new(shuffled: ShuffledPool, is_difference: bool) -> Result<SubsetStatistics, Error> {
        let ShuffledPool { mut values, sizes, statistic, weights, precision } = shuffled;
        let sizes = [sizes[0], sizes[1]];
        let count = values.len();
        let copied = |from: &mut dyn Iterator<Item = f64>| -> Result<Vec<f64>, Error> {
            let mut copy = Vec::new();
            copy.try_reserve_exact(count).map_err(|_| Error::NoMemory { count })?;
            copy.extend(from);
            Ok(copy)
        };
        let prepared = match statistic {
            Statistic::Mean if is_difference => PreparedPool::Mean(Sums::new(centred(values), true)),
            Statistic::Mean => PreparedPool::Mean(Sums::new(values, true)),
            Statistic::StandardDeviation => {
                let mut terms = centred(copied(&mut values.iter().copied())?);
                let square_is_exact = |y: &f64| y.mul_add(*y, -(y * y)) == 0.0;
                let is_exact = adds_exactly(&terms) && has_exact_squares(&terms) && terms.iter().all(square_is_exact);
                if !is_exact {
                    // Subtracts the mean itself. This rounds each term, but makes the squares small.
                    let centre = sum(&terms) / count as f64;
                    terms.iter_mut().for_each(|term| *term -= centre);
                }
                let squares = Sums::new(copied(&mut terms.iter().map(|y| y * y))?, is_exact);
                PreparedPool::StandardDeviation { values, sums: Sums::new(terms, is_exact), squares }
            }
            Statistic::Quantile(level) => {
                values.sort_unstable_by(f64::total_cmp);
                PreparedPool::Quantile { sorted: values, places: sizes.map(|size| QuantilePosition::new(level, size)) }
            }
        };
        Ok(SubsetStatistics { sizes, statistic, weights, precision, prepared })
    }

    /// Returns the statistics of both samples as they were before any reshuffle. The second sample is the last `second`
    /// values of the pool. Returns `None` for quantiles: the pool is then sorted, so the original samples are no longer
    /// known.
    pub fn of_the_last(&self, second: usize) -> Option<Vec<Enclosure>> {
        let count = self.sizes.iter().sum::<usize>();
        let mut mask = vec![0; count.div_ceil(64)];
        (count - second..count).for_each(|index| mask[index / 64] |= 1 << (index % 64));
        (!matches!(self.prepared, PreparedPool::Quantile { .. })).then(|| self.for_mask(&mask).to_vec())
    }

    /// Returns the statistics of both samples without rounding, or `None` if that is not possible.
    pub fn exactly(&self, mask: &[u64]) -> Option<exactly::Statistics> {
        let sums_of = |sums: &Sums| sums.split(mask).map(Dyadic::from_f64);
        let values = match &self.prepared {
            PreparedPool::Quantile { sorted, places } => {
                let each = [u64::MAX, 0].into_iter().zip(places);
                let exact = each.map(|(flip, place)| {
                    let (low, high) = place.selected(sorted, mask, flip);
                    exactly::quantile(*place, low, high)
                });
                return Some(exact.collect());
            }
            PreparedPool::Mean(sums) if sums.error == 0.0 => return Some(exactly::means(&sums_of(sums), &self.sizes)),
            PreparedPool::StandardDeviation { sums, squares, .. } if sums.error + squares.error == 0.0 => {
                return Some(exactly::variances(&sums_of(sums), &sums_of(squares), &self.sizes));
            }
            PreparedPool::Mean(sums) => &sums.terms,
            PreparedPool::StandardDeviation { values, .. } => values,
        };
        // Chooses the sample by index: a branch on the mask's bit would be mispredicted.
        let mut samples = self.sizes.map(|size| vec![0.0; size + 1]);
        let mut lengths = [0; 2];
        for (index, value) in values.iter().enumerate() {
            let sample = (mask[index / 64] >> (index % 64) & 1) as usize;
            samples[sample][lengths[sample]] = *value;
            lengths[sample] += 1;
        }
        let [first, second] = &mut samples;
        exactly::statistics(&mut [&mut first[..self.sizes[0]], &mut second[..self.sizes[1]]], self.statistic)
    }

    /// Returns the statistics of both samples. The set bits of the mask select the values of the second sample.
    pub fn for_mask(&self, mask: &[u64]) -> [Enclosure; 2] {
        let sizes = self.sizes;
        match &self.prepared {
            PreparedPool::Mean(sums) => {
                let each = sums.split(mask);
                std::array::from_fn(|sample| {
                    let sum = Enclosure::around(each[sample], sums.error + self.precision.of_sum());
                    mean(sum, sizes[sample], self.weights.as_ref().map(|weights| weights[sample]))
                })
            }
            PreparedPool::StandardDeviation { sums, squares, .. } => {
                let (each, each_squares) = (sums.split(mask), squares.split(mask));
                std::array::from_fn(|sample| {
                    let of_rounding = (sums.error, squares.error);
                    let deviation = standard_deviation(sizes[sample], each[sample], each_squares[sample], of_rounding);
                    let of_values =
                        if self.precision.is_exact { 0.0 } else { self.precision.of_deviation(sizes[sample]) };
                    Enclosure { low: deviation.low - of_values, high: deviation.high + of_values, ..deviation }
                })
            }
            PreparedPool::Quantile { sorted, places } => std::array::from_fn(|sample| {
                let flip = if sample == 0 { u64::MAX } else { 0 };
                let (low, high) = places[sample].selected(sorted, mask, flip);
                places[sample].between(low, high, &self.precision)
            }),
        }
    }
}

impl QuantilePosition {
    /// Returns the two sorted values between which the quantile of a sample lies. `flip` chooses the sample: a value
    /// belongs to it if its bit in `mask`, combined with `flip` by exclusive or, is set.
    fn selected(self, sorted: &[f64], mask: &[u64], flip: u64) -> (f64, f64) {
        let low = selected(mask, flip, self.index);
        let high = if self.fraction > 0.0 { next_selected(mask, flip, low) } else { low };
        (sorted[low], sorted[high])
    }
}

/// Shifts all values so that the value nearest to the mean becomes 0. A large common offset then costs no digits. If
/// any difference would be rounded, this function returns the values unchanged.
fn centred(mut values: Vec<f64>) -> Vec<f64> {
    let mean = sum(&values) / values.len() as f64;
    let nearest = values.iter().copied().min_by(|x, y| (x - mean).abs().total_cmp(&(y - mean).abs()));
    let centre = nearest.unwrap_or(0.0);
    if values.iter().all(|value| pool::less(*value, centre).1 == 0.0) {
        values.iter_mut().for_each(|value| *value -= centre);
    }
    values
}

/// Terms prepared so that the sum of any subset, selected by a bit mask, can be computed fast.
#[derive(Clone, Debug)]
struct Sums {
    terms: Vec<f64>,
    total: f64,
    /// Bound on the error of the sum of any subset.
    error: f64,
}

impl Sums {
    /// Prepares the terms for sums of subsets. `are_exact` means that the terms themselves are not rounded.
    fn new(terms: Vec<f64>, are_exact: bool) -> Sums {
        let magnitude: f64 = terms.iter().map(|term| term.abs()).sum();
        // Number of roundings: those in the sum of the subset, in the total, in the difference of these two sums, and
        // in the terms themselves.
        let roundings = subset::additions(terms.len()) as f64 + 8.0;
        let error = 1.01 * roundings * UNIT * magnitude + terms.len() as f64 * f64::MIN_POSITIVE;
        let error = if are_exact && adds_exactly(&terms) { 0.0 } else { error };
        Sums { total: sum(&terms), error, terms }
    }

    /// Returns two sums: of the terms that the mask does not select, and of the terms that it selects.
    fn split(&self, mask: &[u64]) -> [f64; 2] {
        let selected = subset::sum(&self.terms, mask);
        [self.total - selected, selected]
    }
}

/// Returns the standard deviation of `count` values with this sum and sum of squares, given the bounds of their errors.
fn standard_deviation(count: usize, sum: f64, squares: f64, (sum_error, squares_error): (f64, f64)) -> Enclosure {
    let count = count as f64;
    let of_mean = sum * sum / count;
    let error =
        squares_error + (2.0 * sum.abs() + sum_error) * sum_error / count + 4.0 * UNIT * (squares.abs() + of_mean);
    let root = |sum_of_squares: f64| (sum_of_squares.max(0.0) / (count - 1.0)).sqrt();
    let [low, value, high] = [-error, 0.0, error].map(|error| root(squares - of_mean + error));
    Enclosure { low: low * (1.0 - 4.0 * UNIT), value, high: high * (1.0 + 4.0 * UNIT) }
}

/// Returns the index of the set bit number `rank`, counted from 0. Each word of the mask is first combined with `flip`
/// by exclusive or. A `flip` of all ones selects the other sample, whose bits are not set in the mask.
fn selected(mask: &[u64], flip: u64, mut rank: usize) -> usize {
    for (index, word) in mask.iter().enumerate() {
        let mut word = word ^ flip;
        let ones = word.count_ones() as usize;
        if rank < ones {
            for _ in 0..rank {
                word &= word - 1;
            }
            return index * 64 + word.trailing_zeros() as usize;
        }
        rank -= ones;
    }
    unreachable!("the mask has a bit for each value of the sample")
}

/// Returns the index of the next set bit after the one at `index`. The mask is combined with `flip` as in [`selected`].
fn next_selected(mask: &[u64], flip: u64, index: usize) -> usize {
    let after = u64::MAX.checked_shl(index as u32 % 64 + 1).unwrap_or(0);
    let mut word = (mask[index / 64] ^ flip) & after;
    let mut at = index / 64;
    while word == 0 {
        at += 1;
        word = mask[at] ^ flip;
    }
    at * 64 + word.trailing_zeros() as usize
}
