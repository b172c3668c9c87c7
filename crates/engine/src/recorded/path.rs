//! The way of a claim to its verdict.

use crate::values::Values;

/// How a claim came to its verdict, trial by trial: recorded trials judged again in their order.
///
/// It has as many trials as the claim's result. One that was open beyond its verdict, since trials were
/// counted or an interval was to be narrow, has those too. Where evidence is looked at after sets of trials,
/// it has points there only, and not the trials of a set that was not finished.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClaimPath {
    /// The numbers of the trials that were counted, in order.
    pub trials: Vec<u64>,
    /// Whether the claim's tests were true of the trial; `None` for a tie that was dropped, and where what was
    /// cut off leaves it open.
    pub successes: Vec<Option<bool>>,
    /// The paired ratio or difference of each counted trial, larger when the candidate is better; empty
    /// for a claim that compares nothing.
    pub statistics: Values,
    /// The evidence after some of the trials: all of the first ones, then ever fewer, and the last; at
    /// most 2,000. Empty where the claim is not judged by evidence that grows (an exact claim; `compare`
    /// with a margin).
    pub evidence: Vec<EvidencePoint>,
    /// The logarithm that the evidence in favour must reach.
    pub log_threshold_holds: f64,
    /// The logarithm that the evidence against must reach.
    pub log_threshold_refuted: f64,
    /// After how many counted trials the verdict fell.
    pub decided_after: Option<u64>,
}

/// The evidence after so many trials.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EvidencePoint {
    /// Trials counted so far, ties included.
    pub counted: u64,
    /// Natural logarithm of the evidence that the claim holds.
    pub log_e_holds: f64,
    /// Natural logarithm of the evidence that it does not.
    pub log_e_refuted: f64,
}
