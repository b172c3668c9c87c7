//! The mistakes in a set of commands that are found before anything runs.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::PathBuf;

use ascertain_sys::process::SplitError;

use super::line::{Around, CommandLine, Occasion, REQUEST, output_of};
use crate::command::{CommandSet, Input, NamedCommand, Output, PrintedMetricError};
use crate::experiment::{Accepts, Factor, Point};

/// Finds what is wrong with the set.
///
/// Every level of every parameter is looked at, the others having their default. Programs and files
/// that something run beforehand may have to make are not missed yet.
pub(super) fn check(set: &CommandSet) -> Result<(), CommandError> {
    if set.commands.is_empty() {
        return Err(CommandError::NoCommand);
    }
    let mut outputs = set.commands.iter().map(|command| output_of(set, command));
    if let Some(printed) = set.printed.first()
        && outputs.any(|output| *output != Output::default())
    {
        return Err(CommandError::OutputIsRead(printed.name.clone()));
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
        let values = command.variables().map(|(_, value)| value);
        let lines = std::iter::once(&command.line).chain(around.into_iter().flatten()).map(String::as_str);
        lines.chain(values).any(|line| line.contains(&placeholder))
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
    for output in set.commands.iter().map(|command| output_of(set, command)) {
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
    /// A figure that commands print cannot be read as it is described.
    #[error(transparent)]
    Printed(#[from] PrintedMetricError),
    /// The output goes somewhere else than to the reader of a printed figure.
    #[error(
        "`{0}` is read from the output of the commands, so the output must go to memory; do not choose another \
         destination"
    )]
    OutputIsRead(String),
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
    /// The value of an environment variable was not recorded.
    #[error("the value of the environment variable {0} was not recorded")]
    MissingValue(String),
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
