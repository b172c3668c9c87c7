//! The state of one claim while it is judged: outcomes in, a verdict and an interval out.

mod observe;
mod result;
mod rule;
mod run;
#[cfg(test)]
mod tests;

use ascertain_stats::RateSequence;

use crate::bound::BoundTests;
use crate::claim::Claim;
use crate::finding::Reason;
use crate::likeness::Likeness;
use crate::outcome::{Asked, Decided, Gate};
use crate::paired::Paired;
use crate::recorded::PathRecorder;
use rule::{Answer, Outcomes, Rule};
pub(crate) use run::{Lane, RunJudge};

/// A claim while it is judged.
#[derive(Clone)]
pub(crate) struct ClaimJudge {
    pub claim: Claim,
    asked: Asked,
    error: f64,
    precision: Option<f64>,
    tests: BoundTests,
    rule: Rule,
    /// The first answer, which stands, and the trials that gave it.
    answer: Option<(Answer, Decided)>,
    exact_trials: bool,
    trials: u64,
    successes: u64,
    ties: u64,
    /// Trials that what was cut off leaves open.
    unknown: u64,
    /// Whether some of those met a time limit.
    has_met_limit: bool,
    /// Ties of two that met it.
    stopped_ties: u64,
    /// Outcomes since the last look, when the claim looks at sets of trials.
    unseen: Outcomes,
    paired: Option<Paired>,
    rate: RateSequence,
    likeness: Likeness,
    /// The intervals are brought up to date again after so many trials.
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
    pub gate: Option<Gate>,
    /// Trials are counted, not stopped.
    pub exact_trials: bool,
}

/// Why a claim is not judged any further, other than by its answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Closed {
    For(Reason),
    /// Its own trials or time are used up.
    Spent,
}
