//! The trials that a claim needs for a verdict, and its own limits.

use ascertain_stats as stats;

use super::{ClaimJudge, ClosedReason};
use crate::claim::Judging;
use crate::finding::{AtError, EndedBy, Least, Reason};
use crate::judging::derived::DerivedValues;
use crate::judging::rule::Outcomes;
use crate::outcome::Verdict;

const VERDICTS: [stats::Verdict; 2] = [stats::Verdict::Holds, stats::Verdict::Refuted];

impl ClaimJudge {
    /// Closes the claim if it has reached its own limit of trials or time.
    pub(super) fn close_if_exhausted(&mut self) {
        if self.claim.max_trials.is_some_and(|most| self.measured >= most)
            || self.most_judged.is_some_and(|most| self.trials >= most)
            || self.claim.max_time.is_some_and(|most| u128::from(self.elapsed_ns) >= most.as_nanos())
        {
            self.close(ClosedReason::BudgetExhausted);
        }
    }

    /// Makes the claim end after this many judged trials.
    pub fn end_after(&mut self, trials: u64) {
        self.most_judged = Some(trials);
    }

    /// Returns the number of trials for each judged outcome. It is 1, unless the claim is about an expression.
    fn trials_per_outcome(&self) -> u64 {
        self.tests.derived.as_ref().and_then(DerivedValues::trials_per_value).unwrap_or(1).max(1)
    }

    /// Returns the smallest number of trials that can give any verdict.
    pub fn soonest_verdict(&self) -> u64 {
        self.soonest_of_any(self.error)
    }

    /// Returns the smallest number of trials for a verdict at the higher error `easier`, if it is smaller than
    /// [`soonest_verdict`](Self::soonest_verdict).
    pub fn soonest_at_easier(&self) -> Option<AtError> {
        let at_error = self.easier.map(|(error, own)| AtError { error, trials: self.soonest_of_any(own) });
        at_error.filter(|at| at.trials < self.soonest_verdict())
    }

    fn soonest_of_any(&self, error: f64) -> u64 {
        let [holds, refuted] = VERDICTS.map(|verdict| self.soonest(verdict, error));
        holds.min(refuted)
    }

    /// Returns the smallest number of measured trials that can give this verdict with this error probability. The number
    /// of outcomes is a multiple of [`Claim::look_every`], because outcomes are evaluated in sets of that size.
    fn soonest(&self, verdict: stats::Verdict, error: f64) -> u64 {
        let trials = self.rule.soonest(verdict, error);
        let outcomes = trials.checked_next_multiple_of(self.claim.look_every.max(1));
        outcomes.and_then(|outcomes| outcomes.checked_mul(self.trials_per_outcome())).unwrap_or(u64::MAX)
    }

    /// Returns the smallest effort, counted from the start, that can give the verdict that the trials so far support.
    /// Before the first trial, this is the verdict "holds". `trial_ns` is the duration of a trial in nanoseconds. If
    /// it is known, the result also has the total duration.
    pub fn least(&self, trial_ns: Option<f64>) -> Least {
        let Outcomes { known, unknown } = self.seen();
        let is_upheld = known.successes as f64 >= self.claim.rate * (known.trials + unknown) as f64;
        let (verdict, said) = match is_upheld {
            true => (stats::Verdict::Holds, Verdict::Holds),
            false => (stats::Verdict::Refuted, Verdict::Refuted),
        };
        let trials = self.soonest(verdict, self.error);
        let at_error = self.easier.map(|(error, own)| AtError { error, trials: self.soonest(verdict, own) });
        Least {
            verdict: (self.asked.judging != Judging::Order).then_some(said),
            trials,
            takes_ns: trial_ns.map(|trial_ns| trial_ns * trials as f64),
            at_error: at_error.filter(|at| at.trials < trials),
        }
    }

    /// Returns the smallest effort that can give a verdict and an answer about every tail, as [`least`](Self::least)
    /// does for the verdict alone.
    pub fn least_with_tails(&self, trial_ns: Option<f64>) -> Least {
        let least = self.least(trial_ns);
        match self.tails.soonest() {
            trials if trials <= least.trials => least,
            trials => {
                let takes_ns = trial_ns.map(|trial_ns| trial_ns * trials as f64);
                Least { trials, takes_ns, at_error: None, ..least }
            }
        }
    }

    /// Returns the reason "too early" if there were too few trials for a verdict.
    pub(super) fn too_early(&self) -> Option<Reason> {
        let (timed, whole_ns) = self.timed;
        let least = self.least((timed > 0).then(|| whole_ns / timed as f64));
        let most_trials = self.most_trials.filter(|most| *most < least.trials);
        (self.measured > 0 && self.measured < least.trials).then_some(Reason::TooEarly {
            least,
            most_trials,
            is_interrupted: false,
            is_shared: false,
            ended_by: EndedBy::Limit,
            run_ns: None,
        })
    }

    /// Returns by how much one more trial is expected to increase the logarithm of the e-value, in nats.
    pub fn expected_growth(&self) -> f64 {
        let decided = (self.trials - self.ties - self.unknown) as f64;
        let growth = self.rule.expected_growth((self.successes as f64 + 0.5) / (decided + 1.0));
        // The estimate may be wrong by about one nat, divided by the number of trials. This much is added, so that a
        // claim whose first trials were unfavourable by chance gets more trials. Otherwise a claim with little growth
        // might take all the time.
        (growth + 1.0 / (self.trials as f64 + 1.0)) / self.trials_per_outcome() as f64
    }
}
