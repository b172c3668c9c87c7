//! Figures that commands print, as metrics: `throughput=([0-9.]+) MB/s`, `p99=json:.stats.p99`.

#[cfg(feature = "commands")]
mod json;
#[cfg(feature = "commands")]
mod parse;
#[cfg(feature = "commands")]
mod read;

use serde::{Deserialize, Serialize};

use crate::experiment::{Better, Metric};
use crate::unit::Unit;

#[cfg(feature = "commands")]
pub use parse::PrintedMetricError;
#[cfg(feature = "commands")]
pub(super) use read::Reader;

/// A figure in the output of each command, as plain data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PrintedMetric {
    /// The metric's name.
    pub name: String,
    /// Finds the figure in the output.
    pub pattern: Pattern,
    /// The unit in which the metric is recorded.
    pub unit: Unit,
    /// Factor from the printed figure to that unit: 1e6 for `MB/s`.
    pub scale: f64,
    /// Which way is better, if that was given or the unit implies it.
    pub better: Option<Better>,
}

/// Finds a figure in the output of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// A regular expression with one group, which is tried on each line of standard output and standard error. The last
    /// match counts.
    Regex(String),
    /// A path such as `.stats.p99` into the last JSON value of the output.
    Json(String),
}

impl Pattern {
    /// The pattern as it was written: `([0-9.]+) MB/s`, `json:.stats.p99`.
    pub fn spelled(&self) -> String {
        match self {
            Pattern::Regex(regex) => regex.clone(),
            Pattern::Json(path) => format!("json:{path}"),
        }
    }
}

impl PrintedMetric {
    /// Returns the metric that trials observe. A figure without a direction is one of which less is better.
    pub(super) fn metric(&self) -> Metric {
        let about = format!("figure that the command prints: {}", self.pattern.spelled());
        Metric::new(&self.name, &about, self.unit, self.better.unwrap_or(Better::Lower))
    }
}
