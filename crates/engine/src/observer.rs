//! The interface by which a run reports its progress.

use std::time::Duration;

use crate::claim::Judging;
use crate::evidence;
use crate::finding::Least;
use crate::now::Now;
use crate::observations::Observations;
use crate::outcome::{Outcome, Verdict};
use crate::plan::Plan;
use crate::unit::Unit;
use crate::windows::{MemoryReport, WindowPlan, WindowSummary};

/// Receives progress reports from a run. All calls happen between trials.
pub trait Observer {
    /// Called for each arm, before the run checks whether this machine can measure the arm. The check is slow if the
    /// experiment must first build something.
    fn preparing(&mut self, _experiment: &str) {}

    /// Called at most once, if writing the evidence (the record of the run on disk) fails. The run continues without
    /// evidence.
    fn unkept(&mut self, _error: &evidence::Error) {}

    /// Called if the time limit is too short for the run's answers, as soon as the duration of a trial is known. The
    /// outlook predicts the time that the run needs.
    fn outlook(&mut self, _outlook: &Outlook) {}

    /// Called with the current progress, at most ten times a second, and before each step that may take a long time.
    fn progress(&mut self, progress: &Progress);

    /// Called once with the plan, before the run measures anything.
    fn started(&mut self, _plan: &Plan) {}

    /// Called once before a long measurement, with its memory. `_is_recorded` is `false` if it keeps no evidence.
    fn announced(&mut self, _plan: &Plan, _windows: &WindowPlan, _memory: &MemoryReport, _is_recorded: bool) {}

    /// Called when a window of a long measurement has ended. `_windows` has all windows so far, of which the last one has
    /// just ended. `_plan` is the plan of the run.
    fn window(&mut self, _plan: &Plan, _windows: &[WindowSummary]) {}

    /// Returns whether the observer wants a call of [`outcome`](Self::outcome) with the outcome so far. Called after
    /// each `progress`, once there are measurements. `_now_ns` is a reading of the run's clock.
    fn outcome_due(&mut self, _now_ns: u64) -> bool {
        false
    }

    /// Called with the outcome so far, if [`outcome_due`](Self::outcome_due) returned `true`. The run computes this
    /// outcome between trials. It therefore does not influence the results, and it is not part of any measured time.
    fn outcome(&mut self, _plan: &Plan, _outcome: &Outcome, _observations: &Observations) {}
}

/// A progress report of a run.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Reading of the run's clock when the report was made, in nanoseconds.
    pub at_ns: u64,
    /// Time since the start of the run.
    pub elapsed: Duration,
    /// Time limit of the run.
    pub max_time: Duration,
    /// Number of claims with each verdict, in the order of [`Verdict::ALL`]. Claims that are still open are not
    /// counted.
    pub closed: [usize; Verdict::ALL.len()],
    /// Number of claims in the run, open or not.
    pub claims: usize,
    /// The id of the first open claim that needs the current trials. If no open claim needs them, the id of the
    /// experiment.
    pub what: String,
    /// State of the claim that `what` names; `None` if `what` names an experiment.
    pub standing: Option<Standing>,
    /// `true` if the run compares commands. Its trials are then called pairs.
    pub is_comparison: bool,
    /// Number of trials so far in the current lane. A lane is a group of arms that are measured together.
    pub trials: u64,
    /// Maximum number of trials in each lane; `None` if there is no limit.
    pub most_trials: Option<u64>,
    /// Smallest number of trials that the open claims need for an answer. If trials are fast, it is reported only for
    /// the first few trials, and is `None` afterwards.
    pub least: Option<u64>,
    /// Mean duration of a trial, in nanoseconds; `None` before the first trial.
    pub trial_ns: Option<f64>,
    /// Handle to the current activity. It stays up to date between reports.
    pub now: Now,
}

/// The state of a claim that has no verdict yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// The method by which the claim is judged.
    pub judging: Judging,
    /// Number of the claim's trials so far, including trials in which a value that the claim needs is unknown.
    pub trials: u64,
    /// Number of trials in which the claim's tests were true.
    pub successes: u64,
    /// Number of trials in which the claim's tests were false.
    pub failures: u64,
    /// Estimate of the ratio, difference or metric that the claim is about; `None` until there are enough trials.
    pub estimate: Option<f64>,
    /// `true` if the estimate is the factor by which the candidate is better.
    pub is_ratio: bool,
    /// Unit of the estimate, if the claim is about exactly one metric.
    pub unit: Option<Unit>,
}

/// A prediction of the time that a run needs for its answers. The run only makes this prediction if its time limit is
/// too short.
#[derive(Clone, Debug, PartialEq)]
pub struct Outlook {
    /// The smallest effort that can give the run its answers: trials and time.
    pub least: Least,
    /// Number of trials that the run can measure within the time limit.
    pub allowed: u64,
    /// Time limit of the run.
    pub max_time: Duration,
    /// `true` if the run has extended its time limit because of this prediction. The limit may then be long enough.
    pub is_longer: bool,
}

/// An observer that ignores all reports.
pub struct Silent;

impl Observer for Silent {
    fn progress(&mut self, _: &Progress) {}
}
