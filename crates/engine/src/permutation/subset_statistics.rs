//! Two samples' statistics from a mask of the pooled values that went to the second one.

use ascertain_numeric::subset;
use ascertain_numeric::sum::sum;

use super::enclosure::Enclosure;
use super::error::Error;
use super::precision::{Precision, UNIT};
use super::question::Statistic;
use super::shuffled::Place;

/// Pooled values of two samples, ready for masks.
#[derive(Clone, Debug)]
pub(super) struct SubsetStatistics {
    /// How many values each sample has.
    sizes: [usize; 2],
    precision: Precision,
    prepared: Prepared,
}

#[derive(Clone, Debug)]
enum Prepared {
    Mean(Sums),
    StandardDeviation { sums: Sums, squares: Sums },
    Quantile { sorted: Vec<f64>, places: [Place; 2] },
}

impl SubsetStatistics {
    /// # Errors
    /// When there is no memory for squares beside the values.
    pub fn new(
        mut values: Vec<f64>,
        sizes: [usize; 2],
        statistic: Statistic,
        precision: Precision,
    ) -> Result<SubsetStatistics, Error> {
        let prepared = match statistic {
            Statistic::Mean => Prepared::Mean(Sums::centred(values)),
            Statistic::StandardDeviation => {
                let sums = Sums::centred(values);
                let (mut squares, count) = (Vec::new(), sums.terms.len());
                squares.try_reserve_exact(count).map_err(|_| Error::NoMemory { count })?;
                squares.extend(sums.terms.iter().map(|y| y * y));
                let squares = Sums::of(0.0, squares);
                Prepared::StandardDeviation { sums, squares }
            }
            Statistic::Quantile(level) => {
                values.sort_unstable_by(f64::total_cmp);
                Prepared::Quantile { sorted: values, places: sizes.map(|size| Place::of(level, size)) }
            }
        };
        Ok(SubsetStatistics { sizes, precision, prepared })
    }

    /// Both statistics, where the set bits are the second sample's values.
    pub fn of(&self, mask: &[u64]) -> [Enclosure; 2] {
        let sizes = self.sizes;
        match &self.prepared {
            Prepared::Mean(sums) => {
                let each = sums.split(mask);
                std::array::from_fn(|sample| {
                    let count = sizes[sample] as f64;
                    let mean = sums.centre + each[sample] / count;
                    Enclosure::around(
                        mean,
                        sums.error / count + self.precision.of_mean(sizes[sample]) + 2.0 * UNIT * mean.abs(),
                    )
                })
            }
            Prepared::StandardDeviation { sums, squares } => {
                let (each, each_squares) = (sums.split(mask), squares.split(mask));
                std::array::from_fn(|sample| {
                    let of_rounding = (sums.error, squares.error);
                    let deviation = standard_deviation(sizes[sample], each[sample], each_squares[sample], of_rounding);
                    let of_values = self.precision.of_deviation(sizes[sample]);
                    Enclosure { low: deviation.low - of_values, high: deviation.high + of_values, ..deviation }
                })
            }
            Prepared::Quantile { sorted, places } => std::array::from_fn(|sample| {
                let flip = if sample == 0 { u64::MAX } else { 0 };
                let place = places[sample];
                let low = selected(mask, flip, place.index);
                let high = if place.fraction > 0.0 { next_selected(mask, flip, low) } else { low };
                place.between(sorted[low], sorted[high], &self.precision)
            }),
        }
    }
}

/// Terms to be summed by subset.
#[derive(Clone, Debug)]
struct Sums {
    /// What was subtracted from each.
    centre: f64,
    terms: Vec<f64>,
    total: f64,
    /// By how much the sum of any subset may be off.
    error: f64,
}

impl Sums {
    /// The values less their mean, so that a large offset costs no digits.
    fn centred(mut values: Vec<f64>) -> Sums {
        let centre = sum(&values) / values.len() as f64;
        values.iter_mut().for_each(|value| *value -= centre);
        Sums::of(centre, values)
    }

    fn of(centre: f64, terms: Vec<f64>) -> Sums {
        let magnitude: f64 = terms.iter().map(|term| term.abs()).sum();
        // The subset's additions; those of the total, of the difference from it, and of the terms themselves.
        let roundings = subset::additions(terms.len()) as f64 + 8.0;
        let error = 1.01 * roundings * UNIT * magnitude + terms.len() as f64 * f64::MIN_POSITIVE;
        Sums { centre, total: sum(&terms), error, terms }
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
