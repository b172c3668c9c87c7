//! What is run once around commands: their set-ups and clean-ups.

use std::collections::HashMap;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ascertain_sys::interrupt::Stop;

use super::line::Line;
use super::outcome::run_untimed;
use super::{CommandError, CommandSet, NamedCommand, Output};
use crate::experiment::{Point, TargetError};

/// A set-up and the clean-up that belongs to it.
pub(super) struct Around {
    pub setup: Option<Line>,
    pub cleanup: Option<Line>,
}

/// Set-ups are the same when their lines, and those of their clean-ups, are: parameters replaced.
type Key = [Option<String>; 2];

/// The set-ups that are in force. Several arms, and several sessions at a time, may need the same:
/// it is run for the first of them, and its clean-up after the last.
#[derive(Default)]
pub(super) struct Hooks {
    users: Mutex<HashMap<Key, usize>>,
    failures: Mutex<Vec<String>>,
}

/// A set-up in force, for one user. Dropping it lets it go.
pub(super) struct Entered<'h> {
    hooks: &'h Hooks,
    key: Key,
    cleanup: Option<Line>,
}

impl Around {
    /// What goes around a command at a point.
    ///
    /// # Errors
    /// When a line can't be cut into words.
    pub fn new(set: &CommandSet, command: &NamedCommand, point: &Point) -> Result<Around, CommandError> {
        let line =
            |what, line: &Option<String>| line.as_ref().map(|line| Line::around(set, what, line, point)).transpose();
        Ok(Around { setup: line("set-up", &command.setup)?, cleanup: line("clean-up", &command.cleanup)? })
    }

    fn key(&self) -> Key {
        [&self.setup, &self.cleanup].map(|line| line.as_ref().map(|line| line.text.clone()))
    }
}

impl Hooks {
    /// Runs the set-up unless it is in force already.
    ///
    /// # Errors
    /// When it fails: nothing is cleaned up after it then.
    pub fn enter(&self, around: Around, stop: &Stop) -> Result<Entered<'_>, TargetError> {
        let key = around.key();
        let mut users = lock(&self.users);
        let count = users.entry(key.clone()).or_default();
        if let (0, Some(setup)) = (*count, &around.setup) {
            run_untimed(setup, stop)?;
        }
        *count += 1;
        Ok(Entered { hooks: self, key, cleanup: around.cleanup })
    }

    /// What went wrong in cleaning up so far.
    pub fn failures(&self) -> Vec<String> {
        lock(&self.failures).clone()
    }
}

impl Drop for Entered<'_> {
    /// The clean-up runs after Ctrl-C too, when nothing else is started any more. What it fails with
    /// is kept: nobody takes an error here.
    fn drop(&mut self) {
        let mut users = lock(&self.hooks.users);
        let Some(count) = users.get_mut(&self.key) else { return };
        *count -= 1;
        if let (0, Some(cleanup)) = (*count, &self.cleanup)
            && let Err(reason) = run_regardless(cleanup)
        {
            lock(&self.hooks.failures).push(format!("{}: {reason}", cleanup.called()));
        }
    }
}

/// Runs a line whether or not a signal asked for the end.
fn run_regardless(line: &Line) -> Result<(), String> {
    let command = line.command(None);
    let output = || if command.stdout == Output::Inherit { Stdio::inherit() } else { Stdio::null() };
    let status = Command::new(&command.program)
        .args(&command.args)
        .stdin(Stdio::null())
        .stdout(output())
        .stderr(output())
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(status.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

/// Whoever panicked while it held the lock left a count behind that is still right.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
