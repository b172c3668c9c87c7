//! The type of all pictures: a plot with a table of its numbers.

use serde::Serialize;

use crate::grid::{ColumnKind, Grid};
use crate::plot::Plot;

/// A plot with a table of its numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Picture {
    /// The kind of picture, which determines its order and style in the page.
    pub kind: PictureKind,
    /// The plot, which has its own title and alternative text.
    pub plot: Plot,
    /// The most important numbers of the plot.
    pub table: Table,
}

/// The kinds of pictures, by what they show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PictureKind {
    /// An overview of all claims of a run.
    Overview,
    /// The e-values of a claim, by trial.
    Evidence,
    /// The paired ratios or differences of a claim, by trial.
    Ratios,
    /// The rate of a claim, with its interval and the claimed rate.
    Rate,
    /// The values of a metric in a claim's condition, by trial.
    Values,
    /// The quantiles of a metric.
    Quantiles,
    /// The values of a metric, by trial.
    Trials,
    /// The median of a metric for each arm.
    Medians,
    /// A metric by the levels of a numeric factor.
    Sweep,
    /// A heat map: a median for each pair of names, such as two CPUs.
    Matrix,
    /// A metric over the time since its measurement began.
    Curve,
    /// The durations of the consecutive stages of a measurement.
    Waterfall,
    /// The ratios of a suite's workloads, and their geometric means.
    Forest,
}

/// The most important numbers of a plot, for readers who can't see it or need exact numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Table {
    /// The headings of the columns; the first column has the names of the rows.
    pub headings: Vec<String>,
    /// The rows, with a cell for each column.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// Creates a table with these headings and without rows.
    pub(super) fn new(headings: &[&str]) -> Table {
        Table { headings: headings.iter().map(ToString::to_string).collect(), rows: Vec::new() }
    }

    /// Returns the table as cells, as the page and the terminal draw it.
    pub(crate) fn grid(&self) -> Grid {
        let kind = |column: usize| if column == 0 { ColumnKind::Prose } else { ColumnKind::Number };
        let columns = self.headings.iter().enumerate().map(|(column, heading)| (heading.as_str(), kind(column)));
        let mut grid = Grid::with_kinds(columns);
        grid.rows.extend(self.rows.iter().map(|row| row.iter().map(|cell| cell.as_str().into()).collect()));
        grid
    }
}
