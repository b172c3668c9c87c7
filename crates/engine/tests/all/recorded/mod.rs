//! Tests of reading recorded runs without the code of their experiments.

mod broken;
mod outcomes;
mod paths;
mod series;
mod states;

use std::fs;
use std::path::{Path, PathBuf};

use ascertain_engine::evidence::{Header, Writer};
use ascertain_engine::experiment::Experiment;
use ascertain_engine::outcome::Outcome;
use ascertain_engine::plan::Plan;
use ascertain_engine::recorded::{RecordedRun, read};
use ascertain_engine::result::RunResult;
use ascertain_engine::run::{Recording, Silent, run};
use tempfile::TempDir;

use crate::common::Scripted;

/// A run in a temporary folder. Dropping this value removes the folder.
struct Ran {
    run: RunResult,
    _runs: TempDir,
}

impl Ran {
    fn folder(&self) -> &Path {
        self.run.folder.as_deref().unwrap()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    fn outcome(&self) -> &Outcome {
        &self.run.outcome
    }

    fn read(&self) -> RecordedRun {
        read(self.folder()).unwrap()
    }

    /// Removes the files that the run would lack if it had been killed before it wrote its outcome.
    fn killed(self) -> Ran {
        self.change_header(|header| header.outcome = None);
        fs::remove_file(self.file("trials.parquet")).unwrap();
        self
    }

    fn change_header(&self, change: impl FnOnce(&mut Header)) {
        let mut header: Header = serde_json::from_slice(&fs::read(self.file("run.json")).unwrap()).unwrap();
        change(&mut header);
        fs::write(self.file("run.json"), serde_json::to_vec_pretty(&header).unwrap()).unwrap();
    }

    fn lines(&self) -> Vec<String> {
        let text = fs::read_to_string(self.file("trials.jsonl")).unwrap();
        text.split_inclusive('\n').map(String::from).collect()
    }
}

fn record(registry: &[&dyn Experiment], plan: &Plan) -> Ran {
    let runs = tempfile::tempdir().unwrap();
    let recording = Recording::New {
        runs: runs.path().into(),
        command_line: vec!["test".into()],
        render: Default::default(),
        label: None,
        revision: None,
        known: None,
    };
    let run = run(plan, registry, recording, &Default::default(), &mut Silent).unwrap();
    // The rows are in both files, because a continuation restores the lines that the run's end removed.
    drop(Writer::resume(run.folder.as_ref().unwrap(), None).unwrap());
    Ran { run, _runs: runs }
}

fn record_one(experiment: &Scripted, plan: &Plan) -> Ran {
    record(&[experiment], plan)
}
