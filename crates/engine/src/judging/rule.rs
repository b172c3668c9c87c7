//! How outcomes become an answer: the sequential tests, and the interval of the paired statistic that some read it
//! from.

use ascertain_stats::{self as stats, Judge, MarginJudge, OrderJudge, Tally, quantile_ranks};

use super::JudgeTerms;
use crate::claim::{Bound, Claim, Judging};
use crate::outcome::{Basis, Gate};
use crate::values::{Bounds, Sorted};

#[derive(Clone)]
pub(super) enum Rule {
    Rate(Judge),
    Margin(MarginJudge),
    /// Ties dropped; the verdict is read as faster or slower.
    Order(Box<OrderJudge>),
    /// The answer is read from the ratio's interval, by this margin; what gates may need one end of it alone.
    OrderWithin(f64, Option<Gate>),
    /// The first outcome is the answer.
    Exact,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Answer {
    Holds,
    Refuted,
    Same,
    /// Not what the gate would fail for, and no more was asked.
    Passes(Gate),
}

impl Answer {
    /// The ratios of which it is true, where it is by a margin.
    fn ratios(self, margin: f64) -> Bound {
        let (least, most) = (1.0 / (1.0 + margin), 1.0 + margin);
        match self {
            // By more than the margin.
            Answer::Holds => Bound::AtLeast(most.next_up()),
            Answer::Refuted => Bound::AtMost(least.next_down()),
            Answer::Same => Bound::Within(least, most),
            Answer::Passes(Gate::Slower) => Bound::AtLeast(least),
            Answer::Passes(Gate::Faster) => Bound::AtMost(most),
        }
    }
}

/// What one trial, or a set that is looked at together, says.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Outcomes {
    /// Of those whose outcome is known.
    pub known: Tally,
    pub unknown: u64,
}

impl Outcomes {
    pub fn trials(&self) -> u64 {
        self.known.trials + self.unknown
    }
}

impl Rule {
    /// The rule of a claim in a run; comparisons without a margin of their own have the run's.
    pub fn new(claim: &Claim, terms: &JudgeTerms) -> Result<Rule, stats::Error> {
        let error = terms.error;
        Ok(match (claim.judging, claim.margin) {
            (Judging::Exact, _) => Rule::Exact,
            (Judging::Order, margin) => match margin.or(terms.margin) {
                Some(margin) => Rule::OrderWithin(margin, terms.gate),
                None => Rule::Order(Box::new(OrderJudge::new(error / 2.0, error / 2.0)?)),
            },
            (Judging::Rate, Some(margin)) => Rule::Margin(MarginJudge::new(claim.rate, margin, error)?),
            (Judging::Rate, None) => Rule::Rate(Judge::new(claim.rate, error)?),
        })
    }

    /// Takes in outcomes that are looked at together, and the ratio if it is of one pair. The answer, once they give
    /// one.
    pub fn observe(&mut self, outcomes: Outcomes, ratio: Option<Bounds>) -> Option<Answer> {
        let Outcomes { known, unknown } = outcomes;
        let verdict = match self {
            Rule::Rate(judge) => observe(judge, outcomes),
            Rule::Margin(judge) => observe(judge, outcomes),
            Rule::Order(judge) if unknown > 0 => judge.observe_unknown(),
            Rule::Order(judge) => judge.observe(ratio.map_or(0.0, log_ratio)),
            Rule::OrderWithin(..) => None,
            Rule::Exact if unknown > 0 => None,
            Rule::Exact if known.failures() == 0 => Some(stats::Verdict::Holds),
            Rule::Exact => Some(stats::Verdict::Refuted),
        };
        verdict.map(|verdict| match verdict {
            stats::Verdict::Holds => Answer::Holds,
            stats::Verdict::Refuted => Answer::Refuted,
        })
    }

    /// What the ratio's interval answers, where the rule asks it.
    pub fn read(&self, (low, high): (f64, f64)) -> Option<Answer> {
        let Rule::OrderWithin(margin, gate) = *self else { return None };
        let answers = [Answer::Same, Answer::Holds, Answer::Refuted].into_iter().chain(gate.map(Answer::Passes));
        let interval = Bounds { low, high };
        answers.into_iter().find(|answer| interval.keeps_to(answer.ratios(margin)) == Some(true))
    }

    /// Returns whether later trials contradict an answer: the other answer crossed its threshold as well, or the share
    /// of all trials is on the other side, where trials that were cut off count against the answer. An answer from the
    /// ratio's interval is contradicted if the median of all trials lies elsewhere, whatever the trials that were cut
    /// off would have shown.
    pub fn contradicts(&self, answer: Answer, outcomes: Outcomes, paired: Option<&Paired>) -> bool {
        let trials = outcomes.trials().max(1) as f64;
        let least = outcomes.known.successes as f64 / trials;
        let most = (outcomes.known.successes + outcomes.unknown) as f64 / trials;
        let is_beyond = |rate: f64, margin: f64| match answer {
            Answer::Holds => least < rate - margin,
            _ => most > rate + margin,
        };
        match self {
            Rule::Rate(judge) => judge.contradicted() || is_beyond(judge.rate(), 0.0),
            Rule::Margin(judge) => judge.contradicted() || is_beyond(judge.rate(), judge.margin()),
            Rule::Order(judge) => judge.contradicted(),
            Rule::OrderWithin(margin, _) => {
                let median = paired.and_then(Paired::estimate);
                median.is_some_and(|median| median.keeps_to(answer.ratios(*margin)) == Some(false))
            }
            Rule::Exact => false,
        }
    }

    /// What the answer to a comparison rests on.
    pub fn basis(&self) -> Option<Basis> {
        match self {
            Rule::Order(judge) if judge.sign_alone() => Some(Basis::Signs),
            Rule::Order(_) => Some(Basis::Magnitudes),
            Rule::OrderWithin(..) => Some(Basis::Interval),
            Rule::Rate(_) | Rule::Margin(_) | Rule::Exact => None,
        }
    }

    /// The evidence for each direction, as logarithms, where there is evidence that grows.
    pub fn log_e(&self) -> Option<(f64, f64)> {
        match self {
            Rule::Rate(judge) => Some((judge.log_e_holds(), judge.log_e_refuted())),
            Rule::Margin(judge) => Some((judge.log_e_holds(), judge.log_e_refuted())),
            Rule::Order(judge) => Some((judge.log_e_holds(), judge.log_e_refuted())),
            Rule::OrderWithin(..) | Rule::Exact => None,
        }
    }

    /// The fewest trials that an answer needs, looked at one by one: all of them speak for it.
    pub fn soonest(&self, verdict: stats::Verdict, error: f64) -> u64 {
        // Upholding is against the lower end, refuting against the upper.
        let end = |judge: &MarginJudge| match verdict {
            stats::Verdict::Holds => judge.rate() - judge.margin(),
            stats::Verdict::Refuted => judge.rate() + judge.margin(),
        };
        match self {
            Rule::Rate(judge) => stats::soonest(verdict, judge.rate(), error),
            Rule::Margin(judge) => stats::soonest(verdict, end(judge), error),
            Rule::Order(_) => stats::soonest_order_verdict(error / 2.0, error / 2.0),
            // As soon as the median's interval has ends.
            Rule::OrderWithin(..) => stats::soonest(verdict, 0.5, error / 2.0),
            Rule::Exact => 1,
        }
    }

    /// The log-evidence that a trial is expected to add, in nats, where trials succeed at this rate.
    pub fn expected_growth(&self, true_rate: f64) -> f64 {
        match self {
            Rule::Rate(judge) => stats::expected_growth(judge.rate(), true_rate),
            Rule::Margin(judge) => stats::expected_growth(judge.rate(), true_rate),
            Rule::Order(_) | Rule::OrderWithin(..) => stats::expected_growth(0.5, true_rate),
            Rule::Exact => f64::MAX,
        }
    }
}

fn observe(judge: &mut Judge, Outcomes { known, unknown }: Outcomes) -> Option<stats::Verdict> {
    (0..unknown).for_each(|_| _ = judge.observe_unknown());
    match known.trials {
        0 => judge.verdict(),
        1 => judge.observe(known.successes == 1),
        _ => judge.observe_batch(known),
    }
}

/// The logarithm of a ratio that is known to be above 1, or below. Where one of two was stopped at the limit that both
/// have, it is that of the times as far as they were seen, which treats the two alike.
fn log_ratio(ratio: Bounds) -> f64 {
    if ratio.low > 1.0 { ratio.low.ln() } else { ratio.high.ln() }
}

/// A trial's statistic, kept for its quantile.
#[derive(Clone, Debug)]
pub(crate) struct Paired {
    quantile: f64,
    error_low: f64,
    error_high: f64,
    /// Sorted as far as the last look went.
    values: Sorted,
    low: f64,
    high: f64,
}

impl Paired {
    /// For the `quantile`, each end with its own error.
    pub fn new(quantile: f64, error_low: f64, error_high: f64) -> Paired {
        let (low, high) = (f64::NEG_INFINITY, f64::INFINITY);
        Paired { quantile, error_low, error_high, values: Sorted::default(), low, high }
    }

    pub fn push(&mut self, value: Bounds) {
        self.values.push(value);
    }

    /// Brings the interval up to date: the intersection of what every look so far allows.
    pub fn look(&mut self) {
        self.values.sort();
        let n = self.values.as_slice().len() as u64;
        let ranks = quantile_ranks(n, self.quantile, self.error_low, self.error_high);
        let Ok(ranks) = ranks else { return };
        let (low, high) = self.values.between(ranks);
        (self.low, self.high) = (self.low.max(low), self.high.min(high));
    }

    /// The interval at the last look; an end that is not bounded yet is infinite.
    pub fn interval(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// Whether nothing is left of the interval: the values are not alike.
    pub fn is_empty(&self) -> bool {
        self.low > self.high
    }

    /// The quantile of the values at the last look, as far as it is known.
    pub fn estimate(&self) -> Option<Bounds> {
        self.values.quantile(self.quantile)
    }

    /// The least and the greatest value at the last look; `None` without values, and if one of them is not known.
    pub fn extremes(&self) -> Option<(f64, f64)> {
        let (least, most) = (self.values.least()?, *self.values.as_slice().last()?);
        (least.is_finite() && most.is_finite()).then_some((least, most))
    }

    /// Half of the interval's width by its middle: `0.01` is "to 1 %".
    pub fn precision(&self) -> f64 {
        let half_width = (self.high - self.low) / 2.0;
        if half_width.is_finite() { half_width / ((self.high + self.low) / 2.0).abs() } else { f64::INFINITY }
    }
}
