//! Judging a claim about a rate while its trials come in.

use crate::boundary::Boundary;
use crate::eprocess::{Direction, Mixture, log_e_holds, log_e_refuted, log_threshold};
use crate::error::{check_error, check_rate};
use crate::{Error, Tally};

/// What the evidence says of a claim "the true rate is at least so much".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The claim holds: the opposite is rejected.
    Holds,
    /// The claim is refuted: it is rejected itself.
    Refuted,
}

/// A running test of "the true rate is at least `rate`", to be looked at as often as one likes.
///
/// Two e-processes run side by side, [`log_e_holds`](crate::log_e_holds) and [`log_e_refuted`](crate::log_e_refuted). The
/// first that reaches `ln(1/error)` of its direction decides, and a verdict latches: later trials are counted but change
/// nothing. Both cannot reach it at once, as only one of them can be above zero.
///
/// # Guarantee
///
/// If the true rate is at most `rate`, the verdict is ever *holds* with probability at most `error_holds`; if it is at
/// least `rate`, ever *refuted* with probability at most `error_refuted`. No true rate (but `rate` itself, where only
/// *refuted* would be wrong) falls under both, so each direction has the full error. Trials need not be alike: it suffices
/// that the rate of each, given the past, is on that side of `rate`.
///
/// # Speed
///
/// The judge keeps its boundary and evaluates the e-processes only where it may be reached, which changes no verdict and no
/// trial at which it falls. An outcome costs a few nanoseconds, and a few tens in a stream that keeps close to the boundary.
///
/// ```
/// use ascertain_stats::{Judge, Verdict};
/// let mut judge = Judge::new(0.5, 0.0005)?;
/// let verdict = (1..).find_map(|trial| Some((trial, judge.observe(true)?)));
/// assert_eq!(verdict, Some((16, Verdict::Holds)));
/// # Ok::<(), ascertain_stats::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Judge {
    rate: f64,
    holds: Boundary,
    refuted: Boundary,
    tally: Tally,
    decision: Option<(Verdict, Tally)>,
}

impl Judge {
    /// A judge of "at least `rate`" that is wrong with probability at most `error`, in both directions.
    ///
    /// # Errors
    /// [`Error::Rate`] and [`Error::ErrorProbability`], where one is not strictly between 0 and 1.
    pub fn new(rate: f64, error: f64) -> Result<Judge, Error> {
        Judge::with_errors(rate, error, error)
    }

    /// A judge that says *holds* wrongly with probability at most `error_holds`, *refuted* with `error_refuted`.
    ///
    /// # Errors
    /// As [`Judge::new`].
    pub fn with_errors(rate: f64, error_holds: f64, error_refuted: f64) -> Result<Judge, Error> {
        let rate = check_rate(rate)?;
        Ok(Judge::between(rate, rate, rate, check_error(error_holds)?, check_error(error_refuted)?))
    }

    /// A judge that says *holds* where `low` is rejected from below and *refuted* where `high` is from above.
    pub(crate) fn between(rate: f64, low: f64, high: f64, error_holds: f64, error_refuted: f64) -> Judge {
        let holds = Mixture::new(low, Direction::Above);
        let refuted = Mixture::new(high, Direction::Below);
        Judge {
            rate,
            holds: Boundary::new(holds, log_threshold(error_holds)),
            refuted: Boundary::new(refuted, log_threshold(error_refuted)),
            tally: Tally::default(),
            decision: None,
        }
    }

    /// Counts one outcome. The verdict so far, which latches.
    #[inline]
    pub fn observe(&mut self, success: bool) -> Option<Verdict> {
        self.tally.add(success);
        if self.decision.is_some() {
            return self.verdict();
        }
        let Tally { trials, successes } = self.tally;
        let failures = trials - successes;
        // A success cannot refute and a failure cannot uphold.
        if success {
            if self.holds.is_reached(successes, failures) {
                self.decision = Some((Verdict::Holds, self.tally));
            }
        } else if self.refuted.is_reached(failures, successes) {
            self.decision = Some((Verdict::Refuted, self.tally));
        }
        self.verdict()
    }

    /// Counts a batch of outcomes and looks once, after it. The verdict so far, which latches.
    ///
    /// For outcomes that are exchangeable only as whole batches, such as a reshuffled sample of requests, or where only
    /// their sum is known. May decide later than [`Judge::observe`] would have. A batch with more successes than trials is
    /// no tally and gets no verdict.
    pub fn observe_batch(&mut self, batch: Tally) -> Option<Verdict> {
        self.tally += batch;
        if self.decision.is_none() {
            self.decision = self.look().map(|verdict| (verdict, self.tally));
        }
        self.verdict()
    }

    /// The verdict at this tally. With a margin both ends may be rejected at once: then either verdict is right.
    fn look(&mut self) -> Option<Verdict> {
        self.tally.checked().ok()?;
        let (successes, failures) = (self.tally.successes, self.tally.failures());
        let holds = self.holds.is_reached(successes, failures);
        let refuted = self.refuted.is_reached(failures, successes);
        let is_above = || successes as f64 / self.tally.trials as f64 >= self.rate;
        match (holds, refuted) {
            (false, false) => None,
            (true, true) => Some(if is_above() { Verdict::Holds } else { Verdict::Refuted }),
            (true, false) => Some(Verdict::Holds),
            (false, true) => Some(Verdict::Refuted),
        }
    }

    /// The verdict, once there is one.
    pub fn verdict(&self) -> Option<Verdict> {
        self.decision.map(|(verdict, _)| verdict)
    }

    /// Everything counted so far, also after the verdict.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// The tally at which the verdict fell.
    pub fn decided_at(&self) -> Option<Tally> {
        self.decision.map(|(_, tally)| tally)
    }

    /// The rate that the claim states.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// `ln e` for *holds* at the present tally, as [`log_e_holds`](crate::log_e_holds).
    pub fn log_e_holds(&self) -> f64 {
        let (successes, failures) = Direction::Above.counts(self.tally);
        self.holds.mixture().log_e(successes as f64, failures as f64)
    }

    /// `ln e` for *refuted* at the present tally, as [`log_e_refuted`](crate::log_e_refuted).
    pub fn log_e_refuted(&self) -> f64 {
        let (failures, successes) = Direction::Below.counts(self.tally);
        self.refuted.mixture().log_e(failures as f64, successes as f64)
    }

    /// Where *holds* and where *refuted* is reached.
    pub(crate) fn boundaries(&self) -> (&Boundary, &Boundary) {
        (&self.holds, &self.refuted)
    }
}

/// The verdict at this tally: one look at what a [`Judge`] would say there, if it had none before.
///
/// As it may be repeated while a count grows, with the same guarantee, this is the test for scripts that count themselves.
///
/// # Errors
/// [`Error::Rate`], [`Error::ErrorProbability`], and those of [`Tally::new`].
///
/// ```
/// use ascertain_stats::{Tally, Verdict, verdict};
/// assert_eq!(verdict(Tally::new(4000, 3972)?, 0.98, 0.001)?, Some(Verdict::Holds));
/// assert_eq!(verdict(Tally::new(40, 40)?, 0.98, 0.001)?, None);
/// # Ok::<(), ascertain_stats::Error>(())
/// ```
pub fn verdict(tally: Tally, rate: f64, error: f64) -> Result<Option<Verdict>, Error> {
    let (tally, rate, threshold) = (tally.checked()?, check_rate(rate)?, log_threshold(check_error(error)?));
    if log_e_holds(tally, rate) >= threshold {
        return Ok(Some(Verdict::Holds));
    }
    Ok((log_e_refuted(tally, rate) >= threshold).then_some(Verdict::Refuted))
}

/// The fewest trials after which any verdict is possible: that many outcomes of one kind, from scratch.
///
/// `u64::MAX` where an argument is not strictly between 0 and 1, and where it would take more than 2^53 trials.
///
/// ```
/// use ascertain_stats::soonest_verdict;
/// assert_eq!(soonest_verdict(0.5, 0.0005, 0.0005), 16);
/// // A few failures refute "99 %" long before any number of successes proves it.
/// assert!(soonest_verdict(0.99, 0.001, 0.001) < 5);
/// assert!(soonest_verdict(0.99, 0.001, 1e-300) > 100);
/// ```
pub fn soonest_verdict(rate: f64, error_holds: f64, error_refuted: f64) -> u64 {
    let Ok(judge) = Judge::with_errors(rate, error_holds, error_refuted) else {
        return u64::MAX;
    };
    let soonest = judge.holds.least_reaching().min(judge.refuted.least_reaching());
    if soonest > Tally::MAX_TRIALS { u64::MAX } else { soonest }
}
