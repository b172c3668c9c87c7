//! The mistakes in a claims file, each with its position.

use std::fmt;
use std::path::Path;

use crate::claim::Place;

/// The error for invalid claims files: the mistakes in one file, or the conflicts between several files that cannot be
/// combined. Displays one mistake per line, in file order.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", one_a_line(.mistakes))]
pub struct ClaimsFileError {
    /// The mistakes in the files; there is at least one.
    pub mistakes: Vec<Mistake>,
}

fn one_a_line(mistakes: &[Mistake]) -> String {
    mistakes.iter().map(Mistake::to_string).collect::<Vec<_>>().join("\n")
}

/// A mistake in a claims file: `claims.toml:3:14: unknown variant …`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Position of the mistake in the file.
    pub place: Place,
    /// Description of the mistake for the user, with the values that are allowed.
    pub message: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// Collects the mistakes in a claims file while the file is read.
pub(super) struct Notes<'a> {
    file: &'a Path,
    text: &'a str,
    mistakes: Vec<Mistake>,
    /// The line and column at which each table of the file begins. Most tables are claims.
    tables: Vec<(usize, usize)>,
}

impl<'a> Notes<'a> {
    pub(super) fn new(text: &'a str, file: &'a Path) -> Self {
        Notes { file, text, mistakes: Vec::new(), tables: Vec::new() }
    }

    /// Notes that a table begins at a byte offset of the text.
    pub(super) fn begin_table(&mut self, offset: usize) {
        let place = self.place(offset);
        self.tables.push((place.line, place.column));
    }

    /// Adds a mistake at a byte offset of the text. Control characters become spaces, because the message may quote
    /// anything from the file.
    pub(super) fn add(&mut self, offset: usize, message: impl Into<String>) {
        let message = message.into().replace(char::is_control, " ");
        self.mistakes.push(Mistake { place: self.place(offset), message });
    }

    /// Converts a byte offset of the text to a line and column.
    pub(super) fn place(&self, offset: usize) -> Place {
        let before = &self.text[..self.text.floor_char_boundary(offset)];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Place {
            file: self.file.to_path_buf(),
            line: 1 + before.matches('\n').count(),
            column: 1 + before[line_start..].chars().count(),
        }
    }

    /// Returns the number of mistakes so far.
    pub(super) fn count(&self) -> usize {
        self.mistakes.len()
    }

    /// Returns the value if there are no mistakes, else the error with all mistakes, in file order. A missing key is
    /// reported at the beginning of its claim, but after the claim's other mistakes. Often one of these is the
    /// misspelled key, which is the real cause.
    pub(super) fn finish<T>(mut self, value: T) -> Result<T, ClaimsFileError> {
        self.tables.sort_unstable();
        let tables = &self.tables;
        self.mistakes.sort_by_key(|mistake| {
            let place = (mistake.place.line, mistake.place.column);
            let table = tables.partition_point(|table| *table <= place);
            (table, tables.contains(&place), place)
        });
        match self.mistakes.is_empty() {
            true => Ok(value),
            false => Err(ClaimsFileError { mistakes: self.mistakes }),
        }
    }
}
