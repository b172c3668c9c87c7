//! The confidence sequence that belongs to Robbins' criterion.

use crate::csm::log_level;
use crate::error::check_error;
use crate::rate::Rate;
use crate::{Error, Interval, Tally};

/// No rate with log-odds further out is looked at.
const FURTHEST: f64 = 700.0;

/// The log-odds of an end are found to this much, to the outside.
const STEP: f64 = 1e-12;

/// The rates that the confidence sequence method does not reject at this tally: where [`log_level`] is above `ln error`.
///
/// Outside of it [`csm_verdict`](crate::csm_verdict) says *holds* (below) or *refuted* (above): verdict and interval are one
/// event. Ends are rounded outward; one that nothing bounds is 0 or 1.
///
/// # Guarantee
///
/// The chance that the true rate is *ever* outside is at most `error`, both ends together and however often one looks
/// (Lai, *On Confidence Sequences*, 1976).
///
/// # Errors
/// [`Error::ErrorProbability`] and those of [`Tally::new`].
///
/// ```
/// use ascertain_stats::{Tally, csm_interval};
/// let interval = csm_interval(Tally::new(2967, 0)?, 1e-9 / 3.0)?;
/// assert!(interval.low == 0.0 && interval.high < 0.01);
/// # Ok::<(), ascertain_stats::Error>(())
/// ```
pub fn csm_interval(tally: Tally, error: f64) -> Result<Interval, Error> {
    let tally = tally.checked()?;
    let log_error = libm::log(check_error(error)?).next_down();
    if tally.trials == 0 {
        return Ok(Interval::ALL);
    }
    // Half a trial of each kind more: inside of the interval, and not at 0 or 1.
    let start = libm::log((tally.successes as f64 + 0.5) / (tally.failures() as f64 + 0.5));
    let is_kept = |log_odds: f64| log_level(tally, Rate::from_log_odds(log_odds).success) > log_error;
    let edge = |towards: f64| {
        let mut kept = start;
        let mut rejected = start + towards;
        while is_kept(rejected) {
            kept = rejected;
            rejected = start + 2.0 * (rejected - start);
            if rejected.abs() > FURTHEST {
                return None;
            }
        }
        while (rejected - kept).abs() > STEP * kept.abs().max(1.0) {
            let middle = 0.5 * (kept + rejected);
            *(if is_kept(middle) { &mut kept } else { &mut rejected }) = middle;
        }
        Some(Rate::from_log_odds(rejected))
    };
    Ok(Interval {
        low: if tally.successes == 0 { 0.0 } else { edge(-1.0).map_or(0.0, Rate::round_down) },
        high: if tally.failures() == 0 { 1.0 } else { edge(1.0).map_or(1.0, Rate::round_up) },
    })
}
