//! Quantiles of given values, and the confidence sequence of a quantile.

use crate::eprocess::{Mixture, log_threshold};
use crate::error::{check_error, check_quantile};
use crate::root::{Search, last_below_zero};
use crate::{Error, Tally, Verdict};

/// Returns the quantile `q` (`0 ≤ q ≤ 1`) of values in ascending order. Returns `None` if there are no values, or if
/// `q` is not in this range.
///
/// Interpolates linearly between the two values around position `q · (n − 1)`, counted from 0. This is type 7 of
/// Hyndman and Fan, *Sample Quantiles in Statistical Packages*, 1996, the default of NumPy, R and most spreadsheets. An
/// infinite neighbour makes the quantile infinite, unless the position is exactly that of the finite value. Between
/// both infinities it is NaN. The values must be in order ([`f64::total_cmp`]) and free of NaN.
///
/// ```
/// use ascertain_stats::quantile_sorted;
/// let times = [1.0, 2.0, 4.0, f64::INFINITY];
/// assert_eq!(quantile_sorted(&times, 0.5), Some(3.0));
/// assert_eq!(quantile_sorted(&times, 0.9), Some(f64::INFINITY));
/// assert_eq!(quantile_sorted(&[], 0.5), None);
/// ```
pub fn quantile_sorted(values: &[f64], q: f64) -> Option<f64> {
    let last = values.len().checked_sub(1)?;
    if !(0.0..=1.0).contains(&q) {
        return None;
    }
    let position = q * last as f64;
    let index = (position as usize).min(last);
    let fraction = position - index as f64;
    let (low, high) = (values[index], values[(index + 1).min(last)]);
    if fraction == 0.0 || low == high {
        return Some(low);
    }
    let distance = high - low;
    if distance.is_finite() {
        // Rounding may carry the sum past the upper value.
        return Some((low + distance * fraction).min(high));
    }
    Some(low * (1.0 - fraction) + high * fraction)
}

/// Returns the median of values in ascending order: the middle one, or the mean of the two in the middle. Returns
/// `None` if there are no values. See [`quantile_sorted`].
///
/// ```
/// assert_eq!(ascertain_stats::median_sorted(&[1.0, 3.0, 7.0]), Some(3.0));
/// ```
pub fn median_sorted(values: &[f64]) -> Option<f64> {
    quantile_sorted(values, 0.5)
}

/// Two positions among the sorted values, counted from 0, between which a quantile lies. `None` means that there is no
/// lower bound (or no upper bound) for the quantile yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuantileRanks {
    /// Position of a value that is not greater than the quantile.
    pub low: Option<u64>,
    /// Position of a value that is not less than the quantile.
    pub high: Option<u64>,
}

impl QuantileRanks {
    /// Returns the two of the sorted values between which the quantile lies. If a rank is `None`, the value for this
    /// bound is infinite.
    ///
    /// ```
    /// use ascertain_stats::QuantileRanks;
    /// let ranks = QuantileRanks { low: Some(1), high: None };
    /// assert_eq!(ranks.interval_in(&[2.5, 3.5, 4.5]), (3.5, f64::INFINITY));
    /// ```
    ///
    /// # Panics
    /// Panics if a position is beyond these values.
    pub fn interval_in(&self, sorted: &[f64]) -> (f64, f64) {
        let at = |rank: Option<u64>| rank.map(|rank| sorted[rank as usize]);
        (at(self.low).unwrap_or(f64::NEG_INFINITY), at(self.high).unwrap_or(f64::INFINITY))
    }
}

/// Returns the ranks of a confidence sequence for the `q`-quantile of `n` values so far.
///
/// A `q`-quantile Q has `P(X < Q) ≤ q ≤ P(X ≤ Q)`.
///
/// - `low`: each value is at or below Q with a rate of at least `q`. Assume that Q is below the value of rank `k` (from
///   1). Then at most `k−1` values are at or below Q. If `k−1` is too small, the e-process against "at least q"
///   ([`log_e_refuted`](crate::log_e_refuted)) rejects this assumption. `low` is the greatest `k` for which it does.
/// - `high`: each value is strictly below Q with a rate of at most `q`. Assume that Q is above the value of rank `k`.
///   Then at least `k` values are strictly below Q. If `k` is too large, the e-process against "at most q"
///   ([`log_e_holds`](crate::log_e_holds)) rejects this assumption. `high` is the smallest `k` for which it does.
///
/// `low` uses "at or below" and `high` uses "strictly below", so ties and discrete values do no harm.
///
/// # Guarantee
///
/// For values that are alike, the chance that the quantile is *ever* below its low end is at most `error_low`. The
/// chance that it is ever above its high end is at most `error_high`. Both hold however often you look. The running
/// intersection of the intervals is therefore valid too. Howard and Ramdas, *Sequential estimation of quantiles with
/// applications to A/B testing and best-arm identification*, 2022, here with the mixture of this crate.
///
/// # Errors
/// Returns [`Error::Quantile`], [`Error::ErrorProbability`] and [`Error::TooManyTrials`].
///
/// ```
/// use ascertain_stats::quantile_ranks;
/// // 401 values do not yet bound the 99th percentile from above.
/// assert_eq!(quantile_ranks(401, 0.99, 0.025, 0.025)?.high, None);
/// let median = quantile_ranks(1000, 0.5, 0.025, 0.025)?;
/// assert_eq!((median.low, median.high), (Some(448), Some(551)));
/// # Ok::<(), ascertain_stats::Error>(())
/// ```
pub fn quantile_ranks(n: u64, q: f64, error_low: f64, error_high: f64) -> Result<QuantileRanks, Error> {
    let q = check_quantile(q)?;
    let threshold_low = log_threshold(check_error(error_low)?);
    let threshold_high = log_threshold(check_error(error_high)?);
    Tally::new(n, n)?;
    let most_above = most_unrejected(&Mixture::new(q, Verdict::Refuted), n, threshold_low);
    let most_below = most_unrejected(&Mixture::new(q, Verdict::Holds), n, threshold_high);
    Ok(QuantileRanks {
        low: (most_above < n).then(|| n - 1 - most_above),
        // The first rank that is rejected is `most_below` + 1; its position from 0 is `most_below`.
        high: (most_below < n).then_some(most_below),
    })
}

/// Returns the largest number of favourable outcomes among `n` at which `ln e` stays below `threshold`.
fn most_unrejected(mixture: &Mixture, n: u64, threshold: f64) -> u64 {
    if n == 0 {
        return 0;
    }
    let (trials, rate) = (n as f64, mixture.rate());
    let deviation = libm::sqrt(2.0 * (threshold + 1.0) * trials * rate.success * rate.failure);
    let guess = trials * rate.success + deviation;
    let search =
        Search { low: 0.0, value_at_low: f64::NAN, limit: trials, guess, give_or_take: 0.1 * deviation, step: 1.0 };
    last_below_zero(|x| mixture.log_e(x, trials - x) - threshold, search) as u64
}
