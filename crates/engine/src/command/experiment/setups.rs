//! Runs set-ups, clean-ups and other command lines before and after measured commands. Checks that no set-up changes
//! the files of another command.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use ascertain_sys::interrupt::Stop;
use ascertain_sys::process::Exit;

use super::failure;
use super::line::{CommandLine, HookLines, Invocation, SetupKey};
use crate::command::Output;
use crate::experiment::TargetError;

/// The set-ups that have run and are still in use. Several arms may share a set-up, even arms of different sessions. A
/// set-up runs when the first of these arms is opened, and its clean-up runs when the last of them is closed.
#[derive(Default)]
pub(super) struct Setups {
    active: Mutex<HashMap<SetupKey, ActiveSetup>>,
    failures: Mutex<Vec<String>>,
    /// The error for a set-up that changed the files of another command. Once there is such an error, no command can be
    /// measured.
    spoilt: OnceLock<TargetError>,
}

/// A set-up that has run, with the number of arms that use it.
#[derive(Default)]
struct ActiveSetup {
    users: usize,
    /// The input files of the set-up's commands, each with the name of a command that reads it.
    files: HashMap<PathBuf, String>,
}

/// A guard that is held as long as one arm uses an active set-up.
pub(super) struct SetupGuard<'s> {
    setups: &'s Setups,
    key: SetupKey,
    cleanup: Option<CommandLine>,
}

impl Setups {
    /// Runs the set-up in `hooks` for the command `line`, unless another arm already uses this set-up. Dropping the
    /// returned guard ends this arm's use of the set-up.
    ///
    /// # Errors
    /// If the set-up fails. Its clean-up does not run then. Also if the set-up changes a file of a command
    /// whose set-up ran earlier, because that command would be measured with the wrong file.
    pub fn enter(&self, hooks: &HookLines, line: &CommandLine, stop: &Stop) -> Result<SetupGuard<'_>, TargetError> {
        let key = hooks.key();
        let mut active = lock(&self.active);
        if let Some(setup) = hooks.setup.as_ref().filter(|_| !active.contains_key(&key)) {
            let files = active.values().flat_map(|set_up| &set_up.files);
            let before: Vec<_> = files.map(|(file, line)| (file, line, identity(file))).collect();
            run_untimed(setup, Invocation::default(), stop)?;
            if let Some((file, line, _)) = before.into_iter().find(|(file, _, was)| identity(file) != *was) {
                let message = format!(
                    "{} changed the file `{}`, which an earlier set-up had prepared for {line}; let each set-up write \
                     its own file, or prepare each observation instead",
                    setup.name(),
                    file.display(),
                );
                return Err(self.spoilt.get_or_init(|| setup.failed(message)).clone());
            }
        }
        let set_up = active.entry(key.clone()).or_default();
        set_up.users += 1;
        set_up.files.extend(line.files().into_iter().map(|file| (file, line.name())));
        Ok(SetupGuard { setups: self, key, cleanup: hooks.cleanup.clone() })
    }

    /// Checks that no set-up has changed the files of a command whose set-up ran earlier.
    ///
    /// # Errors
    /// If a set-up has changed such a file.
    pub fn check(&self) -> Result<(), TargetError> {
        self.spoilt.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Returns the errors of all clean-ups so far.
    pub fn failures(&self) -> Vec<String> {
        lock(&self.failures).clone()
    }

    /// Runs a command line even after a signal, when nothing else is started any more. Its callers include destructors,
    /// which cannot return an error. So an error is stored for [`failures()`](Self::failures).
    pub fn run_regardless(&self, line: &CommandLine, invocation: Invocation) {
        let command = line.command(invocation);
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
        lock(&self.failures).push(format!("{}: {reason}", line.name()));
    }
}

impl Drop for SetupGuard<'_> {
    /// Ends the use of the set-up. If no other arm uses it, runs its clean-up, even after Ctrl-C.
    fn drop(&mut self) {
        let mut active = lock(&self.setups.active);
        let Some(set_up) = active.get_mut(&self.key) else { return };
        set_up.users -= 1;
        if set_up.users > 0 {
            return;
        }
        active.remove(&self.key);
        if let Some(cleanup) = &self.cleanup {
            self.setups.run_regardless(cleanup, Invocation::default());
        }
    }
}

/// Returns numbers that change when the file is changed or replaced: its device, inode, size and time. `None` if the
/// file does not exist.
fn identity(file: &Path) -> Option<[i128; 5]> {
    let of = std::fs::metadata(file).ok()?;
    Some([of.dev().into(), of.ino().into(), of.size().into(), of.mtime().into(), of.mtime_nsec().into()])
}

/// Runs a command line that belongs to a measured command, such as a preparation, without measuring it.
///
/// # Errors
/// If the command line does not succeed.
pub(super) fn run_untimed(line: &CommandLine, invocation: Invocation, stop: &Stop) -> Result<(), TargetError> {
    let (usage, last_output) = line.run(invocation, None, stop)?;
    match failure(usage.exit) {
        _ if usage.exit == Exit::Interrupted => Err(TargetError::Interrupted),
        None => Ok(()),
        Some(reason) => Err(line.failed(format!("{} {reason}{}", line.name(), last_output.failure_clause()))),
    }
}

/// Locks the mutex, even if another holder has panicked, because the data is still consistent then.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
