//! The interval of a weighted sum of means that is never too narrow, however the variances differ.

use crate::student::{MeanInterval, MeanPart, student_size, student_tails};
use crate::{Error, error::check_error};

/// Returns a weighted sum of the means of independent samples, with an interval that covers the true sum with at least
/// the probability `1 - error`. This holds for normal samples of any sizes and variances. Returns `None` if there are
/// no parts.
///
/// The half width is `√(Σ t²·w²·v)`: each part has the quantile `t` of its own degrees of freedom, its weight `w` and
/// the variance `v` of its mean. The source is Banerjee, *On confidence interval for two-means problem based on
/// separate estimates of variances and tabulated values of t-table*, 1961. The approximation of Welch and Satterthwaite
/// in [`combined_mean_interval`](crate::combined_mean_interval) is narrower. With two values in one sample and ten in
/// the other, it covers the true difference in only 89 to 95 of 100 cases.
///
/// The degrees of freedom in the result are those of the t distribution that gives the same interval.
///
/// ```
/// use ascertain_stats::{MeanPart, cautious_mean_interval};
/// let parts = [(-1.0, &[1.0, 1.2][..]), (1.0, &[2.0, 2.1, 1.9][..])];
/// let parts: Vec<MeanPart> = parts.iter().filter_map(|(weight, sample)| MeanPart::new(*weight, sample)).collect();
/// let interval = cautious_mean_interval(&parts, 0.05)?.unwrap();
/// assert!((interval.mean - 0.9).abs() < 1e-12 && (1.0..2.0).contains(&interval.degrees));
/// # Ok::<(), ascertain_stats::Error>(())
/// ```
///
/// # Errors
/// [`Error::ErrorProbability`], if `error` is not strictly between 0 and 1. [`Error::Degrees`], if a part has none.
pub fn cautious_mean_interval(parts: &[MeanPart], error: f64) -> Result<Option<MeanInterval>, Error> {
    check_error(error)?;
    if parts.is_empty() {
        return Ok(None);
    }
    let (mut mean, mut variance, mut square) = (0.0, 0.0, 0.0);
    let (mut fewest, mut most) = (f64::INFINITY, 0.0_f64);
    for part in parts {
        let size = student_size(error, part.degrees)?;
        let own = part.weight * part.weight * part.variance;
        mean += part.weight * part.mean;
        variance += own;
        square += size * size * own;
        if own > 0.0 {
            (fewest, most) = (fewest.min(part.degrees), most.max(part.degrees));
        }
    }
    let (half, standard_error) = (square.sqrt(), variance.sqrt());
    let degrees = match variance > 0.0 {
        true => equivalent_degrees(half / standard_error, error, fewest, most),
        false => parts.iter().map(|part| part.degrees).sum(),
    };
    Ok(Some(MeanInterval { mean, low: mean - half, high: mean + half, standard_error, degrees }))
}

/// Returns the degrees of freedom between `fewest` and `most` at which the quantile of Student's t is `size`.
fn equivalent_degrees(size: f64, error: f64, fewest: f64, most: f64) -> f64 {
    let (mut low, mut high) = (fewest, most);
    for _ in 0..50 {
        let middle = low + (high - low) / 2.0;
        // The tails become lighter with more degrees of freedom.
        if student_tails(size, middle) > error { low = middle } else { high = middle }
    }
    low + (high - low) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::combined_mean_interval;

    fn part(weight: f64, variance: f64, degrees: f64) -> MeanPart {
        MeanPart { weight, mean: 1.0, variance, degrees }
    }

    #[test]
    fn one_part_has_the_interval_of_student() {
        let parts = [part(2.0, 0.3, 7.0)];
        let [cautious, plain] = [cautious_mean_interval(&parts, 0.05), combined_mean_interval(&parts, 0.05)];
        let (cautious, plain) = (cautious.unwrap().unwrap(), plain.unwrap().unwrap());
        assert!((cautious.low - plain.low).abs() < 1e-12 && (cautious.degrees - 7.0).abs() < 1e-9, "{cautious:?}");
    }

    #[test]
    fn several_parts_have_a_wider_interval_than_welch() {
        for (one, other) in [((0.1, 1.0), (0.1, 9.0)), ((0.3, 4.0), (0.01, 2.0)), ((0.0, 1.0), (0.2, 5.0))] {
            let parts = [part(-1.0, one.0, one.1), part(1.0, other.0, other.1)];
            let cautious = cautious_mean_interval(&parts, 0.05).unwrap().unwrap();
            let welch = combined_mean_interval(&parts, 0.05).unwrap().unwrap();
            assert!(cautious.high >= welch.high - 1e-12, "{cautious:?} {welch:?}");
            let half = student_size(0.05, cautious.degrees).unwrap() * cautious.standard_error;
            assert!((half - cautious.high).abs() < 1e-9, "the degrees give the same interval: {cautious:?}");
        }
        assert_eq!(cautious_mean_interval(&[], 0.05), Ok(None));
        assert!(cautious_mean_interval(&[part(1.0, 1.0, 0.0)], 0.05).is_err());
        let equal = cautious_mean_interval(&[part(1.0, 0.0, 2.0), part(1.0, 0.0, 3.0)], 0.05).unwrap().unwrap();
        assert_eq!((equal.low, equal.high, equal.degrees), (2.0, 2.0, 5.0));
    }
}
