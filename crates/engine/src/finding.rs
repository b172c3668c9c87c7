//! Findings of a run, as plain data: reasons for missing verdicts or figures, signs that trials are not alike, threats
//! to the results, and remarks. The crate `ascertain-report` turns the findings into sentences.
//!
//! In JSON, the field `code` contains the name of the finding.

mod remark;
mod threat;

pub use remark::{
    Dissent, FailedWorkload, FaultNoticed, FaultPlace, LatencyFit, LineFill, ReachedRate, Remark, ScaledThroughput,
    SizeWinner, StartedProgram, StoreBill, StoreLimit, Work, WorkloadFailure,
};
pub use threat::{Threat, UnlikeFact};

use ascertain_sys::cpu_level;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

use crate::experiment::Arm;
use crate::outcome::{Decision, Verdict};

/// The reason why a claim has no verdict, or why figures of an arm are missing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Reason {
    /// This machine cannot measure the arm or the claim.
    Unavailable {
        /// The arm that cannot be measured; `None` if the context of the reason already names the arm.
        arm: Option<Arm>,
        /// The requirement that this machine does not meet.
        lack: Unavailable,
    },
    /// The arm failed or gave a wrong answer. Its values are therefore missing or invalid.
    Failed {
        /// The arm that failed; `None` if the context of the reason already names the arm.
        arm: Option<Arm>,
        /// `true` if the arm gave a wrong answer. Its times are then meaningless, because it did not do the intended
        /// work.
        is_wrong: bool,
        /// The command line, if the arm failed because of a command. The text in `how` contains this line.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        line: Option<String>,
        /// The description of the failure, from the experiment.
        how: String,
    },
    /// The time limit was reached before the claim's or arm's first trial.
    TimeUp {
        /// `true` if the arm was prepared for measuring, but never measured. The run spent its time on other arms, for
        /// which it expected more evidence per second.
        was_tried: bool,
        /// Estimated time for preparing and trying every requested arm, in nanoseconds. `None` if it is not known, or
        /// if `was_tried` is `true`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        all_tried_ns: Option<f64>,
    },
    /// The remaining time is too short even for the quickest possible verdict.
    TooLong {
        /// Time that the quickest possible verdict needs, in nanoseconds.
        needed_ns: f64,
        /// Number of trials that the quickest possible verdict needs.
        trials: u64,
        /// A higher error probability with which the remaining time would be enough, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at_error: Option<AtError>,
        /// Estimated time in which a run has enough trials for all its claims, in nanoseconds. `None` if it is not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run_ns: Option<f64>,
    },
    /// The run ended with fewer trials than an answer needs.
    TooEarly {
        /// The smallest number of trials that an answer needs, and the time that they take.
        least: Least,
        /// The maximum number of trials, if it is too small for an answer.
        most_trials: Option<u64>,
        /// `true` if the run was interrupted before its time limit.
        is_interrupted: bool,
        /// `true` if the run also spent time on other claims. The claim then needs more time than `least` states,
        /// because `least` is for a run with this claim alone.
        is_shared: bool,
        /// The setting or event that ended the run.
        #[serde(default, skip_serializing_if = "EndedBy::is_limit")]
        ended_by: EndedBy,
        /// Estimated time in which a run has enough trials for all its claims, in nanoseconds. `None` if it is not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run_ns: Option<f64>,
    },
    /// A verdict or answer had been reached, but later trials contradict it, so it is withdrawn.
    Withdrawn {
        /// The verdict that is withdrawn.
        verdict: Verdict,
        /// If the claim is a comparison, the answer that is withdrawn.
        decision: Option<Decision>,
        /// Number of trials that had led to the verdict or answer.
        trials: u64,
    },
    /// In some pairs both commands were stopped at their time limits, so it is unknown which of them was faster.
    BothStopped {
        /// Number of pairs in which both commands were stopped.
        pairs: u64,
        /// Total number of pairs of the comparison, including these.
        all: u64,
    },
    /// In some trials, values were cut off. The outcome of these trials is therefore unknown. Such trials count as
    /// evidence against every possible answer.
    LeftOpen {
        /// Number of trials with an unknown outcome.
        trials: u64,
        /// Total number of trials of the claim.
        all: u64,
        /// `true` if a time limit cut off a value in any of these trials; `false` if only signals such as Ctrl-C did.
        has_met_limit: bool,
    },
    /// The last set of trials is incomplete, and trials are judged only in complete sets.
    UnfinishedSet {
        /// Number of trials in a complete set.
        trials: u64,
        /// Number of trials of the last, incomplete set that were measured.
        measured: u64,
    },
}

impl Reason {
    /// Returns the verdict that a claim gets if this reason prevents an answer.
    pub(crate) fn verdict(&self) -> Verdict {
        match self {
            Reason::Unavailable { .. } => Verdict::Unavailable,
            Reason::Failed { .. } => Verdict::Failed,
            Reason::TimeUp { .. } | Reason::TooLong { .. } => Verdict::Deferred,
            _ => Verdict::Undecided,
        }
    }
}

/// The setting or event that ended a run before there were enough trials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// The time limit or the limit on trials.
    #[default]
    Limit,
    /// The fixed duration of a long measurement.
    Duration,
    /// An error or the end of the command, before the duration of a long measurement was over.
    Early,
}

impl EndedBy {
    fn is_limit(&self) -> bool {
        *self == EndedBy::Limit
    }
}

/// The smallest effort, in trials and time, that can lead to an answer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Least {
    /// The verdict that can be reached with this effort. `None` for a comparison, in which every answer needs the same
    /// number of trials.
    pub verdict: Option<Verdict>,
    /// Number of trials that are enough if all of them support the answer.
    pub trials: u64,
    /// Estimated duration of these trials, in nanoseconds, according to the trials so far. `None` if no duration is
    /// known, as for a killed run.
    pub takes_ns: Option<f64>,
    /// A higher error probability with which fewer trials would be enough, if there is one.
    pub at_error: Option<AtError>,
}

/// The smallest number of trials that would be enough for an answer if the run's error probability were higher.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AtError {
    /// The higher error probability of the run: the probability that any of its verdicts is wrong.
    pub error: f64,
    /// Number of trials that would be enough with this error probability.
    pub trials: u64,
}

/// The reason why this machine cannot measure an arm, or observe one of its metrics.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "lacks", rename_all = "snake_case")]
pub enum Unavailable {
    /// The CPU lacks an instruction set that the arm needs.
    #[error("needs {feature}, which this CPU lacks")]
    Feature {
        /// Name of the instruction set.
        feature: String,
    },
    /// `ASCERTAIN_CPU` hides an instruction set that the arm needs.
    #[error("needs {feature}, which ASCERTAIN_CPU={level} hides")]
    Hidden {
        /// Name of the instruction set.
        feature: String,
        /// The level that is forced.
        level: String,
    },
    /// The machine has too few CPUs, or this process may use too few of them.
    #[error("needs {needed} CPUs, but only {usable} may be used")]
    Cpus {
        /// Number of CPUs that the arm needs.
        needed: usize,
        /// Number of CPUs that this process may use.
        usable: usize,
    },
    /// The data of the arm does not fit in memory.
    #[error(transparent)]
    Memory(crate::memory::Shortage),
    /// A compiler or another program that the arm needs is missing or does not work.
    #[error("needs {program}: {error}")]
    Program {
        /// The program in words, such as `a C compiler`.
        program: String,
        /// The error message of the program, or a message about a missing program. It also explains what to do.
        error: String,
    },
    /// The arm was measured, but one of its metrics could not be observed.
    #[error("`{metric}` was not observed")]
    Metric {
        /// Name of the metric that could not be observed.
        metric: String,
    },
    /// The experiment has no variant of this name.
    #[error("there is no such variant")]
    Variant,
    /// The levels of the arm cannot be combined with each other or with the variant, on any machine.
    #[error("{words}")]
    Levels {
        /// The reason why the levels cannot be combined, as text for the user.
        words: String,
    },
    /// The machine cannot measure the arm for another reason, which the experiment or the system states in words.
    #[error("{words}")]
    Other {
        /// The reason, as text for the user.
        words: String,
    },
}

impl Unavailable {
    /// Returns the reason for a CPU without the instruction set `feature`. If the CPU has it, `ASCERTAIN_CPU` hides it.
    pub fn feature(feature: impl ToString) -> Unavailable {
        let feature = feature.to_string();
        match cpu_level::hiding(&feature) {
            Some(level) => Unavailable::Hidden { feature, level: level.name().into() },
            None => Unavailable::Feature { feature },
        }
    }

    /// Returns the reason for levels that cannot be combined. `words` explains why.
    pub fn levels(words: impl ToString) -> Unavailable {
        Unavailable::Levels { words: words.to_string() }
    }

    /// Returns any other reason, which `words` explains.
    pub fn other(words: impl ToString) -> Unavailable {
        Unavailable::Other { words: words.to_string() }
    }
}

/// A sign that trials are not alike: that they depend on one another, or that conditions changed. Confidence intervals
/// and conclusions about future trials assume that all trials are alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Unlike {
    /// No value of the estimated quantity is consistent with all trials. So there is no confidence interval.
    NoneFits {
        /// The quantity whose interval is missing.
        of: Estimated,
    },
    /// Later trials moved the estimate out of the confidence interval that earlier trials gave. So there is no
    /// interval.
    Left {
        /// The quantity whose interval is missing.
        of: Estimated,
    },
    /// The arm that is measured last in a trial seems to influence the next trial. So trials are not independent.
    Interferes {
        /// The candidate's share of wins in trials that follow a trial in which the candidate was measured last.
        after_candidate: f64,
        /// The candidate's share of wins in trials that follow a trial in which the baseline was measured last.
        after_baseline: f64,
    },
    /// Consecutive trials tend to have the same outcome (positive correlation) or opposite outcomes (negative
    /// correlation).
    Neighbours {
        /// Correlation of each trial's outcome with the outcome of the trial before it, from -1 to 1.
        correlation: f64,
    },
    /// The share of successes changed during the run.
    Drifts {
        /// Share of successes in the first half of the trials.
        early: f64,
        /// Share of successes in the second half of the trials.
        late: f64,
    },
}

/// The quantity that a confidence interval is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Estimated {
    /// The share of trials in which the claim's tests are true.
    Rate,
    /// A ratio of two arms, or the value of a predicate's metric.
    Ratio,
    /// A difference between two arms.
    Difference,
}

/// Deserialises a list, and drops the elements that this version does not know.
pub(crate) fn known<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let all: Vec<serde_json::Value> = Vec::deserialize(deserializer)?;
    Ok(all.into_iter().filter_map(|one| serde_json::from_value(one).ok()).collect())
}
