//! Finds mistakes in a set of commands before anything runs.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::PathBuf;

use ascertain_sys::process::SplitError;

use super::line::{CommandLine, HookLines, Invocation, REQUEST, output_of};
use crate::command::{CommandSet, Input, NamedCommand, Output, PrintedMetricError};
use crate::experiment::{Accepts, Factor, Point};

/// Finds mistakes in the set.
///
/// Every level of every parameter is checked, with the other parameters at their default levels. Programs and files
/// that a set-up or a preparation may create are not checked.
pub(super) fn check(set: &CommandSet) -> Result<(), CommandError> {
    if set.commands.is_empty() {
        return Err(CommandError::Set("the set contains no command to measure; add at least one".into()));
    }
    let mut outputs = set.commands.iter().map(|command| output_of(set, command));
    if let Some(printed) = set.printed.first()
        && outputs.any(|output| *output != Output::default())
    {
        return Err(CommandError::Set(format!(
            "`{}` is read from the output of the commands, so the output must go to memory; do not choose another \
             destination",
            printed.name
        )));
    }
    check_requests(set)?;
    let variables = set.commands.iter().flat_map(|command| &command.env);
    if let Some((name, _)) = variables.into_iter().find(|(_, value)| value.is_none()) {
        return Err(CommandError::MissingValue(name.clone()));
    }
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
        return Err(CommandError::Set("there are no recorded requests; give at least one".into()));
    }
    let named_request = |parameter: &Factor| format!("{{{}}}", parameter.name) == REQUEST;
    if set.parameters.iter().any(named_request) {
        let problem = format!("`{REQUEST}` is reserved for the recorded request; give the parameter another name");
        return Err(CommandError::Set(problem));
    }
    Ok(())
}

fn check_command(set: &CommandSet, command: &NamedCommand, point: &Point) -> Result<(), CommandError> {
    let line = CommandLine::measured(set, command, point)?;
    if line.reads_requests() && set.input != Input::Null {
        return Err(CommandError::Set(format!(
            "command `{}`: standard input cannot be both the recorded request and a file; write `{REQUEST}` where the \
             command line takes the request, or leave out the file",
            line.text
        )));
    }
    let HookLines { setup, prepare, conclude, cleanup } = HookLines::new(set, command, point)?;
    find_program(&setup)?;
    if !has_setup(set) {
        find_program(&prepare)?;
    }
    if !has_setup(set) && !has_preparation(set) {
        find_program(&conclude)?;
        find_program(&cleanup)?;
        let request = set.requests.as_ref().and_then(|requests| requests.first()).map(String::as_str);
        line.find_program(Invocation { request, ..Invocation::default() })?;
    }
    Ok(())
}

/// Finds commands that differ only in their set-ups. All set-ups run before the first trial, so all of these commands
/// would be measured in the state that the last set-up leaves. This check compares only command lines. If a set-up
/// overwrites a file of another command, that is found when the set-up runs.
fn check_setups(set: &CommandSet, points: &[Point]) -> Result<(), CommandError> {
    let mut known: HashMap<Vec<String>, String> = HashMap::new();
    for (point, command) in points.iter().flat_map(|point| set.commands.iter().map(move |command| (point, command))) {
        let fill = |line: &Option<String>| line.as_ref().map_or_else(String::new, |line| point.fill(line));
        let setup = fill(&command.setup);
        let values = command.variables().flat_map(|(name, value)| [name.to_owned(), point.fill(value)]);
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
    line.as_ref().map_or(Ok(()), |line| line.find_program(Invocation::default()))
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
        let values = command.variables().map(|(_, value)| value);
        let lines = std::iter::once(&command.line).chain(around.into_iter().flatten()).map(String::as_str);
        lines.chain(values).any(|line| line.contains(&placeholder))
    })
}

/// Returns the combinations of parameter levels to check: the default levels, and one combination for each other level.
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
        readable.map_err(|reason| CommandError::File { what: "standard input", path: path.clone(), reason })?;
    }
    for output in set.commands.iter().map(|command| output_of(set, command)) {
        let Output::File(path) = output else { continue };
        // Opened for appending, so that the contents stay until the first observation truncates the file.
        let writable = OpenOptions::new().append(true).create(true).open(path);
        writable.map_err(|reason| CommandError::File { what: "output", path: path.clone(), reason })?;
    }
    Ok(())
}

/// A mistake in a set of commands. Each message is complete, so there is no `source`.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The set has no command, or its settings contradict each other.
    #[error("{0}")]
    Set(String),
    /// The description of a printed figure is not valid.
    #[error(transparent)]
    Printed(#[from] PrintedMetricError),
    /// A command line cannot be split into a program and its arguments.
    #[error("{what} `{line}`: {reason}")]
    Words {
        /// The role of the command line: `command`, `set-up`, `preparation`, `conclusion`, `clean-up` or `shell`.
        what: &'static str,
        /// The command line, with its parameters replaced.
        line: String,
        /// The reason why the command line cannot be split.
        reason: SplitError,
    },
    /// The program cannot be started, usually because it does not exist.
    #[error("{what} `{line}`: {reason}")]
    Program {
        /// The role of the command line, as in [`Words`](Self::Words).
        what: &'static str,
        /// The command line, with its parameters replaced.
        line: String,
        /// The reason why the program cannot be started.
        reason: ascertain_sys::Error,
    },
    /// No command line contains this parameter.
    #[error(
        "no command line has `{{{0}}}`, so the values of this parameter would make no difference; add it to a command \
         line, or leave out the parameter"
    )]
    UnusedParameter(String),
    /// The same command is used with two set-ups. Both set-ups run before the first trial, so the second one undoes the
    /// first.
    #[error(
        "the set-ups `{}` and `{}` of `{line}` both run before the first trial, so the second one undoes the first; \
         let each write its own file, or run both before each observation",
        .setups[0], .setups[1]
    )]
    SetUpTwice {
        /// The command line, with its parameters replaced.
        line: String,
        /// The command lines of both set-ups, in the order in which they run.
        setups: [String; 2],
    },
    /// The recorded run does not contain the value of this environment variable.
    #[error("the value of the environment variable {0} was not recorded")]
    MissingValue(String),
    /// The file for standard input cannot be read, or the file for the output cannot be written.
    #[error("{what} `{}`: {reason}", .path.display())]
    File {
        /// The purpose of the file: `standard input` or `output`.
        what: &'static str,
        /// Path of the file that cannot be read or written.
        path: PathBuf,
        /// The error that the system returned.
        reason: io::Error,
    },
}
