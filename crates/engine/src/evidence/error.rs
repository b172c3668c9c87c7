//! Errors of writing and reading evidence.

use std::io;
use std::path::{Path, PathBuf};

use super::folder::{HEADER, LINES, SCHEMA};
use super::parquet::WITHOUT_LINES;

/// Failure to write or read the evidence of a run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The run's folder cannot be created.
    #[error(
        "cannot keep evidence in {}: {reason}; choose another folder, or keep no evidence",
        .folder.display()
    )]
    Folder {
        /// The folder that was to be created.
        folder: PathBuf,
        /// The error that the system returned.
        reason: io::Error,
    },
    /// The folder of a new run already exists.
    #[error("the folder {} exists already; start again, or continue the run in it", .0.display())]
    Exists(PathBuf),
    /// Another run is writing to the folder.
    #[error("another run is writing to {}; wait until it has ended", .0.display())]
    Locked(PathBuf),
    /// This machine has recorded more trials of the run than the run's folder contains.
    #[error(
        "{} is an older copy: this machine has recorded more trials of that run; continue the folder that has all trials, or measure again",
        .0.display()
    )]
    OlderCopy(PathBuf),
    /// A file could not be written, for example because the disk is full.
    #[error(
        "{} could not be written: {reason}; everything recorded before stays readable; next time make room, choose another folder, or keep no evidence",
        .path.display()
    )]
    Write {
        /// Path of the file that could not be written.
        path: PathBuf,
        /// The error that the system returned.
        reason: io::Error,
    },
    /// A file could not be read.
    #[error("{} could not be read: {reason}", .path.display())]
    Read {
        /// Path of the file that could not be read.
        path: PathBuf,
        /// The error that the system returned.
        reason: io::Error,
    },
    /// The folder does not contain a run.
    #[error("there is no run in {}: the folder has no {file}", .folder.display())]
    Missing {
        /// The folder in which a run was expected.
        folder: PathBuf,
        /// Name of the file that is missing.
        file: &'static str,
    },
    /// The folder has a `run.json`, but no rows.
    #[error(
        "the run in {} has no rows in trials.jsonl: restore that file from the original run; {WITHOUT_LINES}",
        .0.display()
    )]
    NoRows(PathBuf),
    /// `run.json` has a schema that this version of Ascertain cannot read.
    #[error(
        "{} has the schema `{found}`, but this version of Ascertain reads `{SCHEMA}`; use the version that wrote it",
        .path.display()
    )]
    OtherVersion {
        /// Path of the `run.json`.
        path: PathBuf,
        /// The schema that `run.json` names.
        found: String,
    },
    /// The contents of a file are not valid, because it was cut off or changed.
    #[error("{}:{line}:{column}: {reason}", .path.display())]
    Malformed {
        /// Path of the file that is not valid.
        path: PathBuf,
        /// The line in the file at which the problem was found, from 1.
        line: u64,
        /// The column in that line, from 1.
        column: u64,
        /// Description of the problem in the file.
        reason: String,
    },
    /// `trials.jsonl` was changed since the run ended, and no other file has the rows.
    #[error(
        "the trials.jsonl of the run in {} was changed since the run ended: its checksum differs from that in run.json; restore the original file, or measure again",
        .0.display()
    )]
    Changed(PathBuf),
    /// `trials.jsonl` is shorter than it was when the run ended.
    #[error(
        "rows of the run in {} are missing: its trials.jsonl has {found_bytes} bytes of complete trials instead of {bytes}, so its result could differ; restore the original file, or measure again",
        .run.display()
    )]
    LostRows {
        /// Folder of the run.
        run: PathBuf,
        /// Size of `trials.jsonl` in bytes when the run ended, according to `run.json`.
        bytes: u64,
        /// Offset, in bytes, at which the last complete trial in `trials.jsonl` ends.
        found_bytes: u64,
    },
    /// `trials.parquet` is not valid, and no other file has the rows.
    #[error(
        "{} is not valid ({reason}), and there is no trials.jsonl next to it; restore either file from the original run",
        .path.display()
    )]
    Parquet {
        /// Path of the `trials.parquet`.
        path: PathBuf,
        /// Description of the problem in `trials.parquet`.
        reason: String,
    },
}

impl Error {
    /// Returns a closure for `map_err`. The closure makes the error for the file at `path`, which could not be written.
    pub(crate) fn write<E: Into<io::Error>>(path: &Path) -> impl Fn(E) -> Error {
        |error| Error::Write { path: path.to_path_buf(), reason: error.into() }
    }

    /// Returns a closure for `map_err`, for a file of a run that could not be read. `path` is the path of the file, and
    /// `file` is its name in the run's folder.
    pub(super) fn read(path: &Path, file: &'static str) -> impl Fn(io::Error) -> Error {
        move |error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                let folder = path.parent().unwrap_or(path).to_path_buf();
                let is_run = file == LINES && folder.join(HEADER).is_file();
                if is_run { Error::NoRows(folder) } else { Error::Missing { folder, file } }
            }
            _ => Error::Read { path: path.to_path_buf(), reason: error },
        }
    }

    /// Returns the error for invalid JSON. `first_line` is the line of the file in which this JSON begins.
    pub(super) fn malformed(path: &Path, first_line: u64, error: &serde_json::Error) -> Error {
        let text = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        let what = text.strip_suffix(&place).unwrap_or(&text);
        let reason = if error.is_eof() { format!("cut off ({what})") } else { what.to_string() };
        let line = first_line + (error.line() as u64).saturating_sub(1);
        Error::Malformed { path: path.to_path_buf(), line, column: error.column() as u64, reason }
    }

    /// Adds advice to the error for an invalid row: how the user can still read the rows before it.
    pub(super) fn in_rows(mut self) -> Error {
        if let Error::Malformed { line, reason, .. } = &mut self {
            reason.push_str(&match line {
                1 => "; restore the original file".to_string(),
                _ => format!("; truncate the file before line {line} to read the rows before it"),
            });
        }
        self
    }
}
