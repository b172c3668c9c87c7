//! Intervals of rates: the confidence sequence of a rate, and the equal-tailed Bayesian interval.

use crate::eprocess::{Mixture, log_threshold};
use crate::error::check_error;
use crate::incomplete_beta::BetaTail;
use crate::rate::Rate;
use crate::root::{Search, last_below_zero};
use crate::{Error, Tally};

/// The rates from `low` to `high`, both included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The smallest rate.
    pub low: f64,
    /// The greatest rate.
    pub high: f64,
}

impl Interval {
    /// The interval of all rates.
    pub const ALL: Interval = Interval { low: 0.0, high: 1.0 };

    /// Returns whether the interval contains no rate. A [`RateSequence`] with such an interval shows that the rate of
    /// its trials has changed.
    pub fn is_empty(&self) -> bool {
        self.low > self.high
    }

    /// Returns whether `rate` is in the interval.
    pub fn contains(&self, rate: f64) -> bool {
        self.low <= rate && rate <= self.high
    }

    /// Returns the rates that are in both intervals.
    pub fn intersection(&self, other: Interval) -> Interval {
        Interval { low: self.low.max(other.low), high: self.high.min(other.high) }
    }
}

/// Precision of the log-odds of each limit of an interval. The limits are moved outward by up to this much. Their error
/// relative to `min(p, 1−p)` has about the same size.
const STEP: f64 = 1.0 / (1u64 << 43) as f64;

/// Limit of the search for the bounds of an interval: the largest magnitude of the log-odds that it tries.
const FURTHEST: f64 = 700.0;

/// Returns the rates that are not rejected if you look at this tally once. For rates outside the interval the e-process
/// has reached its threshold.
///
/// For rates below `low` the e-process against "at most p" is at least `1/error_low`
/// ([`log_e_holds`](crate::log_e_holds)). For rates above `high` the e-process against "at least p" is at least
/// `1/error_high`. A [`Judge`](crate::Judge) with these errors therefore returns *holds* at exactly the rates below the
/// interval, and *refuted* at exactly the rates above it.
///
/// Both ends are rounded outward, by less than 1e-12 of `min(p, 1−p)` or, if that is more, to the next double. An end
/// without a bound is 0 or 1.
///
/// The e-value falls as its null rate rises towards the observed share, which the tests check on a grid. The rates that
/// are not rejected are therefore an interval.
///
/// # Guarantee
///
/// The chance that the true rate is *ever* below `low` is at most `error_low`, and that it is ever above `high` at most
/// `error_high`, however often you look. Howard, Ramdas, McAuliffe and Sekhon 2021.
///
/// # Errors
/// Returns [`Error::ErrorProbability`] and the errors of [`Tally::new`].
///
/// ```
/// use ascertain_stats::{Tally, rate_interval};
/// let interval = rate_interval(Tally::new(4000, 3972)?, 0.001, 0.001)?;
/// assert!(interval.low > 0.98 && interval.low < 0.987);
/// assert!(interval.high > 0.997 && interval.high < 0.999);
/// # Ok::<(), ascertain_stats::Error>(())
/// ```
pub fn rate_interval(tally: Tally, error_low: f64, error_high: f64) -> Result<Interval, Error> {
    let tally = tally.checked()?;
    let thresholds = (log_threshold(check_error(error_low)?), log_threshold(check_error(error_high)?));
    Ok(invert(tally, 0, thresholds))
}

/// A running [`rate_interval`]: the intersection of the intervals at all updates so far.
///
/// Each interval is valid at all updates at once, so the intersection of the intervals is valid too. It never grows,
/// and it may become empty. An empty intersection means that no single rate fits all trials: the rate has changed.
///
/// ```
/// use ascertain_stats::{RateSequence, Tally};
/// let mut sequence = RateSequence::new(0.025, 0.025)?;
/// sequence.update(Tally::new(100, 90)?);
/// let interval = sequence.update(Tally::new(200, 181)?);
/// assert!(interval.low > 0.8 && interval.high < 0.96);
/// // From here on every trial fails.
/// assert!(sequence.update(Tally::new(2000, 181)?).is_empty());
/// # Ok::<(), ascertain_stats::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct RateSequence {
    /// The values of `ln e` at which a rate is rejected: for the low and for the high end of the interval.
    thresholds: (f64, f64),
    interval: Interval,
}

impl RateSequence {
    /// Creates a sequence with an error probability for each bound. The lower bound is ever above the true rate with
    /// probability at most `error_low`, and the upper bound is ever below it with probability at most `error_high`.
    ///
    /// # Errors
    /// Returns [`Error::ErrorProbability`] if an error is not strictly between 0 and 1.
    pub fn new(error_low: f64, error_high: f64) -> Result<RateSequence, Error> {
        let thresholds = (log_threshold(check_error(error_low)?), log_threshold(check_error(error_high)?));
        Ok(RateSequence { thresholds, interval: Interval::ALL })
    }

    /// Updates the interval with the tally of all trials so far, and returns it. An invalid tally changes nothing.
    pub fn update(&mut self, tally: Tally) -> Interval {
        self.update_with_unknown(tally, 0)
    }

    /// Updates the interval with the tally of all trials whose outcome is known, and the number of trials whose outcome
    /// is unknown. Returns the interval.
    ///
    /// As with [`Judge::observe_unknown`](crate::Judge::observe_unknown), unknown outcomes count against both ends: as
    /// failures for the low end, as successes for the high end. Each end is therefore where the worst possible outcomes
    /// would put it, or farther out.
    pub fn update_with_unknown(&mut self, tally: Tally, unknown: u64) -> Interval {
        let all = Tally { trials: tally.trials.saturating_add(unknown), ..tally };
        if tally.checked().and(all.checked()).is_ok() {
            self.interval = self.interval.intersection(invert(tally, unknown, self.thresholds));
        }
        self.interval
    }

    /// Returns the interval after the last update.
    pub fn interval(&self) -> Interval {
        self.interval
    }
}

/// Returns the interval of a single look at this tally and this number of unknown outcomes. The thresholds are those of
/// `ln e` for the low and the high end.
fn invert(tally: Tally, unknown: u64, (threshold_low, threshold_high): (f64, f64)) -> Interval {
    let (successes, failures) = (tally.successes, tally.failures());
    let low = greatest_rejected(successes as f64, (failures + unknown) as f64, threshold_low);
    // The high end of the success rate is one minus the low end of the failure rate.
    let high = greatest_rejected(failures as f64, (successes + unknown) as f64, threshold_high).map(Rate::mirrored);
    Interval { low: low.map_or(0.0, Rate::round_down), high: high.map_or(1.0, Rate::round_up) }
}

/// Returns the greatest rate of favourable outcomes such that the e-process rejects "the true rate is at most this
/// rate". Its precision is [`STEP`]. Returns `None` if the search finds no such rate.
fn greatest_rejected(favourable: f64, against: f64, threshold: f64) -> Option<Rate> {
    if favourable == 0.0 {
        return None;
    }
    let trials = favourable + against;
    let nats = threshold + 1.0;
    // Starts at a rate that is not rejected. At the observed share no likelihood ratio is above 1. If all trials were
    // favourable, the start is so close to 1 that no ratio is noticeably above 1.
    let (start, guess) = if against > 0.0 {
        (libm::log(favourable / against), libm::sqrt(2.0 * nats * trials / favourable / against))
    } else {
        (libm::log(trials) + 40.0, 40.0 + libm::log(nats))
    };
    let limit = ((start + FURTHEST) / STEP).floor() * STEP;
    let at = |below_start: f64| Rate::from_log_odds(start - below_start);
    let surplus = |below_start: f64| Mixture::above(at(below_start)).log_e(favourable, against) - threshold;
    let search = Search { low: 0.0, value_at_low: f64::NAN, limit, guess, give_or_take: 0.1 * guess, step: STEP };
    let last_kept = last_below_zero(surplus, search);
    (last_kept < limit).then(|| at(last_kept + STEP))
}

/// Error bound for the computed log-odds of a credible interval's ends. Both ends are moved outward by this much.
const PADDING: f64 = 2e-13;

/// Returns the equal-tailed credible interval of a rate: the quantiles `error/2` and `1 − error/2` of Beta(s+1, f+1),
/// which is the posterior for a uniform prior.
///
/// Each end is rounded outward, with an error of at most 1e-12 of `min(x, 1−x)` or, if that is more, of one unit in the
/// last place of the double.
///
/// The interval describes the belief about the rate after a single look, and is not part of any error budget. Unlike a
/// [`rate_interval`](crate::rate_interval) it does not allow for repeated looks.
///
/// The method is Newton's, on the log-odds. The logarithm of a Beta's distribution function is concave on that scale,
/// so the steps approach the quantile from one side without overshooting.
///
/// # Errors
/// Returns [`Error::ErrorProbability`] and the errors of [`Tally::new`].
///
/// ```
/// use ascertain_stats::{Tally, credible_interval};
/// let interval = credible_interval(Tally::new(4000, 3972)?, 0.001)?;
/// assert!((interval.low - 0.98752632).abs() < 1e-8 && (interval.high - 0.99637692).abs() < 1e-8);
/// # Ok::<(), ascertain_stats::Error>(())
/// ```
pub fn credible_interval(tally: Tally, error: f64) -> Result<Interval, Error> {
    let tally = tally.checked()?;
    let log_tail = libm::log(check_error(error)?) - std::f64::consts::LN_2;
    let (a, b) = (tally.successes as f64 + 1.0, tally.failures() as f64 + 1.0);
    let low = Rate::from_log_odds(log_odds_of_quantile(a, b, log_tail) - PADDING);
    let high = Rate::from_log_odds(log_odds_of_quantile(b, a, log_tail) - PADDING).mirrored();
    Ok(Interval { low: low.round_down(), high: high.round_up() })
}

/// Returns the log-odds of a quantile of Beta(a, b). `log_tail` is the logarithm of the lower tail up to this quantile,
/// at most ln ½.
fn log_odds_of_quantile(a: f64, b: f64, log_tail: f64) -> f64 {
    let mut log_odds = libm::log(a / b);
    for _ in 0..200 {
        let rate = Rate::from_log_odds(log_odds);
        let tail = BetaTail { a, b, rate, excess: rate.excess(a, b) };
        let log_lower = tail.mirrored().log_upper();
        // Newton's step for the logarithm of the lower tail. The slope of this logarithm over the log-odds is the
        // reciprocal of the scaled tail.
        let change = (log_tail - (log_lower - tail.log_whole())) * libm::exp(log_lower);
        log_odds += change;
        if change.abs() <= 1e-14 * log_odds.abs().max(1.0) {
            break;
        }
    }
    log_odds
}
