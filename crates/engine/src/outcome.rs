//! What came of a run, as plain data: the JSON that every front end prints.

use ascertain_sys::machine::{CpuTimes, Machine};
use serde::{Deserialize, Serialize};

use crate::claim::{Bound, Claim, Effect, Judging, Test};
use crate::experiment::{Arm, Better, Metric, Point, Spec};
use crate::finding::{Estimated, Reason, Remark, Threat, Unlike, finding, findings, known};
use crate::plan::Table;
use crate::predicate::{Comparison, Predicate, Relation};
use crate::unit::Unit;

/// The name and version of the schema of [`Outcome`] in JSON.
pub const SCHEMA: &str = "ascertain.run/1";

/// A whole run. What is not known is `None`, in JSON `null`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// [`SCHEMA`].
    pub schema: String,
    /// The run's folder name.
    pub run_id: String,
    /// Where it ran.
    pub machine: Machine,
    /// How all its CPUs spent their time meanwhile, also what the hypervisor gave to others (steal); of a run that went
    /// on after an interruption, since then. `None` where the system doesn't tell, and for a killed run.
    #[serde(default)]
    pub cpu_times: Option<CpuTimes>,
    /// What threatens its results.
    #[serde(deserialize_with = "findings")]
    pub threats: Vec<Threat>,
    /// The seed that its plan was drawn from.
    pub seed: u64,
    /// Whether Ctrl-C or SIGTERM ended it.
    pub interrupted: bool,
    /// Each metric of each arm, but for those that are told by key.
    pub points: Vec<PointSummary>,
    /// Of metrics that are told by key, each key of each arm: each server of a zone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_key: Vec<PointSummary>,
    /// Each claim.
    pub claims: Vec<ClaimResult>,
    /// The arms that were asked for and not measured, with the reason.
    pub left_out: Vec<LeftOut>,
    /// What was found of arms, where experiments say something. Of one that a run found otherwise when it was continued
    /// there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<ArmFacts>,
    /// What sessions said of their arms beside their figures; what only another version says is left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "known")]
    pub remarks: Vec<ArmRemark>,
}

impl Outcome {
    /// What tables for people show: the points of the arms that were asked for, without those that only claims
    /// needed; where no table was asked for, all of them. Formats for programs have every point.
    pub fn asked_for(&self, tables: &[Table]) -> Outcome {
        let is_asked_for = |point: &&PointSummary| {
            let is_here = |arm: &Arm| arm.variant == point.variant && arm.point == point.at;
            let asks = |table: &Table| table.experiment == point.experiment && table.arms.iter().any(is_here);
            tables.is_empty() || tables.iter().any(asks)
        };
        let kept = |points: &[PointSummary]| points.iter().filter(is_asked_for).cloned().collect();
        Outcome { points: kept(&self.points), by_key: kept(&self.by_key), ..self.clone() }
    }

    /// All points, those that are told by key with it as one more level.
    #[must_use]
    pub fn with_keys(&self) -> Vec<PointSummary> {
        let with_key = |point: &PointSummary| {
            let at = point.at.clone().with("key", point.key.as_str());
            PointSummary { at, key: String::new(), ..point.clone() }
        };
        self.points.iter().cloned().chain(self.by_key.iter().map(with_key)).collect()
    }

    /// As JSON, to which others add. In that form `run.json` has it too, so that it is compiled once.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::to_value(self).expect("plain data with text as keys is always JSON")
    }
}

/// What nobody chose and was the same in each of an arm's trials: `congestion=cubic mss_bytes=1448`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArmFacts {
    /// The experiment.
    pub experiment: String,
    /// The arm's variant.
    pub variant: String,
    /// The arm's point.
    pub at: Point,
    /// What was found, as levels.
    pub facts: Point,
}

/// What a session said last of an arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArmRemark {
    /// The experiment.
    pub experiment: String,
    /// The arm's variant.
    pub variant: String,
    /// The arm's point.
    pub at: Point,
    /// What it said.
    pub remark: Remark,
}

/// An arm that was asked for and not measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The experiment.
    pub experiment: String,
    /// The arm's variant.
    pub variant: String,
    /// The arm's point.
    pub at: Point,
    /// What kept it from being measured.
    #[serde(default)]
    pub absence: Absence,
    /// Why: what this machine lacks, or how it failed.
    #[serde(deserialize_with = "finding")]
    pub reason: Reason,
}

impl LeftOut {
    /// Whether it is that arm of that experiment.
    pub fn is_of(&self, experiment: &str, arm: &Arm) -> bool {
        self.experiment == experiment && self.variant == arm.variant && self.at == arm.point
    }
}

/// What kept an arm from being measured, or from being measured to the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Absence {
    /// This machine can't measure it, which was known before the first trial.
    Unavailable,
    /// It failed or gave a wrong answer, at its beginning or later.
    Failed,
    /// The time was up first.
    Deferred,
    /// It was recorded by a version that did not note it.
    #[default]
    Unsaid,
}

/// One metric of one arm over the trials.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PointSummary {
    /// The experiment.
    pub experiment: String,
    /// The arm's variant.
    pub variant: String,
    /// The arm's point.
    pub at: Point,
    /// The metric.
    pub metric: String,
    /// Which of several: a server; empty of those that are not told by key.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// Its unit.
    pub unit: Unit,
    /// Which way is better.
    pub better: Better,
    /// Whether it is a share of each trial.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_share: bool,
    /// How many values.
    pub n: u64,
    /// Their median.
    pub median: Option<f64>,
    /// The lower end of the median's interval, at 95 %.
    pub median_low: Option<f64>,
    /// The upper end of the median's interval, at 95 %.
    pub median_high: Option<f64>,
    /// The 0.9-quantile.
    pub p90: Option<f64>,
    /// The 0.99-quantile.
    pub p99: Option<f64>,
    /// The mean.
    pub mean: Option<f64>,
    /// The sample standard deviation.
    pub std: Option<f64>,
    /// The least of those that came to their end.
    pub min: Option<f64>,
    /// The greatest.
    pub max: Option<f64>,
    /// How many observations were cut off, by their time limit or by a signal. What is not known for that is above
    /// `limit`.
    #[serde(default)]
    pub censored: u64,
    /// What all of those are above: their time limit, or the least that had gone by. `None` where that is not known.
    #[serde(default)]
    pub limit: Option<f64>,
    /// The most that was seen of any, which the greatest is at least.
    #[serde(default)]
    pub seen: Option<f64>,
}

impl PointSummary {
    /// Whether it is of that arm of that experiment.
    pub fn is_of(&self, experiment: &str, arm: &Arm) -> bool {
        self.experiment == experiment && self.variant == arm.variant && self.at == arm.point
    }
}

/// What became of a claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClaimResult {
    /// Its name.
    pub id: String,
    /// The claim as a sentence.
    pub says: String,
    /// Who says so.
    pub source: String,
    /// The source's figure.
    pub source_value: String,
    /// The experiment that measured it.
    pub experiment: String,
    /// What stood in for the real thing when it was measured: the verdict says nothing of anybody's network or store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulated: Option<String>,
    /// What it asks of its trials.
    pub asked: ClaimSpec,
    /// What was concluded.
    pub verdict: Verdict,
    /// Why, where the verdict is not a judgement: what is unavailable, what failed, how much more time it needs,
    /// which trials came too late to be judged.
    #[serde(rename = "reason", deserialize_with = "findings")]
    pub reasons: Vec<Reason>,
    /// `compare`'s answer for a command against its reference.
    pub decision: Option<Decision>,
    /// The trials that were judged, ties included.
    pub trials: u64,
    /// The trials in which the claim's tests were true.
    pub successes: u64,
    /// The trials that were dropped because both did equally well.
    pub ties: u64,
    /// The trials in which what was cut off, by a time limit or a signal, leaves open whether the tests are true. They
    /// count against either verdict.
    #[serde(default)]
    pub unknown: u64,
    /// The trials that gave the verdict, which is about them, where later ones were measured too.
    #[serde(default)]
    pub decided: Option<Decided>,
    /// What the answer to a comparison rests on.
    #[serde(default)]
    pub basis: Option<Basis>,
    /// Whether what an arm leaves behind seems to reach into the next trial, so that no coin decides its outcome.
    #[serde(default)]
    pub interferes: bool,
    /// Whether there were too few trials to see whether they are alike. State that lasts and belongs to one arm, such as
    /// a slow core, could then have decided all of them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undiagnosed: bool,
    /// How long the trials took that it was judged by, which other claims may have shared; 0 where that is not known,
    /// as of trials that were read back.
    #[serde(default)]
    pub elapsed_ns: u64,
    /// Successes among the trials that were no ties.
    pub rate: Option<f64>,
    /// The lower end of the rate's interval: wrong with a chance of at most the claim's error, for an order half of it.
    pub rate_low: Option<f64>,
    /// The upper end of the rate's interval: wrong with a chance of at most the claim's error, for an order half of it.
    pub rate_high: Option<f64>,
    /// The rate that was claimed.
    pub rate_claimed: f64,
    /// The error that the claim's verdict may be wrong with.
    pub error: f64,
    /// How many times better the candidate is (`compare`: reference divided by command), of a time its speed-up: the
    /// quantile of the paired ratios that matches the claimed rate, the median at 0.5. For a difference, by how much,
    /// in the metric's unit. For a predicate on one metric in which there is no chance, its value.
    pub ratio: Option<f64>,
    /// The lower end of its interval: wrong with a chance of at most the claim's error, for an order half of it.
    pub ratio_low: Option<f64>,
    /// The upper end of its interval: wrong with a chance of at most the claim's error, for an order half of it.
    pub ratio_high: Option<f64>,
    /// The smallest ratio or difference of a single trial.
    #[serde(default)]
    pub ratio_min: Option<f64>,
    /// The largest ratio or difference of a single trial.
    #[serde(default)]
    pub ratio_max: Option<f64>,
    /// Of an undecided comparison: if there is a difference, it is below this share, which follows from the ratio's
    /// interval. 0.028 stands for a ratio between 1/1.028 and 1.028.
    #[serde(default)]
    pub difference_below: Option<f64>,
    /// Natural logarithm of the evidence that it holds.
    pub log_e_holds: Option<f64>,
    /// Natural logarithm of the evidence that it does not.
    pub log_e_refuted: Option<f64>,
    /// `true` if there is a verdict and the rate changed while it was measured.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drifted: bool,
    /// Signs that the trials are not alike; empty where there are none.
    #[serde(deserialize_with = "findings")]
    pub unlike: Vec<Unlike>,
    /// The median of the one metric that its predicate speaks of, over all trials of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median: Option<f64>,
    /// The conditions of its predicates that were false in a trial, with how often each was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub broken: Vec<Broken>,
    /// How the two compare by other metrics, in the same trials: each is wrong with a chance of at most the claim's
    /// error, outside of the run's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<ClaimResult>,
}

/// A condition of a predicate that was false.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Broken {
    /// As people write it: `wall <= 50 ms`.
    pub condition: String,
    /// The metric that it is of; empty where a version did not note it.
    #[serde(default)]
    pub metric: String,
    /// In so many trials.
    pub trials: u64,
}

/// The trials that gave a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    /// So many had been judged, ties and unknown ones included.
    pub trials: u64,
    /// In so many of them the claim's tests were true.
    pub successes: u64,
    /// So many were ties.
    pub ties: u64,
    /// So many were left open by what was cut off.
    pub unknown: u64,
}

/// What the answer to a comparison rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// Who won how many pairs: that alone says that one wins more often.
    Signs,
    /// Also by how much the pairs were won: that says that the two differ, and which way.
    Magnitudes,
    /// The interval of the median ratio, which takes trials to be alike.
    Interval,
}

/// What a comparison fails for, where somebody gates on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    /// The command is slower than the reference.
    Slower,
    /// It is faster.
    Faster,
}

impl Gate {
    /// The answer that it fails for.
    pub fn decision(self) -> Decision {
        match self {
            Gate::Slower => Decision::Slower,
            Gate::Faster => Decision::Faster,
        }
    }
}

impl ClaimResult {
    /// All trials that were judged.
    pub fn judged(&self) -> Decided {
        let Self { trials, successes, ties, unknown, .. } = *self;
        Decided { trials, successes, ties, unknown }
    }

    /// The trials that the verdict is about: those that gave it, or all where there is none.
    pub fn decisive(&self) -> Decided {
        self.decided.unwrap_or(self.judged())
    }

    /// Whether the trials left the interval that earlier ones allow, or nothing is left of it, so that there is none:
    /// of the rate, or else of the ratio or difference.
    pub fn has_lost_interval(&self, of_rate: bool) -> bool {
        let is_lost = |sign: &Unlike| match sign {
            Unlike::NoneFits { of } | Unlike::Left { of } => (*of == Estimated::Rate) == of_rate,
            _ => false,
        };
        self.unlike.iter().any(is_lost)
    }
}

/// What a claim asks of its trials, with the names and units that a sentence needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClaimSpec {
    /// How its outcomes are judged.
    pub judging: Judging,
    /// Rates this close to the claimed one need not be told apart; for [`Judging::Order`]: ratios this
    /// close to 1 are the same.
    pub margin: Option<f64>,
    /// What must be true of a trial; with several, all of them.
    pub tests: Vec<TestSpec>,
}

/// One test of a claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TestSpec {
    /// How the candidate compares with the baseline.
    Versus {
        /// In what.
        measure: Measure,
        /// What the claim speaks for.
        candidate: Arm,
        /// What it is held against.
        baseline: Arm,
        /// How the two are compared.
        scale: Effect,
        /// The values for which the test is true.
        bound: Bound,
    },
    /// A predicate on one arm's metrics.
    Predicate {
        /// The arm.
        arm: Arm,
        /// The predicate as people write it.
        predicate: String,
        /// Its metric, when it has just one, the exit code aside.
        measure: Option<Measure>,
        /// Its comparisons, all of which must be true.
        #[serde(default)]
        conditions: Vec<Condition>,
    },
}

/// A comparison of a predicate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    /// What is compared.
    pub measure: Measure,
    /// How.
    pub relation: Relation,
    /// With what, in the metric's unit.
    pub bound: f64,
    /// Whether it was written in percent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_percent: bool,
}

/// A metric in a few words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// The metric's name.
    pub metric: String,
    /// Its unit.
    pub unit: Unit,
    /// Which way is better.
    pub better: Better,
}

impl ClaimSpec {
    /// What the claim asks, where `margin` is the one that it is judged with.
    pub fn of(claim: &Claim, margin: Option<f64>, spec: &Spec) -> ClaimSpec {
        let tests = claim.tests.iter().map(|test| TestSpec::of(test, spec)).collect();
        ClaimSpec { judging: claim.judging, margin, tests }
    }

    /// Whether it compares two arms and asks nothing else.
    pub fn is_comparison(&self) -> bool {
        matches!(self.tests.as_slice(), [TestSpec::Versus { .. }])
    }

    /// The quantile of the paired ratios or differences that it speaks of, where it compares two arms and nothing else:
    /// "at least x in a share `rate` of the trials" says that the (1 − rate)-quantile is at least x.
    pub fn quantile(&self, rate: f64) -> Option<f64> {
        let [TestSpec::Versus { bound, .. }] = self.tests.as_slice() else { return None };
        Some(match bound {
            _ if self.judging != Judging::Rate => 0.5,
            Bound::AtLeast(_) => 1.0 - rate,
            Bound::AtMost(_) => rate,
            Bound::Within(..) => 0.5,
        })
    }
}

impl TestSpec {
    fn of(test: &Test, spec: &Spec) -> TestSpec {
        match test.clone() {
            Test::Versus { metric, candidate, baseline, scale, bound } => {
                let measure = Measure::of(&spec.metrics[metric]);
                TestSpec::Versus { measure, candidate, baseline, scale, bound }
            }
            Test::Predicate { arm, predicate } => TestSpec::predicate(arm, &predicate, &spec.metrics),
        }
    }

    /// A predicate on an arm that has these metrics.
    pub fn predicate(arm: Arm, predicate: &Predicate, metrics: &[Metric]) -> TestSpec {
        let condition = |&Comparison { metric, relation, bound, in_percent }: &Comparison| Condition {
            measure: Measure::of(&metrics[metric]),
            relation,
            bound,
            in_percent,
        };
        TestSpec::Predicate {
            arm,
            predicate: predicate.spelled(metrics),
            measure: only_metric(predicate, metrics).map(Measure::of),
            conditions: predicate.0.iter().map(condition).collect(),
        }
    }

    /// The arms that it speaks of.
    pub fn arms(&self) -> Vec<&Arm> {
        match self {
            TestSpec::Versus { candidate, baseline, .. } => vec![candidate, baseline],
            TestSpec::Predicate { arm, .. } => vec![arm],
        }
    }
}

/// The one metric that a predicate speaks of, the exit code aside.
fn only_metric<'a>(predicate: &Predicate, metrics: &'a [Metric]) -> Option<&'a Metric> {
    let speaks_of = |(index, metric): &(usize, &Metric)| predicate.mentions(*index) && metric.name != "exit";
    let mut mentioned = metrics.iter().enumerate().filter(speaks_of);
    let (_, only) = mentioned.next()?;
    mentioned.next().is_none().then_some(only)
}

impl Measure {
    fn of(metric: &Metric) -> Measure {
        Measure { metric: metric.name.clone(), unit: metric.unit, better: metric.better }
    }
}

/// What was concluded of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It holds.
    Holds,
    /// It does not.
    Refuted,
    /// The budget ended first.
    Undecided,
    /// This machine can't measure it.
    Unavailable,
    /// The target failed or gave a wrong answer.
    Failed,
    /// Its shortest possible verdict would not fit in the time given.
    Deferred,
}

impl Verdict {
    /// Each of them.
    pub const ALL: [Verdict; 6] = [
        Verdict::Holds,
        Verdict::Refuted,
        Verdict::Undecided,
        Verdict::Unavailable,
        Verdict::Failed,
        Verdict::Deferred,
    ];

    /// The word in tables and JSON.
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

/// `compare`'s answer for a command against its reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// It wins more often than it loses; with a margin: its ratio is wholly beyond it.
    Faster,
    /// It loses more often than it wins; with a margin: its ratio is wholly beyond it.
    Slower,
    /// Its ratio is wholly inside the margin.
    Same,
    /// Its ratio is not beyond the margin on the slower side, and a gate needed no more.
    NotSlower,
    /// Its ratio is not beyond the margin on the faster side, and a gate needed no more.
    NotFaster,
    /// The budget ended first.
    Undecided,
}

impl Decision {
    /// The word in tables.
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
