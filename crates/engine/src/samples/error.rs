//! What can be wrong with a file or a run that samples are read from.

use crate::evidence;

/// A name that others chose, in one line: control characters as escapes.
pub(super) fn shown(name: &str) -> String {
    let each = name.chars().map(|c| if c.is_control() { c.escape_default().to_string() } else { c.into() });
    each.collect()
}

/// A file or a run has no sample that could be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file could not be read.
    #[error("{file} could not be read: {reason}")]
    Read {
        /// The file's name.
        file: String,
        /// What the system said.
        reason: std::io::Error,
    },
    /// There is nothing in it.
    #[error("{file} has no numbers in it")]
    Empty {
        /// The file's name.
        file: String,
    },
    /// There are more numbers than were to be read.
    #[error(
        "{file} has more than {most} numbers; take a part of them at random (shuf -n {most}), or allow more with --max-values: each takes up to 17 bytes of memory"
    )]
    TooLong {
        /// The file's name.
        file: String,
        /// So many were to be read at most.
        most: usize,
    },
    /// There are more numbers than fit in memory.
    #[error(
        "{file}: there is no memory for more than {count} numbers; take a part of them at random (shuf -n {})",
        .count / 4
    )]
    NoMemory {
        /// The file's name.
        file: String,
        /// So many were read.
        count: usize,
    },
    /// There is nothing but ends of lines.
    #[error(
        "{file}:{line}: more than {most} bytes of blank lines; name the file that you mean, or allow more with --max-values"
    )]
    Blank {
        /// The file's name.
        file: String,
        /// The line, from 1.
        line: u64,
        /// So many bytes there may be in a row.
        most: usize,
    },
    /// It has bytes that no text has, or no ends of lines.
    #[error(
        "{file}:{line}: this is no text (in UTF-8) with a number in each line or field; export it as CSV, or name the file that you mean"
    )]
    NotText {
        /// The file's name.
        file: String,
        /// The line, from 1.
        line: u64,
    },
    /// Everything behind it would be one field.
    #[error(
        "{file}:{line}: the quote that is opened here is not closed; close it, or double a quote that is part of the text"
    )]
    OpenQuote {
        /// The file's name.
        file: String,
        /// The line, from 1.
        line: u64,
    },
    /// Numbers that stand in a line instead of a column.
    #[error(
        "{file}:1: more than {most} fields in a line; put one number into each line, or fewer columns into the file"
    )]
    TooManyColumns {
        /// The file's name.
        file: String,
        /// So many there may be.
        most: usize,
    },
    /// Which column is meant?
    #[error("{file} has {} columns: name one with --column, {columns}", .count)]
    SeveralColumns {
        /// The file's name.
        file: String,
        /// How many there are.
        count: usize,
        /// Their names, or how to number them.
        columns: String,
    },
    /// Which of the columns is meant?
    #[error("{file} has {count} columns `{column}`: name one by its number with --column, {numbers}")]
    SameName {
        /// The file's name.
        file: String,
        /// The name that they share.
        column: String,
        /// How many there are.
        count: usize,
        /// Their numbers.
        numbers: String,
    },
    /// The column is not there.
    #[error("{file} has no column `{column}`: {known}")]
    NoColumn {
        /// The file's name.
        file: String,
        /// What was asked for.
        column: String,
        /// What there is.
        known: String,
    },
    /// A line has more or fewer fields than the first one.
    #[error(
        "{file}:{line}: {found} field{} where the first line has {expected}{}",
        if *.found == 1 { "" } else { "s" },
        if (*.expected, *.found) == (1, 2) { ": a decimal comma is to be a point, and text with commas in quotes" } else { "" }
    )]
    Ragged {
        /// The file's name.
        file: String,
        /// The line, from 1.
        line: u64,
        /// Its fields.
        found: usize,
        /// Those of the first line.
        expected: usize,
    },
    /// What should be a number is not.
    #[error("{file}:{line}:{column}: {problem}; leave the line out, mend it, or name another column with --column")]
    Field {
        /// The file's name.
        file: String,
        /// The line, from 1.
        line: u64,
        /// The column's number, from 1.
        column: usize,
        /// What is wrong.
        problem: String,
    },
    /// The run has no such arm, or several.
    #[error("{run}: {problem}")]
    Run {
        /// The run's folder.
        run: String,
        /// What is wrong, and what there is.
        problem: String,
    },
    /// The run can't be read.
    #[error(transparent)]
    Evidence(#[from] evidence::Error),
}
