//! Turns the outcomes of trials into an answer, by sequential tests or from the interval of the paired statistic.

use ascertain_stats::{self as stats, Judge, OrderJudge, Tally, quantile_ranks};

use crate::claim::{Bound, Claim, Judging};
use crate::outcome::{Basis, Gate};
use crate::plan::Config;
use crate::values::{Bounds, Sorted, relative_half_width};

#[derive(Clone)]
pub(super) enum Rule {
    Rate(Box<Judge>),
    /// Uses a sequential test that ignores ties. The verdict is reported as faster or slower.
    Order(Box<OrderJudge>),
    /// Derives the answer from the interval of the median ratio and this margin. If there is a gate, one bound of the
    /// interval may be enough.
    OrderWithin(f64, Option<Gate>),
    /// Takes the first outcome as the answer, because the metric is deterministic.
    Exact,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Answer {
    Holds,
    Refuted,
    Same,
    /// The gate passes, because the answer that would make it fail is excluded. A more precise answer is not needed.
    Passes(Gate),
}

impl Answer {
    /// Returns the range of ratios for which this answer is true. Within `margin`, two arms count as equal.
    fn ratios(self, margin: f64) -> Bound {
        let (least, most) = (1.0 / (1.0 + margin), 1.0 + margin);
        match self {
            // The candidate is better by more than the margin.
            Answer::Holds => Bound::AtLeast(most.next_up()),
            Answer::Refuted => Bound::AtMost(least.next_down()),
            Answer::Same => Bound::Within(least, most),
            Answer::Passes(Gate::Slower) => Bound::AtLeast(least),
            Answer::Passes(Gate::Faster) => Bound::AtMost(most),
        }
    }
}

/// The outcomes of one trial, or of a set of trials that are evaluated together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Outcomes {
    /// Counts of the trials with a known outcome.
    pub known: Tally,
    pub unknown: u64,
}

impl Outcomes {
    pub fn trials(&self) -> u64 {
        self.known.trials + self.unknown
    }
}

impl Rule {
    /// Returns the rule for judging a claim in a run. A comparison without its own margin uses the margin of the run.
    pub fn new(claim: &Claim, config: &Config) -> Result<Rule, stats::Error> {
        let error = config.error;
        Ok(match (claim.asked.judging, claim.asked.margin) {
            (Judging::Exact, _) => Rule::Exact,
            (Judging::Order, margin) => match margin.or(config.margin) {
                Some(margin) => Rule::OrderWithin(margin, config.gate),
                None => Rule::Order(Box::new(OrderJudge::new(error / 2.0, error / 2.0)?)),
            },
            (Judging::Rate, Some(margin)) => Rule::Rate(Box::new(Judge::with_margin(claim.rate, margin, error)?)),
            (Judging::Rate, None) => Rule::Rate(Box::new(Judge::new(claim.rate, error)?)),
        })
    }

    /// Adds the outcomes of one trial, or of a set of trials that are evaluated together. For a single pair, `ratio` is
    /// the ratio of this pair. Returns the answer as soon as there is one.
    pub fn observe(&mut self, outcomes: Outcomes, ratio: Option<Bounds>) -> Option<Answer> {
        let Outcomes { known, unknown } = outcomes;
        let verdict = match self {
            Rule::Rate(judge) => observe(judge, outcomes),
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

    /// Returns the answer that follows from the interval of the ratio, `low` to `high`. Returns `None` if no answer
    /// follows yet, or if the rule ignores the interval.
    pub fn read(&self, (low, high): (f64, f64)) -> Option<Answer> {
        let Rule::OrderWithin(margin, gate) = *self else { return None };
        let answers = [Answer::Same, Answer::Holds, Answer::Refuted].into_iter().chain(gate.map(Answer::Passes));
        let interval = Bounds { low, high };
        answers.into_iter().find(|answer| interval.keeps_to(answer.ratios(margin)) == Some(true))
    }

    /// Returns whether later trials contradict an answer. The condition depends on the kind of rule:
    ///
    /// - Rate: the e-value for the opposite answer has also crossed its threshold, or the success rate of all trials
    ///   contradicts the answer. In this success rate, a trial with an unknown outcome counts against the answer.
    /// - Signs or sizes of differences: the e-value for the opposite answer has also crossed its threshold.
    /// - Interval of the ratio: the median of all trials is outside the answer's range. If some values are unknown, the
    ///   median must be outside for every value that they may have.
    /// - Deterministic metric: nothing contradicts an answer.
    pub fn contradicts(&self, answer: Answer, outcomes: Outcomes, paired: Option<&PairedStatistic>) -> bool {
        let trials = outcomes.trials().max(1) as f64;
        let least = outcomes.known.successes as f64 / trials;
        let most = (outcomes.known.successes + outcomes.unknown) as f64 / trials;
        let is_beyond = |rate: f64, margin: f64| match answer {
            Answer::Holds => least < rate - margin,
            _ => most > rate + margin,
        };
        match self {
            Rule::Rate(judge) => judge.contradicted() || is_beyond(judge.rate(), judge.margin()),
            Rule::Order(judge) => judge.contradicted(),
            Rule::OrderWithin(margin, _) => {
                let median = paired.and_then(PairedStatistic::estimate);
                median.is_some_and(|median| median.keeps_to(answer.ratios(*margin)) == Some(false))
            }
            Rule::Exact => false,
        }
    }

    /// Returns the kind of test behind the answer to a comparison, such as the signs of the differences; `None` for
    /// other claims.
    pub fn basis(&self) -> Option<Basis> {
        match self {
            Rule::Order(judge) if judge.sign_alone() => Some(Basis::Signs),
            Rule::Order(_) => Some(Basis::Magnitudes),
            Rule::OrderWithin(..) => Some(Basis::Interval),
            Rule::Rate(_) | Rule::Exact => None,
        }
    }

    /// Returns the natural logarithms of the e-values for the claim and against it; `None` for rules without e-values.
    pub fn log_e(&self) -> Option<(f64, f64)> {
        match self {
            Rule::Rate(judge) => Some((judge.log_e_holds(), judge.log_e_refuted())),
            Rule::Order(judge) => Some((judge.log_e_holds(), judge.log_e_refuted())),
            Rule::OrderWithin(..) | Rule::Exact => None,
        }
    }

    /// Returns the smallest number of trials that can give this verdict at this error. Fewer trials are never enough.
    /// This number is enough if every trial supports the verdict and is evaluated on its own.
    pub fn soonest(&self, verdict: stats::Verdict, error: f64) -> u64 {
        // `Holds` is tested against the lower bound of the tolerance, `Refuted` against the upper bound.
        let end = |judge: &Judge| match verdict {
            stats::Verdict::Holds => judge.rate() - judge.margin(),
            stats::Verdict::Refuted => judge.rate() + judge.margin(),
        };
        match self {
            Rule::Rate(judge) => stats::soonest(verdict, end(judge), error),
            Rule::Order(_) => stats::soonest_order_verdict(error / 2.0, error / 2.0),
            // An answer needs an interval of the median with two finite bounds. These need at least this many trials.
            Rule::OrderWithin(..) => stats::soonest(verdict, 0.5, error / 2.0),
            Rule::Exact => 1,
        }
    }

    /// Returns by how much one trial is expected to increase the logarithm of the e-value, in nats, if trials succeed
    /// at this rate.
    pub fn expected_growth(&self, true_rate: f64) -> f64 {
        match self {
            Rule::Rate(judge) => stats::expected_growth(judge.rate(), true_rate),
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

/// Returns the logarithm of a ratio that is known to be above or below 1. If one of the two commands was stopped at the
/// time limit, its true time is unknown, and the observed time is used instead. This treats both commands alike,
/// because both have the same limit.
fn log_ratio(ratio: Bounds) -> f64 {
    if ratio.low > 1.0 { ratio.low.ln() } else { ratio.high.ln() }
}

/// The ratios or differences of all trials, with an estimate of one of their quantiles.
#[derive(Clone, Debug)]
pub(crate) struct PairedStatistic {
    quantile: f64,
    error_low: f64,
    error_high: f64,
    /// The values, sorted when [`look`](Self::look) was last called.
    values: Sorted,
    low: f64,
    high: f64,
}

impl PairedStatistic {
    /// Returns an estimator for the `quantile`. `error_low` and `error_high` are the error probabilities of the lower
    /// and the upper bound of its interval.
    pub fn new(quantile: f64, error_low: f64, error_high: f64) -> PairedStatistic {
        let (low, high) = (f64::NEG_INFINITY, f64::INFINITY);
        PairedStatistic { quantile, error_low, error_high, values: Sorted::default(), low, high }
    }

    pub fn push(&mut self, value: Bounds) {
        self.values.push(value);
    }

    /// Updates the interval. The new interval is the intersection of the previous interval with the interval of all
    /// values so far.
    pub fn look(&mut self) {
        self.values.sort();
        let n = self.values.as_slice().len() as u64;
        let ranks = quantile_ranks(n, self.quantile, self.error_low, self.error_high);
        let Ok(ranks) = ranks else { return };
        let (low, high) = self.values.between(ranks);
        (self.low, self.high) = (self.low.max(low), self.high.min(high));
    }

    /// Returns the interval as of the last [`look`](Self::look). A bound that is not known yet is infinite.
    pub fn interval(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// Returns whether the interval is empty. An empty interval shows that the trials are not alike: no single quantile
    /// was consistent with the values at every update.
    pub fn is_empty(&self) -> bool {
        self.low > self.high
    }

    /// Returns the quantile of the values as of the last [`look`](Self::look). The quantile is a range if it depends on
    /// values that were cut off.
    pub fn estimate(&self) -> Option<Bounds> {
        self.values.quantile(self.quantile)
    }

    /// Returns the smallest and the largest value as of the last [`look`](Self::look). Returns `None` if there are no
    /// values, or if either extreme is not known exactly.
    pub fn extremes(&self) -> Option<(f64, f64)> {
        let (least, most) = (self.values.least()?, *self.values.as_slice().last()?);
        (least.is_finite() && most.is_finite()).then_some((least, most))
    }

    /// Returns half of the interval's width divided by its middle: `0.01` means "to 1 %".
    pub fn precision(&self) -> f64 {
        relative_half_width(self.interval()).unwrap_or(f64::INFINITY)
    }
}
