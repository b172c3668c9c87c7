//! Claims: a predicate on a trial, the rate at which it must hold, and the error it may be wrong with.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::experiment::{Arm, Better, Spec};
use crate::predicate::Predicate;
use crate::values::Bounds;

/// A claim, resolved: every name in it exists, and every quantity is in its metric's unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// Its name, unique in a run: `sum.kahan-avx512-8x-naive`.
    pub id: String,
    /// The claim as a sentence.
    pub says: String,
    /// Who says so: a document, a URL; empty when it is the user's own.
    #[serde(default)]
    pub source: String,
    /// The source's figure, as it is written there.
    #[serde(default)]
    pub source_value: String,
    /// Why it should hold, and when it will not.
    #[serde(default)]
    pub analysis: String,
    /// How a sentence that is not Bernoulli was put.
    #[serde(default)]
    pub restated: String,
    /// The experiment that measures it.
    pub experiment: String,
    /// What must be true of a trial; with several, all of them.
    pub tests: Vec<Test>,
    /// How it is judged.
    pub judging: Judging,
    /// The rate at which the tests must hold, in (0, 1).
    pub rate: f64,
    /// Rates this close to `rate` need not be told apart: the claim always ends.
    #[serde(default)]
    pub margin: Option<f64>,
    /// The chance of a wrong verdict that this claim is given; `None`: an even share of the run's.
    #[serde(default)]
    pub error: Option<f64>,
    /// The evidence is looked at only after each set of this many trials: trials within a set may
    /// depend on one another (requests drawn without replacement), sets do not.
    #[serde(default = "one")]
    pub look_every: u64,
    /// No new trial for this claim after that much measuring of it.
    #[serde(default)]
    pub max_time: Option<Duration>,
    /// No new trial for this claim after that many.
    #[serde(default)]
    pub max_trials: Option<u64>,
    /// Metrics (indices into the spec's) by which its two arms are compared besides, with the trials that it takes
    /// itself: no trial is added for them, and each has the claim's error once more, outside of the run's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<usize>,
}

fn one() -> u64 {
    1
}

/// How a claim's outcomes are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Judging {
    /// By rate, in both directions at full error: holds or refuted.
    Rate,
    /// Once: the metric has no chance in it (an error bound, a size).
    Exact,
    /// Two-sided, ties dropped, half of the error in each direction: faster, slower. What `compare`
    /// asks of a command against its reference.
    Order,
}

/// What must be true of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Test {
    /// How the candidate compares with the baseline in the same trial.
    Versus {
        /// Which metric (index into the spec's).
        metric: usize,
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
        /// The predicate.
        predicate: Predicate,
    },
}

impl Test {
    /// What it speaks of: arms, and metrics of theirs (indices into the spec's).
    pub fn observed(&self) -> Vec<(&Arm, usize)> {
        match self {
            Test::Versus { metric, candidate, baseline, .. } => vec![(candidate, *metric), (baseline, *metric)],
            Test::Predicate { arm, predicate } => predicate.0.iter().map(|part| (arm, part.metric)).collect(),
        }
    }

    /// The arms that a trial must hold for this test.
    pub fn arms(&self) -> Vec<&Arm> {
        match self {
            Test::Versus { candidate, baseline, .. } => vec![candidate, baseline],
            Test::Predicate { arm, .. } => vec![arm],
        }
    }

    /// The same, to be changed.
    #[cfg(feature = "claims")]
    pub(crate) fn arms_mut(&mut self) -> impl Iterator<Item = &mut Arm> {
        let (one, other) = match self {
            Test::Versus { candidate, baseline, .. } => (candidate, Some(baseline)),
            Test::Predicate { arm, .. } => (arm, None),
        };
        std::iter::once(one).chain(other)
    }
}

/// How two arms' values become one number, the effect, larger when the candidate is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// How many times better the candidate is: baseline/candidate where lower is better, else the
    /// inverse. Values of zero or below are an error.
    Ratio,
    /// By how much the candidate is better, in the metric's unit.
    Difference,
}

impl Effect {
    /// What is known of how much better the candidate is in a trial; none where that has no meaning: a ratio of values
    /// of zero or below.
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

/// How many times better one arm is than another in each trial that both have a number of, as far as that is known;
/// none where a number is zero or below.
pub(crate) fn paired_ratios(
    better: Better,
    candidates: impl Iterator<Item = (u64, Bounds)>,
    baselines: impl Iterator<Item = (u64, Bounds)>,
) -> Vec<Option<Bounds>> {
    let baselines: HashMap<u64, Bounds> = baselines.collect();
    let ratio = |(trial, candidate)| Some(Effect::Ratio.compare(better, candidate, *baselines.get(&trial)?));
    candidates.filter_map(ratio).collect()
}

/// A bound on a number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// At least that.
    AtLeast(f64),
    /// At most that.
    AtMost(f64),
    /// From the first to the second, both included.
    Within(f64, f64),
}

impl Bound {
    /// Whether the value keeps to it. NaN does not.
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
    /// That a candidate is faster than a baseline by the experiment's first metric: what `compare` asks.
    pub fn order(experiment: &str, candidate: &Arm, baseline: &Arm) -> Claim {
        let (scale, bound) = (Effect::Ratio, Bound::AtLeast(1.0));
        let says = format!("{candidate} is faster than {baseline}");
        let test = Test::Versus { metric: 0, candidate: candidate.clone(), baseline: baseline.clone(), scale, bound };
        let judging = Judging::Order;
        Claim { restated: String::new(), judging, ..Claim::in_half(experiment, candidate.to_string(), says, test) }
    }

    /// Returns a claim that a test is true in at least half of the trials.
    pub fn in_half(experiment: &str, id: String, says: String, test: Test) -> Claim {
        Claim {
            id,
            says,
            source: String::new(),
            source_value: String::new(),
            analysis: String::new(),
            restated: "In at least half of the trials.".into(),
            experiment: experiment.to_string(),
            tests: vec![test],
            judging: Judging::Rate,
            rate: 0.5,
            margin: None,
            error: None,
            look_every: 1,
            max_time: None,
            max_trials: None,
            counters: Vec::new(),
        }
    }

    /// The same comparison by another metric.
    #[must_use]
    pub fn by(mut self, spec: &Spec, metric: usize) -> Claim {
        for test in &mut self.tests {
            if let Test::Versus { metric: by, candidate, baseline, .. } = test {
                *by = metric;
                let better = if spec.metrics[metric].better == Better::Higher { "more" } else { "less" };
                self.says = format!("{candidate} has {better} {} than {baseline}", spec.metrics[metric].name);
            }
        }
        self
    }

    /// The arms that a trial must hold for this claim, each once.
    pub fn arms(&self) -> Vec<&Arm> {
        let mut arms: Vec<&Arm> = self.tests.iter().flat_map(Test::arms).collect();
        arms.sort_unstable();
        arms.dedup();
        arms
    }
}

/// A place in a file of claims, as editors and terminals understand it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The file, as it was named.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file.display(), self.line, self.column)
    }
}
