//! What a reader may choose of tables: how that of `compare` is laid out, and how much is shown of claims.

use ascertain_engine::outcome::Verdict;
use ascertain_engine::unit::Unit;
use serde::{Deserialize, Serialize};

/// What a reader may choose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TableLayout {
    /// In which order commands stand.
    pub order: Order,
    /// The unit of times; without one, whichever fits each.
    pub time_unit: Option<TimeUnit>,
    /// Whether there is a column with the mean and the standard deviation.
    pub mean: bool,
}

/// How much of a run's claims is printed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    /// Each verdict as a sentence, and a table of all claims.
    pub all: bool,
    /// Claims of these verdicts alone, each as a sentence; when empty, of every verdict.
    pub only: Vec<Verdict>,
}

/// In which order commands stand in a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// As they were given, a reference before what is held against it.
    #[default]
    Given,
    /// The fastest first, by their medians.
    Time,
}

/// A unit of time for a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeUnit {
    /// µs.
    Microsecond,
    /// ms.
    Millisecond,
    /// s.
    Second,
}

/// How many are written from ten of each on: 12345 instructions are `12.35 k`, and 1234 are counted.
const COUNTS: [(f64, &str); 3] = [(1e9, "G"), (1e6, "M"), (1e3, "k")];

impl TableLayout {
    /// Factor and symbol of the prefix that a value is written with.
    pub(crate) fn prefix(self, unit: Unit, value: f64) -> (f64, &'static str) {
        match (unit, self.time_unit) {
            (Unit::Nanosecond, Some(TimeUnit::Microsecond)) => (1e3, "µs"),
            (Unit::Nanosecond, Some(TimeUnit::Millisecond)) => (1e6, "ms"),
            (Unit::Nanosecond, Some(TimeUnit::Second)) => (1e9, "s"),
            (Unit::One, _) => COUNTS.into_iter().find(|(factor, _)| value.abs() >= 10.0 * factor).unwrap_or((1.0, "")),
            _ => unit.prefix(value),
        }
    }
}
