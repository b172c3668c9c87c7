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
use crate::plan::Grouping;
use crate::plan::Plan;

/// The name and version of the schema of `run.json` and of the rows beside it.
pub const SCHEMA: &str = "ascertain.evidence/2";
/// That of the versions whose rows do not say which lane measured them.
const SCHEMA_1: &str = "ascertain.evidence/1";

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
    let text = fs::read(&path).map_err(Error::read(&path, HEADER))?;
    let malformed = |error| Error::malformed(&path, 1, &error);
    let Version { schema } = serde_json::from_slice(&text).map_err(malformed)?;
    if schema != SCHEMA && schema != SCHEMA_1 {
        let found = schema.as_str().map_or_else(|| schema.to_string(), str::to_string);
        return Err(Error::OtherVersion { path, found });
    }
    serde_json::from_slice(&text).map_err(malformed)
}

pub(super) fn write_header(run: &Path, header: &Header) -> Result<(), Error> {
    let path = run.join(HEADER);
    let mut text = serde_json::to_vec_pretty(header).map_err(Error::write(&path))?;
    text.push(b'\n');
    replace(&path, |mut file| file.write_all(&text).map_err(Error::write(&path)))
}
