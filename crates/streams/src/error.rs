//! The errors of expressions: the place, the problem, and the way out.

use std::fmt;
use std::ops::Range;

use crate::refusal::{Unbounded, Way};

/// The reason why an expression is refused, with its place in the text.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    text: String,
    place: Range<usize>,
    pub(crate) problem: Box<Problem>,
}

/// The problem of an expression that is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The text does not parse.
    #[error("{0}")]
    Syntax(String),
    /// The units of two parts do not fit together, or a unit cannot be printed.
    #[error("{0}")]
    Unit(String),
    /// A series is not in the evidence, or its name is ambiguous.
    #[error("{0}")]
    Series(String),
    /// A series has no value for some observations of its clock.
    #[error("{0}")]
    Gaps(String),
    /// An argument is not accepted: a factor of zero, a window that is too long, a level outside of 0 to 1.
    #[error("{0}")]
    Argument(String),
    /// Two series with different clocks are joined by index.
    #[error("{0}")]
    Clocks(String),
    /// A rate or an offset is too large to be computed exactly.
    #[error("{0}")]
    Overflow(String),
    /// Successive values of the expression depend on one another, so a claim about it would not be valid.
    #[error("{0}")]
    Dependent(String),
    /// The results depend on the share of the observations that was recorded.
    #[error("{0}")]
    Sampled(String),
    /// Two paths of one source have different rates, so the memory would grow with the length of the series.
    #[error("{0}")]
    Unbounded(Box<Unbounded>),
}

impl Error {
    pub(crate) fn new(text: &str, place: Range<usize>, problem: Problem) -> Error {
        Error { text: text.to_string(), place, problem: Box::new(problem) }
    }

    /// Returns the bytes of the text that the problem concerns.
    #[must_use]
    pub fn place(&self) -> Range<usize> {
        self.place.clone()
    }

    /// Returns the column at which the problem begins, counted in characters from 1.
    #[must_use]
    pub fn column(&self) -> usize {
        self.text.get(..self.place.start).map_or(1, |before| before.chars().count() + 1)
    }

    /// Returns the error without the way out that reads the evidence again, for series that are not recorded.
    ///
    /// ```
    /// use ascertain_streams::{OneClock, Plan, Unit};
    ///
    /// let error = Plan::new("every(time, 2) / time", &OneClock::new(&[("time", Unit::TIME)])).unwrap_err();
    /// assert!(error.to_string().contains("again(time)"));
    /// assert!(!error.without_again().to_string().contains("again(time)"));
    /// ```
    #[must_use]
    pub fn without_again(mut self) -> Error {
        if let Problem::Unbounded(unbounded) = &mut *self.problem {
            unbounded.ways.retain(|way_out| way_out.way != Way::Again);
        }
        self
    }

    /// Returns the problem.
    #[must_use]
    pub fn problem(&self) -> &Problem {
        &self.problem
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {}: {}", self.column(), self.problem)
    }
}

impl std::error::Error for Error {}

/// Returns the known name that is most similar to `name`, as a question for the end of a message. Names are similar if
/// at most a third of the characters differ.
pub(crate) fn near<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let best = known.map(|known| (distance(name, known), known)).min();
    match best {
        Some((distance, known)) if distance * 3 <= known.len().max(3) => format!("; did you mean `{known}`?"),
        _ => String::new(),
    }
}

/// Returns the number of characters to insert, remove or replace to turn one name into the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (index, from) in a.chars().take(64).enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], index + 1);
        for (column, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
