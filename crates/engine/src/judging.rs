//! The state of one claim while it is judged: outcomes in, a verdict and an interval out.

use ascertain_stats::{Judge, MarginJudge, RateSequence, Tally, expected_growth, soonest_verdict};

use crate::bound::{BoundTests, Seen, TrialValues};
use crate::claim::{Bound, Claim, Judging, Test};
use crate::error::Error;
use crate::experiment::{Arm, Spec};
use crate::likeness::Likeness;
use crate::outcome::{Asked, ClaimResult, Decision, Verdict};
use crate::paired::Paired;
use crate::recorded::{ClaimPath, PathRecorder};
use crate::slots::Slots;

#[derive(Clone)]
enum Rule {
    Rate(Judge),
    Margin(MarginJudge),
    /// Ties dropped; the verdict is read as faster or slower.
    Order(Judge),
    /// The answer is read from the ratio's interval.
    OrderWithin(f64),
    Exact,
}

impl Rule {
    /// The evidence for each direction, where there is evidence that grows.
    fn log_e(&self) -> Option<(f64, f64)> {
        match self {
            Rule::Rate(judge) | Rule::Order(judge) => Some((judge.log_e_holds(), judge.log_e_refuted())),
            Rule::Margin(judge) => Some((judge.log_e_holds(), judge.log_e_refuted())),
            Rule::OrderWithin(_) | Rule::Exact => None,
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Answer {
    Holds,
    Refuted,
    Same,
}

/// Why a claim is not judged any further, other than by its answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Closed {
    Unavailable(String),
    Failed(String),
    Deferred(String),
    /// Its own trials or time are used up.
    Spent,
}

#[derive(Clone)]
pub(crate) struct ClaimJudge {
    pub claim: Claim,
    asked: Asked,
    error: f64,
    precision: Option<f64>,
    tests: BoundTests,
    rule: Rule,
    answer: Option<Answer>,
    exact: bool,
    trials: u64,
    successes: u64,
    ties: u64,
    /// Outcomes since the last look, when the claim looks at sets of trials.
    unseen: Tally,
    paired: Option<Paired>,
    rate: RateSequence,
    likeness: Likeness,
    next_look: u64,
    spent_ns: u64,
    closed: Option<Closed>,
    path: Option<PathRecorder>,
}

/// How the run wants its claims judged.
pub(crate) struct Terms {
    pub error: f64,
    pub margin: Option<f64>,
    pub precision: Option<f64>,
    /// Trials are counted, not stopped.
    pub exact_trials: bool,
}

impl ClaimJudge {
    /// A claim at its start.
    pub fn new(claim: &Claim, spec: &Spec, terms: &Terms) -> Result<ClaimJudge, Error> {
        let invalid = |reason| Error::Claim { id: claim.id.clone(), reason };
        let error = terms.error;
        let half = error / 2.0;
        let rule = match (claim.judging, claim.margin.or(terms.margin)) {
            (Judging::Exact, _) => Rule::Exact,
            (Judging::Order, Some(margin)) => Rule::OrderWithin(margin),
            (Judging::Order, None) => Rule::Order(Judge::with_errors(0.5, half, half).map_err(invalid)?),
            (Judging::Rate, _) => match claim.margin {
                Some(margin) => Rule::Margin(MarginJudge::new(claim.rate, margin, error).map_err(invalid)?),
                None => Rule::Rate(Judge::new(claim.rate, error).map_err(invalid)?),
            },
        };
        let end_error = direction_error(claim, error);
        Ok(ClaimJudge {
            paired: paired_quantile(claim).map(|quantile| Paired::new(quantile, end_error, end_error)),
            rate: RateSequence::new(end_error, end_error).map_err(invalid)?,
            claim: claim.clone(),
            asked: Asked::of(claim, claim.margin.or(terms.margin), spec),
            error,
            precision: terms.precision,
            tests: BoundTests::default(),
            rule,
            answer: None,
            exact: terms.exact_trials,
            trials: 0,
            successes: 0,
            ties: 0,
            unseen: Tally::default(),
            likeness: Likeness::default(),
            next_look: 1,
            spent_ns: 0,
            closed: None,
            path: None,
        })
    }

    /// Keeps the claim's path from now on.
    pub fn keep_path(&mut self) {
        let log_threshold = -direction_error(&self.claim, self.error).ln();
        self.path = Some(PathRecorder::new(log_threshold, log_threshold));
    }

    /// Looks up the tests' arms among the lane's.
    pub fn bind(&mut self, spec: &Spec, slot_of: impl Fn(&Arm) -> usize) {
        self.tests = BoundTests::new(&self.claim.tests, spec, slot_of);
    }

    /// The lane's slots that a trial must hold for this claim.
    pub fn slots(&self) -> Slots {
        self.tests.slots
    }

    /// Takes a trial into account, if the claim is open and the trial held all of its arms.
    pub fn observe(&mut self, trial: &TrialValues, elapsed_ns: u64) {
        if !self.is_open() || !trial.held.contains(self.slots()) {
            return;
        }
        match self.tests.evaluate(trial) {
            Ok(seen) => self.count(&seen, trial.number, elapsed_ns),
            Err(error) => self.close(Closed::Failed(error.to_string())),
        }
    }

    fn count(&mut self, seen: &Seen, number: u64, elapsed_ns: u64) {
        self.trials += 1;
        self.spent_ns += elapsed_ns;
        if let (Some(paired), Some(value)) = (&mut self.paired, seen.statistic.or(seen.value)) {
            paired.push(value);
        }
        let success = (self.claim.judging != Judging::Order || !seen.tie).then_some(seen.success);
        match success {
            None => self.ties += 1,
            Some(success) => {
                self.successes += u64::from(success);
                self.likeness.push(success);
                self.judge(success);
            }
        }
        if self.look_is_due() {
            self.look();
        }
        if let Some(path) = &mut self.path {
            path.count(number, success, seen.statistic);
            if self.unseen.trials == 0 {
                path.look(self.answer.is_some(), || self.rule.log_e());
            }
        }
        if self.claim.max_trials.is_some_and(|most| self.trials >= most)
            || self.claim.max_time.is_some_and(|most| u128::from(self.spent_ns) >= most.as_nanos())
        {
            self.close(Closed::Spent);
        }
    }

    fn judge(&mut self, success: bool) {
        self.unseen.add(success);
        if self.unseen.trials < self.claim.look_every {
            return;
        }
        let batch = std::mem::take(&mut self.unseen);
        let verdict = match &mut self.rule {
            Rule::Rate(judge) | Rule::Order(judge) if batch.trials == 1 => judge.observe(success),
            Rule::Rate(judge) | Rule::Order(judge) => judge.observe_batch(batch),
            Rule::Margin(judge) => judge.observe_batch(batch),
            Rule::Exact => Some(match success {
                true => ascertain_stats::Verdict::Holds,
                false => ascertain_stats::Verdict::Refuted,
            }),
            Rule::OrderWithin(_) => None,
        };
        if let (Some(verdict), None) = (verdict, self.answer) {
            self.answer = Some(match verdict {
                ascertain_stats::Verdict::Holds => Answer::Holds,
                ascertain_stats::Verdict::Refuted => Answer::Refuted,
            });
            self.look();
        }
    }

    /// Intervals are costly beside a trial of a microsecond: they are brought up to date at every trial
    /// of the first hundred when something waits for them, and else each time a twentieth is added.
    fn look_is_due(&self) -> bool {
        let live = self.precision.is_some() || matches!(self.rule, Rule::OrderWithin(_));
        self.trials >= self.next_look || (live && self.trials <= 100)
    }

    /// Brings the intervals up to date.
    pub fn look(&mut self) {
        self.next_look = self.trials + 1 + self.trials / 20;
        self.rate.update(self.seen());
        let Some(paired) = &mut self.paired else { return };
        paired.look();
        if let (Rule::OrderWithin(margin), None, false) = (&self.rule, self.answer, paired.is_empty()) {
            let (low, high) = paired.interval();
            let (least, most) = (1.0 / (1.0 + margin), 1.0 + margin);
            self.answer = match () {
                () if low > most => Some(Answer::Holds),
                () if high < least => Some(Answer::Refuted),
                () if low >= least && high <= most => Some(Answer::Same),
                () => None,
            };
        }
    }

    /// The outcomes that have been looked at.
    fn seen(&self) -> Tally {
        let (trials, successes) = (self.trials - self.ties, self.successes);
        Tally { trials: trials - self.unseen.trials, successes: successes - self.unseen.successes }
    }

    /// Whether more trials could still change what is said of the claim.
    pub fn is_open(&self) -> bool {
        if self.closed.is_some() {
            return false;
        }
        let precise = match (&self.paired, self.precision) {
            (Some(paired), Some(wanted)) => paired.precision() <= wanted,
            _ => true,
        };
        self.exact || self.answer.is_none() || !precise
    }

    pub fn close(&mut self, why: Closed) {
        self.closed.get_or_insert(why);
    }

    /// Closes the claim because an arm's answer is wrong. Its times were then no times of the work that
    /// it should do, so that an answer drawn from them does not stand.
    pub fn discredit(&mut self, reason: String) {
        self.answer = None;
        self.closed = Some(Closed::Failed(reason));
    }

    /// The fewest trials that a verdict needs.
    pub fn soonest_verdict(&self) -> u64 {
        let (rate, error) = (self.claim.rate, self.error);
        let trials = match &self.rule {
            Rule::Rate(_) => soonest_verdict(rate, error, error),
            // Refuting is soonest at the upper end, upholding at the lower.
            Rule::Margin(judge) => {
                let ends = [rate - judge.margin(), rate + judge.margin()];
                ends.map(|end| soonest_verdict(end, error, error)).into_iter().min().unwrap_or(1)
            }
            Rule::Order(_) | Rule::OrderWithin(_) => soonest_verdict(0.5, error / 2.0, error / 2.0),
            Rule::Exact => 1,
        };
        trials.checked_next_multiple_of(self.claim.look_every.max(1)).unwrap_or(u64::MAX)
    }

    /// The log-evidence that a trial is expected to add, in nats.
    pub fn expected_growth(&self) -> f64 {
        let decided = (self.trials - self.ties) as f64;
        let rate = (self.successes as f64 + 0.5) / (decided + 1.0);
        let growth = match &self.rule {
            Rule::Rate(_) | Rule::Margin(_) => expected_growth(self.claim.rate, rate),
            Rule::Order(_) | Rule::OrderWithin(_) => expected_growth(0.5, rate),
            Rule::Exact => f64::MAX,
        };
        // What so many trials say of the growth may be off by about a nat among all of them: a claim
        // that began unluckily gets another chance before one that hardly moves has all of the time.
        growth + 1.0 / (self.trials as f64 + 1.0)
    }

    /// The claim's evidence and bounds in a few words, for progress.
    pub fn headline(&self) -> String {
        let rate = self.successes as f64 / (self.trials - self.ties).max(1) as f64;
        let estimate = self.paired.as_ref().and_then(Paired::estimate);
        let ratio = estimate.map(|ratio| format!(", {}x", crate::unit::significant(ratio)));
        format!("{} trials, {:.1} %{}", self.trials, rate * 100.0, ratio.unwrap_or_default())
    }

    /// What became of the claim.
    pub fn result(&mut self) -> ClaimResult {
        if self.trials > 0 {
            self.look();
        }
        let seen = self.seen();
        let interval = self.rate.interval();
        let finite = |value: f64| value.is_finite().then_some(value);
        let paired = self.paired.as_ref().filter(|paired| !paired.is_empty());
        let (ratio_low, ratio_high) = paired.map_or((None, None), |paired| {
            let (low, high) = paired.interval();
            (finite(low), finite(high))
        });
        let (log_e_holds, log_e_refuted) = self.rule.log_e().unzip();
        let is_rate = !matches!(self.rule, Rule::Exact) && seen.trials > 0;
        let mut unlike = self.likeness.signs();
        let ratio = self.paired.as_ref().and_then(Paired::estimate).and_then(finite);
        // The interval is what all looks so far allow. Trials that drift leave it behind, and it then says nothing.
        let strays = ratio.is_some_and(|ratio| {
            ratio_low.is_some_and(|low| ratio < low) || ratio_high.is_some_and(|high| ratio > high)
        });
        let (ratio_low, ratio_high) = if strays { (None, None) } else { (ratio_low, ratio_high) };
        if strays {
            unlike.insert(0, "trials are not alike: their ratio left the interval that earlier trials allow".into());
        }
        if self.paired.as_ref().is_some_and(Paired::is_empty) {
            unlike.insert(0, "trials are not alike: no one ratio fits all of them".into());
        }
        if interval.is_empty() {
            unlike.insert(0, "trials are not alike: no one rate fits all of them".into());
        }
        let (verdict, reason) = self.verdict();
        ClaimResult {
            id: self.claim.id.clone(),
            says: self.claim.says.clone(),
            source: self.claim.source.clone(),
            source_value: self.claim.source_value.clone(),
            experiment: self.claim.experiment.clone(),
            asked: self.asked.clone(),
            verdict,
            reason,
            decision: (self.claim.judging == Judging::Order).then(|| self.decision()),
            trials: seen.trials + self.ties,
            successes: seen.successes,
            ties: self.ties,
            rate: (seen.trials > 0).then(|| seen.successes as f64 / seen.trials as f64),
            rate_low: is_rate.then_some(interval.low).filter(|_| !interval.is_empty()),
            rate_high: is_rate.then_some(interval.high).filter(|_| !interval.is_empty()),
            rate_claimed: self.claim.rate,
            error: self.error,
            ratio,
            ratio_low,
            ratio_high,
            log_e_holds,
            log_e_refuted,
            unlike,
        }
    }

    /// How the claim came to its [result](Self::result), as far as its trials are judged; empty when it
    /// was not asked for.
    pub fn take_path(&mut self) -> ClaimPath {
        let seen = self.seen().trials + self.ties;
        let path = self.path.take();
        path.map(|path| path.finish(seen, self.answer.is_some(), || self.rule.log_e())).unwrap_or_default()
    }

    /// A latched answer stands whatever closed the claim later.
    fn verdict(&self) -> (Verdict, Option<String>) {
        match (self.answer, &self.closed) {
            (Some(Answer::Holds | Answer::Same), _) => (Verdict::Holds, None),
            (Some(Answer::Refuted), _) => (Verdict::Refuted, None),
            (None, Some(Closed::Unavailable(reason))) => (Verdict::Unavailable, Some(reason.clone())),
            (None, Some(Closed::Failed(reason))) => (Verdict::Failed, Some(reason.clone())),
            (None, Some(Closed::Deferred(reason))) => (Verdict::Deferred, Some(reason.clone())),
            (None, None | Some(Closed::Spent)) => (Verdict::Undecided, self.cut_off()),
        }
    }

    /// Trials that are not judged, since the set that they belong to was not finished.
    fn cut_off(&self) -> Option<String> {
        let (cut, set) = (self.unseen.trials, self.claim.look_every);
        (cut > 0).then(|| format!("a set of {set} trials is judged at its end, and the last one ended after {cut}"))
    }

    fn decision(&self) -> Decision {
        match self.answer {
            Some(Answer::Holds) => Decision::Faster,
            Some(Answer::Refuted) => Decision::Slower,
            Some(Answer::Same) => Decision::Same,
            None => Decision::Undecided,
        }
    }
}

/// The error of a verdict in one direction. A rate can't be on the wrong side of both, so that each has
/// all of it; a comparison asks two questions.
fn direction_error(claim: &Claim, error: f64) -> f64 {
    if claim.judging == Judging::Order { error / 2.0 } else { error }
}

/// The quantile of the paired statistic that a claim speaks of, when it compares two arms: "at least x
/// in a share q of the trials" says that the (1-q)-quantile is at least x. Where there is no chance in it, a
/// predicate has a figure too: the one value of its metric.
fn paired_quantile(claim: &Claim) -> Option<f64> {
    if let (Judging::Exact, [Test::Predicate { .. }]) = (claim.judging, claim.tests.as_slice()) {
        return Some(0.5);
    }
    let [Test::Versus { bound, .. }] = claim.tests.as_slice() else { return None };
    Some(match bound {
        _ if claim.judging != Judging::Rate => 0.5,
        Bound::AtLeast(_) => 1.0 - claim.rate,
        Bound::AtMost(_) => claim.rate,
        Bound::Within(..) => 0.5,
    })
}

#[cfg(test)]
mod tests;
