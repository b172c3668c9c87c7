//! Where runs are kept, what they and their files are called, `run.json`, and what tells a damaged file from a whole
//! one.

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
use crate::plan::{Grouping, Plan};

pub(super) const HEADER: &str = "run.json";
pub(super) const LINES: &str = "trials.jsonl";
pub(super) const PARQUET: &str = "trials.parquet";

/// Where runs are kept unless another folder is asked for: `$XDG_STATE_HOME/ascertain/runs`, else
/// `~/.local/state/ascertain/runs`.
pub fn runs_folder() -> PathBuf {
    runs_folder_of(env::var_os("XDG_STATE_HOME"), env::home_dir())
}

fn runs_folder_of(state: Option<OsString>, home: Option<PathBuf>) -> PathBuf {
    // The XDG specification has relative paths ignored.
    let state = state.map(PathBuf::from).filter(|state| state.is_absolute());
    let state = state.unwrap_or_else(|| home.unwrap_or_default().join(".local/state"));
    state.join("ascertain/runs")
}

/// The folder of what this user's state knows of runs, which [`Writer`](super::Writer) is given: beside
/// [`runs_folder`].
pub fn known_folder() -> PathBuf {
    runs_folder().with_file_name("known-runs")
}

/// How long a run's `trials.jsonl` is: `None` where it is not there.
pub(crate) fn lines_bytes(run: &Path) -> Option<u64> {
    fs::symlink_metadata(run.join(LINES)).ok().filter(fs::Metadata::is_file).map(|file| file.len())
}

/// Names a run by the millisecond in which it starts and four letters or digits drawn from `random`, so
/// that names sort by time.
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

/// Whether a text is an id that [`new_run_id`] gives: `20261121T093012000Z-0000`.
#[must_use]
pub fn is_run_id(text: &str) -> bool {
    let Some((time, drawn)) = text.split_once("Z-") else { return false };
    let Some((date, time)) = time.split_once('T') else { return false };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_drawn = drawn.len() == 4 && drawn.bytes().all(|byte| byte.is_ascii_alphanumeric());
    date.len() == 8 && is_number(date) && time.len() >= 6 && is_number(time) && is_drawn
}

/// Makes a file of a run appear whole or not at all, and lasting.
pub(super) fn replace(path: &Path, fill: impl FnOnce(&File) -> Result<(), Error>) -> Result<(), Error> {
    let folder = files::open_folder(path.parent().unwrap_or(path)).map_err(Error::write(path))?;
    let draft = Draft::create_in(folder, path.file_name().unwrap_or_default()).map_err(Error::write(path))?;
    fill(draft.file())?;
    draft.publish(Lasting::ThroughCrash).map_err(Error::write(path))?;
    Ok(())
}

/// The name and version of the schema of `run.json` and of the rows beside it.
pub const SCHEMA: &str = "ascertain.evidence/2";
/// That of the versions whose rows do not say which lane measured them.
const SCHEMA_1: &str = "ascertain.evidence/1";

/// Whether this version reads runs of a schema.
#[must_use]
pub fn is_readable(schema: &str) -> bool {
    [SCHEMA, SCHEMA_1].contains(&schema)
}

/// What `run.json` says of a run: everything but its rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// [`SCHEMA`], or that of an older version.
    pub schema: String,
    /// The name of the run's folder.
    pub run_id: String,
    /// When it started: RFC 3339, UTC.
    pub started: String,
    /// The version of Ascertain that measured.
    pub ascertain_version: String,
    /// The command line that asked for it.
    pub command_line: Vec<String>,
    /// What was asked for beside the plan, by the use case: null in runs of the first versions and of benches.
    #[serde(default)]
    pub request: serde_json::Value,
    /// The label that the user gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The git revision of the folder in which it was started, if that is in a repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<Revision>,
    /// Where it ran.
    pub machine: Machine,
    /// The experiments as plain data, so that a report needs no code of theirs.
    pub experiments: Vec<Spec>,
    /// What was asked for, so that the run can be continued.
    pub plan: Plan,
    /// The arms that this machine can't measure, and why, as it was when the run started.
    #[serde(default)]
    pub unavailable: Vec<LeftOut>,
    /// What came of it: `None` while it runs for the first time, or when it was killed then. A run that
    /// is being continued keeps its former outcome until it has another.
    pub outcome: Option<Outcome>,
    /// How long `trials.jsonl` was when the outcome was written, in bytes: a run that was continued later has
    /// more there.
    #[serde(default)]
    pub lines_bytes: Option<u64>,
    /// The checksum of those bytes. Where they have another they are not read; runs of older versions have none.
    #[serde(default)]
    pub lines_checksum: Option<String>,
    /// The checksum of `trials.parquet`, without which that file is not read: `None` until there is one.
    #[serde(default)]
    pub parquet_checksum: Option<String>,
}

/// The git revision of a working tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revision {
    /// The commit that is checked out, in hexadecimal digits.
    pub commit: String,
    /// Whether tracked files differ from that commit; `None` if git did not answer in time.
    pub dirty: Option<bool>,
}

impl fmt::Display for Revision {
    /// As `git describe --always --dirty` prints it: `a0e851a7c4-dirty`.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let short = self.commit.get(..10).unwrap_or(&self.commit);
        f.write_str(short)?;
        if self.dirty == Some(true) { f.write_str("-dirty") } else { Ok(()) }
    }
}

/// `trials.jsonl` as it was when the outcome was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinesThen<'a> {
    /// How long it was.
    pub bytes: u64,
    /// Its checksum, where there is one.
    pub checksum: Option<&'a str>,
}

impl Header {
    /// How the run's lanes are made.
    pub(crate) fn grouping(&self) -> Grouping {
        if self.schema == SCHEMA_1 { Grouping::ByMachine } else { Grouping::ByPlan }
    }

    /// None where the run has not ended yet.
    pub(super) fn lines_then(&self) -> Option<LinesThen<'_>> {
        let bytes = self.lines_bytes.filter(|_| self.outcome.is_some())?;
        Some(LinesThen { bytes, checksum: self.lines_checksum.as_deref() })
    }
}

/// A `run.json` of more bytes than that is none of ours.
const MOST_HEADER_BYTES: u64 = 1 << 30;

/// Reads `run.json` in a run's folder.
///
/// # Errors
/// When it is missing, of another version, cut off, or not what Ascertain writes; the error names the
/// file, and the line and column where that helps.
pub fn read_header(run: &Path) -> Result<Header, Error> {
    /// What every version has.
    #[derive(Deserialize)]
    struct Version {
        schema: serde_json::Value,
    }
    let path = run.join(HEADER);
    let text = files::read_regular(&path, MOST_HEADER_BYTES).map_err(Error::read(&path, HEADER))?;
    let malformed = |error| Error::malformed(&path, 1, &error);
    let Version { schema } = serde_json::from_slice(&text).map_err(malformed)?;
    if !schema.as_str().is_some_and(is_readable) {
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

/// The start and the multiplier of FNV-1a with 64 bits (Fowler, Noll and Vo; RFC 9923).
const START: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// The length and the checksum of bytes that are written to it.
pub(super) struct Checksum {
    pub bytes: u64,
    sum: u64,
}

impl Checksum {
    pub fn new() -> Checksum {
        Checksum { bytes: 0, sum: START }
    }

    /// The checksum as `run.json` has it.
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

/// A file's checksum as `run.json` has it: `fnv1a64:` and 16 hexadecimal digits. One wrong byte always
/// changes it, since each step can be undone; more do but for one chance in 2^64.
pub(super) fn checksum_of_file(path: &Path) -> io::Result<String> {
    checksum_of_start(path, u64::MAX)
}

/// The checksum of a file's first `bytes`.
pub(super) fn checksum_of_start(path: &Path, bytes: u64) -> io::Result<String> {
    let mut file = files::open_regular(path)?.take(bytes);
    let mut block = vec![0; 1 << 16];
    let mut checksum = Checksum::new();
    loop {
        match file.read(&mut block)? {
            0 => return Ok(checksum.text()),
            length => checksum.write_all(&block[..length])?,
        }
    }
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

    /// Test vectors of the algorithm's authors.
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
