//! Opens the evidence of a run, in a new or an existing folder.

use std::path::PathBuf;

use ascertain_sys::{clock, machine};

use crate::evidence::{self, Header, RunEvidence, Writer};
use crate::outcome::LeftOut;
use crate::plan::{Plan, Registry};

/// The destination of a run's evidence.
pub enum Recording {
    /// Keeps no evidence.
    None,
    /// Keeps the evidence in a new folder, below `runs`.
    New {
        /// The folder that contains all runs.
        runs: PathBuf,
        /// The command line that started the run, for `run.json`.
        command_line: Vec<String>,
        /// The options for printing the result, which `run.json` stores. A continued run is printed with the same
        /// options.
        render: serde_json::Value,
        /// The label that the user gave the run.
        label: Option<String>,
        /// Git revision of the folder in which the run was started.
        revision: Option<evidence::Revision>,
        /// Folder in the user's state directory that lists all runs, so that later commands know this run. `None` if
        /// the run is not to be listed.
        known: Option<PathBuf>,
    },
    /// Keeps the evidence in the folder of the run that is continued. The folder already has the evidence of earlier
    /// trials.
    #[cfg(feature = "recorded")]
    Continue(Box<(Writer, RunEvidence)>),
}

/// The state of a run's evidence before the first trial.
pub(crate) struct EvidenceStart {
    pub writer: Option<Writer>,
    pub recorded: Option<RunEvidence>,
    pub run_id: String,
    pub unkept: Option<evidence::Error>,
}

/// Opens the evidence of a run. Creates a new folder, or uses the folder of the run to continue.
pub(crate) fn open_evidence(
    plan: &Plan,
    registry: &Registry,
    recording: Recording,
    machine: &machine::Machine,
    unavailable: Vec<LeftOut>,
) -> EvidenceStart {
    let entropy = clock::now_ns() ^ plan.config.seed ^ u64::from(std::process::id());
    let run_id = evidence::new_run_id(clock::unix_ns(), entropy);
    match recording {
        Recording::None => EvidenceStart { writer: None, recorded: None, run_id, unkept: None },
        #[cfg(feature = "recorded")]
        Recording::Continue(parts) => {
            let (writer, recorded) = *parts;
            let run_id = recorded.header.run_id.clone();
            EvidenceStart { writer: Some(writer), recorded: Some(recorded), run_id, unkept: None }
        }
        Recording::New { runs, command_line, render, label, revision, known } => {
            let named = |id: &str| {
                plan.claims.iter().any(|claim| claim.experiment == id)
                    || plan.tables.iter().any(|table| table.experiment == id)
            };
            let specs = registry.iter().map(|experiment| experiment.spec());
            let (recorded_plan, hidden) = plan.recorded();
            let header = Header {
                schema: evidence::SCHEMA.to_string(),
                run_id: run_id.clone(),
                started: evidence::rfc3339(clock::unix_ns()),
                ascertain_version: env!("CARGO_PKG_VERSION").to_string(),
                command_line: command_line.into_iter().map(|word| without_values(word, &hidden)).collect(),
                render,
                label,
                revision,
                machine: machine.clone(),
                experiments: specs.filter(|spec| named(&spec.id)).cloned().collect(),
                plan: recorded_plan,
                unavailable,
                outcome: None,
                lines_bytes: None,
                lines_checksum: None,
                parquet_checksum: None,
            };
            let (writer, unkept) = match Writer::create(&runs, header, known.as_deref()) {
                Ok(writer) => (Some(writer), None),
                Err(error) => (None, Some(error)),
            };
            EvidenceStart { writer, recorded: None, run_id, unkept }
        }
    }
}

/// Returns a word of the command line without secrets. If the word contains `NAME=` for one of the environment
/// variables `hidden`, an ellipsis replaces everything after it.
fn without_values(mut word: String, hidden: &[&str]) -> String {
    let values = hidden.iter().filter_map(|name| Some(word.find(&format!("{name}="))? + name.len() + 1));
    if let Some(first) = values.min() {
        word.truncate(first);
        word.push('…');
    }
    word
}
