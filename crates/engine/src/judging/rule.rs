//! How outcomes become an answer.

use ascertain_stats::{self as stats, Judge, MarginJudge, Tally};

use crate::claim::{Claim, Judging};

#[derive(Clone)]
pub(super) enum Rule {
    Rate(Judge),
    Margin(MarginJudge),
    /// Ties dropped; the verdict is read as faster or slower.
    Order(Judge),
    /// The answer is read from the ratio's interval, by this margin.
    OrderWithin(f64),
    /// The first outcome is the answer.
    Exact,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Answer {
    Holds,
    Refuted,
    Same,
}

impl Rule {
    /// The rule of a claim; `run_margin` is what comparisons without a margin of their own have.
    pub fn new(claim: &Claim, error: f64, run_margin: Option<f64>) -> Result<Rule, stats::Error> {
        Ok(match (claim.judging, claim.margin) {
            (Judging::Exact, _) => Rule::Exact,
            (Judging::Order, margin) => match margin.or(run_margin) {
                Some(margin) => Rule::OrderWithin(margin),
                None => Rule::Order(Judge::with_errors(0.5, error / 2.0, error / 2.0)?),
            },
            (Judging::Rate, Some(margin)) => Rule::Margin(MarginJudge::new(claim.rate, margin, error)?),
            (Judging::Rate, None) => Rule::Rate(Judge::new(claim.rate, error)?),
        })
    }

    /// Takes outcomes in that are looked at together. The answer, once they give one.
    pub fn observe(&mut self, outcomes: Tally) -> Option<Answer> {
        let verdict = match self {
            Rule::Rate(judge) | Rule::Order(judge) if outcomes.trials == 1 => judge.observe(outcomes.successes == 1),
            Rule::Rate(judge) | Rule::Order(judge) => judge.observe_batch(outcomes),
            Rule::Margin(judge) => judge.observe_batch(outcomes),
            Rule::OrderWithin(_) => None,
            Rule::Exact if outcomes.failures() == 0 => Some(stats::Verdict::Holds),
            Rule::Exact => Some(stats::Verdict::Refuted),
        };
        verdict.map(|verdict| match verdict {
            stats::Verdict::Holds => Answer::Holds,
            stats::Verdict::Refuted => Answer::Refuted,
        })
    }

    /// What the ratio's interval answers, where the rule asks it.
    pub fn read(&self, (low, high): (f64, f64)) -> Option<Answer> {
        let Rule::OrderWithin(margin) = self else { return None };
        let (least, most) = (1.0 / (1.0 + margin), 1.0 + margin);
        match () {
            () if low > most => Some(Answer::Holds),
            () if high < least => Some(Answer::Refuted),
            () if low >= least && high <= most => Some(Answer::Same),
            () => None,
        }
    }

    /// The evidence for each direction, as logarithms, where there is evidence that grows.
    pub fn log_e(&self) -> Option<(f64, f64)> {
        match self {
            Rule::Rate(judge) | Rule::Order(judge) => Some((judge.log_e_holds(), judge.log_e_refuted())),
            Rule::Margin(judge) => Some((judge.log_e_holds(), judge.log_e_refuted())),
            Rule::OrderWithin(_) | Rule::Exact => None,
        }
    }

    /// The fewest trials that an answer needs, looked at one by one.
    pub fn soonest_answer(&self, error: f64) -> u64 {
        match self {
            Rule::Rate(judge) => stats::soonest_verdict(judge.rate(), error, error),
            // Refuting is soonest at the upper end, upholding at the lower.
            Rule::Margin(judge) => {
                let ends = [judge.rate() - judge.margin(), judge.rate() + judge.margin()];
                ends.map(|end| stats::soonest_verdict(end, error, error)).into_iter().min().unwrap_or(1)
            }
            Rule::Order(_) | Rule::OrderWithin(_) => stats::soonest_verdict(0.5, error / 2.0, error / 2.0),
            Rule::Exact => 1,
        }
    }

    /// The log-evidence that a trial is expected to add, in nats, where trials succeed at this rate.
    pub fn expected_growth(&self, true_rate: f64) -> f64 {
        match self {
            Rule::Rate(judge) => stats::expected_growth(judge.rate(), true_rate),
            Rule::Margin(judge) => stats::expected_growth(judge.rate(), true_rate),
            Rule::Order(_) | Rule::OrderWithin(_) => stats::expected_growth(0.5, true_rate),
            Rule::Exact => f64::MAX,
        }
    }
}
