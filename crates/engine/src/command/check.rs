//! Mistakes in a set of commands, found before anything runs.

use std::fs::{File, OpenOptions};
use std::io;

use super::hooks::Around;
use super::line::{Line, REQUEST};
use super::{CommandError, CommandSet, Input, NamedCommand, Output};
use crate::experiment::{Accepts, Factor, Point};

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
    for point in points(set) {
        for command in &set.commands {
            check_command(set, command, &point)?;
        }
    }
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
    let line = Line::measured(set, &command.line, point)?;
    if line.reads_requests() && set.input != Input::Null {
        return Err(CommandError::TwoInputs(line.text));
    }
    let prepare = command.prepare.as_ref();
    let prepare = prepare.map(|prepare| Line::around(set, "preparation", prepare, point)).transpose()?;
    let Around { setup, cleanup } = Around::new(set, command, point)?;
    find_program(&setup)?;
    if !has_setup(set) {
        find_program(&prepare)?;
    }
    if !has_setup(set) && !has_preparation(set) {
        find_program(&cleanup)?;
        let request = set.requests.as_ref().and_then(|requests| requests.first());
        line.find_program(request.map(String::as_str))?;
    }
    Ok(())
}

fn find_program(line: &Option<Line>) -> Result<(), CommandError> {
    line.as_ref().map_or(Ok(()), |line| line.find_program(None))
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
        let around = [&command.setup, &command.prepare, &command.cleanup];
        let mut lines = std::iter::once(&command.line).chain(around.into_iter().flatten());
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
    if let Output::File(path) = &set.output {
        // Every observation makes it anew; until the first what is in it stays.
        let writable = OpenOptions::new().append(true).create(true).open(path);
        writable.map_err(|reason| CommandError::OutputFile { path: path.clone(), reason })?;
    }
    Ok(())
}
