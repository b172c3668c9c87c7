//! The comparison of arms over a suite of workloads: a ratio for each workload, and their geometric mean with intervals
//! for three questions.
//!
//! - *This suite with these builds*: the workloads and the arms are fixed, and only the trials vary.
//! - *Workloads like these*: the workloads are a sample of many. The interval uses Student's t, with one degree of
//!   freedom fewer than there are workloads.
//! - *Builds like these*: the arms are a sample of the builds of one version.
//!
//! A ratio is the baseline's time divided by the candidate's, so it is the factor by which the candidate is faster. All
//! intervals are at 95 %, and none of them is exact: they assume that logarithms of ratios are roughly normal.

mod builds;
mod compare;
mod observed;

pub use builds::{BuildGroup, BuildMean};
pub use compare::{Samples, compare_samples};
pub use observed::split_name;
pub(crate) use observed::{suites, threats};

use serde::{Deserialize, Serialize};

use crate::experiment::{Arm, Point};
use crate::outcome::Decision;

/// Error probability of each interval of a suite. It is not part of the run's error probability.
pub const ERROR: f64 = 0.05;

/// The smallest number of workloads (or of builds) from which conclusions about other workloads (or builds) are drawn.
pub const LEAST_SAMPLE: usize = 3;

/// The results of a suite of workloads: each arm compared with the first arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Suite {
    /// Id of the experiment.
    pub experiment: String,
    /// Name of the metric that was compared.
    pub metric: String,
    /// Name of the factor whose levels are compared.
    pub factor: String,
    /// The levels of all other factors, which the arms have in common.
    #[serde(default, skip_serializing_if = "Point::is_empty")]
    pub levels: Point,
    /// The levels by which the suite differs from other suites of the run, such as `phase=start`.
    #[serde(default, skip_serializing_if = "Point::is_empty")]
    pub conditions: Point,
    /// Description of a sample: the part of a process's life that was timed.
    pub sample: String,
    /// The comparisons, in the order of the arms.
    pub comparisons: Vec<SuiteComparison>,
    /// The versions of which several builds were measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub builds: Vec<BuildGroup>,
}

impl Suite {
    /// Returns whether the arm of this experiment was compared in this suite.
    pub fn has(&self, experiment: &str, arm: &Arm) -> bool {
        self.experiment == experiment && other_levels(arm, &self.factor) == self.levels
    }
}

/// Returns the levels of all factors but this one.
fn other_levels(arm: &Arm, factor: &str) -> Point {
    arm.point.only(|other, _| other != factor)
}

/// Two arms compared over a suite of workloads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SuiteComparison {
    /// Name of the arm that is compared.
    pub candidate: String,
    /// Name of the arm with which it is compared.
    pub baseline: String,
    /// `true` if each ratio is of two values from the same trial. Otherwise one arm was measured after the other, and
    /// everything that changed in between is part of the ratios.
    pub is_paired: bool,
    /// `true` if both arms are the same build. Any difference is then an effect of the environment, or chance.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_same_build: bool,
    /// The workloads that both arms completed, in alphabetical order.
    pub workloads: Vec<WorkloadRatio>,
    /// The geometric mean of the workloads' ratios; `None` if there is no workload.
    pub mean: Option<SuiteMean>,
    /// For each workload, the geometric mean of the other workloads. Empty for a single workload.
    pub without: Vec<MeanWithout>,
    /// The negative control; `None` if it was not measured in both arms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<WorkloadRatio>,
    /// The workloads that are missing on either side. They are left out on both sides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOutWorkload>,
    /// Files and modules that run at each start of one arm only. The comparison is then a comparison of environments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts: Option<UnlikeStarts>,
    /// The workloads whose times change by more than 2 % within a process, by the 95 % interval of each. Their measured
    /// passes are not steady.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drifts: Vec<WorkloadDrift>,
}

/// Files and modules that run at each start of one side only. A file of the same name with other content counts for
/// both sides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnlikeStarts {
    /// The names for the candidate.
    pub candidate: Vec<String>,
    /// The names for the baseline.
    pub baseline: Vec<String>,
}

/// The ratio of two arms for one workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkloadRatio {
    /// Name of the workload.
    pub workload: String,
    /// The factor by which the candidate is faster: the geometric mean over the trials.
    pub ratio: Estimate,
    /// The interval of the factor; `None` if there are too few trials.
    pub interval: Option<Ends>,
    /// Number of values of the candidate and of the baseline. For paired values, both are the number of pairs.
    pub values: [u64; 2],
    /// The verdict of a sequential test of the pairs, at the error of the run. For values that are not paired, the
    /// verdict of an interval, with which all workloads together are wrong in at most 5 of 100 cases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// Number of trials in which a time limit cut off a value.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub censored: u64,
}

/// A number that may be known only as a range, because a time limit cut off values. `None` stands for no bound.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The lowest possible value.
    pub low: Option<f64>,
    /// The highest possible value.
    pub high: Option<f64>,
}

impl Estimate {
    /// Returns the number, if it is known.
    pub fn value(self) -> Option<f64> {
        self.low.filter(|_| self.low == self.high)
    }
}

/// The ends of an interval. `None` stands for an end without a bound.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ends {
    /// The lower end.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// The degrees of freedom of Student's t.
    pub degrees: f64,
}

impl Ends {
    /// Returns whether the interval contains the number.
    pub fn contains(&self, number: f64) -> bool {
        self.low.is_none_or(|low| low <= number) && self.high.is_none_or(|high| number <= high)
    }
}

/// The geometric mean of a suite's ratios, with an interval for each question.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SuiteMean {
    /// The geometric mean.
    pub ratio: Estimate,
    /// The interval for this suite with these builds; `None` if there are too few trials.
    pub this_suite: Option<Ends>,
    /// The interval for workloads like these; `None` for fewer than three workloads.
    pub like_these: Option<Ends>,
    /// The verdict on the mean of this suite with these builds, at the error of its claim. `None` without such a claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
}

/// The geometric mean of all ratios but one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeanWithout {
    /// The workload that is left out.
    pub workload: String,
    /// The geometric mean of the other workloads.
    pub ratio: Estimate,
}

/// A workload without a ratio.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeftOutWorkload {
    /// Name of the workload.
    pub workload: String,
    /// Names of the arms that lack it.
    pub arms: Vec<String>,
    /// The reason why it has no ratio.
    pub reason: WorkloadLack,
}

/// The reason why a workload has no ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkloadLack {
    /// An arm did not measure the workload, or failed in at least one trial.
    Failed,
    /// Both arms reached the time limit in the same trial. The ratio can therefore be anything.
    BothStopped,
    /// The two arms measured different quantities or units.
    OtherUnit,
}

/// A change of a workload within a process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkloadDrift {
    /// Name of the workload.
    pub workload: String,
    /// Name of the arm.
    pub arm: String,
    /// The measured pass divided by the earlier passes: below 1 if passes still become faster.
    pub ratio: f64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[cfg(test)]
mod calibration;
#[cfg(test)]
mod tests;
