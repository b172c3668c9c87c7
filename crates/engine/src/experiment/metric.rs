//! What is observed, and how a trial's samples become one number.

use serde::{Deserialize, Serialize};

use crate::unit::Unit;
use crate::values::{Bounds, Values};

/// Something that is observed of an arm in a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Its name: `wall`, `time`, `fill_rate`.
    pub name: String,
    /// A line about it.
    pub about: String,
    /// The unit of its values.
    pub unit: Unit,
    /// Which way is better.
    pub better: Better,
    /// How a trial's samples become the one number that claims judge.
    pub reduce: Reduce,
}

impl Metric {
    /// A metric whose trial has one value.
    pub fn new(name: &str, about: &str, unit: Unit, better: Better) -> Metric {
        Metric { name: name.into(), about: about.into(), unit, better, reduce: Reduce::Value }
    }
}

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// Less is better: a time.
    Lower,
    /// More is better: a throughput.
    Higher,
}

impl Reduce {
    /// What is known of the number that a trial's samples come to; none where there are no samples.
    pub(crate) fn of(self, samples: impl Iterator<Item = Bounds>, scratch: &mut Values) -> Option<Bounds> {
        match self {
            Reduce::Value => samples.last(),
            Reduce::Quantile(q) => {
                scratch.clear();
                scratch.extend(samples);
                scratch.sorted().nearest_rank(q)
            }
        }
    }
}

/// How a trial's samples of one metric become one number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reduce {
    /// There is one sample; it is the number. Of several, the last.
    Value,
    /// The quantile of the samples' values (nearest rank).
    Quantile(f64),
}
