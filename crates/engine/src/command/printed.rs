//! Metrics whose values are figures that commands print. Examples are `throughput=([0-9.]+) MB/s` and
//! `p99=json:.stats.p99`.

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
pub(super) use read::FigureReader;

/// A metric whose values each command prints, as plain data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PrintedMetric {
    /// Name of the metric. It begins with a letter and contains letters, digits, `_`, `-` and `.`.
    pub name: String,
    /// The pattern that finds the figure in the output.
    pub pattern: Pattern,
    /// The unit in which the metric is recorded, such as nanoseconds for a figure in `ms`.
    pub unit: Unit,
    /// Factor that converts the printed figure to [`unit`](Self::unit), such as 1e6 for `MB/s`.
    pub scale: f64,
    /// The direction that is better: lower or higher values. `None` if neither the user nor the unit determines it.
    pub better: Option<Better>,
}

/// A pattern that finds a figure in the output of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// A regular expression with one group, which is applied to each line of standard output and standard error. The
    /// last match counts.
    Regex(String),
    /// A path such as `.stats.p99` into the last JSON value of the output.
    Json(String),
}

impl Pattern {
    /// Returns the pattern as people write it: `([0-9.]+) MB/s`, `json:.stats.p99`.
    pub fn spelled(&self) -> String {
        match self {
            Pattern::Regex(regex) => regex.clone(),
            Pattern::Json(path) => format!("json:{path}"),
        }
    }
}

impl PrintedMetric {
    /// Returns the metric that trials observe. If the better direction is not known, lower values count as better.
    pub(super) fn metric(&self) -> Metric {
        let about = format!("figure that the command prints: {}", self.pattern.spelled());
        Metric::new(&self.name, &about, self.unit, self.better.unwrap_or(Better::Lower))
    }
}
