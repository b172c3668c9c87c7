//! The mistakes of a claims file, each with its place.

use std::fmt;
use std::path::Path;

use crate::claim::Place;
use crate::names::suggestion;

/// All mistakes of a claims file, or of several that do not fit together. Its text has one mistake a
/// line, in the order in which they stand in the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", one_a_line(.mistakes))]
pub struct ClaimsFileError {
    /// The mistakes, never none.
    pub mistakes: Vec<Mistake>,
}

fn one_a_line(mistakes: &[Mistake]) -> String {
    mistakes.iter().map(Mistake::to_string).collect::<Vec<_>>().join("\n")
}

/// One mistake: `claims.toml:3:14: unknown variant …`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Where.
    pub place: Place,
    /// What is wrong, and what is allowed.
    pub message: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// Collects the mistakes of one file while it is read.
pub(super) struct Notes<'a> {
    file: &'a Path,
    text: &'a str,
    mistakes: Vec<Mistake>,
}

impl<'a> Notes<'a> {
    pub(super) fn new(text: &'a str, file: &'a Path) -> Self {
        Notes { file, text, mistakes: Vec::new() }
    }

    /// Notes a mistake at a byte of the text. What the message quotes may hold anything: characters
    /// that would break the line or steer the terminal become spaces.
    pub(super) fn add(&mut self, offset: usize, message: impl Into<String>) {
        let message = message.into().replace(char::is_control, " ");
        self.mistakes.push(Mistake { place: self.place(offset), message });
    }

    /// Line and column of a byte of the text.
    pub(super) fn place(&self, offset: usize) -> Place {
        let before = &self.text[..self.text.floor_char_boundary(offset)];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Place {
            file: self.file.to_path_buf(),
            line: 1 + before.matches('\n').count(),
            column: 1 + before[line_start..].chars().count(),
        }
    }

    /// How many mistakes there are so far.
    pub(super) fn count(&self) -> usize {
        self.mistakes.len()
    }

    /// The value when there were no mistakes, else all of them in the file's order.
    pub(super) fn finish<T>(mut self, value: T) -> Result<T, ClaimsFileError> {
        self.mistakes.sort_by_key(|mistake| (mistake.place.line, mistake.place.column));
        match self.mistakes.is_empty() {
            true => Ok(value),
            false => Err(ClaimsFileError { mistakes: self.mistakes }),
        }
    }
}

/// The message for a word that is not among the known ones.
pub(super) fn unknown<'k>(what: &str, word: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let list = if known.is_empty() { "there are none".into() } else { format!("known are {}", known.join(", ")) };
    format!("unknown {what} `{word}`; {list}{}", suggestion(word, known).unwrap_or_default())
}
