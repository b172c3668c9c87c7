//! Judging a claim about a rate with a margin, which always ends.

use crate::error::{check_error, check_rate};
use crate::{Error, Judge};
use std::ops::{Deref, DerefMut};

/// A running test of "the true rate is at least `rate`", give or take a `margin`.
///
/// A [`Judge`] whose two directions have rates of their own: *holds* when "at most `rate − margin`" is rejected,
/// *refuted* when "at least `rate + margin`" is. Everything else is the judge's, which this dereferences to. Where the
/// true rate is within the margin either verdict is right, and one comes: as no rate is on the wrong side of both, one
/// of the e-processes grows without bound. That is what the margin buys; a plain judge at its own rate may go on for
/// ever.
///
/// # Guarantee and the split of the error
///
/// A verdict is wrong where it says *holds* and the true rate is at most `rate − margin`, or *refuted* and it is at
/// least `rate + margin`. No true rate is both, so each direction has the full `error` and the chance of any wrong
/// verdict is at most `error`. (A union bound, such as a third of the error for each of two thresholds and for an
/// interval, is needed only where an interval is read off the same budget. [`RateSequence`](crate::RateSequence) has
/// errors of its own.)
///
/// Both ends are the doubles `rate - margin` and `rate + margin`. Where one batch rejects both, either verdict is
/// right, and *holds* is given if the share of successes is at least `rate`.
///
/// ```
/// use ascertain_stats::{MarginJudge, Tally, Verdict};
/// // 98 %, give or take half a percent: the verdict comes, though the claim may be true to the last digit.
/// let mut judge = MarginJudge::new(0.98, 0.005, 0.001)?;
/// assert_eq!(judge.observe_batch(Tally::new(1_000_000, 980_000)?), Some(Verdict::Holds));
/// # Ok::<(), ascertain_stats::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct MarginJudge {
    judge: Judge,
    margin: f64,
}

impl MarginJudge {
    /// A judge of "at least `rate`, give or take `margin`" that is wrong with probability at most `error`.
    ///
    /// # Errors
    /// [`Error::Rate`], [`Error::ErrorProbability`], and [`Error::Margin`] where the margin is not above zero or an end
    /// is not strictly between 0 and 1.
    pub fn new(rate: f64, margin: f64, error: f64) -> Result<MarginJudge, Error> {
        check_rate(rate)?;
        check_error(error)?;
        let (low, high) = (rate - margin, rate + margin);
        // NaN is in no range. A margin too small to change the rate is none.
        if !(low > 0.0 && low < rate && rate < high && high < 1.0) {
            return Err(Error::Margin { rate, margin });
        }
        Ok(MarginJudge { judge: Judge::between(rate, low, high, error, error), margin })
    }

    /// The margin to either side of the rate.
    pub fn margin(&self) -> f64 {
        self.margin
    }
}

impl Deref for MarginJudge {
    type Target = Judge;

    fn deref(&self) -> &Judge {
        &self.judge
    }
}

impl DerefMut for MarginJudge {
    fn deref_mut(&mut self) -> &mut Judge {
        &mut self.judge
    }
}
