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
    /// The least rate.
    pub low: f64,
    /// The greatest rate.
    pub high: f64,
}

impl Interval {
    /// Every rate.
    pub const ALL: Interval = Interval { low: 0.0, high: 1.0 };

    /// Whether no rate is left: where intervals of one sequence have nothing in common, its trials are not alike.
    pub fn is_empty(&self) -> bool {
        self.low > self.high
    }

    /// Whether `rate` is in it.
    pub fn contains(&self, rate: f64) -> bool {
        self.low <= rate && rate <= self.high
    }

    /// What both have in common.
    pub fn intersection(&self, other: Interval) -> Interval {
        Interval { low: self.low.max(other.low), high: self.high.min(other.high) }
    }
}

/// The log-odds of an end are found to this much, to the outside: relative to `min(p, 1−p)` the end is as good.
const STEP: f64 = 1.0 / (1u64 << 43) as f64;

/// No rate with log-odds further out is looked at.
const FURTHEST: f64 = 700.0;

/// The rates that one look at this tally does not reject: outside of it the e-process has reached its threshold.
///
/// Below `low` the e-process against "at most p" is at least `1/error_low` ([`log_e_holds`](crate::log_e_holds)), above
/// `high` the one against "at least p" at least `1/error_high`. So a [`Judge`](crate::Judge) with these errors says
/// *holds* at exactly the rates below the interval and *refuted* at those above it: verdict and interval are one event.
/// Both ends are rounded outward, by less than 1e-12 of `min(p, 1−p)` or, if that is more, to the next double. An end
/// that nothing bounds is 0 or 1.
///
/// The e-value falls as the rate that it speaks against rises towards the observed share (checked on a grid in the
/// tests), so that the rates which are not rejected are an interval.
///
/// # Guarantee
///
/// The chance that the true rate is *ever* below `low` is at most `error_low`, and above `high`, `error_high`, however
/// often one looks. Howard, Ramdas, McAuliffe and Sekhon 2021.
///
/// # Errors
/// [`Error::ErrorProbability`] and those of [`Tally::new`].
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

/// A running [`rate_interval`]: the intersection of those at every look so far.
///
/// As each is valid at all looks at once, so is what they have in common. It never grows, and may become empty: then no
/// one rate fits all of the trials, they are not alike.
///
/// ```
/// use ascertain_stats::{RateSequence, Tally};
/// let mut sequence = RateSequence::new(0.025, 0.025)?;
/// sequence.update(Tally::new(100, 90)?);
/// let interval = sequence.update(Tally::new(200, 181)?);
/// assert!(interval.low > 0.8 && interval.high < 0.96);
/// // All goes wrong from there on.
/// assert!(sequence.update(Tally::new(2000, 181)?).is_empty());
/// # Ok::<(), ascertain_stats::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct RateSequence {
    /// Log-thresholds of the low and the high end.
    thresholds: (f64, f64),
    interval: Interval,
}

impl RateSequence {
    /// A sequence whose low end is ever wrong with probability at most `error_low`, its high end `error_high`.
    ///
    /// # Errors
    /// [`Error::ErrorProbability`], where one is not strictly between 0 and 1.
    pub fn new(error_low: f64, error_high: f64) -> Result<RateSequence, Error> {
        let thresholds = (log_threshold(check_error(error_low)?), log_threshold(check_error(error_high)?));
        Ok(RateSequence { thresholds, interval: Interval::ALL })
    }

    /// Looks at a tally of all the trials so far. One that cannot be a tally says nothing.
    pub fn update(&mut self, tally: Tally) -> Interval {
        self.update_with_unknown(tally, 0)
    }

    /// Looks at a tally of all the trials so far whose outcome is known, and a count of those whose outcome is not.
    ///
    /// As with [`Judge::observe_unknown`](crate::Judge::observe_unknown), what is unknown counts against either end: as
    /// failures for the low one, as successes for the high one. So each end is where the worst of the possible outcomes
    /// would have it, or farther out.
    pub fn update_with_unknown(&mut self, tally: Tally, unknown: u64) -> Interval {
        let all = Tally { trials: tally.trials.saturating_add(unknown), ..tally };
        if tally.checked().and(all.checked()).is_ok() {
            self.interval = self.interval.intersection(invert(tally, unknown, self.thresholds));
        }
        self.interval
    }

    /// The interval as of the last look.
    pub fn interval(&self) -> Interval {
        self.interval
    }
}

/// Both ends at one look.
fn invert(tally: Tally, unknown: u64, (threshold_low, threshold_high): (f64, f64)) -> Interval {
    let (successes, failures) = (tally.successes, tally.failures());
    let low = greatest_rejected(successes as f64, (failures + unknown) as f64, threshold_low);
    // The high end is the low end of the rate of failures.
    let high = greatest_rejected(failures as f64, (successes + unknown) as f64, threshold_high).map(Rate::mirrored);
    Interval { low: low.map_or(0.0, Rate::round_down), high: high.map_or(1.0, Rate::round_up) }
}

/// The greatest rate of favourable outcomes, up to [`STEP`], that the e-process against "at most" it rejects.
fn greatest_rejected(favourable: f64, against: f64, threshold: f64) -> Option<Rate> {
    if favourable == 0.0 {
        return None;
    }
    let trials = favourable + against;
    let nats = threshold + 1.0;
    // Start where nothing is rejected: at the observed share no likelihood ratio is above 1, and where all trials were
    // favourable at a rate so near 1 that none is noticeably.
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

/// By how much the log-odds of an end are moved outward: more than they can be wrong by.
const PADDING: f64 = 2e-13;

/// The equal-tailed credible interval of a rate: the quantiles `error/2` and `1 − error/2` of Beta(s+1, f+1).
///
/// That is the posterior of a uniform prior. Each end is rounded outward, with an error of at most 1e-12 of
/// `min(x, 1−x)` or, if that is more, of one unit in the last place of the double.
///
/// It says what to believe of the rate after this one look, and is outside of any error budget: unlike a
/// [`rate_interval`](crate::rate_interval) it does not allow for looking again and again.
///
/// Newton's method on the log-odds, on which the logarithm of a Beta's distribution function is concave: its steps
/// approach the quantile from one side without overshooting.
///
/// # Errors
/// [`Error::ErrorProbability`] and those of [`Tally::new`].
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

/// The log-odds of the quantile of Beta(a, b) whose lower tail has this logarithm, at most ln ½.
fn log_odds_of_quantile(a: f64, b: f64, log_tail: f64) -> f64 {
    let mut log_odds = libm::log(a / b);
    for _ in 0..200 {
        let rate = Rate::from_log_odds(log_odds);
        let tail = BetaTail { a, b, rate, excess: rate.excess(a, b) };
        let log_lower = tail.mirrored().log_upper();
        // The scaled tail is also the reciprocal of the slope of its logarithm.
        let change = (log_tail - (log_lower - tail.log_whole())) * libm::exp(log_lower);
        log_odds += change;
        if change.abs() <= 1e-14 * log_odds.abs().max(1.0) {
            break;
        }
    }
    log_odds
}
