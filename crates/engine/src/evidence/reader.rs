//! Reads `trials.jsonl` line by line.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Take};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::error::Error;
use super::folder::LINES;
use super::row::{Line, Row};

/// Reads a run's rows in the order in which they were observed, one after the other, as far as they are
/// written when this is called. A last line that is cut off, as a killed run leaves it, is left out.
///
/// # Errors
/// When the run has no rows' file. The iterator gives an error, and then ends, at a line that is not
/// what Ascertain writes.
pub fn read_rows(run: &Path) -> Result<Rows, Error> {
    Ok(Rows { lines: Some(Lines::open(run)?) })
}

/// A run's rows, read as they are asked for. From [`read_rows`].
#[derive(Debug)]
pub struct Rows {
    /// None behind the last row and behind an error.
    lines: Option<Lines>,
}

impl Iterator for Rows {
    type Item = Result<Row, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut lines = self.lines.take()?;
        let row = lines.advance().and_then(|more| if more { lines.row().map(Some) } else { Ok(None) });
        if let Ok(Some(_)) = row {
            self.lines = Some(lines);
        }
        row.transpose()
    }
}

/// The whole lines of `trials.jsonl`.
#[derive(Debug)]
pub(super) struct Lines {
    path: PathBuf,
    input: BufReader<Take<File>>,
    line: Vec<u8>,
    number: u64,
    /// Where the line ends in the file.
    end: u64,
}

impl Lines {
    pub fn open(run: &Path) -> Result<Lines, Error> {
        let path = run.join(LINES);
        let open = || {
            let file = File::open(&path)?;
            // What is appended from now on is not read.
            let length = file.metadata()?.len();
            Ok(BufReader::with_capacity(1 << 16, file.take(length)))
        };
        let input = open().map_err(Error::read(&path, LINES))?;
        Ok(Lines { path, input, line: Vec::with_capacity(512), number: 0, end: 0 })
    }

    /// The lines within the file's first `bytes`, before any is read.
    pub fn up_to(mut self, bytes: u64) -> Lines {
        let input = self.input.get_mut();
        input.set_limit(input.limit().min(bytes));
        self
    }

    /// Goes to the next line that is not blank. False when there is none, or it is cut off.
    pub fn advance(&mut self) -> Result<bool, Error> {
        loop {
            self.line.clear();
            let length = self.input.read_until(b'\n', &mut self.line).map_err(Error::read(&self.path, LINES))?;
            if self.line.pop() != Some(b'\n') {
                return Ok(false);
            }
            self.number += 1;
            self.end += length as u64;
            if !self.line.trim_ascii().is_empty() {
                return Ok(true);
            }
        }
    }

    pub fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T, Error> {
        serde_json::from_slice(&self.line).map_err(|error| self.malformed(&error))
    }

    fn row(&self) -> Result<Row, Error> {
        self.parse::<Line>()?.into_row().map_err(|error| self.malformed(&error))
    }

    fn malformed(&self, error: &serde_json::Error) -> Error {
        Error::malformed(&self.path, self.number, error).in_rows()
    }

    /// What is wrong with the line, although it is JSON.
    pub fn wrong(&self, reason: String) -> Error {
        Error::Malformed { path: self.path.clone(), line: self.number, column: 1, reason }.in_rows()
    }

    /// The line, without its end.
    pub fn text(&self) -> &[u8] {
        &self.line
    }

    /// Whether the line is marked as the last of a trial.
    pub fn ends_trial(&self) -> bool {
        self.line.ends_with(b" ")
    }

    /// Where the line ends in the file.
    pub fn end(&self) -> u64 {
        self.end
    }
}
