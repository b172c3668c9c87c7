//! Judging a claim about a rate while its trials come in.

use crate::boundary::Boundary;
use crate::eprocess::{Mixture, log_e_holds, log_e_refuted, log_threshold};
use crate::error::{check_error, check_rate};
use crate::{Error, Tally};

/// The verdict on a claim of the form "the true rate is at least `rate`".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The claim holds, because the opposite claim is rejected.
    Holds,
    /// The claim is refuted, because the claim itself is rejected.
    Refuted,
}

impl Verdict {
    /// Returns the number of outcomes in favour of this verdict, and the number against it.
    pub(crate) fn counts(self, tally: Tally) -> (u64, u64) {
        match self {
            Verdict::Holds => (tally.successes, tally.failures()),
            Verdict::Refuted => (tally.failures(), tally.successes),
        }
    }

    /// Returns the other verdict.
    pub(crate) fn opposite(self) -> Verdict {
        match self {
            Verdict::Holds => Verdict::Refuted,
            Verdict::Refuted => Verdict::Holds,
        }
    }
}

/// A running test of "the true rate is at least `rate`", which you may look at as often as you like.
///
/// Two e-processes run side by side: [`log_e_holds`](crate::log_e_holds) and [`log_e_refuted`](crate::log_e_refuted).
/// The e-process that first reaches its threshold, `ln(1/error)`, gives the verdict. Two e-processes cannot reach their
/// thresholds at the same trial, because only one of them can be above zero. A verdict never changes.
/// [`Judge::decided_at`] returns the tally at which the verdict was reached.
///
/// After the verdict, the other e-process continues. If it rejects the verdict later, [`Judge::contradicted`] returns
/// `true`: no single rate fits all trials.
///
/// # Guarantee
///
/// If the true rate is at most `rate`, the verdict is ever *holds* with probability at most `error_holds`. If the true
/// rate is at least `rate`, the verdict is ever *refuted* with probability at most `error_refuted`. Only one of the two
/// verdicts can be wrong at any true rate, so each verdict has the full error. Trials need not be alike, but the rate
/// of each trial, given the past, must be on the same side of `rate`.
///
/// # Unknown outcomes
///
/// A trial that was cut off before its outcome was known counts against both verdicts: as a failure for *holds*, as a
/// success for *refuted*. Neither e-value is then greater than it would have been with the real outcome. The guarantee
/// therefore stays valid, and cutting trials off can never cause a verdict.
///
/// # Speed
///
/// The judge evaluates an e-process only near the boundary at which the e-process would reach its threshold. This
/// changes neither the verdict nor the trial at which it is reached. An outcome costs a few nanoseconds, or a few tens
/// in a stream that stays close to the boundary.
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
    margin: f64,
    holds: Boundary,
    refuted: Boundary,
    tally: Tally,
    unknown: u64,
    decision: Option<Decision>,
}

/// A verdict, and whether later trials contradict it.
#[derive(Clone, Debug)]
struct Decision {
    verdict: Verdict,
    tally: Tally,
    /// The boundary at which later trials reject the statement of this verdict, and so contradict it.
    opposite: Boundary,
    is_contradicted: bool,
}

impl Judge {
    /// Creates a judge of "the rate is at least `rate`". Each of the two verdicts is wrong with probability at most
    /// `error`.
    ///
    /// # Errors
    /// Returns [`Error::Rate`] or [`Error::ErrorProbability`] if an argument is not strictly between 0 and 1.
    pub fn new(rate: f64, error: f64) -> Result<Judge, Error> {
        Judge::with_errors(rate, error, error)
    }

    /// Creates a judge that wrongly returns *holds* with probability at most `error_holds`, and wrongly returns
    /// *refuted* with probability at most `error_refuted`.
    ///
    /// # Errors
    /// Fails in the cases of [`Judge::new`].
    pub fn with_errors(rate: f64, error_holds: f64, error_refuted: f64) -> Result<Judge, Error> {
        let rate = check_rate(rate)?;
        Ok(Judge::between(rate, 0.0, check_error(error_holds)?, check_error(error_refuted)?))
    }

    /// Creates a judge of "at least `rate`, give or take `margin`" that is wrong with probability at most `error`.
    ///
    /// The two verdicts are about different rates: *holds* if "at most `rate − margin`" is rejected, *refuted* if "at
    /// least `rate + margin`" is rejected. If the true rate is within the margin, either verdict is right. The judge
    /// always reaches one of them, which is the benefit of the margin. The reason is that every true rate is above
    /// `rate − margin` or below `rate + margin`, so one of the two e-processes grows without bound. Without a margin, a
    /// judge may go on for ever if the true rate is exactly `rate`.
    ///
    /// # Guarantee and the split of the error
    ///
    /// *Holds* is wrong if the true rate is at most `rate − margin`. *Refuted* is wrong if the true rate is at least
    /// `rate + margin`. At any true rate, at most one of the two is wrong. Each verdict therefore has the full `error`,
    /// and the chance of any wrong verdict is at most `error`. A confidence interval for the rate is not part of this
    /// guarantee; [`RateSequence`](crate::RateSequence) has its own errors.
    ///
    /// The bounds of the margin are the doubles `rate - margin` and `rate + margin`. If both hypotheses are rejected
    /// after one batch, either verdict is right. The result is then *holds* if the share of successes is at least
    /// `rate`, otherwise *refuted*.
    ///
    /// # Errors
    /// Returns [`Error::Rate`] or [`Error::ErrorProbability`] for invalid arguments. Returns [`Error::Margin`] if the
    /// margin is not above zero, or if a bound of the margin is not strictly between 0 and 1.
    ///
    /// ```
    /// use ascertain_stats::{Judge, Tally, Verdict};
    /// // 98 %, give or take half a percent: there will be a verdict even if the true rate is exactly 98 %.
    /// let mut judge = Judge::with_margin(0.98, 0.005, 0.001)?;
    /// assert_eq!(judge.observe_batch(Tally::new(1_000_000, 980_000)?), Some(Verdict::Holds));
    /// # Ok::<(), ascertain_stats::Error>(())
    /// ```
    pub fn with_margin(rate: f64, margin: f64, error: f64) -> Result<Judge, Error> {
        let (rate, error) = (check_rate(rate)?, check_error(error)?);
        let (low, high) = (rate - margin, rate + margin);
        // NaN fails all comparisons. A margin too small to change the rate counts as no margin.
        if !(low > 0.0 && low < rate && rate < high && high < 1.0) {
            return Err(Error::Margin { rate, margin });
        }
        Ok(Judge::between(rate, margin, error, error))
    }

    /// Creates a judge that returns *holds* if rates up to `rate - margin` are rejected, and *refuted* if rates from
    /// `rate + margin` on are rejected. Each verdict has its own error. The caller has checked the arguments.
    fn between(rate: f64, margin: f64, error_holds: f64, error_refuted: f64) -> Judge {
        let holds = Mixture::new(rate - margin, Verdict::Holds);
        let refuted = Mixture::new(rate + margin, Verdict::Refuted);
        Judge {
            rate,
            margin,
            holds: Boundary::new(holds, log_threshold(error_holds)),
            refuted: Boundary::new(refuted, log_threshold(error_refuted)),
            tally: Tally::default(),
            unknown: 0,
            decision: None,
        }
    }

    /// Counts one outcome and returns the verdict, or `None` as long as the claim is undecided. A verdict never
    /// changes.
    #[inline]
    pub fn observe(&mut self, success: bool) -> Option<Verdict> {
        self.tally.add(success);
        let (favourable, against) = self.counts(if success { Verdict::Holds } else { Verdict::Refuted });
        match &mut self.decision {
            // A success cannot cause *refuted*, and a failure cannot cause *holds*.
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

    /// Counts a batch of outcomes, looks once after it, and returns the verdict, or `None` as long as the claim is
    /// undecided. A verdict is never taken back.
    ///
    /// Use this method if only the sum of the outcomes is known. Also use it for outcomes that are exchangeable only as
    /// whole batches, such as a reshuffled sample of requests. The verdict may come later than with [`Judge::observe`].
    /// A batch with more successes than trials is invalid and gets no verdict. Count the unknown outcomes of a batch
    /// with [`Judge::observe_unknown`] before you pass the batch.
    pub fn observe_batch(&mut self, batch: Tally) -> Option<Verdict> {
        self.tally += batch;
        if (Tally { trials: self.tally.trials.saturating_add(self.unknown), ..self.tally }).checked().is_err() {
            return self.verdict();
        }
        let [holds, refuted] = [Verdict::Holds, Verdict::Refuted].map(|verdict| self.counts(verdict));
        match &mut self.decision {
            None => {
                if let Some(verdict) = self.evaluate(holds, refuted) {
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

    /// Counts a trial with an unknown outcome against both verdicts. Returns the verdict, or `None` as long as the
    /// claim is undecided. This call never changes the verdict.
    ///
    /// ```
    /// use ascertain_stats::{Judge, Verdict};
    /// let mut judge = Judge::new(0.5, 0.0005)?;
    /// judge.observe_unknown();
    /// // Fifteen straight successes would be enough without the trial that was cut off.
    /// assert!((0..15).all(|_| judge.observe(true).is_none()));
    /// # Ok::<(), ascertain_stats::Error>(())
    /// ```
    pub fn observe_unknown(&mut self) -> Option<Verdict> {
        self.unknown += 1;
        self.verdict()
    }

    /// Returns the number of outcomes in favour of a verdict, and the number against it, which includes all unknown
    /// outcomes.
    fn counts(&self, verdict: Verdict) -> (u64, u64) {
        let (favourable, against) = verdict.counts(self.tally);
        (favourable, against + self.unknown)
    }

    /// Returns the verdict at these counts. Each pair has the numbers of outcomes in favour of a verdict and against
    /// it. With a margin, "at most `rate − margin`" and "at least `rate + margin`" may be rejected at once. Then the
    /// true rate is within the margin, and either verdict is right.
    fn evaluate(&mut self, holds: (u64, u64), refuted: (u64, u64)) -> Option<Verdict> {
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

    /// Returns the verdict, or `None` as long as the claim is undecided.
    pub fn verdict(&self) -> Option<Verdict> {
        self.decision.as_ref().map(|decision| decision.verdict)
    }

    /// Returns whether the trials after the verdict contradict it: they reject the verdict, with the error allowed for
    /// the opposite verdict. No single rate then fits both the trials before the verdict and those after it. Once the
    /// result is `true`, it stays `true`.
    ///
    /// With a margin, the verdicts overlap: "above 97 %" does not contradict "below 99 %". Later trials must then
    /// reject "above 97 %" itself.
    pub fn contradicted(&self) -> bool {
        self.decision.as_ref().is_some_and(|decision| decision.is_contradicted)
    }

    /// Returns the tally of all known outcomes, including those after the verdict.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Returns the number of trials so far whose outcome is unknown.
    pub fn unknown(&self) -> u64 {
        self.unknown
    }

    /// Returns the tally at which the verdict was reached, or `None` as long as the claim is undecided.
    pub fn decided_at(&self) -> Option<Tally> {
        self.decision.as_ref().map(|decision| decision.tally)
    }

    /// Returns the rate of the claim "the true rate is at least `rate`".
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Returns the margin on either side of the rate; 0 if there is none.
    pub fn margin(&self) -> f64 {
        self.margin
    }

    /// Returns `ln e` for *holds* at the present tally, as [`log_e_holds`](crate::log_e_holds) does. Unknown outcomes
    /// count as failures.
    pub fn log_e_holds(&self) -> f64 {
        let (successes, failures) = self.counts(Verdict::Holds);
        self.holds.mixture().log_e(successes as f64, failures as f64)
    }

    /// Returns `ln e` for *refuted* at the present tally, as [`log_e_refuted`](crate::log_e_refuted) does. Unknown
    /// outcomes count as successes.
    pub fn log_e_refuted(&self) -> f64 {
        let (failures, successes) = self.counts(Verdict::Refuted);
        self.refuted.mixture().log_e(failures as f64, successes as f64)
    }

    /// Returns the boundaries at which the verdicts *holds* and *refuted* are reached, in this order.
    pub(crate) fn boundaries(&self) -> (&Boundary, &Boundary) {
        (&self.holds, &self.refuted)
    }
}

/// Returns the verdict of a [`Judge`] that looks only once, at this tally.
///
/// You may repeat the call while a count grows, with the same guarantee. Scripts that count outcomes themselves can use
/// this function instead of a [`Judge`].
///
/// # Errors
/// Returns [`Error::Rate`], [`Error::ErrorProbability`], and the errors of [`Tally::new`].
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

/// Returns the smallest number of trials after which *holds* or *refuted* is possible, if all trials have the same
/// outcome.
///
/// Returns `u64::MAX` if an argument is not strictly between 0 and 1, or if more than 2^53 trials would be needed.
///
/// ```
/// use ascertain_stats::soonest_verdict;
/// assert_eq!(soonest_verdict(0.5, 0.0005, 0.0005), 15);
/// // A few failures refute "99 %" long before any number of successes could prove it.
/// assert!(soonest_verdict(0.99, 0.001, 0.001) < 5);
/// assert!(soonest_verdict(0.99, 0.001, 1e-300) > 100);
/// ```
pub fn soonest_verdict(rate: f64, error_holds: f64, error_refuted: f64) -> u64 {
    let holds = soonest(Verdict::Holds, rate, error_holds);
    holds.min(soonest(Verdict::Refuted, rate, error_refuted))
}

/// Returns the smallest number of trials after which this verdict is possible. This number is enough only if all trials
/// are successes (for *holds*) or all are failures (for *refuted*).
///
/// Returns `u64::MAX` in the cases of [`soonest_verdict`].
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
