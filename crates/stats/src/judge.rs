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

impl Verdict {
    /// On which side of the claimed rate this says that the true one is.
    pub(crate) fn direction(self) -> Direction {
        match self {
            Verdict::Holds => Direction::Above,
            Verdict::Refuted => Direction::Below,
        }
    }

    /// The other verdict.
    pub(crate) fn opposite(self) -> Verdict {
        match self {
            Verdict::Holds => Verdict::Refuted,
            Verdict::Refuted => Verdict::Holds,
        }
    }
}

/// A running test of "the true rate is at least `rate`", to be looked at as often as one likes.
///
/// Two e-processes run side by side, [`log_e_holds`](crate::log_e_holds) and [`log_e_refuted`](crate::log_e_refuted).
/// The first that reaches `ln(1/error)` of its direction decides, and a verdict latches: it is not taken back, and
/// [`Judge::decided_at`] is its tally. Both cannot reach it at once, as only one of them can be above zero. The other
/// one goes on: where it rejects later what the verdict says, [`Judge::contradicted`] is true, for the trials are not
/// alike.
///
/// # Guarantee
///
/// If the true rate is at most `rate`, the verdict is ever *holds* with probability at most `error_holds`; if it is at
/// least `rate`, ever *refuted* with probability at most `error_refuted`. No true rate (but `rate` itself, where only
/// *refuted* would be wrong) falls under both, so each direction has the full error. Trials need not be alike: it
/// suffices that the rate of each, given the past, is on that side of `rate`.
///
/// # Unknown outcomes
///
/// A trial that was cut off before its outcome was known counts against both directions: as a failure for *holds*, as a
/// success for *refuted*. Whatever the outcome would have been, neither e-value is greater than it would have been
/// then, so that the guarantee stays; and cutting trials off can bring no verdict about.
///
/// # Speed
///
/// The judge keeps its boundary and evaluates the e-processes only where it may be reached, which changes no verdict
/// and no trial at which it falls. An outcome costs a few nanoseconds, and a few tens in a stream that keeps close to
/// the boundary.
///
/// ```
/// use ascertain_stats::{Judge, Verdict};
/// let mut judge = Judge::new(0.5, 0.0005)?;
/// let verdict = (1..).find_map(|trial| Some((trial, judge.observe(true)?)));
/// assert_eq!(verdict, Some((15, Verdict::Holds)));
/// # Ok::<(), ascertain_stats::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Judge {
    rate: f64,
    holds: Boundary,
    refuted: Boundary,
    tally: Tally,
    unknown: u64,
    decision: Option<Decision>,
}

/// A verdict and what became of it.
#[derive(Clone, Debug)]
struct Decision {
    verdict: Verdict,
    tally: Tally,
    /// Where what the verdict says is rejected.
    opposite: Boundary,
    is_contradicted: bool,
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
            unknown: 0,
            decision: None,
        }
    }

    /// Counts one outcome. The verdict so far, which latches.
    #[inline]
    pub fn observe(&mut self, success: bool) -> Option<Verdict> {
        self.tally.add(success);
        let (favourable, against) = self.counts(if success { Verdict::Holds } else { Verdict::Refuted });
        match &mut self.decision {
            // A success cannot refute and a failure cannot uphold.
            None if success && self.holds.is_reached(favourable, against) => self.decide(Verdict::Holds),
            None if !success && self.refuted.is_reached(favourable, against) => self.decide(Verdict::Refuted),
            None => {}
            Some(decision) if success == (decision.verdict == Verdict::Refuted) && !decision.is_contradicted => {
                decision.is_contradicted = decision.opposite.is_reached(favourable, against);
            }
            Some(_) => {}
        }
        self.verdict()
    }

    /// Counts a batch of outcomes and looks once, after it. The verdict so far, which latches.
    ///
    /// For outcomes that are exchangeable only as whole batches, such as a reshuffled sample of requests, or where only
    /// their sum is known. May decide later than [`Judge::observe`] would have. A batch with more successes than trials
    /// is no tally and gets no verdict. What is unknown of a batch is counted before it, by [`Judge::observe_unknown`].
    pub fn observe_batch(&mut self, batch: Tally) -> Option<Verdict> {
        self.tally += batch;
        if (Tally { trials: self.tally.trials.saturating_add(self.unknown), ..self.tally }).checked().is_err() {
            return self.verdict();
        }
        let [holds, refuted] = [Verdict::Holds, Verdict::Refuted].map(|verdict| self.counts(verdict));
        match &mut self.decision {
            None => {
                if let Some(verdict) = self.look(holds, refuted) {
                    self.decide(verdict);
                }
            }
            Some(decision) => {
                let (favourable, against) = if decision.verdict == Verdict::Holds { refuted } else { holds };
                decision.is_contradicted |= decision.opposite.is_reached(favourable, against);
            }
        }
        self.verdict()
    }

    /// Counts a trial whose outcome is not known, against both directions. The verdict so far, which this can't change.
    ///
    /// ```
    /// use ascertain_stats::{Judge, Verdict};
    /// let mut judge = Judge::new(0.5, 0.0005)?;
    /// judge.observe_unknown();
    /// // Fifteen straight successes would do, if it were not for the trial that was cut off.
    /// assert!((0..15).all(|_| judge.observe(true).is_none()));
    /// # Ok::<(), ascertain_stats::Error>(())
    /// ```
    pub fn observe_unknown(&mut self) -> Option<Verdict> {
        self.unknown += 1;
        self.verdict()
    }

    /// The outcomes for and against a verdict.
    fn counts(&self, verdict: Verdict) -> (u64, u64) {
        let (favourable, against) = verdict.direction().counts(self.tally);
        (favourable, against + self.unknown)
    }

    /// The verdict at these counts. With a margin both ends may be rejected at once: then either verdict is right.
    fn look(&mut self, holds: (u64, u64), refuted: (u64, u64)) -> Option<Verdict> {
        let is_above = || self.tally.successes as f64 / self.tally.trials as f64 >= self.rate;
        match (self.holds.is_reached(holds.0, holds.1), self.refuted.is_reached(refuted.0, refuted.1)) {
            (false, false) => None,
            (true, true) => Some(if is_above() { Verdict::Holds } else { Verdict::Refuted }),
            (true, false) => Some(Verdict::Holds),
            (false, true) => Some(Verdict::Refuted),
        }
    }

    #[cold]
    fn decide(&mut self, verdict: Verdict) {
        let (own, other) = match verdict {
            Verdict::Holds => (&self.holds, &self.refuted),
            Verdict::Refuted => (&self.refuted, &self.holds),
        };
        let opposite = other.at(own.mixture().rate().mirrored());
        self.decision = Some(Decision { verdict, tally: self.tally, opposite, is_contradicted: false });
    }

    /// The verdict, once there is one.
    pub fn verdict(&self) -> Option<Verdict> {
        self.decision.as_ref().map(|decision| decision.verdict)
    }

    /// Whether there is a verdict that later trials contradict, and always will: what it rejects has since been
    /// confirmed at the other direction's error. The trials are not alike, and no one rate fits all of them.
    ///
    /// With a margin that takes more than the other end: "above 97 %" is not contradicted by "below 99 %".
    pub fn contradicted(&self) -> bool {
        self.decision.as_ref().is_some_and(|decision| decision.is_contradicted)
    }

    /// Every known outcome so far, also after the verdict.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// The trials so far whose outcome is not known.
    pub fn unknown(&self) -> u64 {
        self.unknown
    }

    /// The tally at which the verdict fell.
    pub fn decided_at(&self) -> Option<Tally> {
        self.decision.as_ref().map(|decision| decision.tally)
    }

    /// The rate that the claim states.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// `ln e` for *holds* at the present tally, as [`log_e_holds`](crate::log_e_holds), with what is unknown as
    /// failures.
    pub fn log_e_holds(&self) -> f64 {
        let (successes, failures) = self.counts(Verdict::Holds);
        self.holds.mixture().log_e(successes as f64, failures as f64)
    }

    /// `ln e` for *refuted* at the present tally, as [`log_e_refuted`](crate::log_e_refuted), with what is unknown as
    /// successes.
    pub fn log_e_refuted(&self) -> f64 {
        let (failures, successes) = self.counts(Verdict::Refuted);
        self.refuted.mixture().log_e(failures as f64, successes as f64)
    }

    /// Where *holds* and where *refuted* is reached.
    pub(crate) fn boundaries(&self) -> (&Boundary, &Boundary) {
        (&self.holds, &self.refuted)
    }
}

/// The verdict at this tally: one look at what a [`Judge`] would say there, if it had none before.
///
/// As it may be repeated while a count grows, with the same guarantee, this is the test for scripts that count
/// themselves.
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
/// assert_eq!(soonest_verdict(0.5, 0.0005, 0.0005), 15);
/// // A few failures refute "99 %" long before any number of successes proves it.
/// assert!(soonest_verdict(0.99, 0.001, 0.001) < 5);
/// assert!(soonest_verdict(0.99, 0.001, 1e-300) > 100);
/// ```
pub fn soonest_verdict(rate: f64, error_holds: f64, error_refuted: f64) -> u64 {
    let holds = soonest(Verdict::Holds, rate, error_holds);
    holds.min(soonest(Verdict::Refuted, rate, error_refuted))
}

/// The fewest trials after which this verdict is possible: that many successes for *holds*, failures for *refuted*.
///
/// `u64::MAX` as for [`soonest_verdict`].
///
/// ```
/// use ascertain_stats::{Verdict, soonest};
/// assert_eq!(soonest(Verdict::Refuted, 0.99, 0.001), 3);
/// assert_eq!(soonest(Verdict::Holds, 0.99, 0.001), 731);
/// ```
pub fn soonest(verdict: Verdict, rate: f64, error: f64) -> u64 {
    let Ok(judge) = Judge::new(rate, error) else { return u64::MAX };
    let boundary = match verdict {
        Verdict::Holds => &judge.holds,
        Verdict::Refuted => &judge.refuted,
    };
    let soonest = boundary.least_reaching();
    if soonest > Tally::MAX_TRIALS { u64::MAX } else { soonest }
}
