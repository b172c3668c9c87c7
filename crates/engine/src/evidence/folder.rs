//! The folder of a run: its name, the names of its files, the contents of `run.json`, and the checksums that reveal
//! damaged files.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use ascertain_sys::files::{self, Draft, Lasting};
use ascertain_sys::machine::Machine;
use serde::{Deserialize, Serialize};

use super::error::Error;
use super::moment::rfc3339;
use crate::experiment::Spec;
use crate::outcome::{LeftOut, Outcome};
use crate::plan::Plan;

pub(super) const HEADER: &str = "run.json";
pub(super) const LINES: &str = "trials.jsonl";
pub(super) const PARQUET: &str = "trials.parquet";

/// Returns the default folder for runs: `$XDG_STATE_HOME/ascertain/runs`, or else `~/.local/state/ascertain/runs`.
pub fn runs_folder() -> PathBuf {
    runs_folder_of(env::var_os("XDG_STATE_HOME"), env::home_dir())
}

fn runs_folder_of(state: Option<OsString>, home: Option<PathBuf>) -> PathBuf {
    // The XDG specification requires that relative paths are ignored.
    let state = state.map(PathBuf::from).filter(|state| state.is_absolute());
    let state = state.unwrap_or_else(|| home.unwrap_or_default().join(".local/state"));
    state.join("ascertain/runs")
}

/// Returns the default folder for the list of the runs that this user has recorded. It is called `known-runs` and is
/// next to the [`runs_folder`]. [`Writer`](super::Writer) adds runs to the list.
pub fn known_folder() -> PathBuf {
    runs_folder().with_file_name("known-runs")
}

/// Returns the size of a run's `trials.jsonl` in bytes; `None` if the file does not exist.
pub(crate) fn lines_bytes(run: &Path) -> Option<u64> {
    fs::symlink_metadata(run.join(LINES)).ok().filter(fs::Metadata::is_file).map(|file| file.len())
}

/// Returns an id for a run, which is also the name of its folder. It consists of the start time to the millisecond, and
/// of four letters or digits computed from `random`. Ids sort by start time.
///
/// ```
/// let id = ascertain_engine::evidence::new_run_id(1_795_253_412_000_000_000, 0);
/// assert_eq!(id, "20261121T093012000Z-0000");
/// ```
pub fn new_run_id(unix_ns: u64, random: u64) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut id = rfc3339(unix_ns).replace(['-', ':', '.'], "") + "-";
    id.extend((0..4).map(|place| char::from(DIGITS[(random / 36_u64.pow(place) % 36) as usize])));
    id
}

/// Returns whether a text has the form of an id from [`new_run_id`], such as `20261121T093012000Z-0000`.
#[must_use]
pub fn is_run_id(text: &str) -> bool {
    let Some((time, drawn)) = text.split_once("Z-") else { return false };
    let Some((date, time)) = time.split_once('T') else { return false };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_drawn = drawn.len() == 4 && drawn.bytes().all(|byte| byte.is_ascii_alphanumeric());
    date.len() == 8 && is_number(date) && time.len() >= 6 && is_number(time) && is_drawn
}

/// Writes a file of a run so that it appears completely or not at all, and survives a crash. `fill` writes the
/// contents.
pub(super) fn replace(path: &Path, fill: impl FnOnce(&File) -> Result<(), Error>) -> Result<(), Error> {
    let folder = files::open_folder(path.parent().unwrap_or(path)).map_err(Error::write(path))?;
    let draft = Draft::create_in(folder, path.file_name().unwrap_or_default()).map_err(Error::write(path))?;
    fill(draft.file())?;
    draft.publish(Lasting::ThroughCrash).map_err(Error::write(path))?;
    Ok(())
}

/// The name and version of the schema of `run.json` and of the rows.
pub const SCHEMA: &str = "ascertain.evidence/2";

/// The contents of `run.json`: everything about a run except its rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The schema's name and version, [`SCHEMA`].
    pub schema: String,
    /// Id of the run, which is the name of its folder.
    pub run_id: String,
    /// Time at which the run started: RFC 3339, UTC.
    pub started: String,
    /// Version of Ascertain that measured the run, such as `0.1.0`.
    pub ascertain_version: String,
    /// The command line that started the run: the program and its arguments.
    pub command_line: Vec<String>,
    /// Options for printing the result. They apply again when the run is continued.
    pub render: serde_json::Value,
    /// The label that the user gave the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The git revision of the folder in which the run was started; `None` outside of a repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<Revision>,
    /// The machine on which the run was started.
    pub machine: Machine,
    /// The experiments as plain data, so that a report needs none of their code.
    pub experiments: Vec<Spec>,
    /// The plan of the run, from which it can be continued.
    pub plan: Plan,
    /// The arms that the machine could not measure when the run started, with the reasons.
    pub unavailable: Vec<LeftOut>,
    /// The outcome of the run; `None` until the run has ended for the first time. While a run is continued, this is
    /// still the outcome from before the continuation.
    pub outcome: Option<Outcome>,
    /// Size of `trials.jsonl` in bytes when the outcome was written. A continuation may append rows after these bytes.
    pub lines_bytes: Option<u64>,
    /// Checksum of the first [`lines_bytes`](Self::lines_bytes) bytes of `trials.jsonl`. They are only read if the
    /// checksum matches. `None` until `trials.parquet` is written.
    pub lines_checksum: Option<String>,
    /// Checksum of `trials.parquet`, which is only read if the checksum matches. `None` until the file is written.
    pub parquet_checksum: Option<String>,
}

/// The git revision of a working tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revision {
    /// The commit that is checked out, in hexadecimal digits.
    pub commit: String,
    /// `true` if tracked files differ from `commit`; `None` if git did not answer in time.
    pub dirty: Option<bool>,
}

impl fmt::Display for Revision {
    /// Writes the revision in the form of `git describe --always --dirty`: `a0e851a7c4-dirty`.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let short = self.commit.get(..10).unwrap_or(&self.commit);
        f.write_str(short)?;
        if self.dirty == Some(true) { f.write_str("-dirty") } else { Ok(()) }
    }
}

/// The state of `trials.jsonl` at the end of the run, when the outcome was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FinalLines<'a> {
    /// Size of `trials.jsonl` in bytes.
    pub bytes: u64,
    /// Checksum of `trials.jsonl`; `None` if the process was killed before it could write the checksum.
    pub checksum: Option<&'a str>,
}

impl Header {
    /// Returns the state of `trials.jsonl` at the end of the run; `None` if the run has not ended yet.
    pub(super) fn final_lines(&self) -> Option<FinalLines<'_>> {
        let bytes = self.lines_bytes.filter(|_| self.outcome.is_some())?;
        Some(FinalLines { bytes, checksum: self.lines_checksum.as_deref() })
    }
}

/// Maximum size of a `run.json`, in bytes. A larger file was not written by Ascertain, and is not read.
const MOST_HEADER_BYTES: u64 = 1 << 30;

/// Reads `run.json` in a run's folder.
///
/// # Errors
/// If the file is missing, has another schema, is cut off, or is otherwise not valid. The error names the file, and the
/// line and column if they are known.
pub fn read_header(run: &Path) -> Result<Header, Error> {
    #[derive(Deserialize)]
    struct Version {
        schema: serde_json::Value,
    }
    let path = run.join(HEADER);
    let text = files::read_regular(&path, MOST_HEADER_BYTES).map_err(Error::read(&path, HEADER))?;
    let malformed = |error| Error::malformed(&path, 1, &error);
    let Version { schema } = serde_json::from_slice(&text).map_err(malformed)?;
    if schema.as_str() != Some(SCHEMA) {
        let found = schema.as_str().map_or_else(|| schema.to_string(), str::to_string);
        return Err(Error::OtherVersion { path, found });
    }
    serde_json::from_slice(&text).map_err(malformed)
}

pub(super) fn write_header(run: &Path, header: &Header) -> Result<(), Error> {
    let path = run.join(HEADER);
    let value = serde_json::to_value(header).map_err(Error::write(&path))?;
    let mut text = serde_json::to_vec_pretty(&value).map_err(Error::write(&path))?;
    text.push(b'\n');
    replace(&path, |mut file| file.write_all(&text).map_err(Error::write(&path)))
}

/// The offset basis of 64-bit FNV-1a (Fowler, Noll and Vo; RFC 9923).
const START: u64 = 0xcbf2_9ce4_8422_2325;
/// The prime of 64-bit FNV-1a.
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// A sink that computes the length and the checksum of the bytes that are written to it.
pub(super) struct Checksum {
    pub bytes: u64,
    sum: u64,
}

impl Checksum {
    pub fn new() -> Checksum {
        Checksum { bytes: 0, sum: START }
    }

    /// Returns the checksum in the form that `run.json` contains.
    pub fn text(&self) -> String {
        format!("fnv1a64:{:016x}", self.sum)
    }
}

impl Write for Checksum {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.sum = bytes.iter().fold(self.sum, |sum, &byte| (sum ^ u64::from(byte)).wrapping_mul(PRIME));
        self.bytes += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns a file's checksum in the form that `run.json` contains: `fnv1a64:` and 16 hexadecimal digits. A single wrong
/// byte always changes the checksum, because each step of the algorithm can be inverted. Several wrong bytes go
/// unnoticed with a probability of 2^-64.
pub(super) fn checksum_of_file(path: &Path) -> io::Result<String> {
    checksum_of_start(path, u64::MAX)
}

/// Returns the checksum of the first `bytes` bytes of a file, in the form that `run.json` contains.
pub(super) fn checksum_of_start(path: &Path, bytes: u64) -> io::Result<String> {
    let mut checksum = Checksum::new();
    io::copy(&mut files::open_regular(path)?.take(bytes), &mut checksum)?;
    Ok(checksum.text())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_kept_in_the_state_folder() {
        let folder = |state: Option<&str>, home: &str| runs_folder_of(state.map(OsString::from), Some(home.into()));
        assert_eq!(folder(Some("/state"), "/home/u"), Path::new("/state/ascertain/runs"));
        for ignored in [None, Some(""), Some("relative")] {
            assert_eq!(folder(ignored, "/home/u"), Path::new("/home/u/.local/state/ascertain/runs"));
        }
    }

    #[test]
    fn names_that_runs_are_given() {
        for id in ["20261121T093012000Z-0a0z", "20261121T093012Z-0000"] {
            assert!(is_run_id(id), "{id}");
        }
        let others = ["", "baseline", "20261121T093012000Z", "20261121T0930Z-0000", "20261121T093012000Z-0000.old"];
        for name in others.into_iter().chain(["20261121T093012Z-/../", "20261121T093012Z-é00"]) {
            assert!(!is_run_id(name), "{name}");
        }
    }

    #[test]
    fn run_ids_sort_by_time() {
        let second = 1_000_000_000;
        let (first, next) = (new_run_id(second * 1_795_253_412, u64::MAX), new_run_id(second * 1_795_253_413, 0));
        assert!(first < next && first.len() == next.len(), "{first} {next}");
        assert_ne!(new_run_id(second, 1), new_run_id(second, 2));
    }

    /// The test vectors are those of the algorithm's authors.
    #[test]
    fn it_is_fnv_1a() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for (text, sum) in [("", "cbf29ce484222325"), ("a", "af63dc4c8601ec8c"), ("foobar", "85944171f73967e8")] {
            std::fs::write(file.path(), text).unwrap();
            assert_eq!(checksum_of_file(file.path()).unwrap(), format!("fnv1a64:{sum}"));
            std::fs::write(file.path(), format!("{text}more")).unwrap();
            assert_eq!(checksum_of_start(file.path(), text.len() as u64).unwrap(), format!("fnv1a64:{sum}"));
        }
    }
}
