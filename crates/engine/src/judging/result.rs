//! A verdict and an interval out.

use super::rule::{Answer, Outcomes, Rule};
use super::{ClaimJudge, Closed};
use crate::claim::{Judging, Scale};
use crate::finding::{Estimated, Reason, Unlike};
use crate::outcome::{AskedTest, ClaimResult, Decision, Gate, Verdict};
use crate::paired::Paired;
use crate::recorded::ClaimPath;
use crate::unit::significant;
use crate::values::Bounds;

/// The quantile of the paired statistic, and its interval as far as it is known.
struct Estimate {
    value: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    /// Whether the value left the interval, which then says nothing.
    strays: bool,
}

impl ClaimJudge {
    /// How the claim stands, in a few words, for progress.
    pub fn headline(&self) -> String {
        let rate = self.successes as f64 / (self.trials - self.ties - self.unknown).max(1) as f64;
        let estimate = self.paired.as_ref().and_then(Paired::estimate).and_then(Bounds::estimate);
        let estimate = estimate.map(|value| format!(", {}", self.shown(value)));
        format!("{} trials, {:.1} %{}", self.trials, rate * 100.0, estimate.unwrap_or_default())
    }

    /// A value of the paired statistic for people: `8.000x`, or of a difference or an only metric `5.000 ms`.
    fn shown(&self, value: f64) -> String {
        match self.asked.tests.as_slice() {
            [AskedTest::Versus { scale: Scale::Ratio, .. }] => format!("{}x", significant(value)),
            [AskedTest::Versus { measure, .. } | AskedTest::Predicate { measure: Some(measure), .. }] => {
                measure.unit.human(value)
            }
            _ => significant(value),
        }
    }

    /// What became of the claim.
    pub fn result(&mut self) -> ClaimResult {
        if self.trials > 0 {
            self.look();
        }
        let Outcomes { known, unknown } = self.seen();
        let is_rate = !matches!(self.rule, Rule::Exact) && known.trials > 0;
        // What is left open is no success.
        let counted = (known.trials + unknown) as f64;
        let rate = (known.trials > 0).then(|| known.successes as f64 / counted);
        let rates = Some(self.rate.interval()).filter(|rates| is_rate && !rates.is_empty());
        let rate_strays = rates.zip(rate).is_some_and(|(rates, rate)| rate < rates.low || rate > rates.high);
        let rates = rates.filter(|_| !rate_strays);
        let estimate = self.estimate();
        let (log_e_holds, log_e_refuted) = self.rule.log_e().unzip();
        let (verdict, reasons) = self.verdict();
        ClaimResult {
            id: self.claim.id.clone(),
            says: self.claim.says.clone(),
            source: self.claim.source.clone(),
            source_value: self.claim.source_value.clone(),
            experiment: self.claim.experiment.clone(),
            asked: self.asked.clone(),
            verdict,
            reasons,
            decision: (self.claim.judging == Judging::Order).then(|| self.decision()),
            trials: known.trials + unknown + self.ties,
            successes: known.successes,
            ties: self.ties,
            unknown,
            decided: self.answer.map(|(_, decided)| decided),
            basis: self.standing_answer().and(self.rule.basis()),
            interferes: self.claim.judging == Judging::Order && self.likeness.interference().is_some(),
            rate,
            rate_low: rates.map(|rates| rates.low),
            rate_high: rates.map(|rates| rates.high),
            rate_claimed: self.claim.rate,
            error: self.error,
            ratio: estimate.value,
            ratio_low: estimate.low,
            ratio_high: estimate.high,
            log_e_holds,
            log_e_refuted,
            unlike: self.unlike(rate_strays, estimate.strays),
        }
    }

    fn estimate(&self) -> Estimate {
        let finite = |value: f64| value.is_finite().then_some(value);
        let value = self.paired.as_ref().and_then(Paired::estimate).and_then(Bounds::estimate).and_then(finite);
        let interval = self.paired.as_ref().filter(|paired| !paired.is_empty()).map(Paired::interval);
        let (low, high) = interval.map_or((None, None), |(low, high)| (finite(low), finite(high)));
        // The interval is what all looks so far allow. Trials that drift leave it behind.
        let strays =
            value.is_some_and(|value| low.is_some_and(|low| value < low) || high.is_some_and(|high| value > high));
        let (low, high) = if strays { (None, None) } else { (low, high) };
        Estimate { value, low, high, strays }
    }

    /// Signs that the trials are not alike.
    fn unlike(&self, rate_strays: bool, estimate_strays: bool) -> Vec<Unlike> {
        let of = match self.asked.tests.as_slice() {
            [AskedTest::Versus { scale: Scale::Difference, .. }] => Estimated::Difference,
            _ => Estimated::Ratio,
        };
        let fits_none = self.paired.as_ref().is_some_and(Paired::is_empty);
        let lost = [
            self.rate.interval().is_empty().then_some(Unlike::NoneFits { of: Estimated::Rate }),
            rate_strays.then_some(Unlike::Left { of: Estimated::Rate }),
            fits_none.then_some(Unlike::NoneFits { of }),
            estimate_strays.then_some(Unlike::Left { of }),
        ];
        lost.into_iter().flatten().chain(self.likeness.signs()).collect()
    }

    /// How the claim came to its [result](Self::result), as far as its trials are judged; empty when it
    /// was not asked for.
    pub fn take_path(&mut self) -> ClaimPath {
        let seen = self.seen().trials() + self.ties;
        let path = self.path.take();
        path.map(|path| path.finish(seen, self.answer.is_some(), || self.rule.log_e())).unwrap_or_default()
    }

    /// The answer, whatever closed the claim later, unless later trials contradict it: then they are not alike, and there
    /// is none.
    fn standing_answer(&self) -> Option<Answer> {
        let (answer, _) = self.answer?;
        (!self.rule.contradicts(answer, self.seen().known, self.paired.as_ref())).then_some(answer)
    }

    fn verdict(&self) -> (Verdict, Vec<Reason>) {
        match (self.standing_answer(), &self.closed) {
            (Some(Answer::Holds | Answer::Same | Answer::Passes(_)), _) => (Verdict::Holds, vec![]),
            (Some(Answer::Refuted), _) => (Verdict::Refuted, vec![]),
            (None, Some(Closed::For(reason))) => (reason.verdict(), vec![reason.clone()]),
            (None, None | Some(Closed::Spent)) => {
                let reasons = match self.withdrawn() {
                    Some(withdrawn) => vec![withdrawn],
                    None => self.left_open().into_iter().chain(self.unfinished_set()).collect(),
                };
                (Verdict::Undecided, reasons)
            }
        }
    }

    /// Why an answer was taken back.
    fn withdrawn(&self) -> Option<Reason> {
        let (answer, decided) = self.answer?;
        let verdict = if answer == Answer::Refuted { Verdict::Refuted } else { Verdict::Holds };
        Some(Reason::Withdrawn { verdict, decision: self.decision_of(answer), trials: decided.trials })
    }

    /// What was cut off may be why there is no answer.
    fn left_open(&self) -> Option<Reason> {
        let all = self.trials;
        if self.stopped_ties > 0 && self.unknown == 0 {
            return Some(Reason::BothStopped { pairs: self.stopped_ties, all });
        }
        let (trials, has_met_limit) = (self.unknown, self.has_met_limit);
        (trials > 0).then_some(Reason::LeftOpen { trials, all, has_met_limit })
    }

    /// Trials that are not judged, since the set that they belong to was not finished.
    fn unfinished_set(&self) -> Option<Reason> {
        let measured = self.unseen.trials();
        (measured > 0).then_some(Reason::UnfinishedSet { trials: self.claim.look_every, measured })
    }

    fn decision(&self) -> Decision {
        self.standing_answer().and_then(|answer| self.decision_of(answer)).unwrap_or(Decision::Undecided)
    }

    /// The answer to a comparison.
    fn decision_of(&self, answer: Answer) -> Option<Decision> {
        (self.claim.judging == Judging::Order).then_some(match answer {
            Answer::Holds => Decision::Faster,
            Answer::Refuted => Decision::Slower,
            Answer::Same => Decision::Same,
            Answer::Passes(Gate::Slower) => Decision::NotSlower,
            Answer::Passes(Gate::Faster) => Decision::NotFaster,
        })
    }
}
