//! What is run around commands, and what it must not do to them.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use ascertain_sys::interrupt::Stop;
use ascertain_sys::process::Exit;

use super::failure;
use super::line::{Around, CommandLine, Key, Occasion};
use crate::command::Output;
use crate::experiment::TargetError;

/// The set-ups that are in force. Several arms, and several sessions at a time, may need the same:
/// it is run for the first of them, and its clean-up after the last.
#[derive(Default)]
pub(super) struct Hooks {
    in_force: Mutex<HashMap<Key, InForce>>,
    failures: Mutex<Vec<String>>,
    /// Why nothing that is set up can be trusted any more.
    spoilt: OnceLock<TargetError>,
}

/// A set-up in force.
#[derive(Default)]
struct InForce {
    users: usize,
    /// The files that its users' lines name, with one of these lines.
    files: HashMap<PathBuf, String>,
}

/// A set-up in force, for one user. Dropping it lets it go.
pub(super) struct Entered<'h> {
    hooks: &'h Hooks,
    key: Key,
    cleanup: Option<CommandLine>,
}

impl Hooks {
    /// Runs the set-up of a command unless it is in force already.
    ///
    /// # Errors
    /// When it fails: nothing is cleaned up after it then. Also when it changes a file that a command which was set up
    /// before names: that would be measured as this set-up leaves it.
    pub fn enter(&self, around: Around, line: &CommandLine, stop: &Stop) -> Result<Entered<'_>, TargetError> {
        let key = around.key();
        let mut in_force = lock(&self.in_force);
        if let Some(setup) = around.setup.as_ref().filter(|_| !in_force.contains_key(&key)) {
            let files = in_force.values().flat_map(|set_up| &set_up.files);
            let before: Vec<_> = files.map(|(file, line)| (file, line, identity(file))).collect();
            run_untimed(setup, Occasion::default(), stop)?;
            if let Some((file, line, _)) = before.into_iter().find(|(file, _, was)| identity(file) != *was) {
                let message = format!(
                    "{} changed `{}`, which {line} names and had been set up with: all set-ups come before the first \
                     trial. Run them before each observation (--prepare), or let each leave a file of its own",
                    setup.called(),
                    file.display(),
                );
                return Err(self.spoilt.get_or_init(|| setup.failed(message)).clone());
            }
        }
        let set_up = in_force.entry(key.clone()).or_default();
        set_up.users += 1;
        set_up.files.extend(line.files().into_iter().map(|file| (file, line.called())));
        Ok(Entered { hooks: self, key, cleanup: around.cleanup })
    }

    /// Whether what was set up is still as it was left.
    ///
    /// # Errors
    /// When a set-up changed what another one had left.
    pub fn check(&self) -> Result<(), TargetError> {
        self.spoilt.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// What went wrong in cleaning up so far.
    pub fn failures(&self) -> Vec<String> {
        lock(&self.failures).clone()
    }

    /// Runs a line whether or not a signal asked for the end, after which nothing else is started. What it fails with
    /// is kept: nobody takes an error here.
    pub fn run_regardless(&self, line: &CommandLine, occasion: Occasion) {
        let command = line.command(occasion);
        let output = || if command.stdout == Output::Inherit { Stdio::inherit() } else { Stdio::null() };
        let status = Command::new(&command.program)
            .args(&command.args)
            .envs(command.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(output())
            .stderr(output())
            .status();
        let reason = match status {
            Ok(status) if status.success() => return,
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        lock(&self.failures).push(format!("{}: {reason}", line.called()));
    }
}

impl Drop for Entered<'_> {
    /// The clean-up runs after Ctrl-C too.
    fn drop(&mut self) {
        let mut in_force = lock(&self.hooks.in_force);
        let Some(set_up) = in_force.get_mut(&self.key) else { return };
        set_up.users -= 1;
        if set_up.users > 0 {
            return;
        }
        in_force.remove(&self.key);
        if let Some(cleanup) = &self.cleanup {
            self.hooks.run_regardless(cleanup, Occasion::default());
        }
    }
}

/// What tells one state of a file from another; none where there is none.
fn identity(file: &Path) -> Option<[i128; 5]> {
    let of = std::fs::metadata(file).ok()?;
    Some([of.dev().into(), of.ino().into(), of.size().into(), of.mtime().into(), of.mtime_nsec().into()])
}

/// Runs what goes around a command.
///
/// # Errors
/// When it does not succeed.
pub(super) fn run_untimed(line: &CommandLine, occasion: Occasion, stop: &Stop) -> Result<(), TargetError> {
    let (usage, last_words) = line.run(occasion, None, stop)?;
    match failure(usage.exit) {
        _ if usage.exit == Exit::Interrupted => Err(TargetError::Interrupted),
        None => Ok(()),
        Some(reason) => Err(line.failed(format!("{} {reason}{}", line.called(), last_words.or_advice()))),
    }
}

/// Whoever panicked while it held the lock left a count behind that is still right.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
