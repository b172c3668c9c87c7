//! The result of a run, and the rules that determine its exit code.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::evidence;
use crate::observations::Observations;
use crate::outcome::{Decision, Outcome, Verdict};
use crate::plan::Plan;

/// The result of a run, from which everything is printed, exported or turned into an exit code.
#[derive(Debug)]
pub struct RunResult {
    /// The plan that was carried out.
    pub plan: Plan,
    /// The figures, verdicts and findings, as in the JSON output.
    pub outcome: Outcome,
    /// Every value that was observed.
    pub observations: Observations,
    /// The folder with the run's evidence; `None` if none was kept.
    pub folder: Option<PathBuf>,
    /// The error that prevented writing evidence, such as a full disk. The outcome still covers everything that was
    /// measured. Evidence from before the error stays readable.
    pub unkept: Option<evidence::Error>,
    /// `true` if an arm failed or gave a wrong answer. The verdicts do not always show this: there may be no
    /// claim about that arm, or its claims may have been decided before the failure.
    pub target_failed: bool,
    /// Duration of the run, including its preparation. For a continued run, this covers only the time since it was last
    /// continued.
    pub elapsed: Duration,
    /// Number of trials that were already recorded when the run was continued; 0 for a new run.
    pub recorded_trials: usize,
    /// `true` if the run was continued, but no value was added to its evidence.
    pub measured_nothing: bool,
    /// Error messages of clean-ups that failed.
    pub cleanup_failures: Vec<String>,
    /// The error that ended a long measurement early, such as a line that is not an observation. The outcome covers
    /// everything before it, and [`target_failed`](Self::target_failed) is `true`.
    pub error: Option<Error>,
}

/// A verdict that makes `check` and similar commands fail, if the user requests this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GatedVerdict {
    /// Fails the command if a claim is refuted.
    Refuted,
    /// Fails the command if a claim is undecided or deferred.
    Undecided,
}

/// The way in which a run ended, which determines the exit code. If several values apply, the first of this list
/// counts: interrupted, failed, gate, undecided, nothing, done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The run is complete and no gate failed.
    Done,
    /// A gate failed: for example, a claim is refuted, or a command is slower than its reference.
    GateFailed,
    /// The time limit was reached before a verdict that a gate needs.
    Undecided,
    /// This machine can measure none of the requested arms.
    Nothing,
    /// An arm failed or gave a wrong answer, or a clean-up failed.
    TargetFailed,
    /// Ctrl-C or SIGTERM ended the run.
    Interrupted,
}

impl RunResult {
    /// Returns the way in which the run ended, which determines its exit code.
    #[must_use]
    pub fn ending(&self) -> Ending {
        let RunResult { plan, outcome, .. } = self;
        let any = |verdicts: &[Verdict]| outcome.claims.iter().any(|claim| verdicts.contains(&claim.verdict));
        let fails_on = |verdict| plan.config.fail_on.contains(&verdict);
        match () {
            () if outcome.interrupted => Ending::Interrupted,
            // Count failed cleanups as failures: files that are left over may disturb the next run.
            () if self.target_failed || !self.cleanup_failures.is_empty() => Ending::TargetFailed,
            // Check tables first: the user requested them, and the claims were only added to them.
            () if self.is_table_left_out() => Ending::Nothing,
            () if fails_on(GatedVerdict::Refuted) && any(&[Verdict::Refuted]) => Ending::GateFailed,
            () if fails_on(GatedVerdict::Undecided) && any(&[Verdict::Undecided, Verdict::Deferred]) => {
                Ending::Undecided
            }
            () if outcome.points.iter().all(|point| point.n == 0) && !any(&[Verdict::Deferred]) => Ending::Nothing,
            () => self.comparison_ending(),
        }
    }

    /// Returns whether the run has tables, and none of their arms could be measured.
    fn is_table_left_out(&self) -> bool {
        let is_left_out =
            |(experiment, arm)| self.outcome.left_out.iter().any(|left_out| left_out.is_of(experiment, arm));
        let tables = self.plan.tables.iter();
        let mut arms = tables.flat_map(|table| table.arms.iter().map(|arm| (&*table.experiment, arm))).peekable();
        arms.peek().is_some() && arms.all(is_left_out)
    }

    /// Applies the gate of a comparison. The gate fails if any command is shown to be slower (or faster) than the
    /// reference, or beyond the threshold of a tail more (or less) often. Otherwise the ending is undecided if any
    /// comparison is undecided. A tail without an answer does not matter, because equal tails never have one.
    fn comparison_ending(&self) -> Ending {
        let Some(gate) = self.plan.config.gate else { return Ending::Done };
        let claims = self.outcome.claims.iter();
        let mut decisions = claims.map(|claim| claim.decision.unwrap_or(Decision::Undecided));
        let mut tails = self.outcome.claims.iter().flat_map(|claim| &claim.tails);
        match () {
            () if tails.any(|tail| tail.fails(gate)) => Ending::GateFailed,
            () if decisions.clone().any(|decision| decision == gate.decision()) => Ending::GateFailed,
            () if decisions.any(|decision| decision == Decision::Undecided) => Ending::Undecided,
            () => Ending::Done,
        }
    }
}
