//! Student's t distribution, and intervals of means that use it: of one sample, and of a weighted sum of means.
//!
//! These intervals assume that the values are independent and roughly normal. They are therefore never exact, and are
//! right only for a single look at the values.

use crate::error::check_error;
use crate::incomplete_beta::BetaTail;
use crate::rate::Rate;
use crate::{Error, Moments};

/// A mean with its interval, by Student's t.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanInterval {
    /// The estimated mean.
    pub mean: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
    /// The standard error of the mean.
    pub standard_error: f64,
    /// The degrees of freedom; they may have a fraction if several samples were combined.
    pub degrees: f64,
}

impl MeanInterval {
    /// Returns the interval with the mean and both ends mapped by an increasing function, such as `exp` for means of
    /// logarithms.
    #[must_use]
    pub fn map(self, function: impl Fn(f64) -> f64) -> MeanInterval {
        MeanInterval { mean: function(self.mean), low: function(self.low), high: function(self.high), ..self }
    }
}

/// One of the samples in [`combined_mean_interval`], summarised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanPart {
    /// The factor of this mean in the weighted sum.
    pub weight: f64,
    /// The mean of the sample.
    pub mean: f64,
    /// The variance of this mean: the variance of the sample divided by its size.
    pub variance: f64,
    /// The degrees of freedom of the variance: the size of the sample minus one.
    pub degrees: f64,
}

impl MeanPart {
    /// Returns the summary of a sample, with this weight. Returns `None` for fewer than two values, because they have
    /// no variance, and for a sample with an infinite value or a NaN.
    pub fn new(weight: f64, sample: &[f64]) -> Option<MeanPart> {
        let moments: Moments = sample.iter().copied().collect();
        let count = moments.count() as f64;
        let (mean, variance) = (moments.mean()?, moments.variance()? / count);
        (mean + variance).is_finite().then_some(MeanPart { weight, mean, variance, degrees: count - 1.0 })
    }
}

/// Returns the probability that the size of a variable with Student's t distribution is above `size`.
///
/// ```
/// use ascertain_stats::student_tails;
/// assert!((student_tails(2.262157, 9.0) - 0.05).abs() < 1e-7);
/// ```
#[must_use]
pub fn student_tails(size: f64, degrees: f64) -> f64 {
    let size = size.abs();
    if size == 0.0 {
        return 1.0;
    }
    // t² / (t² + ν) has the distribution Beta(½, ν/2).
    let square = size * size;
    let success = 1.0 / (1.0 + degrees / square);
    let failure = 1.0 / (1.0 + square / degrees);
    if success == 0.0 {
        return 1.0;
    }
    if failure == 0.0 {
        return 0.0;
    }
    let (a, b) = (0.5, degrees / 2.0);
    let excess = 0.5 * failure - b * success;
    let tail = BetaTail { a, b, rate: Rate { success, failure }, excess };
    libm::exp(tail.log_upper() - tail.log_whole()).min(1.0)
}

/// Returns the size above which a variable with Student's t distribution lies with the probability `error`, counting
/// both signs. For 0.05 it is 12.7 with one degree of freedom, 2.262 with nine, and 1.96 with very many.
///
/// ```
/// use ascertain_stats::student_size;
/// assert!((student_size(0.05, 9.0)? - 2.262157).abs() < 1e-6);
/// # Ok::<(), ascertain_stats::Error>(())
/// ```
///
/// # Errors
/// [`Error::ErrorProbability`], if `error` is not strictly between 0 and 1. [`Error::Degrees`], if `degrees` is not a
/// number above 0.
pub fn student_size(error: f64, degrees: f64) -> Result<f64, Error> {
    check_error(error)?;
    if degrees.is_nan() || degrees <= 0.0 {
        return Err(Error::Degrees { degrees });
    }
    // The quotient of the incomplete beta function and its density loses digits beyond this number. The distribution
    // then differs from the normal one by less than 1e-9.
    let degrees = degrees.min(1e9);
    let (mut low, mut high) = (0.0, 1.0);
    while student_tails(high, degrees) > error {
        (low, high) = (high, high * 4.0);
        if !f64::is_finite(high) {
            return Ok(low);
        }
    }
    for _ in 0..200 {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            break;
        }
        if student_tails(middle, degrees) > error { low = middle } else { high = middle }
    }
    Ok(high)
}

/// Returns the mean of a sample with the interval that covers the true mean with probability `1 - error`, by Student's
/// t. Returns `None` for fewer than two values, and for a sample with an infinite value or a NaN.
///
/// ```
/// use ascertain_stats::mean_interval;
/// let interval = mean_interval(&[1.0, 2.0, 3.0], 0.05)?.unwrap();
/// assert_eq!((interval.mean, interval.degrees), (2.0, 2.0));
/// assert!((interval.high - (2.0 + 4.302653 / 3_f64.sqrt())).abs() < 1e-6);
/// # Ok::<(), ascertain_stats::Error>(())
/// ```
///
/// # Errors
/// [`Error::ErrorProbability`], if `error` is not strictly between 0 and 1.
pub fn mean_interval(sample: &[f64], error: f64) -> Result<Option<MeanInterval>, Error> {
    combined_mean_interval(&MeanPart::new(1.0, sample).into_iter().collect::<Vec<_>>(), error)
}

/// The smallest sample whose skewness is estimated by [`skewed_mean_interval`].
const LEAST_SKEWED: usize = 8;

/// Returns the mean of a sample with its interval, corrected for the skewness of the sample by the transformation of
/// Hall (1992). The interval is longer on the side of the long tail. Samples of fewer than eight values get the
/// interval of [`mean_interval`].
///
/// ```
/// use ascertain_stats::skewed_mean_interval;
/// let sample = [1.0, 1.0, 2.0, 2.0, 2.0, 3.0, 4.0, 9.0];
/// let interval = skewed_mean_interval(&sample, 0.05)?.unwrap();
/// assert!(interval.high - interval.mean > interval.mean - interval.low);
/// # Ok::<(), ascertain_stats::Error>(())
/// ```
///
/// # Errors
/// [`Error::ErrorProbability`], if `error` is not strictly between 0 and 1.
pub fn skewed_mean_interval(sample: &[f64], error: f64) -> Result<Option<MeanInterval>, Error> {
    let Some(plain) = mean_interval(sample, error)? else { return Ok(None) };
    let count = sample.len() as f64;
    let deviation = plain.standard_error * count.sqrt();
    if sample.len() < LEAST_SKEWED || deviation == 0.0 {
        return Ok(Some(plain));
    }
    let cubes: f64 = sample.iter().map(|value| ((value - plain.mean) / deviation).powi(3)).sum();
    let skewness = cubes * count / ((count - 1.0) * (count - 2.0));
    // Without skewness, the transformation is the identity, but its formula divides by zero.
    if skewness.abs() < 1e-6 {
        return Ok(Some(plain));
    }
    let size = student_size(error, plain.degrees)? / count.sqrt();
    let inverse = |size: f64| 3.0 / skewness * (libm::cbrt(1.0 + skewness * (size - skewness / (6.0 * count))) - 1.0);
    let [low, high] = [size, -size].map(|size| plain.mean - deviation * inverse(size));
    Ok(Some(MeanInterval { low, high, ..plain }))
}

/// Returns a weighted sum of the means of independent samples with its interval. The degrees of freedom are those of
/// Welch and Satterthwaite. Returns `None` if there are no parts.
///
/// The difference of two means has the weights 1 and −1. The mean of `k` workloads, each with its own sample, has `k`
/// parts with the weight `1/k`.
///
/// # Errors
/// [`Error::ErrorProbability`], if `error` is not strictly between 0 and 1. [`Error::Degrees`], if a part has none.
pub fn combined_mean_interval(parts: &[MeanPart], error: f64) -> Result<Option<MeanInterval>, Error> {
    check_error(error)?;
    if let Some(part) = parts.iter().find(|part| part.degrees.is_nan() || part.degrees <= 0.0) {
        return Err(Error::Degrees { degrees: part.degrees });
    }
    if parts.is_empty() {
        return Ok(None);
    }
    let mean = parts.iter().map(|part| part.weight * part.mean).sum();
    let variances = || parts.iter().map(|part| (part.weight * part.weight * part.variance, part.degrees));
    let variance: f64 = variances().map(|(variance, _)| variance).sum();
    let spread: f64 = variances().map(|(variance, degrees)| variance * variance / degrees).sum();
    // Without any variance the degrees are those of all samples together.
    let degrees = match spread > 0.0 {
        true => variance * variance / spread,
        false => parts.iter().map(|part| part.degrees).sum(),
    };
    let standard_error = variance.sqrt();
    let half = student_size(error, degrees)? * standard_error;
    Ok(Some(MeanInterval { mean, low: mean - half, high: mean + half, standard_error, degrees }))
}

/// Returns, for each value of a sample, the mean of all other values. Empty for fewer than two values.
#[must_use]
pub fn means_without_each(sample: &[f64]) -> Vec<f64> {
    let without = |left_out: usize| {
        let others = sample.iter().enumerate().filter(|(index, _)| *index != left_out);
        others.map(|(_, value)| *value).collect::<Moments>().mean()
    };
    (0..sample.len()).filter_map(without).collect()
}
