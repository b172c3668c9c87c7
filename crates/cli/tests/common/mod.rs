//! Running the binary.
#![allow(dead_code, missing_docs)]

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// What a run of the binary left.
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}{}", self.stdout, self.stderr))
    }
}

/// The binary, with its evidence below `state`.
pub fn command(state: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ascertain"));
    command.args(arguments).env("XDG_STATE_HOME", state).env("NO_COLOR", "1").stdin(Stdio::null()).current_dir(state);
    command
}

pub fn ascertain(state: &Path, arguments: &[&str]) -> Ran {
    ran(command(state, arguments).output().unwrap())
}

pub fn ran(output: Output) -> Ran {
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// The folders of the runs below `state`.
pub fn runs(state: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(state.join("ascertain/runs")).into_iter().flatten().flatten();
    let mut runs: Vec<_> = entries.map(|entry| entry.path()).collect();
    runs.sort();
    runs
}
