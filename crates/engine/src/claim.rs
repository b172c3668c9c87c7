//! Claims: statements about trials, the share of trials for which they must hold, and the allowed probability of a
//! wrong verdict.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::experiment::{Arm, Better, Metric};
use crate::predicate::{Condition, Predicate};
use crate::unit::Unit;
use crate::values::Bounds;

/// A claim with all names resolved and every quantity converted to its metric's unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// Id of the claim, unique in a run, such as `sum.kahan-avx512-8x-naive`.
    pub id: String,
    /// The claim as a sentence.
    pub says: String,
    /// Origin of the claim, such as a document or a URL; empty if the user made the claim.
    pub source: String,
    /// The figure that the claim states, as written in the source.
    pub source_value: String,
    /// The reasons why the claim should hold, and the conditions under which it will not.
    pub analysis: String,
    /// The claim restated as a rate of successful trials, if `says` has another form.
    pub restated: String,
    /// Id of the experiment that measures the claim.
    pub experiment: String,
    /// The statement about trials that is judged. It makes the sentence in `says` precise.
    pub asked: Hypothesis,
    /// Share of the trials in which the tests of `asked` must be true, in (0, 1).
    pub rate: f64,
    /// Highest probability that the verdict on this claim is wrong. The claims with `None` share the rest of the run's
    /// error probability equally.
    pub error: Option<f64>,
    /// Number of trials that are judged together, as a set. A verdict is only possible after a complete set. Trials of
    /// one set may depend on one another (such as requests drawn without replacement), but different sets must be
    /// independent.
    pub look_every: u64,
    /// Limit of the measuring time for this claim; no trial starts after it.
    pub max_time: Option<Duration>,
    /// Maximum number of trials for this claim.
    pub max_trials: Option<u64>,
    /// Indices of additional metrics by which the two arms are compared, in the same trials. Each of these comparisons
    /// may be wrong with a probability of at most the claim's error. These probabilities are not part of the run's
    /// error probability.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<usize>,
    /// Levels at which the tails of the two arms are compared, such as 0.99. A tail has the values beyond its level: the
    /// largest ones, or the smallest ones if higher values are better. The comparison and its tails share the claim's
    /// error equally.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tails: Vec<f64>,
    /// Position of the claim in a claims file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
}

/// The method by which a claim's trials are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Judging {
    /// Judges the rate of successes. Each of the verdicts "holds" and "refuted" gets the full error probability,
    /// because only one of them can be wrong.
    Rate,
    /// Judges a single trial, because the metric is deterministic (an error bound, a size).
    Exact,
    /// Judges whether the candidate is faster or slower. Each of these two answers gets half of the error probability.
    /// Ties are dropped. `compare` judges a command against its reference in this way.
    Order,
}

/// A statement about trials, in the form in which it is judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hypothesis {
    /// The method by which trials are judged.
    pub judging: Judging,
    /// Largest difference that does not matter; `None` for no margin. A rate within this distance of the claimed rate
    /// need not be distinguished from the claimed rate, so the measurement always ends. For [`Judging::Order`], ratios
    /// this close to 1 count as the same.
    #[serde(default)]
    pub margin: Option<f64>,
    /// The tests that a trial must pass. A trial counts against the claim if any of the tests is false.
    pub tests: Vec<Test>,
}

/// A condition that is true or false in each trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Test {
    /// Compares the values of two arms in the same trial.
    Versus {
        /// Metric by which the two arms are compared.
        measure: Measure,
        /// The subject of the claim. It is compared with the baseline.
        candidate: Arm,
        /// The arm with which the candidate is compared.
        baseline: Arm,
        /// The way in which the values of the two arms are combined into one number: as a ratio or as a difference.
        scale: Effect,
        /// The limits of the ratio or difference. The test is true in a trial if the number lies within them.
        bound: Bound,
    },
    /// Checks a predicate on the metrics of one arm.
    Predicate {
        /// The arm whose metrics are checked.
        arm: Arm,
        /// The predicate as it is written in a claims file.
        predicate: String,
        /// The only metric in the predicate, apart from the exit code; `None` if there is no such metric, or more than
        /// one.
        measure: Option<Measure>,
        /// The comparisons in the predicate, all of which must be true.
        conditions: Vec<Condition>,
    },
}

/// A metric's name and unit, and the direction that is better.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// Name of the metric, or an expression over metrics.
    pub metric: String,
    /// Unit in which the values of the metric are recorded.
    pub unit: Unit,
    /// The direction that is better for this metric: lower or higher values.
    pub better: Better,
    /// If `metric` is an expression: the metrics from which its values are computed. Otherwise the list is empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<String>,
}

impl From<&Metric> for Measure {
    fn from(metric: &Metric) -> Measure {
        Measure { metric: metric.name.clone(), unit: metric.unit, better: metric.better, inputs: Vec::new() }
    }
}

impl Measure {
    /// Returns the names of the recorded metrics that this measure needs.
    pub(crate) fn recorded(&self) -> Vec<&str> {
        match self.inputs.as_slice() {
            [] => vec![&self.metric],
            inputs => inputs.iter().map(String::as_str).collect(),
        }
    }
}

impl Hypothesis {
    /// Returns whether the hypothesis has exactly one test, and this test compares two arms.
    pub fn is_comparison(&self) -> bool {
        matches!(self.tests.as_slice(), [Test::Versus { .. }])
    }

    /// Returns the quantile that decides the claim, among the paired ratios or differences of all trials. For example,
    /// the claim "at least x in a share `rate` of the trials" is about the (1 − rate)-quantile. Returns `None` if the
    /// claim compares no arms.
    pub fn quantile(&self, rate: f64) -> Option<f64> {
        let [Test::Versus { bound, .. }] = self.tests.as_slice() else { return None };
        Some(match bound {
            _ if self.judging != Judging::Rate => 0.5,
            Bound::AtLeast(_) => 1.0 - rate,
            Bound::AtMost(_) => rate,
            Bound::Within(..) => 0.5,
        })
    }
}

impl Test {
    /// Returns the test that checks whether this predicate is true for an arm.
    pub fn predicate(arm: Arm, predicate: Predicate) -> Test {
        let (text, measure) = (predicate.to_string(), predicate.measure().cloned());
        Test::Predicate { arm, predicate: text, measure, conditions: predicate.0 }
    }

    /// Returns the arms and recorded metrics whose values the test needs.
    pub fn observed(&self) -> Vec<(&Arm, &str)> {
        let arms = self.arms();
        let metrics = self.measures().into_iter().flat_map(Measure::recorded);
        metrics.flat_map(|metric| arms.iter().map(move |arm| (*arm, metric))).collect()
    }

    /// Returns the measures that the test compares.
    pub fn measures(&self) -> Vec<&Measure> {
        match self {
            Test::Versus { measure, .. } => vec![measure],
            Test::Predicate { conditions, .. } => conditions.iter().map(|condition| &condition.measure).collect(),
        }
    }

    /// Returns the measure that is an expression over metrics, if there is one.
    pub fn expression(&self) -> Option<&Measure> {
        self.measures().into_iter().find(|measure| !measure.inputs.is_empty())
    }

    /// Returns the arms that a trial must contain for this test.
    pub fn arms(&self) -> Vec<&Arm> {
        match self {
            Test::Versus { candidate, baseline, .. } => vec![candidate, baseline],
            Test::Predicate { arm, .. } => vec![arm],
        }
    }

    /// Returns mutable references to the arms of the test.
    #[cfg(feature = "claims")]
    pub(crate) fn arms_mut(&mut self) -> impl Iterator<Item = &mut Arm> {
        let (one, other) = match self {
            Test::Versus { candidate, baseline, .. } => (candidate, Some(baseline)),
            Test::Predicate { arm, .. } => (arm, None),
        };
        std::iter::once(one).chain(other)
    }
}

/// The number into which the values of two arms are combined. The larger it is, the better the candidate is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// The factor by which the candidate is better: baseline/candidate if lower is better, else candidate/baseline. It
    /// is undefined if a value is zero or negative.
    Ratio,
    /// The difference by which the candidate is better, in the metric's unit.
    Difference,
}

impl Effect {
    /// Returns the ratio or difference in one trial, as a range. Returns `None` for a ratio if a value is zero or
    /// negative.
    pub fn compare(self, better: Better, candidate: Bounds, baseline: Bounds) -> Option<Bounds> {
        let (worse, best) = match better {
            Better::Lower => (baseline, candidate),
            Better::Higher => (candidate, baseline),
        };
        let is_above_zero = |bounds: Bounds| bounds.value().is_none_or(|value| value > 0.0);
        match self {
            Effect::Ratio => (is_above_zero(worse) && is_above_zero(best)).then(|| worse.over(best)),
            Effect::Difference => Some(worse.less(best)),
        }
    }
}

/// Returns the factors by which the candidate is better, one range for each trial with values of both arms.
/// `candidates` and `baselines` contain the values of one arm each, with the indices of their trials. A factor is
/// `None` if one of the two values is zero or negative.
pub(crate) fn paired_ratios(
    better: Better,
    candidates: impl Iterator<Item = (u64, Bounds)>,
    baselines: impl Iterator<Item = (u64, Bounds)>,
) -> Vec<Option<Bounds>> {
    let baselines: HashMap<u64, Bounds> = baselines.collect();
    let ratio = |(trial, candidate)| Some(Effect::Ratio.compare(better, candidate, *baselines.get(&trial)?));
    candidates.filter_map(ratio).collect()
}

/// A condition on a number: it must be at least a value, at most a value, or between two values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The number is at least this value.
    AtLeast(f64),
    /// The number is at most this value.
    AtMost(f64),
    /// The number is between the two values, or equal to one of them.
    Within(f64, f64),
}

impl Bound {
    /// Returns whether the value satisfies the bound; always `false` for NaN.
    pub fn admits(self, value: f64) -> bool {
        match self {
            Bound::AtLeast(low) => value >= low,
            Bound::AtMost(high) => value <= high,
            Bound::Within(low, high) => (low..=high).contains(&value),
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::AtLeast(low) => write!(f, "at least {low}"),
            Bound::AtMost(high) => write!(f, "at most {high}"),
            Bound::Within(low, high) => write!(f, "from {low} to {high}"),
        }
    }
}

impl Claim {
    /// Returns the claim that `compare` judges: the candidate is faster than the baseline, as measured by the metric
    /// `time`.
    pub fn order(experiment: &str, time: &Metric, candidate: &Arm, baseline: &Arm) -> Claim {
        let says = format!("{candidate} is faster than {baseline}");
        let (measure, id) = (time.into(), candidate.to_string());
        let (candidate, baseline) = (candidate.clone(), baseline.clone());
        let test = Test::Versus { measure, candidate, baseline, scale: Effect::Ratio, bound: Bound::AtLeast(1.0) };
        let claim = Claim::in_half(experiment, id, says, test);
        let asked = Hypothesis { judging: Judging::Order, ..claim.asked };
        Claim { restated: String::new(), asked, ..claim }
    }

    /// Returns the claim that `test` is true in at least half of the trials. `says` is this claim as a sentence.
    pub fn in_half(experiment: &str, id: String, says: String, test: Test) -> Claim {
        Claim {
            id,
            says,
            source: String::new(),
            source_value: String::new(),
            analysis: String::new(),
            restated: "In at least half of the trials.".into(),
            experiment: experiment.to_string(),
            asked: Hypothesis { judging: Judging::Rate, margin: None, tests: vec![test] },
            rate: 0.5,
            error: None,
            look_every: 1,
            max_time: None,
            max_trials: None,
            counters: Vec::new(),
            tails: Vec::new(),
            place: None,
        }
    }

    /// Returns this claim, changed so that it compares its arms by another metric.
    #[must_use]
    pub fn by(mut self, metric: &Metric) -> Claim {
        for test in &mut self.asked.tests {
            if let Test::Versus { measure, candidate, baseline, .. } = test {
                *measure = metric.into();
                let better = if metric.better == Better::Higher { "more" } else { "less" };
                self.says = format!("{candidate} has {better} {} than {baseline}", metric.name);
            }
        }
        self
    }

    /// Returns the arms that a trial must contain for this claim, without duplicates.
    pub fn arms(&self) -> Vec<&Arm> {
        let mut arms: Vec<&Arm> = self.asked.tests.iter().flat_map(Test::arms).collect();
        arms.sort_unstable();
        arms.dedup();
        arms
    }
}

/// A position in a claims file. Displays as `FILE:LINE:COLUMN`, which editors and terminals recognise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Path of the file, as the user wrote it.
    pub file: PathBuf,
    /// Line number, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file.display(), self.line, self.column)
    }
}
