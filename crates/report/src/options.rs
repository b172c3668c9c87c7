//! Options for the output that the user can choose.

use ascertain_engine::outcome::Verdict;
use ascertain_engine::unit::Unit;
use serde::{Deserialize, Serialize};

use crate::terminal::Style;

/// Options for printing a result. `run.json` stores the table layout, the plots and the selection of claims, so that
/// they also apply when the run is continued. The other options are not stored, because the continued run may be
/// printed in another format or on another terminal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RenderOptions {
    /// The format of the output.
    #[serde(skip)]
    pub format: Format,
    /// `true` to print notes about failures and exports, but no tables.
    #[serde(skip)]
    pub quiet: bool,
    /// The colours, and the width of the terminal.
    #[serde(skip)]
    pub style: Style,
    /// `true` to print the assumptions behind the answers, and their error probability.
    #[serde(skip)]
    pub explain: bool,
    /// The layout of the table of a comparison.
    pub layout: TableLayout,
    /// `true` to draw plots below the table.
    pub plot: bool,
    /// The selection of the claims that are printed, and whether they are printed as sentences.
    pub shown: Shown,
}

/// The format of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Tables and sentences for people.
    #[default]
    Table,
    /// One JSON object; its key `schema` has the name and version of its structure.
    Json,
    /// CSV with one line for each metric of an arm, or for each claim.
    Csv,
    /// Tables in Markdown, to paste into an issue or a document.
    Markdown,
}

/// The layout of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TableLayout {
    /// The order of the commands.
    pub order: Order,
    /// The unit of all times; `None` to choose the unit that fits each time.
    pub time_unit: Option<TimeUnit>,
    /// `true` to add a column with the mean and the standard deviation.
    pub mean: bool,
}

/// The selection of the claims that are printed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    /// `true` to print every verdict as a sentence, and after the sentences a table of all claims.
    pub all: bool,
    /// The verdicts that select the claims: only claims with one of these verdicts are printed, each as a sentence. If
    /// the list is empty, claims with any verdict are printed.
    pub only: Vec<Verdict>,
}

/// The order of commands in a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// The order on the command line, but each reference before the commands that are compared with it.
    #[default]
    Given,
    /// The order of ascending medians, so that the fastest command is first.
    Time,
}

/// A unit of time for a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeUnit {
    /// Times in microseconds (µs).
    Microsecond,
    /// Times in milliseconds (ms).
    Millisecond,
    /// Times in seconds (s).
    Second,
}

/// The prefixes of counts. A prefix is used if the count is at least ten times its factor: 12345 instructions are
/// `12.35 k`, but 1234 are `1234`.
const COUNTS: [(f64, &str); 3] = [(1e9, "G"), (1e6, "M"), (1e3, "k")];

impl TableLayout {
    /// Returns the prefix (factor and symbol) for writing a value.
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
