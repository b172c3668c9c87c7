//! Commands as an experiment.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::experiment::Factor;

/// Commands that are measured against each other, or one on its own, as plain data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommandSet {
    /// The experiment's id: `compare`, `slo`, or the claim's.
    pub id: String,
    /// The commands; the first is the reference.
    pub commands: Vec<NamedCommand>,
    /// Parameters: `{name}` in a command line is replaced by the level.
    pub parameters: Vec<Factor>,
    /// The shell that command lines are given to with `-c`; without one they are split in words.
    pub shell: Option<String>,
    /// Where each command's standard input comes from.
    pub input: Input,
    /// Where its standard output goes (standard error too, unless it is inherited).
    pub output: Output,
    /// An observation that takes longer is stopped, and counts as an infinite time.
    pub time_limit: Option<Duration>,
    /// What an exit other than 0 means.
    pub on_failure: OnFailure,
    /// Recorded requests: each trial takes one, every one once before any comes again, in a fresh
    /// random order. It replaces `{request}` in the command line; without that it is standard input.
    pub requests: Option<Vec<String>>,
}

/// A command line with what goes around it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NamedCommand {
    /// What it is called in tables; the command line itself unless named.
    pub name: String,
    /// The command line.
    pub line: String,
    /// Run once before the first trial.
    pub setup: Option<String>,
    /// Run before each observation, untimed.
    pub prepare: Option<String>,
    /// Run once after the last trial.
    pub cleanup: Option<String>,
}

/// Where standard input comes from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Input {
    /// Empty.
    #[default]
    Null,
    /// A file.
    File(PathBuf),
}

/// Where standard output goes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Output {
    /// Nowhere.
    #[default]
    Null,
    /// Through a pipe that is read and thrown away.
    Pipe,
    /// To our own.
    Inherit,
    /// To a file, made anew by each observation.
    File(PathBuf),
}

/// What an exit other than 0 means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// The run ends: there is nothing to time.
    #[default]
    Stop,
    /// It keeps its time, as if nothing had happened.
    Ignore,
    /// It is an observation: predicates are false, unless they speak of the exit themselves.
    Observe,
}
