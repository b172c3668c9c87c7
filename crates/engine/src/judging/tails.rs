//! Judges the tails of two arms in the trials of their comparison: which arm is beyond a threshold more often.

use ascertain_stats::{self as stats, TailCounts, TailJudge, TailValue, Verdict, soonest_tail_verdict, tail_excess};

use crate::claim::Test;
use crate::experiment::Better;
use crate::observations::ArmValues;
use crate::outcome::{ClaimResult, Decision, TailDecision, TailHint, TailResult};
use crate::values::Bounds;

/// The tests of a claim's tail levels.
#[derive(Clone)]
pub(super) struct Tails {
    judges: Vec<TailJudge>,
    /// Error probability of each level. Its two directions share it equally.
    error: f64,
}

impl Tails {
    /// Creates the tests of these levels, each with this error probability.
    pub fn new(levels: &[f64], error: f64) -> Result<Tails, stats::Error> {
        let judges = levels.iter().map(|&level| TailJudge::new(level, error / 2.0)).collect::<Result<_, _>>()?;
        Ok(Tails { judges, error })
    }

    /// Returns whether a level has no decision yet.
    pub fn are_open(&self) -> bool {
        self.judges.iter().any(|judge| judge.verdict().is_none())
    }

    /// Returns the smallest number of trials that can decide every level; 0 if there are no levels.
    pub fn soonest(&self) -> u64 {
        self.judges.iter().map(|judge| soonest_tail_verdict(judge.level(), self.error / 2.0)).max().unwrap_or(0)
    }

    /// Counts a trial with these values of the candidate and the reference. If the trial was interrupted, a value that
    /// is not known makes the pair unknown. The limit at which a signal cut it off is not a time limit.
    pub fn observe(&mut self, better: Better, pair: [Bounds; 2], is_interrupted: bool) {
        let is_unknown = is_interrupted && pair.iter().any(|bounds| bounds.value().is_none());
        for judge in &mut self.judges {
            match is_unknown {
                true => _ = judge.observe_unknown(),
                false => _ = judge.observe(pair.map(|bounds| tail_value(better, bounds))),
            }
        }
    }

    /// Returns the result of each level, in the metric's own direction.
    pub fn results(&self, better: Better) -> Vec<TailResult> {
        self.judges.iter().map(|judge| result(judge, self.error, better)).collect()
    }
}

fn result(judge: &TailJudge, error: f64, better: Better) -> TailResult {
    let is_withdrawn = judge.contradicted();
    let TailCounts { pairs, unknown, candidate_above, reference_above, .. } = judge.counts();
    let (threshold_low, threshold_high) = thresholds(judge.counts(), better).unzip();
    let (log_e_more, log_e_less) = judge.log_e();
    TailResult {
        level: judge.level(),
        decision: match judge.verdict().filter(|_| !is_withdrawn) {
            Some(Verdict::Holds) => TailDecision::MoreOften,
            Some(Verdict::Refuted) => TailDecision::LessOften,
            None => TailDecision::Undecided,
        },
        is_withdrawn,
        error,
        pairs_before: stats::tail_pairs_before(judge.level()),
        pairs,
        decided: judge.decided_at(),
        candidate_beyond: candidate_above,
        reference_beyond: reference_above,
        only_candidate: judge.counts().only_candidate,
        only_reference: judge.counts().only_reference,
        unknown,
        threshold_low,
        threshold_high,
        log_e_more,
        log_e_less,
    }
}

/// Returns a value for the judge, for which larger values are worse.
fn tail_value(better: Better, bounds: Bounds) -> TailValue {
    match (bounds.value(), better) {
        (Some(value), Better::Lower) => TailValue::Known(value),
        (Some(value), Better::Higher) => TailValue::Known(-value),
        (None, Better::Lower) if bounds.low > 0.0 => TailValue::Stopped(bounds.low),
        (None, _) => TailValue::Stopped(f64::INFINITY),
    }
}

/// Returns the smallest and the largest threshold in the unit of the metric.
fn thresholds(counts: TailCounts, better: Better) -> Option<(f64, f64)> {
    let (low, high) = counts.thresholds?;
    Some(if better == Better::Lower { (low, high) } else { (-high, -low) })
}

/// The levels at which the tails are compared after a run that was not asked about tails.
const HINT_LEVELS: [f64; 3] = [0.95, 0.98, 0.99];
/// Highest probability that a run has a hint although the tail of the faster arm is not worse. The levels share it.
const HINT_ERROR: f64 = 0.01;

/// Returns a hint if the faster arm of a comparison is beyond a threshold more often than the slower arm, and an exact
/// test supports this. `arms` has the values of the candidate and the reference, and `metric` is the index of the
/// compared metric. `limit` is the time limit of a command, if the metric is its time.
pub(crate) fn hint(result: &ClaimResult, arms: [&ArmValues; 2], metric: usize, limit: Option<f64>) -> Option<TailHint> {
    let [Test::Versus { measure, .. }] = result.asked.tests.as_slice() else { return None };
    let [faster, slower] = match result.decision? {
        Decision::Faster => arms,
        Decision::Slower => [arms[1], arms[0]],
        _ => return None,
    };
    // A value that a signal cut off says nothing about the tail.
    let is_complete =
        |bounds: Bounds| bounds.value().is_some() || limit.is_some_and(|limit| bounds == Bounds::above(limit));
    let mut others = slower.by_trial(metric).peekable();
    let pairs: Vec<[TailValue; 2]> = faster
        .by_trial(metric)
        .filter_map(|(trial, one)| {
            while others.next_if(|(other, _)| *other < trial).is_some() {}
            let (_, other) = others.next_if(|(other, _)| *other == trial)?;
            ([one, other].into_iter().all(is_complete)).then(|| [one, other].map(|b| tail_value(measure.better, b)))
        })
        .collect();
    let looks = HINT_LEVELS.iter().filter_map(|&level| Some((level, tail_excess(level, &pairs)?)));
    let (level, excess) = looks.min_by(|(_, one), (_, other)| one.p_value.total_cmp(&other.p_value))?;
    let (threshold, _) = thresholds(excess.counts, measure.better)?;
    let TailCounts { pairs, candidate_above, reference_above, .. } = excess.counts;
    let is_supported = excess.p_value <= HINT_ERROR / HINT_LEVELS.len() as f64;
    is_supported.then_some(TailHint {
        level,
        p_value: excess.p_value,
        threshold,
        pairs,
        faster_beyond: candidate_above,
        slower_beyond: reference_above,
    })
}

#[cfg(test)]
mod tests;
