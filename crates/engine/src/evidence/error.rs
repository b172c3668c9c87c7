//! What can go wrong with evidence.

use std::io;
use std::path::{Path, PathBuf};

use super::folder::{HEADER, LINES, SCHEMA};
use super::parquet::WITHOUT_LINES;

/// Evidence could not be kept or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The run's folder can't be made.
    #[error(
        "no evidence can be kept in {}: {reason}; choose another folder with --evidence DIR, or keep none with --no-evidence",
        .folder.display()
    )]
    Folder {
        /// The folder that was to be made.
        folder: PathBuf,
        /// What the system said.
        reason: io::Error,
    },
    /// A new run's folder is there already.
    #[error("{} exists already; start again, or go on with that run: ascertain continue", .run.display())]
    Exists {
        /// The folder.
        run: PathBuf,
    },
    /// Another run is writing to the folder.
    #[error("another run is writing to {}; wait for its end", .run.display())]
    Locked {
        /// The run's folder.
        run: PathBuf,
    },
    /// More of the run was recorded on this machine than its folder has.
    #[error(
        "{} is an older copy: on this machine more of that run was recorded than it has; continue the folder that has everything, or measure anew",
        .run.display()
    )]
    OlderCopy {
        /// The run's folder.
        run: PathBuf,
    },
    /// A file could not be written: the disk is full, for example.
    #[error(
        "{} could not be written: {reason}; what was recorded before stays readable; next time make room, choose another folder with --evidence DIR, or keep none with --no-evidence",
        .path.display()
    )]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: io::Error,
    },
    /// A file could not be read.
    #[error("{} could not be read: {reason}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: io::Error,
    },
    /// The folder has no run in it.
    #[error("there is no run in {}: it has no {file}", .folder.display())]
    Missing {
        /// The folder.
        folder: PathBuf,
        /// The file that it should have.
        file: &'static str,
    },
    /// The folder has a run, but not its rows.
    #[error(
        "the run in {} has no rows in trials.jsonl: restore that file from the original run; {WITHOUT_LINES}",
        .run.display()
    )]
    NoRows {
        /// The run's folder.
        run: PathBuf,
    },
    /// `run.json` is of a version that this program does not know.
    #[error(
        "{} is of the schema `{found}`, and this version of Ascertain reads `{SCHEMA}`; use the version that wrote it",
        .path.display()
    )]
    OtherVersion {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: String,
    },
    /// A file is not what Ascertain writes: cut off, or changed.
    #[error("{}:{line}:{column}: {reason}", .path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The column, from 1.
        column: u64,
        /// What is wrong there.
        reason: String,
    },
    /// `trials.jsonl` is not the file that the run left, and no other has the rows.
    #[error(
        "the trials.jsonl of the run in {} was changed since the run ended: its checksum is not the one in run.json; bring it back from where the run was copied from, or run it anew",
        .run.display()
    )]
    Changed {
        /// The run's folder.
        run: PathBuf,
    },
    /// `trials.jsonl` is shorter than when the run ended.
    #[error(
        "rows of the run in {} are missing: its trials.jsonl has {found_bytes} bytes of whole trials, and {bytes} when the run ended; the rest alone would say something else, so bring the file back from where the run was copied from, or run it anew",
        .run.display()
    )]
    LostRows {
        /// The run's folder.
        run: PathBuf,
        /// How long the file was, as `run.json` says.
        bytes: u64,
        /// Where its last whole trial ends now.
        found_bytes: u64,
    },
    /// `trials.parquet` is not what Ascertain writes, and there is nothing else that has the rows.
    #[error(
        "{} is not what Ascertain writes ({reason}), and there is no trials.jsonl beside it; bring either back from where the run was copied from",
        .path.display()
    )]
    Parquet {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

impl Error {
    /// For `map_err`: this file could not be written.
    pub(super) fn write<E: Into<io::Error>>(path: &Path) -> impl Fn(E) -> Error {
        |error| Error::Write { path: path.to_path_buf(), reason: error.into() }
    }

    /// For `map_err`: this file of a run could not be opened or read.
    pub(super) fn read(path: &Path, file: &'static str) -> impl Fn(io::Error) -> Error {
        move |error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                let folder = path.parent().unwrap_or(path).to_path_buf();
                let is_run = file == LINES && folder.join(HEADER).is_file();
                if is_run { Error::NoRows { run: folder } } else { Error::Missing { folder, file } }
            }
            _ => Error::Read { path: path.to_path_buf(), reason: error },
        }
    }

    /// What is wrong with JSON that begins at this line of the file.
    pub(super) fn malformed(path: &Path, first_line: u64, error: &serde_json::Error) -> Error {
        let text = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        let what = text.strip_suffix(&place).unwrap_or(&text);
        let reason = if error.is_eof() { format!("cut off ({what})") } else { what.to_string() };
        let line = first_line + (error.line() as u64).saturating_sub(1);
        Error::Malformed { path: path.to_path_buf(), line, column: error.column() as u64, reason }
    }

    /// Adds what can be done about rows that are not what Ascertain writes.
    pub(super) fn in_rows(mut self) -> Error {
        if let Error::Malformed { line, reason, .. } = &mut self {
            reason.push_str(&match line {
                1 => "; bring the file back from where the run was copied from".to_string(),
                _ => format!("; cut the file off before line {line} to read what was recorded until then"),
            });
        }
        self
    }
}
