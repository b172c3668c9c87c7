//! Quantiles of values at hand, and the confidence sequence of one.

use crate::eprocess::{Direction, Mixture, log_threshold};
use crate::error::{check_error, check_quantile};
use crate::root::{Search, last_below_zero};
use crate::{Error, Tally};

/// The quantile `q` of values in ascending order, `0 ≤ q ≤ 1`; none without values or for another `q`.
///
/// Interpolates linearly between the two values around position `q · (n − 1)`, counted from 0: type 7 of Hyndman and
/// Fan, *Sample Quantiles in Statistical Packages*, 1996, which is also what NumPy, R and most spreadsheets do by
/// default. An infinite neighbour makes an infinite quantile, unless the position hits the finite value exactly;
/// between both infinities it is NaN. The values are expected in order ([`f64::total_cmp`]) and free of NaN.
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

/// The median of values in ascending order: the middle one, or halfway between the two in the middle; none without
/// values. See [`quantile_sorted`].
///
/// ```
/// assert_eq!(ascertain_stats::median_sorted(&[1.0, 3.0, 7.0]), Some(3.0));
/// ```
pub fn median_sorted(values: &[f64]) -> Option<f64> {
    quantile_sorted(values, 0.5)
}

/// Positions in the sorted values, from 0, between which a quantile lies. `None`: not bounded yet on that side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuantileRanks {
    /// The quantile is at least the value at this position.
    pub low: Option<u64>,
    /// The quantile is at most the value at this position.
    pub high: Option<u64>,
}

impl QuantileRanks {
    /// Between which of the sorted values the quantile lies; infinite where nothing bounds it.
    ///
    /// ```
    /// use ascertain_stats::QuantileRanks;
    /// let ranks = QuantileRanks { low: Some(1), high: None };
    /// assert_eq!(ranks.of(&[2.5, 3.5, 4.5]), (3.5, f64::INFINITY));
    /// ```
    ///
    /// # Panics
    /// Where a position is not one of these values'.
    pub fn of(&self, sorted: &[f64]) -> (f64, f64) {
        let at = |rank: Option<u64>| rank.map(|rank| sorted[rank as usize]);
        (at(self.low).unwrap_or(f64::NEG_INFINITY), at(self.high).unwrap_or(f64::INFINITY))
    }
}

/// The ranks of a confidence sequence for the `q`-quantile of `n` values so far.
///
/// A `q`-quantile Q has `P(X < Q) ≤ q ≤ P(X ≤ Q)`. If Q were below the value of rank `k` (from 1), at most `k−1` of the
/// values would be at or below it, though each is with a rate of at least `q`: `low` is the greatest rank at which the
/// e-process against "at least q" rejects that ([`log_e_refuted`](crate::log_e_refuted)). If Q were above the value of
/// rank `k`, at least `k` values would be strictly below it, though each is with a rate of at most `q`: `high` is the
/// least rank at which the e-process against "at most q" rejects that ([`log_e_holds`](crate::log_e_holds)). With
/// strictly below on one side and at or below on the other, ties and discrete values do no harm.
///
/// # Guarantee
///
/// For values that are alike, the chance that the quantile is *ever* below its low end is at most `error_low`, and
/// above its high end `error_high`, however often one looks; so the running intersection of the intervals is valid too.
/// Howard and Ramdas, *Sequential estimation of quantiles with applications to A/B testing and best-arm
/// identification*, 2022, by the mixture used here throughout.
///
/// # Errors
/// [`Error::Quantile`], [`Error::ErrorProbability`] and [`Error::TooManyTrials`].
///
/// ```
/// use ascertain_stats::quantile_ranks;
/// // With 401 values nobody knows how large the 99th percentile can be.
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
    let most_above = most_unrejected(&Mixture::new(q, Direction::Below), n, threshold_low);
    let most_below = most_unrejected(&Mixture::new(q, Direction::Above), n, threshold_high);
    Ok(QuantileRanks {
        low: (most_above < n).then(|| n - 1 - most_above),
        // One more strictly below than is not rejected, as a position from 0.
        high: (most_below < n).then_some(most_below),
    })
}

/// The most favourable outcomes among `n` that the e-process does not reject.
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
