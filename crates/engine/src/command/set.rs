//! Commands to measure, as plain data, and what is observed of them.

use std::path::PathBuf;
use std::time::Duration;

#[doc(inline)]
pub use ascertain_sys::process::Output;
use serde::{Deserialize, Serialize};

use crate::experiment::{Better, Factor, Metric, Spec, Variant};
use crate::names;
use crate::unit::Unit;

/// Commands that are measured against each other, or one on its own, as plain data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// An observation that takes longer is stopped: it took more than that, and no more is known of it.
    pub time_limit: Option<Duration>,
    /// What an exit other than 0 means.
    pub on_failure: OnFailure,
    /// Recorded requests: each trial takes one, every one once before any comes again, in a fresh
    /// random order. It replaces `{request}` in the command line; without that it is standard input.
    pub requests: Option<Vec<String>>,
}

impl CommandSet {
    /// Command lines that are called as they are written, with nothing around them.
    pub fn of(id: &str, lines: impl IntoIterator<Item = impl Into<String>>) -> CommandSet {
        let named = lines.into_iter().map(|line| {
            let line: String = line.into();
            NamedCommand { name: line.clone(), line, ..NamedCommand::default() }
        });
        CommandSet { id: id.to_string(), commands: named.collect(), ..CommandSet::default() }
    }
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

/// What an exit other than 0 means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// There is nothing to time: the command is set aside with what is asked of it, and the others go on.
    #[default]
    Stop,
    /// It keeps its time, as if nothing had happened.
    Ignore,
    /// It is an observation: predicates are false, unless they speak of the exit themselves.
    Observe,
}

/// What is observed of a command, each less being better: `wall`, `user` and `system` in nanoseconds,
/// `memory_peak` in bytes, and `exit`, its exit code (128 + n where signal n ended it).
pub fn metrics() -> Vec<Metric> {
    let metric = |name, about, unit| Metric::new(name, about, unit, Better::Lower);
    vec![
        metric("wall", "time from its start to its end", Unit::Nanosecond),
        metric("user", "time on processors, in its own code", Unit::Nanosecond),
        metric("system", "time on processors, in the kernel for it", Unit::Nanosecond),
        metric("memory_peak", "the most memory that it held at once", Unit::Byte),
        metric("exit", "exit code; 128 + n when signal n ended it", Unit::One),
    ]
}

const README: &str = "\
Command lines, each started anew for every observation; several in a fresh random order in every trial. Wall, \
user and system time, peak memory and the exit code come from the kernel's account of the process. A \
command that was stopped at its time limit took longer than that, and no more is known of it. What is run beforehand (set-up, preparation) \
and afterwards (clean-up) is not timed.";

impl CommandSet {
    /// The experiment as plain data: commands are variants, parameters are factors.
    pub fn spec(&self) -> Spec {
        let variant = |command: &NamedCommand| Variant { name: command.name.clone(), about: command.line.clone() };
        let named = self.clone().with_distinct_names();
        Spec {
            id: self.id.clone(),
            title: "commands, measured against each other".into(),
            readme: README.into(),
            variants: named.commands.iter().map(variant).collect(),
            factors: self.parameters.clone(),
            metrics: metrics(),
            plots: Vec::new(),
        }
    }

    /// The command with that name.
    pub(super) fn command(&self, name: &str) -> Option<&NamedCommand> {
        self.commands.iter().find(|command| command.name == name)
    }

    /// A command without a name gets its line for one; a name that is taken gets a number.
    #[must_use]
    pub(super) fn with_distinct_names(mut self) -> Self {
        for index in 0..self.commands.len() {
            let (before, rest) = self.commands.split_at_mut(index);
            let command = &mut rest[0];
            let name = if command.name.trim().is_empty() { &command.line } else { &command.name };
            let is_taken = |name: &str| before.iter().any(|earlier| earlier.name == name);
            command.name = names::unused(name, is_taken);
        }
        self
    }
}
