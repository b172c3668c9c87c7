//! What is quickly known of a run: of thousands, `run.json` is read and nothing else.

use std::fs;
use std::path::{Path, PathBuf};

use ascertain_engine::evidence::{self, SCHEMA};
use ascertain_engine::outcome::{Decision, Verdict};
use ascertain_engine::recorded::State;
use serde::Deserialize;

use crate::exit::Code;
use crate::{output, runs};

/// What lists need of `run.json`.
#[derive(Deserialize)]
pub struct Brief {
    schema: String,
    pub started: String,
    pub command_line: Vec<String>,
    pub experiments: Vec<ExperimentBrief>,
    pub outcome: Option<OutcomeBrief>,
    lines_bytes: Option<u64>,
    lines_checksum: Option<String>,
}

#[derive(Deserialize)]
pub struct ExperimentBrief {
    pub id: String,
}

#[derive(Deserialize)]
pub struct OutcomeBrief {
    interrupted: bool,
    pub claims: Vec<ClaimBrief>,
}

#[derive(Deserialize)]
pub struct ClaimBrief {
    pub verdict: Verdict,
    pub decision: Option<Decision>,
}

impl Brief {
    /// Reads it, and how the run ended, if it did; or says why that can't be done.
    pub fn read(folder: &Path) -> Result<(Brief, State), String> {
        let is_going_on = evidence::is_going_on(folder);
        let text = fs::read(folder.join("run.json")).unwrap_or_default();
        match serde_json::from_slice::<Brief>(&text) {
            Ok(brief) if brief.schema == SCHEMA => {
                let interrupted = brief.outcome.as_ref().map(|outcome| outcome.interrupted);
                let checksum = brief.lines_checksum.as_deref();
                let state = State::of(folder, is_going_on, interrupted, brief.lines_bytes, checksum);
                Ok((brief, state))
            }
            // Reading all of it says best what is wrong.
            other => Err(match (evidence::read_header(folder), other) {
                (Err(error), _) => error.to_string(),
                (Ok(_), Err(error)) => error.to_string(),
                (Ok(_), Ok(_)) => "it has just changed; ask again".into(),
            }),
        }
    }
}

/// The folders of all runs, the oldest first; where there are none, or they can't be listed, says so, which is
/// the code 4 or 2.
pub fn all(below: &Path) -> Result<Vec<PathBuf>, Code> {
    if let Err(error) = fs::read_dir(below)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        output::note(&format!("error: {}: {error}", below.display()));
        return Err(Code::Usage);
    }
    let all = runs::all(below);
    if all.is_empty() {
        output::note(&format!(
            "there is no run in {}; measure something first, or use --evidence DIR",
            below.display()
        ));
        return Err(Code::Nothing);
    }
    Ok(all)
}

/// The bytes of all files in a run's folder; a file that is gone by now has none.
pub fn size_bytes(folder: &Path) -> u64 {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|file| file.metadata().ok()).filter(|metadata| metadata.is_file()).map(|file| file.len()).sum()
}
