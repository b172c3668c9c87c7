//! Two samples' statistics from a mask of the pooled values that went to the second one.

use ascertain_numeric::subset;
use ascertain_numeric::sum::sum;

use crate::dyadic::Dyadic;
use crate::enclosure::Enclosure;
use crate::error::Error;
use crate::exactly::{self, has_exact_squares};
use crate::pool;
use crate::precision::{Precision, UNIT, adds_exactly};
use crate::question::Statistic;
use crate::shuffled::{Place, Shuffled, mean};

/// Pooled values of two samples, ready for masks.
#[derive(Clone, Debug)]
pub(crate) struct SubsetStatistics {
    /// How many values each sample has.
    sizes: [usize; 2],
    statistic: Statistic,
    weights: Option<Vec<f64>>,
    precision: Precision,
    prepared: Prepared,
}

#[derive(Clone, Debug)]
enum Prepared {
    Mean(Sums),
    StandardDeviation { values: Vec<f64>, sums: Sums, squares: Sums },
    Quantile { sorted: Vec<f64>, places: [Place; 2] },
}

impl SubsetStatistics {
    /// Of two samples. `is_difference` says that of means only the difference matters.
    ///
    /// # Errors
    /// When there is no memory for squares beside the values.
    pub fn new(shuffled: Shuffled, is_difference: bool) -> Result<SubsetStatistics, Error> {
        let Shuffled { mut values, sizes, statistic, weights, precision } = shuffled;
        let sizes = [sizes[0], sizes[1]];
        let count = values.len();
        let copied = |from: &mut dyn Iterator<Item = f64>| -> Result<Vec<f64>, Error> {
            let mut copy = Vec::new();
            copy.try_reserve_exact(count).map_err(|_| Error::NoMemory { count })?;
            copy.extend(from);
            Ok(copy)
        };
        let prepared = match statistic {
            Statistic::Mean if is_difference => Prepared::Mean(Sums::of(centred(values), true)),
            Statistic::Mean => Prepared::Mean(Sums::of(values, true)),
            Statistic::StandardDeviation => {
                let mut terms = centred(copied(&mut values.iter().copied())?);
                let square_is_exact = |y: &f64| y.mul_add(*y, -(y * y)) == 0.0;
                let is_exact = adds_exactly(&terms) && has_exact_squares(&terms) && terms.iter().all(square_is_exact);
                if !is_exact {
                    // The mean itself, though that rounds each: the squares are to be small.
                    let centre = sum(&terms) / count as f64;
                    terms.iter_mut().for_each(|term| *term -= centre);
                }
                let squares = Sums::of(copied(&mut terms.iter().map(|y| y * y))?, is_exact);
                Prepared::StandardDeviation { values, sums: Sums::of(terms, is_exact), squares }
            }
            Statistic::Quantile(level) => {
                values.sort_unstable_by(f64::total_cmp);
                Prepared::Quantile { sorted: values, places: sizes.map(|size| Place::of(level, size)) }
            }
        };
        Ok(SubsetStatistics { sizes, statistic, weights, precision, prepared })
    }

    /// Both statistics where the second sample has the last of the values: as they were before they were dealt out. Not
    /// of quantiles, for which values are sorted.
    pub fn of_the_last(&self, second: usize) -> Option<Vec<Enclosure>> {
        let count = self.sizes.iter().sum::<usize>();
        let mut mask = vec![0; count.div_ceil(64)];
        (count - second..count).for_each(|index| mask[index / 64] |= 1 << (index % 64));
        (!matches!(self.prepared, Prepared::Quantile { .. })).then(|| self.of(&mask).to_vec())
    }

    /// Both statistics without rounding, where they can be had.
    pub fn exactly(&self, mask: &[u64]) -> Option<exactly::Statistics> {
        let sums_of = |sums: &Sums| sums.split(mask).map(Dyadic::of);
        let values = match &self.prepared {
            Prepared::Quantile { sorted, places } => {
                let each = [u64::MAX, 0].into_iter().zip(places);
                let exact = each.map(|(flip, place)| {
                    let (low, high) = place.selected(sorted, mask, flip);
                    exactly::quantile(*place, low, high)
                });
                return Some(exact.collect());
            }
            Prepared::Mean(sums) if sums.error == 0.0 => return Some(exactly::means(&sums_of(sums), &self.sizes)),
            Prepared::StandardDeviation { sums, squares, .. } if sums.error + squares.error == 0.0 => {
                return Some(exactly::variances(&sums_of(sums), &sums_of(squares), &self.sizes));
            }
            Prepared::Mean(sums) => &sums.terms,
            Prepared::StandardDeviation { values, .. } => values,
        };
        // Each is written to its sample's end, which costs no branch that nobody can foresee.
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

    /// Both statistics, where the set bits are the second sample's values.
    pub fn of(&self, mask: &[u64]) -> [Enclosure; 2] {
        let sizes = self.sizes;
        match &self.prepared {
            Prepared::Mean(sums) => {
                let each = sums.split(mask);
                std::array::from_fn(|sample| {
                    let sum = Enclosure::around(each[sample], sums.error + self.precision.of_sum());
                    mean(sum, sizes[sample], self.weights.as_ref().map(|weights| weights[sample]))
                })
            }
            Prepared::StandardDeviation { sums, squares, .. } => {
                let (each, each_squares) = (sums.split(mask), squares.split(mask));
                std::array::from_fn(|sample| {
                    let of_rounding = (sums.error, squares.error);
                    let deviation = standard_deviation(sizes[sample], each[sample], each_squares[sample], of_rounding);
                    let of_values =
                        if self.precision.is_exact { 0.0 } else { self.precision.of_deviation(sizes[sample]) };
                    Enclosure { low: deviation.low - of_values, high: deviation.high + of_values, ..deviation }
                })
            }
            Prepared::Quantile { sorted, places } => std::array::from_fn(|sample| {
                let flip = if sample == 0 { u64::MAX } else { 0 };
                let (low, high) = places[sample].selected(sorted, mask, flip);
                places[sample].between(low, high, &self.precision)
            }),
        }
    }
}

impl Place {
    /// The values that the quantile lies between, of those that the mask selects once it is exclusively or-ed with
    /// `flip`.
    fn selected(self, sorted: &[f64], mask: &[u64], flip: u64) -> (f64, f64) {
        let low = selected(mask, flip, self.index);
        let high = if self.fraction > 0.0 { next_selected(mask, flip, low) } else { low };
        (sorted[low], sorted[high])
    }
}

/// The values less one of them, near their mean, so that a large offset costs no digits: but only where that is exact
/// for each, as it is for those that differ by less than a factor of two.
fn centred(mut values: Vec<f64>) -> Vec<f64> {
    let mean = sum(&values) / values.len() as f64;
    let nearest = values.iter().copied().min_by(|x, y| (x - mean).abs().total_cmp(&(y - mean).abs()));
    let centre = nearest.unwrap_or(0.0);
    if values.iter().all(|value| pool::less(*value, centre).1 == 0.0) {
        values.iter_mut().for_each(|value| *value -= centre);
    }
    values
}

/// Terms to be summed by subset.
#[derive(Clone, Debug)]
struct Sums {
    terms: Vec<f64>,
    total: f64,
    /// By how much the sum of any subset may be off.
    error: f64,
}

impl Sums {
    /// `are_exact` says that the terms were not rounded.
    fn of(terms: Vec<f64>, are_exact: bool) -> Sums {
        let magnitude: f64 = terms.iter().map(|term| term.abs()).sum();
        // The subset's additions; those of the total, of the difference from it, and of the terms themselves.
        let roundings = subset::additions(terms.len()) as f64 + 8.0;
        let error = 1.01 * roundings * UNIT * magnitude + terms.len() as f64 * f64::MIN_POSITIVE;
        let error = if are_exact && adds_exactly(&terms) { 0.0 } else { error };
        Sums { total: sum(&terms), error, terms }
    }

    /// What is not selected, and what is.
    fn split(&self, mask: &[u64]) -> [f64; 2] {
        let selected = subset::sum(&self.terms, mask);
        [self.total - selected, selected]
    }
}

/// The standard deviation of `count` values with this sum and sum of squares, which are off by at most so much.
fn standard_deviation(count: usize, sum: f64, squares: f64, (sum_error, squares_error): (f64, f64)) -> Enclosure {
    let count = count as f64;
    let of_mean = sum * sum / count;
    let error =
        squares_error + (2.0 * sum.abs() + sum_error) * sum_error / count + 4.0 * UNIT * (squares.abs() + of_mean);
    let root = |sum_of_squares: f64| (sum_of_squares.max(0.0) / (count - 1.0)).sqrt();
    let [low, value, high] = [-error, 0.0, error].map(|error| root(squares - of_mean + error));
    Enclosure { low: low * (1.0 - 4.0 * UNIT), value, high: high * (1.0 + 4.0 * UNIT) }
}

/// The index of the set bit with this rank, from 0, of the mask with each word exclusively or-ed with `flip`.
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
    unreachable!("a sample has as many bits as values")
}

/// The next such bit after the one at `index`.
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
