//! How the table of `compare` is laid out.

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

impl TableLayout {
    /// Factor and symbol of the prefix that a value is written with.
    pub(crate) fn prefix(self, unit: Unit, value: f64) -> (f64, &'static str) {
        match (unit, self.time_unit) {
            (Unit::Nanosecond, Some(TimeUnit::Microsecond)) => (1e3, "µs"),
            (Unit::Nanosecond, Some(TimeUnit::Millisecond)) => (1e6, "ms"),
            (Unit::Nanosecond, Some(TimeUnit::Second)) => (1e9, "s"),
            _ => unit.prefix(value),
        }
    }
}
