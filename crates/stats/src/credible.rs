//! The equal-tailed Bayesian interval for a rate.

use crate::error::check_error;
use crate::incomplete_beta::BetaTail;
use crate::rate::Rate;
use crate::{Error, Interval, Tally};

/// By how much the log-odds of an end are moved outward: more than they can be wrong by.
const PADDING: f64 = 2e-13;

/// The equal-tailed credible interval of a rate: the quantiles `error/2` and `1 − error/2` of Beta(s+1, f+1).
///
/// That is the posterior of a uniform prior. Each end is rounded outward, with an error of at most 1e-12 of `min(x, 1−x)` or,
/// if that is more, of one unit in the last place of the double.
///
/// It says what to believe of the rate after this one look, and is outside of any error budget: unlike a
/// [`rate_interval`](crate::rate_interval) it does not allow for looking again and again.
///
/// Newton's method on the log-odds, on which the logarithm of a Beta's distribution function is concave: its steps approach
/// the quantile from one side without overshooting.
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
