use serde::Serialize;

use crate::grid::{Grid, Kind};

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
        let kind = |column: usize| if column == 0 { Kind::Prose } else { Kind::Number };
        let columns: Vec<(&str, Kind)> =
            self.headings.iter().enumerate().map(|(column, heading)| (heading.as_str(), kind(column))).collect();
        let mut grid = Grid::new(&columns);
        grid.rows.extend(self.rows.iter().map(|row| row.iter().map(|cell| cell.as_str().into()).collect()));
        grid
    }
}
