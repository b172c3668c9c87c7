//! Outcomes in.

use ascertain_stats::{RateSequence, Tally};

use super::rule::{Answer, Outcomes, Rule};
use super::{ClaimJudge, Closed, Terms};
use crate::bound::{BoundTests, Seen, TrialValues};
use crate::claim::{Claim, Judging, Test};
use crate::error::Error;
use crate::experiment::{Arm, Spec};
use crate::finding::Reason;
use crate::likeness::Likeness;
use crate::outcome::{Asked, Decided};
use crate::paired::Paired;
use crate::recorded::PathRecorder;
use crate::slots::Slots;
use crate::values::Bounds;

impl ClaimJudge {
    /// A claim at its start.
    pub fn new(claim: &Claim, spec: &Spec, terms: &Terms) -> Result<ClaimJudge, Error> {
        let invalid = |reason| Error::Claim { id: claim.id.clone(), reason };
        let error = terms.error;
        let end_error = direction_error(claim, error);
        let asked = Asked::of(claim, claim.margin.or(terms.margin), spec);
        // Where there is no chance in it, a predicate has a figure too: the one value of its metric.
        let is_value = matches!((claim.judging, claim.tests.as_slice()), (Judging::Exact, [Test::Predicate { .. }]));
        let quantile = asked.quantile(claim.rate).or(is_value.then_some(0.5));
        Ok(ClaimJudge {
            rule: Rule::new(claim, terms).map_err(invalid)?,
            paired: quantile.map(|quantile| Paired::new(quantile, end_error, end_error)),
            rate: RateSequence::new(end_error, end_error).map_err(invalid)?,
            claim: claim.clone(),
            asked,
            error,
            precision: terms.precision,
            tests: BoundTests::default(),
            answer: None,
            exact_trials: terms.exact_trials,
            trials: 0,
            successes: 0,
            ties: 0,
            unknown: 0,
            has_met_limit: false,
            stopped_ties: 0,
            unseen: Outcomes::default(),
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
            // Nothing had been learnt that a verdict could hang on.
            Ok(seen) if trial.says_nothing && seen.success.is_none() => {}
            Ok(seen) => self.count(&seen, trial, elapsed_ns),
            Err(error) => self.close(Closed::For(error.reason(None))),
        }
    }

    fn count(&mut self, seen: &Seen, trial: &TrialValues, elapsed_ns: u64) {
        self.trials += 1;
        self.spent_ns += elapsed_ns;
        if let (Some(paired), Some(value)) = (&mut self.paired, seen.statistic.or(seen.value)) {
            paired.push(value);
        }
        let is_order = self.claim.judging == Judging::Order;
        let is_tie = is_order && seen.tie;
        // Whoever interrupts a pair chooses how large its difference seems: no coin's outcome given that size.
        let is_known =
            !(is_order && trial.is_interrupted && seen.statistic.is_some_and(|ratio| ratio.value().is_none()));
        let success = seen.success.filter(|_| is_known);
        match success {
            _ if is_tie => {
                self.ties += 1;
                self.stopped_ties += u64::from(seen.statistic.is_some_and(|ratio| ratio.value().is_none()));
            }
            None => {
                self.unknown += 1;
                self.has_met_limit |= !trial.is_interrupted;
            }
            Some(success) => {
                self.successes += u64::from(success);
                self.likeness.push(success);
            }
        }
        self.likeness.end_trial(self.tests.candidate_is_last(trial));
        if !is_tie {
            self.judge(success, seen.statistic);
        }
        if self.look_is_due() {
            self.look();
        }
        if let Some(path) = &mut self.path {
            path.count(trial.number, success.filter(|_| !is_tie), seen.statistic);
            if self.unseen.trials() == 0 {
                path.look(self.answer.is_some(), || self.rule.log_e());
            }
        }
        if self.claim.max_trials.is_some_and(|most| self.trials >= most)
            || self.claim.max_time.is_some_and(|most| u128::from(self.spent_ns) >= most.as_nanos())
        {
            self.close(Closed::Spent);
        }
    }

    fn judge(&mut self, success: Option<bool>, ratio: Option<Bounds>) {
        match success {
            Some(success) => self.unseen.known.add(success),
            None => self.unseen.unknown += 1,
        }
        if self.unseen.trials() < self.claim.look_every {
            return;
        }
        let answer = self.rule.observe(std::mem::take(&mut self.unseen), ratio);
        if let (Some(answer), None) = (answer, self.answer) {
            self.decide(answer);
            self.look();
        }
    }

    /// The first answer is the one that stands, with the trials that gave it.
    fn decide(&mut self, answer: Answer) {
        let Outcomes { known, unknown } = self.seen();
        let (trials, successes) = (known.trials + unknown + self.ties, known.successes);
        self.answer = Some((answer, Decided { trials, successes, ties: self.ties, unknown }));
    }

    /// Intervals are costly beside a trial of a microsecond: they are brought up to date at every trial
    /// of the first hundred when something waits for them, and else each time a twentieth is added.
    fn look_is_due(&self) -> bool {
        let live = self.precision.is_some() || matches!(self.rule, Rule::OrderWithin(..));
        self.trials >= self.next_look || (live && self.trials <= 100)
    }

    /// Brings the intervals up to date.
    pub fn look(&mut self) {
        self.next_look = self.trials + 1 + self.trials / 20;
        let Outcomes { known, unknown } = self.seen();
        self.rate.update_with_unknown(known, unknown);
        let Some(paired) = &mut self.paired else { return };
        paired.look();
        if self.answer.is_none()
            && !paired.is_empty()
            && let Some(answer) = self.rule.read(paired.interval())
        {
            self.decide(answer);
        }
    }

    /// The outcomes that have been looked at, ties aside.
    pub(super) fn seen(&self) -> Outcomes {
        let known = Tally { trials: self.trials - self.ties - self.unknown, successes: self.successes };
        let Outcomes { known: unseen, unknown } = self.unseen;
        Outcomes {
            known: Tally { trials: known.trials - unseen.trials, successes: known.successes - unseen.successes },
            unknown: self.unknown - unknown,
        }
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
        self.exact_trials || self.answer.is_none() || !precise
    }

    /// Closes the claim, unless it is closed already. An answer stands.
    pub fn close(&mut self, why: Closed) {
        self.closed.get_or_insert(why);
    }

    /// Closes the claim because an arm's answer is wrong. Its times were then no times of the work that
    /// it should do, so that an answer drawn from them does not stand.
    pub fn discredit(&mut self, reason: Reason) {
        self.answer = None;
        self.closed = Some(Closed::For(reason));
    }

    /// The fewest trials that a verdict needs.
    pub fn soonest_verdict(&self) -> u64 {
        let trials = self.rule.soonest_answer(self.error);
        trials.checked_next_multiple_of(self.claim.look_every.max(1)).unwrap_or(u64::MAX)
    }

    /// The log-evidence that a trial is expected to add, in nats.
    pub fn expected_growth(&self) -> f64 {
        let decided = (self.trials - self.ties - self.unknown) as f64;
        let growth = self.rule.expected_growth((self.successes as f64 + 0.5) / (decided + 1.0));
        // What so many trials say of the growth may be off by about a nat among all of them: a claim
        // that began unluckily gets another chance before one that hardly moves has all of the time.
        growth + 1.0 / (self.trials as f64 + 1.0)
    }
}

/// The error of a verdict in one direction. A rate can't be on the wrong side of both, so that each has
/// all of it; a comparison asks two questions.
fn direction_error(claim: &Claim, error: f64) -> f64 {
    if claim.judging == Judging::Order { error / 2.0 } else { error }
}
