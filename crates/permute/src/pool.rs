//! Samples as one pool of numbers, as exact as they can be had.

use crate::error::{Error, shown};
use crate::question::{Comparison, Question, Sample, Statistic};

/// Values of all samples, one sample after the other, without what the null hypothesis says of the second.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    pub values: Vec<f64>,
    pub sizes: Vec<usize>,
    /// The numbers are so many times the values: a power of ten.
    pub per_unit: f64,
    /// Whether nothing was rounded where the null hypothesis was undone.
    pub is_exact: bool,
}

impl Pool {
    /// # Errors
    /// Values that are not finite or, where ratios are asked for, not positive once the null hypothesis is undone; more
    /// of them than memory holds.
    pub fn new(mut samples: Vec<Sample>, question: &Question) -> Result<Pool, Error> {
        let per_unit = as_whole_numbers(&mut samples, question.null.shift);
        let is_exact = undo_null(&mut samples, question, per_unit)?;
        let sizes = samples.iter().map(|sample| sample.values.len()).collect();
        Ok(Pool { values: pooled(samples)?, sizes, per_unit, is_exact })
    }
}

/// Makes whole numbers of decimals, and says how many times the values they are: 0.3 − 0.2 is then 0.2 − 0.1, which the
/// doubles nearest to the three are not. Decimals are doubles each of which is the nearest to a whole number below 2^51
/// divided by 1, 10, 100, …, the same for all, the shift included. Other numbers are left as they are.
fn as_whole_numbers(samples: &mut [Sample], shift: f64) -> f64 {
    /// Powers of ten are doubles up to 10^22; 15 digits are what 2^51 has.
    const MOST_DIGITS: i32 = 15;
    let whole = |x: f64, per_unit: f64| {
        let whole = (x * per_unit).round();
        (whole.abs() < 2f64.powi(51) && whole / per_unit == x).then_some(whole)
    };
    let mut digits = 0;
    let all = || samples.iter().flat_map(|sample| &sample.values).copied().chain([shift]);
    for x in all() {
        while whole(x, 10f64.powi(digits)).is_none() {
            digits += 1;
            if digits > MOST_DIGITS {
                return 1.0;
            }
        }
    }
    let per_unit = 10f64.powi(digits);
    if digits == 0 || !all().all(|x| whole(x, per_unit).is_some()) {
        return 1.0;
    }
    for x in samples.iter_mut().flat_map(|sample| &mut sample.values) {
        *x = (*x * per_unit).round();
    }
    per_unit
}

/// The second sample as it would be without what the null hypothesis says of it, and whether that was done without
/// rounding.
fn undo_null(samples: &mut [Sample], question: &Question, per_unit: f64) -> Result<bool, Error> {
    let null = question.null;
    if null.is_plain() {
        return Ok(true);
    }
    let shift = if per_unit == 1.0 { null.shift } else { (null.shift * per_unit).round() };
    let mut is_exact = true;
    for value in &mut samples[1].values {
        let (moved, lost) = less(*value, shift);
        let undone = moved / null.scale;
        is_exact &= lost == 0.0 && undone.mul_add(null.scale, -moved) == 0.0;
        *value = undone;
    }
    if samples[1].values.iter().any(|value| !value.is_finite()) {
        return Err(Error::TooLarge);
    }
    all_positive(samples, question, per_unit)?;
    Ok(is_exact)
}

/// The difference, and what rounding took from it (Knuth's TwoSum).
pub(crate) fn less(x: f64, y: f64) -> (f64, f64) {
    let difference = x - y;
    let used = x - difference;
    (difference, (x - (difference + used)) + (used - y))
}

/// A ratio of means or quantiles is one of positive numbers, however the values are dealt out, if all of them are
/// positive.
pub(crate) fn all_positive(samples: &[Sample], question: &Question, per_unit: f64) -> Result<(), Error> {
    if question.comparison != Comparison::Ratio || question.statistic == Statistic::StandardDeviation {
        return Ok(());
    }
    let found = samples.iter().find_map(|sample| Some((sample, find(&sample.values, |value| value <= 0.0)?)));
    match found {
        Some((sample, (number, value))) => {
            Err(Error::NotPositive { sample: shown(&sample.name), number, value: value / per_unit })
        }
        None => Ok(()),
    }
}

/// The first such value, and its number from 1.
pub(crate) fn find(values: &[f64], is_wanted: impl Fn(f64) -> bool) -> Option<(usize, f64)> {
    values.iter().position(|value| is_wanted(*value)).map(|index| (index + 1, values[index]))
}

/// All values, one sample after the other; the first sample's place grows, so that it is not held twice.
fn pooled(samples: Vec<Sample>) -> Result<Vec<f64>, Error> {
    let count: usize = samples.iter().map(|sample| sample.values.len()).sum();
    let mut samples = samples.into_iter().map(|sample| sample.values);
    let mut values = samples.next().unwrap_or_default();
    values.try_reserve_exact(count - values.len()).map_err(|_| Error::NoMemory { count })?;
    samples.for_each(|more| values.extend(more));
    Ok(values)
}
