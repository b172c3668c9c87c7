//! Commands to measure, as plain data, what is observed of them, and the mistakes found before anything runs.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use ascertain_sys::perf::Counter;
use ascertain_sys::process::SplitError;
use serde::{Deserialize, Serialize};

use super::line::{Around, CommandLine, Occasion, REQUEST};
use crate::experiment::{Accepts, Better, Factor, Metric, Point, Spec, Variant};
use crate::names;
use crate::unit::Unit;

#[doc(inline)]
pub use ascertain_sys::process::Output;

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
    /// Whether [`counters`] are observed besides.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counters: bool,
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

    /// The experiment as plain data: commands are variants, parameters are factors.
    pub fn spec(&self) -> Spec {
        let variant = |command: &NamedCommand| Variant { name: command.name.clone(), about: command.line.clone() };
        let named = self.clone().with_distinct_names();
        Spec {
            id: self.id.clone(),
            title: "commands, measured against each other".into(),
            readme: README.into(),
            emulates: None,
            variants: named.commands.iter().map(variant).collect(),
            factors: self.parameters.clone(),
            metrics: self.metrics(),
            plots: Vec::new(),
        }
    }

    /// What is observed of its commands.
    pub fn metrics(&self) -> Vec<Metric> {
        metrics().into_iter().chain(counters().into_iter().filter(|_| self.counters)).collect()
    }

    /// Where a command's output goes.
    pub(super) fn output_of<'s>(&'s self, command: &'s NamedCommand) -> &'s Output {
        command.output.as_ref().unwrap_or(&self.output)
    }

    /// The command with that name.
    pub(super) fn command(&self, name: &str) -> Option<&NamedCommand> {
        self.commands.iter().find(|command| command.name == name)
    }

    /// The command that a variant stands for, at a point.
    pub fn at(&self, variant: &str, point: &Point) -> Option<NamedCommand> {
        Some(self.clone().with_distinct_names().command(variant)?.at(point))
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

/// A command line with what goes around it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NamedCommand {
    /// What it is called in tables; the command line itself unless named.
    pub name: String,
    /// The command line.
    pub line: String,
    /// Run once before the first trial.
    pub setup: Option<String>,
    /// Run before each observation, untimed.
    pub prepare: Option<String>,
    /// Run after each observation, untimed, also after one that failed.
    pub conclude: Option<String>,
    /// Run once after the last trial.
    pub cleanup: Option<String>,
    /// Environment variables of the command and of what goes around it; parameters are replaced in their values.
    pub env: Vec<(String, String)>,
    /// Where its output goes, if not where that of all commands goes.
    pub output: Option<Output>,
}

impl NamedCommand {
    /// The command with its parameters replaced wherever they stand, also in its name.
    #[must_use]
    pub fn at(&self, point: &Point) -> NamedCommand {
        let fill = |line: &Option<String>| line.as_ref().map(|line| point.fill(line));
        NamedCommand {
            name: point.fill(&self.name),
            line: point.fill(&self.line),
            setup: fill(&self.setup),
            prepare: fill(&self.prepare),
            conclude: fill(&self.conclude),
            cleanup: fill(&self.cleanup),
            env: self.env.iter().map(|(name, value)| (name.clone(), point.fill(value))).collect(),
            output: self.output.clone(),
        }
    }
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// There is nothing to time: the command is set aside with what is asked of it, and the others go on.
    #[default]
    Stop,
    /// It keeps its time, as if nothing had happened.
    Ignore,
    /// The same of these exit codes (128 + n where signal n ended it); others stop.
    IgnoreCodes(Vec<i32>),
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

/// What is counted of a command where that is asked for, each less being better: a metric for each of [`Counter::ALL`].
pub fn counters() -> Vec<Metric> {
    let metric = |counter| {
        let (name, about) = match counter {
            Counter::Instructions => ("instructions", "instructions of its own code"),
            Counter::Cycles => ("cycles", "the processor's cycles in its own code"),
            Counter::CacheReferences => ("cache_references", "accesses of its own code to the last level of the cache"),
            Counter::CacheMisses => ("cache_misses", "those of them that had to go to memory"),
            Counter::BranchMisses => ("branch_misses", "branches of its own code that were guessed wrong"),
            Counter::PageFaults => ("page_faults", "pages of memory that had to be provided when they were touched"),
            Counter::ContextSwitches => ("context_switches", "how often it gave up a processor or had to"),
            Counter::CpuMigrations => ("cpu_migrations", "how often it went on on another processor"),
        };
        Metric::new(name, about, Unit::One, Better::Lower)
    };
    Counter::ALL.map(metric).into()
}

const README: &str = "\
Command lines, each started anew for every observation; several in a fresh random order in every trial. Wall, \
user and system time, peak memory and the exit code come from the kernel's account of the process. A command that was \
stopped at its time limit took longer than that, and no more is known of it. What is run beforehand (set-up, \
preparation) and afterwards (clean-up) is not timed.";

/// Finds what is wrong with the set.
///
/// Every level of every parameter is looked at, the others having their default. Programs and files
/// that something run beforehand may have to make are not missed yet.
pub(super) fn check(set: &CommandSet) -> Result<(), CommandError> {
    if set.commands.is_empty() {
        return Err(CommandError::NoCommand);
    }
    check_requests(set)?;
    if let Some(unused) = set.parameters.iter().find(|parameter| !is_used(set, parameter)) {
        return Err(CommandError::UnusedParameter(unused.name.clone()));
    }
    let points = points(set);
    for point in &points {
        for command in &set.commands {
            check_command(set, command, point)?;
        }
    }
    check_setups(set, &points)?;
    check_files(set)
}

fn check_requests(set: &CommandSet) -> Result<(), CommandError> {
    let Some(requests) = &set.requests else { return Ok(()) };
    if requests.is_empty() {
        return Err(CommandError::NoRequests);
    }
    let named_request = |parameter: &Factor| format!("{{{}}}", parameter.name) == REQUEST;
    match set.parameters.iter().any(named_request) {
        true => Err(CommandError::ParameterNamedRequest),
        false => Ok(()),
    }
}

fn check_command(set: &CommandSet, command: &NamedCommand, point: &Point) -> Result<(), CommandError> {
    let line = CommandLine::measured(set, command, point)?;
    if line.reads_requests() && set.input != Input::Null {
        return Err(CommandError::TwoInputs(line.text));
    }
    let Around { setup, prepare, conclude, cleanup } = Around::new(set, command, point)?;
    find_program(&setup)?;
    if !has_setup(set) {
        find_program(&prepare)?;
    }
    if !has_setup(set) && !has_preparation(set) {
        find_program(&conclude)?;
        find_program(&cleanup)?;
        let request = set.requests.as_ref().and_then(|requests| requests.first()).map(String::as_str);
        line.find_program(Occasion { request, ..Occasion::default() })?;
    }
    Ok(())
}

/// All set-ups come before the first trial: where what they leave is all that tells commands apart, what the last one
/// left would be measured under each of their names. Files that they overwrite are found when they run.
fn check_setups(set: &CommandSet, points: &[Point]) -> Result<(), CommandError> {
    let mut known: HashMap<Vec<String>, String> = HashMap::new();
    for (point, command) in points.iter().flat_map(|point| set.commands.iter().map(move |command| (point, command))) {
        let fill = |line: &Option<String>| line.as_ref().map_or_else(String::new, |line| point.fill(line));
        let setup = fill(&command.setup);
        let values = command.env.iter().flat_map(|(name, value)| [name.clone(), point.fill(value)]);
        let told_apart_by = [point.fill(&command.line), fill(&command.prepare)].into_iter().chain(values).collect();
        match known.entry(told_apart_by) {
            Entry::Vacant(free) => _ = free.insert(setup),
            Entry::Occupied(same) if *same.get() == setup => {}
            Entry::Occupied(same) => {
                let line = same.key()[0].clone();
                return Err(CommandError::SetUpTwice { line, setups: [same.get().clone(), setup] });
            }
        }
    }
    Ok(())
}

fn find_program(line: &Option<CommandLine>) -> Result<(), CommandError> {
    line.as_ref().map_or(Ok(()), |line| line.find_program(Occasion::default()))
}

fn has_setup(set: &CommandSet) -> bool {
    set.commands.iter().any(|command| command.setup.is_some())
}

fn has_preparation(set: &CommandSet) -> bool {
    set.commands.iter().any(|command| command.prepare.is_some())
}

fn is_used(set: &CommandSet, parameter: &Factor) -> bool {
    let placeholder = format!("{{{}}}", parameter.name);
    set.commands.iter().any(|command| {
        let around = [&command.setup, &command.prepare, &command.conclude, &command.cleanup];
        let values = command.env.iter().map(|(_, value)| value);
        let mut lines = std::iter::once(&command.line).chain(around.into_iter().flatten()).chain(values);
        lines.any(|line| line.contains(&placeholder))
    })
}

/// The default point, and for each other level of a parameter the one that has it instead.
fn points(set: &CommandSet) -> Vec<Point> {
    let default = set.spec().default_point();
    let mut points = vec![default.clone()];
    for parameter in &set.parameters {
        let Accepts::OneOf(levels) = &parameter.accepts else { continue };
        let others = levels.iter().filter(|level| **level != parameter.default);
        points.extend(others.map(|level| default.clone().with(&parameter.name, level.clone())));
    }
    points
}

fn check_files(set: &CommandSet) -> Result<(), CommandError> {
    if has_setup(set) || has_preparation(set) {
        return Ok(());
    }
    if let Input::File(path) = &set.input {
        let readable = File::open(path).and_then(|file| match file.metadata()?.is_dir() {
            true => Err(io::ErrorKind::IsADirectory.into()),
            false => Ok(()),
        });
        readable.map_err(|reason| CommandError::InputFile { path: path.clone(), reason })?;
    }
    for output in set.commands.iter().map(|command| set.output_of(command)) {
        let Output::File(path) = output else { continue };
        // Every observation makes it anew; until the first what is in it stays.
        let writable = OpenOptions::new().append(true).create(true).open(path);
        writable.map_err(|reason| CommandError::OutputFile { path: path.clone(), reason })?;
    }
    Ok(())
}

/// A set of commands can't be measured as it is. Each message is whole: there is no `source` to add.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// There is none.
    #[error("there is no command to measure")]
    NoCommand,
    /// A command line can't be cut into a program and its arguments.
    #[error("{what} `{line}`: {reason}")]
    Words {
        /// `command`, `set-up`, `preparation`, `conclusion`, `clean-up` or `shell`.
        what: &'static str,
        /// The command line, its parameters replaced.
        line: String,
        /// What is wrong.
        reason: SplitError,
    },
    /// The program can't be started: most often it does not exist.
    #[error("{what} `{line}`: {reason}")]
    Program {
        /// As above.
        what: &'static str,
        /// The command line, its parameters replaced.
        line: String,
        /// What is wrong.
        reason: ascertain_sys::Error,
    },
    /// A parameter is in no command line.
    #[error("no command line has `{{{0}}}`: nothing would differ between the values of this parameter")]
    UnusedParameter(String),
    /// One command line stands for what two set-ups leave, of which the second undoes the first.
    #[error(
        "`{line}` is to be measured after `{}` and after `{}`, but all set-ups come before the first trial: what the \
         last one leaves would be measured under both names. Run them before each observation (--prepare), or let each \
         leave a file of its own and name that in the command line", .setups[0], .setups[1]
    )]
    SetUpTwice {
        /// The command line.
        line: String,
        /// The set-ups.
        setups: [String; 2],
    },
    /// There is a list of recorded requests with nothing in it.
    #[error("there are no recorded requests: give at least one")]
    NoRequests,
    /// A parameter has the name that stands for the request.
    #[error("`{{request}}` stands for the recorded request: give the parameter another name")]
    ParameterNamedRequest,
    /// A command gets its requests on standard input, which is to be a file.
    #[error(
        "command `{0}`: standard input can't be both the recorded request and a file: write \
         `{{request}}` where the command line takes the request, or leave out the file"
    )]
    TwoInputs(String),
    /// The file for standard input can't be read.
    #[error("standard input `{}`: {reason}", .path.display())]
    InputFile {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: io::Error,
    },
    /// The file for the output can't be written.
    #[error("output `{}`: {reason}", .path.display())]
    OutputFile {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: io::Error,
    },
}
