//! A table before it is drawn: the terminal and Markdown show the same cells.

/// A table of text.
pub(crate) struct Grid {
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Cell>>,
}

/// A column's heading and how it is laid out.
pub(crate) struct Column {
    pub heading: String,
    pub kind: Kind,
    /// Where the table would be too wide, its cells stand below those of the column before it: those at 1 first, and
    /// those at 2 where that is not enough; at 0 they never do.
    pub stacks: usize,
}

/// How a column's cells are laid out.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    /// Sentences and names: wrapped where the width asks for it.
    Prose,
    /// Numbers: to the right, kept whole.
    Number,
    /// One of a few words, in its colour; kept whole.
    Word,
}

/// What stands in a cell.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    /// Our own words and figures, or a sentence of somebody's.
    Text(String),
    /// A command, or another name that is shown as code where that can be done.
    Code(String),
}

impl Grid {
    pub fn new(columns: &[(&str, Kind)]) -> Grid {
        let column = |&(heading, kind): &(&str, Kind)| Column { heading: heading.into(), kind, stacks: 0 };
        Grid { columns: columns.iter().map(column).collect(), rows: Vec::new() }
    }

    /// The table with these columns allowed to stand below the ones before them.
    pub fn stacking(self, headings: &[&str]) -> Grid {
        self.stacking_at(1, headings)
    }

    /// The same at a level: what is at 1 stands below first, what is at 2 where that is not enough.
    pub fn stacking_at(mut self, level: usize, headings: &[&str]) -> Grid {
        for column in self.columns.iter_mut().filter(|column| headings.contains(&column.heading.as_str())) {
            column.stacks = level;
        }
        self
    }

    /// Whether there is nothing in it to draw.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() || self.columns.is_empty()
    }

    /// The table without the columns of which no row has anything to say.
    pub fn without_empty_columns(mut self) -> Grid {
        let empty = |index: usize| self.rows.iter().all(|row| row[index].text().is_empty());
        let kept: Vec<bool> = (0..self.columns.len()).map(|index| !empty(index)).collect();
        let mut flags = kept.iter().cycle();
        self.columns.retain(|_| *flags.next().unwrap_or(&true));
        for row in &mut self.rows {
            let mut flags = kept.iter();
            row.retain(|_| *flags.next().unwrap_or(&true));
        }
        self
    }
}

impl Cell {
    pub fn text(&self) -> &str {
        match self {
            Cell::Text(text) | Cell::Code(text) => text,
        }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Cell::Text(text.into())
    }
}
