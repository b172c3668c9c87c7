//! `run.json`.

use std::fs;
use std::io::Write;
use std::path::Path;

use ascertain_sys::machine::Machine;
use serde::{Deserialize, Serialize};

use super::error::Error;
use super::folder::{HEADER, replace};
use crate::experiment::Spec;
use crate::outcome::{LeftOut, Outcome};
use crate::plan::Plan;

/// The name and version of the schema of `run.json` and of the rows beside it.
pub const SCHEMA: &str = "ascertain.evidence/1";

/// What `run.json` says of a run: everything but its rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// [`SCHEMA`].
    pub schema: String,
    /// The name of the run's folder.
    pub run_id: String,
    /// When it started: RFC 3339, UTC.
    pub started: String,
    /// The version of Ascertain that measured.
    pub ascertain_version: String,
    /// The command line that asked for it.
    pub command_line: Vec<String>,
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
    /// The checksum of `trials.parquet`, without which that file is not read: `None` until there is one.
    #[serde(default)]
    pub parquet_checksum: Option<String>,
}

/// Reads `run.json` in a run's folder.
///
/// # Errors
/// When it is missing, of another version, cut off, or not what Ascertain writes; the error names the
/// file, and the line and column where that helps.
pub fn read_header(run: &Path) -> Result<Header, Error> {
    /// What every version has.
    #[derive(Deserialize)]
    struct Version {
        schema: String,
    }
    let path = run.join(HEADER);
    let text = fs::read(&path).map_err(Error::read(&path, HEADER))?;
    let malformed = |error| Error::malformed(&path, 1, &error);
    let Version { schema } = serde_json::from_slice(&text).map_err(malformed)?;
    if schema != SCHEMA {
        return Err(Error::OtherVersion { path, found: schema });
    }
    serde_json::from_slice(&text).map_err(malformed)
}

pub(super) fn write_header(run: &Path, header: &Header) -> Result<(), Error> {
    let path = run.join(HEADER);
    let mut text = serde_json::to_vec_pretty(header).map_err(Error::write(&path))?;
    text.push(b'\n');
    replace(&path, |mut file| file.write_all(&text).map_err(Error::write(&path)))
}
