//! The values of all samples as one pool of numbers, as exact as possible.

use crate::error::{Error, shown};
use crate::question::{Comparison, Question, Sample, Statistic};

/// The values of all samples, one sample after the other. The shift and the scale of the null hypothesis are removed
/// from the second sample.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    pub values: Vec<f64>,
    pub sizes: Vec<usize>,
    /// The power of ten by which the original values were multiplied, so that decimals become whole numbers. It is 1 if
    /// the values are unchanged.
    pub per_unit: f64,
    /// `true` if removing the shift and the scale needed no rounding.
    pub is_exact: bool,
}

impl Pool {
    /// Pools the samples.
    ///
    /// # Errors
    /// Fails if values are too large or, for ratios, not positive after the shift and the scale are removed; and if
    /// memory cannot hold all values.
    pub fn new(mut samples: Vec<Sample>, question: &Question) -> Result<Pool, Error> {
        let per_unit = as_whole_numbers(&mut samples, question.null.shift);
        let is_exact = undo_null(&mut samples, question, per_unit)?;
        let sizes = samples.iter().map(|sample| sample.values.len()).collect();
        Ok(Pool { values: pooled(samples)?, sizes, per_unit, is_exact })
    }
}

/// Multiplies decimals by a power of ten to make them whole numbers, and returns the factor. Differences are then
/// exact: 0.3 − 0.2 equals 0.2 − 0.1, although the differences of the nearest doubles are unequal.
///
/// A double counts as a decimal if it is the double nearest to a quotient: a whole number below 2^51, divided by 1, 10,
/// 100, …. All values and the shift must be decimals with the same divisor. Otherwise this function changes no value
/// and returns 1.
fn as_whole_numbers(samples: &mut [Sample], shift: f64) -> f64 {
    /// The largest number of decimal digits after the point. More digits are pointless, because 2^51 has only about 15
    /// digits. The powers of ten up to this limit are exact doubles.
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

/// Removes the shift and the scale of the null hypothesis from the second sample, and returns whether nothing was
/// rounded.
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

/// Returns `x - y` and its rounding error (Knuth's TwoSum).
pub(crate) fn less(x: f64, y: f64) -> (f64, f64) {
    let difference = x - y;
    let used = x - difference;
    (difference, (x - (difference + used)) + (used - y))
}

/// Checks that all values are positive, if ratios of means or quantiles are requested. All numbers that a reshuffle
/// divides are then positive.
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

/// Returns the first value for which `is_wanted` is true, and its position counted from 1.
pub(crate) fn find(values: &[f64], is_wanted: impl Fn(f64) -> bool) -> Option<(usize, f64)> {
    values.iter().position(|value| is_wanted(*value)).map(|index| (index + 1, values[index]))
}

/// Returns all values in one vector, one sample after the other. The first sample's vector is extended, so that its
/// values are not copied.
fn pooled(samples: Vec<Sample>) -> Result<Vec<f64>, Error> {
    let count: usize = samples.iter().map(|sample| sample.values.len()).sum();
    let mut samples = samples.into_iter().map(|sample| sample.values);
    let mut values = samples.next().unwrap_or_default();
    values.try_reserve_exact(count - values.len()).map_err(|_| Error::NoMemory { count })?;
    samples.for_each(|more| values.extend(more));
    Ok(values)
}
