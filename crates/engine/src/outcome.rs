//! The outcome of a run as plain data. Serialised as JSON, it is the output of `--format json`.

use ascertain_sys::machine::{CpuTimes, Machine};
use serde::{Deserialize, Serialize};

use crate::claim::Hypothesis;
use crate::experiment::{Arm, Better, Point};
use crate::finding::{Estimated, Reason, Remark, Threat, Unlike, known};
use crate::plan::Table;
use crate::suite::Suite;
use crate::unit::Unit;
use crate::values::relative_half_width;
use crate::windows::WindowReport;

/// Name and version of the schema of [`Outcome`] in JSON.
pub const SCHEMA: &str = "ascertain.run/1";

/// The outcome of a whole run. Values that are not known are `None`, and `null` in JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Name and version of the schema, [`SCHEMA`].
    pub schema: String,
    /// Id of the run, which is the name of its folder.
    pub run_id: String,
    /// The machine on which the run was measured: its hardware and its settings.
    pub machine: Machine,
    /// CPU times of the machine during the run, including time that the hypervisor gave to other
    /// virtual machines (steal). For a continued run, this covers only the time since it was last continued. `None` for
    /// a killed run, and for a system that does not report these times.
    pub cpu_times: Option<CpuTimes>,
    /// Conditions that threaten the validity of the results.
    pub threats: Vec<Threat>,
    /// Seed of the run's random numbers.
    pub seed: u64,
    /// `true` if Ctrl-C or SIGTERM ended the run.
    pub interrupted: bool,
    /// Summaries of metrics with one value per trial: one for each arm and metric.
    pub points: Vec<PointSummary>,
    /// Summaries of metrics that have a value for each key, such as each server of a zone: one per arm, metric and key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_key: Vec<PointSummary>,
    /// Results of the claims, in the order of the plan.
    pub claims: Vec<ClaimResult>,
    /// The arms that were requested but measured only incompletely, or not at all, with the reasons.
    pub left_out: Vec<LeftOut>,
    /// Facts that experiments found out about their arms. If a continued run found other facts, the arm has several
    /// entries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<ArmFacts>,
    /// Remarks that sessions made about their arms. Kinds of remarks that this version does not know are dropped.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "known")]
    pub remarks: Vec<ArmRemark>,
    /// Comparisons of arms over a suite of workloads, for experiments that have such a suite.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suites: Vec<Suite>,
    /// The result of a long measurement; `None` for any other run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows: Option<WindowReport>,
}

impl Outcome {
    /// Returns the outcome with only those points whose arms are in one of these tables. The other points were measured
    /// only because claims needed them. If there are no tables, all points are kept. Call this before printing tables;
    /// machine-readable formats contain every point.
    pub fn asked_for(&self, tables: &[Table]) -> Outcome {
        let is_asked_for = |point: &&PointSummary| {
            let asks = |table: &Table| table.experiment == point.experiment && table.arms.contains(&point.arm);
            tables.is_empty() || tables.iter().any(asks)
        };
        let kept = |points: &[PointSummary]| points.iter().filter(is_asked_for).cloned().collect();
        Outcome { points: kept(&self.points), by_key: kept(&self.by_key), ..self.clone() }
    }

    /// Returns all points in one list, with and without keys. Each key becomes an additional level of the arm, named
    /// `key`.
    #[must_use]
    pub fn with_keys(&self) -> Vec<PointSummary> {
        let with_key = |point: &PointSummary| {
            let mut keyed = PointSummary { key: String::new(), ..point.clone() };
            keyed.arm.point = keyed.arm.point.with("key", point.key.as_str());
            keyed
        };
        self.points.iter().cloned().chain(self.by_key.iter().map(with_key)).collect()
    }

    /// Returns the outcome as JSON, to which callers may add keys. `run.json` contains the same JSON. All callers share
    /// this function so that the serialisation is compiled only once.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::to_value(self).expect("plain data with text as keys is always JSON")
    }
}

/// An arm in a row of results, serialised as the keys `variant` and `at`.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Arm")]
pub struct RowArm {
    /// Name of the variant.
    pub variant: String,
    /// The level of each factor.
    #[serde(rename = "at")]
    pub point: Point,
}

/// Facts about an arm: properties that the user did not choose, and that were the same in each of its trials. An
/// example is `congestion=cubic mss_bytes=1448`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArmFacts {
    /// Id of the experiment.
    pub experiment: String,
    /// The arm that the facts are about.
    #[serde(flatten, with = "RowArm")]
    pub arm: Arm,
    /// The facts, written as levels.
    pub facts: Point,
}

/// A remark of a session about an arm. Only the last remark of each kind is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArmRemark {
    /// Id of the experiment.
    pub experiment: String,
    /// The arm that the remark is about.
    #[serde(flatten, with = "RowArm")]
    pub arm: Arm,
    /// The content of the remark.
    pub remark: Remark,
}

/// An arm that was requested but measured only incompletely, or not at all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Id of the experiment.
    pub experiment: String,
    /// The arm that was requested.
    #[serde(flatten, with = "RowArm")]
    pub arm: Arm,
    /// The kind of obstacle that prevented the measurement.
    pub absence: Absence,
    /// Details of the obstacle: for example, what this machine lacks, or how the arm failed.
    pub reason: Reason,
}

impl LeftOut {
    /// Returns whether the entry is about the given arm of the given experiment.
    pub fn is_of(&self, experiment: &str, arm: &Arm) -> bool {
        self.experiment == experiment && self.arm == *arm
    }
}

/// The kind of obstacle that prevented a complete measurement of an arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Absence {
    /// This machine cannot measure the arm. This was known before the first trial.
    Unavailable,
    /// The arm failed or gave a wrong answer, in its first trial or in a later one.
    Failed,
    /// The run's time limit was reached before the first trial of the arm.
    Deferred,
}

/// A summary of one metric of one arm over all trials.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PointSummary {
    /// Id of the experiment.
    pub experiment: String,
    /// The arm that was measured.
    #[serde(flatten, with = "RowArm")]
    pub arm: Arm,
    /// Name of the metric.
    pub metric: String,
    /// Key of the values that are summarised, such as a server; empty for a metric without keys.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// Unit in which the values are recorded.
    pub unit: Unit,
    /// The direction that is better: lower or higher values.
    pub better: Better,
    /// `true` if each value is a share, from 0 to 1.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_share: bool,
    /// Number of values in the summary.
    pub n: u64,
    /// Median of the values; `None` if too many values were cut off.
    pub median: Option<f64>,
    /// Lower bound of the median's 95 % confidence interval; `None` if it is unknown.
    pub median_low: Option<f64>,
    /// Upper bound of the median's 95 % confidence interval; `None` if it is unknown.
    pub median_high: Option<f64>,
    /// 90th percentile of the values.
    pub p90: Option<f64>,
    /// 99th percentile of the values.
    pub p99: Option<f64>,
    /// Arithmetic mean of the values; `None` if any value was cut off.
    pub mean: Option<f64>,
    /// Sample standard deviation of the values; `None` if any value was cut off.
    pub std: Option<f64>,
    /// Smallest of the values that were observed completely.
    pub min: Option<f64>,
    /// Largest value; `None` if it is unknown because values were cut off.
    pub max: Option<f64>,
    /// Number of observations that were cut off, by their time limit or by a signal. If such observations make the
    /// median or a percentile `None`, its true value is above `limit`.
    pub censored: u64,
    /// Lower bound that holds for every value that was cut off. It is the time limit, or the shortest time after which
    /// an observation was cut off. `None` if it is not known.
    pub limit: Option<f64>,
    /// Largest number that was observed, including the times that cut-off observations had reached. The true maximum
    /// may be larger.
    pub seen: Option<f64>,
}

impl PointSummary {
    /// Returns whether the summary is about the given arm of the given experiment.
    pub fn is_of(&self, experiment: &str, arm: &Arm) -> bool {
        self.experiment == experiment && self.arm == *arm
    }
}

/// The result of a claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClaimResult {
    /// Id of the claim, unique in the run.
    pub id: String,
    /// The claim as a sentence.
    pub says: String,
    /// Origin of the claim, such as a document or a URL.
    pub source: String,
    /// The figure that the claim states, as written in the source.
    pub source_value: String,
    /// Id of the experiment that measured the claim.
    pub experiment: String,
    /// Description of the emulation on which the claim was measured, if any. The verdict then does not apply to any
    /// real network or store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulated: Option<String>,
    /// The judged statement about trials. It makes the sentence in `says` precise.
    pub asked: Hypothesis,
    /// The result of judging the claim: whether the claim holds, or why there is no answer.
    pub verdict: Verdict,
    /// The reasons for a missing verdict: for example, what is unavailable, what failed, or how much more time the
    /// claim needs.
    #[serde(rename = "reason")]
    pub reasons: Vec<Reason>,
    /// For `compare`, the answer about a command and its reference.
    pub decision: Option<Decision>,
    /// Number of trials that were judged, including ties.
    pub trials: u64,
    /// Number of trials in which the claim's tests were true.
    pub successes: u64,
    /// Number of ties: trials that were dropped because both arms did equally well.
    pub ties: u64,
    /// Number of trials with an unknown result, because a time limit or a signal cut off values that the claim's tests
    /// need. Such a trial counts against the verdict `holds`, and also against the verdict `refuted`.
    pub unknown: u64,
    /// Counts of the trials that led to the verdict. `None` if the run measured no trials after the verdict.
    pub decided: Option<Decided>,
    /// The kind of test that decided a comparison; `None` if none did.
    pub basis: Option<Basis>,
    /// `true` if measuring one arm seems to influence the next trial. Trials are then not independent.
    pub interferes: bool,
    /// `true` if there were too few trials to check whether they are alike (independent and under the same conditions).
    /// A lasting condition that affects only one arm, such as a slow core, may then have decided every trial.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undiagnosed: bool,
    /// Total duration of the judged trials, in nanoseconds. A trial that several claims share counts fully for each of
    /// them. It is 0 if it is not known, as for trials that were read from evidence.
    pub elapsed_ns: u64,
    /// Share of successes among the trials that are not ties.
    pub rate: Option<f64>,
    /// Lower bound of the confidence interval of `rate`. The probability that the interval misses the true rate is at
    /// most the claim's error; for [`Judging::Order`](crate::claim::Judging::Order), half of that.
    pub rate_low: Option<f64>,
    /// Upper bound of the confidence interval of `rate`. The probability of a miss is as for
    /// [`rate_low`](Self::rate_low).
    pub rate_high: Option<f64>,
    /// The rate that the claim states, in (0, 1).
    pub rate_claimed: f64,
    /// Highest probability that the verdict is wrong.
    pub error: f64,
    /// The factor by which the candidate is better (for `compare`: reference divided by command). It is a quantile of
    /// the paired ratios, chosen to match the claimed rate; for a rate of 0.5 it is the median. If the claim is about a
    /// difference, this field has the difference, in the metric's unit. If a predicate is about one deterministic
    /// metric, this field has the value of the metric.
    pub ratio: Option<f64>,
    /// Lower bound of the confidence interval of `ratio`. The probability of a miss is as for
    /// [`rate_low`](Self::rate_low).
    pub ratio_low: Option<f64>,
    /// Upper bound of the confidence interval of `ratio`. The probability of a miss is as for
    /// [`rate_low`](Self::rate_low).
    pub ratio_high: Option<f64>,
    /// Smallest ratio or difference in any single trial.
    pub ratio_min: Option<f64>,
    /// Largest ratio or difference in any single trial.
    pub ratio_max: Option<f64>,
    /// For an undecided comparison, an upper bound on the relative difference between the two arms. It follows from the
    /// interval of `ratio`: 0.028 means that the ratio is between 1/1.028 and 1.028.
    pub difference_below: Option<f64>,
    /// Natural logarithm of the e-value in favour of the claim: the strength of the evidence that the claim holds.
    pub log_e_holds: Option<f64>,
    /// Natural logarithm of the e-value against the claim: the strength of the evidence that the claim does not hold.
    pub log_e_refuted: Option<f64>,
    /// `true` if there is a verdict, but the rate of successes changed during the measurement.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drifted: bool,
    /// Signs that the trials are not alike: that they depend on one another, or that conditions changed. Empty if none
    /// were found.
    pub unlike: Vec<Unlike>,
    /// Median of the single metric that the claim's predicate compares, over all trials of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median: Option<f64>,
    /// The conditions of the claim's predicates that were false in any trial, with the number of such trials.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub broken: Vec<Broken>,
    /// Comparisons of the same two arms by other metrics, in the same trials. Each of them may be wrong with a
    /// probability of at most the claim's error, which the run's error does not include.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<ClaimResult>,
    /// Comparisons of the two arms' tails, one for each level of the plan. The comparison and its tails share the
    /// claim's error equally; `error` is the share of the comparison.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tails: Vec<TailResult>,
    /// A hint that the faster arm seems to have the worse tail. `None` if there is no such sign, and if the tails were
    /// compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail_hint: Option<TailHint>,
}

/// The comparison of two tails: which arm was beyond a threshold more often, in the trials that were measured. The
/// threshold of each pair is a quantile of the values of both arms in all earlier pairs. A value is beyond the threshold
/// if it is above, or below for a metric whose higher values are better. A time-out is always beyond.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TailResult {
    /// Level of the quantile, such as 0.99. If higher values are better, the quantile has the level 1 − `level`.
    pub level: f64,
    /// The answer about the candidate.
    pub decision: TailDecision,
    /// `true` if there was an answer, and later pairs prove the opposite. The answer is then withdrawn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_withdrawn: bool,
    /// Highest probability that the answer is wrong.
    pub error: f64,
    /// Number of pairs that are needed before the level counts.
    pub pairs_before: u64,
    /// Number of pairs since the level counts.
    pub pairs: u64,
    /// Number of these pairs at the answer; `None` if there was none.
    pub decided: Option<u64>,
    /// Number of pairs in which the candidate was beyond the threshold.
    pub candidate_beyond: u64,
    /// Number of pairs in which the reference was beyond the threshold.
    pub reference_beyond: u64,
    /// Number of pairs in which only the candidate was beyond the threshold.
    pub only_candidate: u64,
    /// Number of pairs in which only the reference was beyond the threshold.
    pub only_reference: u64,
    /// Number of pairs that were cut off. They count against both answers.
    pub unknown: u64,
    /// Smallest threshold of these pairs, in the metric's unit.
    pub threshold_low: Option<f64>,
    /// Largest threshold of these pairs, in the metric's unit.
    pub threshold_high: Option<f64>,
    /// Natural logarithm of the e-value for "the candidate was beyond the threshold more often".
    pub log_e_more: f64,
    /// Natural logarithm of the e-value for "the candidate was beyond the threshold less often".
    pub log_e_less: f64,
}

/// The answer about a tail of the candidate, compared with the reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TailDecision {
    /// The candidate was beyond the threshold more often.
    MoreOften,
    /// The candidate was beyond the threshold less often.
    LessOften,
    /// The run ended before an answer was possible.
    Undecided,
}

impl TailResult {
    /// Returns whether this answer makes the gate fail: the candidate was beyond the threshold more often, or less
    /// often for [`Gate::Faster`].
    #[must_use]
    pub fn fails(&self, gate: Gate) -> bool {
        self.decision
            == match gate {
                Gate::Slower => TailDecision::MoreOften,
                Gate::Faster => TailDecision::LessOften,
            }
    }
}

/// A sign that the faster arm of a comparison has the worse tail. The threshold is a quantile of all values of both
/// arms, so this is no verdict: a run that asks about tails has thresholds that were fixed before each trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TailHint {
    /// Level of the quantile, such as 0.95.
    pub level: f64,
    /// p-value of the exact sign test, of the pairs in which only one arm was beyond the threshold.
    pub p_value: f64,
    /// The threshold, in the metric's unit.
    pub threshold: f64,
    /// Number of pairs.
    pub pairs: u64,
    /// Number of pairs in which the faster arm was beyond the threshold.
    pub faster_beyond: u64,
    /// Number of pairs in which the slower arm was beyond the threshold.
    pub slower_beyond: u64,
}

/// A condition of a predicate that was false in at least one trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Broken {
    /// The condition as it is written in a claims file: `wall <= 50 ms`.
    pub condition: String,
    /// Name of the metric that the condition compares with a bound.
    pub metric: String,
    /// Number of trials in which the condition was false.
    pub trials: u64,
}

/// Counts of the trials that led to a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    /// Number of trials that were judged before the verdict, including ties and unknown trials.
    pub trials: u64,
    /// Number of these trials in which the claim's tests were true.
    pub successes: u64,
    /// Number of these trials that were ties.
    pub ties: u64,
    /// Number of these trials in which it is unknown whether the claim's tests are true, because values were cut off.
    pub unknown: u64,
}

/// The kind of test that decided a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The answer comes from a sign test, which uses only the number of pairs that each arm won. It shows that one arm
    /// wins more often.
    Signs,
    /// The answer comes from a test that also uses the size of the difference in each pair. It shows that the two arms
    /// differ, and in which direction.
    Magnitudes,
    /// The answer comes from the confidence interval of the median ratio. This interval assumes that trials are alike:
    /// independent, and under the same conditions.
    Interval,
}

/// The answer that makes the command `compare` fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    /// A command is slower than the reference.
    Slower,
    /// A command is faster than the reference.
    Faster,
}

impl Gate {
    /// Returns the [`Decision`] that makes this gate fail.
    pub fn decision(self) -> Decision {
        match self {
            Gate::Slower => Decision::Slower,
            Gate::Faster => Decision::Faster,
        }
    }
}

impl ClaimResult {
    /// Returns the precision of `ratio`: half of the width of its interval divided by the interval's middle. `0.01`
    /// means ±1 %. Returns `None` if an end of the interval is unknown.
    #[must_use]
    pub fn precision(&self) -> Option<f64> {
        relative_half_width((self.ratio_low.filter(|low| *low > 0.0)?, self.ratio_high?))
    }

    /// Returns the counts of all trials that were judged.
    pub fn judged(&self) -> Decided {
        let Self { trials, successes, ties, unknown, .. } = *self;
        Decided { trials, successes, ties, unknown }
    }

    /// Returns the counts of the trials that led to the verdict. If nothing was measured after the verdict, these are
    /// the counts of all trials.
    pub fn decisive(&self) -> Decided {
        self.decided.unwrap_or(self.judged())
    }

    /// Returns whether a confidence interval is missing because later trials contradict earlier ones. If `of_rate` is
    /// `true`, this is the interval of the rate, otherwise the interval of the ratio or difference.
    pub fn has_lost_interval(&self, of_rate: bool) -> bool {
        let is_lost = |sign: &Unlike| match sign {
            Unlike::NoneFits { of } | Unlike::Left { of } => (*of == Estimated::Rate) == of_rate,
            _ => false,
        };
        self.unlike.iter().any(is_lost)
    }
}

/// The result of judging a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The claim holds. The probability that this is wrong is at most the claim's error.
    Holds,
    /// The claim does not hold. The probability that this is wrong is at most the claim's error.
    Refuted,
    /// The run ended, by its time limit or its number of trials, before a verdict was possible.
    Undecided,
    /// This machine cannot measure an arm or a metric that the claim needs.
    Unavailable,
    /// An arm of the claim failed or gave a wrong answer.
    Failed,
    /// The remaining time was too short even for the quickest possible verdict.
    Deferred,
}

impl Verdict {
    /// All verdicts, in the order in which the enum declares them.
    pub const ALL: [Verdict; 6] = [
        Verdict::Holds,
        Verdict::Refuted,
        Verdict::Undecided,
        Verdict::Unavailable,
        Verdict::Failed,
        Verdict::Deferred,
    ];

    /// Returns the word for this verdict in tables and JSON, such as `holds`.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Refuted => "refuted",
            Verdict::Undecided => "undecided",
            Verdict::Unavailable => "unavailable",
            Verdict::Failed => "failed",
            Verdict::Deferred => "deferred",
        }
    }
}

/// The answer of `compare` about a command and its reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// The command wins more pairs than it loses. With a margin, the answer means more: the whole interval of the
    /// command's ratio is beyond the margin.
    Faster,
    /// The command loses more pairs than it wins. With a margin, the answer means more: the whole interval of the
    /// command's ratio is beyond the margin.
    Slower,
    /// The difference is within the margin, because the whole interval of the command's ratio is inside the margin.
    Same,
    /// The command is not slower than the reference by more than the margin. With [`Gate::Slower`], the comparison ends
    /// with this decision, because the gate then cannot fail.
    NotSlower,
    /// The command is not faster than the reference by more than the margin. With [`Gate::Faster`], the comparison ends
    /// with this decision, because the gate then cannot fail.
    NotFaster,
    /// The run ended, by its time limit or its number of trials, before an answer was possible.
    Undecided,
}

impl Decision {
    /// Returns the word for this decision in tables, such as `not slower`.
    pub fn word(self) -> &'static str {
        match self {
            Decision::Faster => "faster",
            Decision::Slower => "slower",
            Decision::Same => "same",
            Decision::NotSlower => "not slower",
            Decision::NotFaster => "not faster",
            Decision::Undecided => "undecided",
        }
    }
}
