//! Errors of reading samples from a file or a run.

use crate::evidence;

/// Returns a name from a file as a single line, with control characters escaped.
pub(super) fn shown(name: &str) -> String {
    let each = name.chars().map(|c| if c.is_control() { c.escape_default().to_string() } else { c.into() });
    each.collect()
}

/// The error for a sample that could not be read from a file or a run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be read, is not text, has no column of the requested name, or has lines with different numbers
    /// of fields.
    #[error("{0}")]
    File(String),
    /// There are more numbers, or more blank lines, than the caller allows.
    #[error("{0}")]
    TooLong(String),
    /// It is unclear which column is meant, or the column contains something other than numbers.
    #[error("{0}")]
    Column(String),
    /// The run lacks the requested metric or arm, or several of its arms match the request.
    #[error("{run}: {problem}")]
    Run {
        /// Path of the run's folder.
        run: String,
        /// Description of the problem, with the names that the run contains.
        problem: String,
    },
    /// The evidence of the run could not be read.
    #[error(transparent)]
    Evidence(#[from] evidence::Error),
}
