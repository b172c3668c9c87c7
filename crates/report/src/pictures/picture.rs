//! A picture: a plot with what it says as a table.

use serde::Serialize;

use crate::grid::{ColumnKind, Grid};
use crate::plot::Plot;

/// A plot with what it says as a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Picture {
    /// What it is a picture of.
    pub kind: PictureKind,
    /// The plot.
    pub plot: Plot,
    /// Its key numbers.
    pub table: Table,
}

/// What a picture shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PictureKind {
    /// All claims of a run.
    Overview,
    /// A claim's evidence, trial by trial.
    Evidence,
    /// A claim's paired ratios or differences, in the order measured.
    Ratios,
    /// Where a claim's rate lies.
    Rate,
    /// The values that a claim's predicate speaks of.
    Values,
    /// A metric by quantile.
    Quantiles,
    /// A metric trial by trial.
    Trials,
    /// Medians side by side.
    Medians,
    /// A metric over a factor's levels.
    Sweep,
    /// A value for each pair.
    Matrix,
    /// A metric over time.
    Curve,
    /// A time in parts.
    Waterfall,
}

/// The key numbers of a plot, for those who can't see it or want them exactly.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Table {
    /// The columns' headings; the first column names the row.
    pub headings: Vec<String>,
    /// The rows, each with a cell a column.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table.
    pub(super) fn new(headings: &[&str]) -> Table {
        Table { headings: headings.iter().map(ToString::to_string).collect(), rows: Vec::new() }
    }

    /// The table as the page and the terminal draw tables.
    pub(crate) fn grid(&self) -> Grid {
        let kind = |column: usize| if column == 0 { ColumnKind::Prose } else { ColumnKind::Number };
        let columns: Vec<(&str, ColumnKind)> =
            self.headings.iter().enumerate().map(|(column, heading)| (heading.as_str(), kind(column))).collect();
        let mut grid = Grid::new(&columns);
        grid.rows.extend(self.rows.iter().map(|row| row.iter().map(|cell| cell.as_str().into()).collect()));
        grid
    }
}
