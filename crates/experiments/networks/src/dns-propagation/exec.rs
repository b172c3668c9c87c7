//! The provider that runs a user's program to change a zone.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use ascertain_sys::interrupt::Stop;
use ascertain_sys::process::kill_group;

use super::providers::{Failure, Provider, Record};

/// Time limit of each call of the program. It is also the time limit for the program to report a change as done.
const PATIENCE: Duration = Duration::from_secs(120);
/// Interval at which this process checks whether the program has ended.
const LOOK: Duration = Duration::from_millis(5);
/// Pause between two calls of the program with `done`.
const ASK: Duration = Duration::from_millis(200);
/// The exit code with which the program reports that a change is not done yet.
const NOT_YET: i32 = 1;

/// A user's program that changes a zone. It is called with `add`, `done` or `remove`, the name of a record and its
/// text.
pub struct Exec {
    program: PathBuf,
}

impl Exec {
    pub fn new(program: PathBuf) -> Self {
        Self { program }
    }

    /// Runs the program with `what` as its first argument, and returns its exit status. The program's messages go to
    /// standard error.
    fn call(&self, what: &str, record: &Record) -> Result<ExitStatus, Failure> {
        let failed =
            |why: String, is_sure| Failure { why: format!("{} {what}: {why}", self.program.display()), is_sure };
        let mut command = Command::new(&self.program);
        command.arg(what).arg(record.name.to_ascii()).arg(&record.text).stdin(Stdio::null()).stdout(Stdio::null());
        // The program gets its own process group, so that Ctrl-C does not stop it. It is still needed to remove the
        // added record.
        command.process_group(0);
        let mut child = command.spawn().map_err(|error| failed(error.to_string(), true))?;
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            match child.try_wait() {
                Ok(None) => thread::sleep(LOOK),
                Ok(Some(status)) => return Ok(status),
                Err(error) => return Err(failed(error.to_string(), false)),
            }
        }
        // Also kills the processes that the program started. Otherwise they might add the record after it was removed.
        kill_group(&child);
        _ = child.wait();
        Err(failed(format!("the program did not end within {PATIENCE:?}"), false))
    }

    fn must(&self, what: &str, record: &Record) -> Result<(), Failure> {
        let status = self.call(what, record)?;
        if status.success() { Ok(()) } else { Err(self.failure(what, status)) }
    }

    fn failure(&self, what: &str, status: ExitStatus) -> Failure {
        Failure { why: format!("{} {what}: {status}", self.program.display()), is_sure: false }
    }
}

impl Provider for Exec {
    fn add(&self, record: &Record, call: &dyn Fn(), stop: &Stop) -> Result<(), Failure> {
        call();
        self.must("add", record)?;
        let start = Instant::now();
        loop {
            let status = self.call("done", record)?;
            let is_waiting = status.code() == Some(NOT_YET) && start.elapsed() < PATIENCE && !stop.is_requested();
            match () {
                () if status.success() => return Ok(()),
                () if is_waiting => thread::sleep(ASK),
                () => return Err(self.failure("done", status)),
            }
        }
    }

    fn remove(&self, record: &Record) -> Result<(), Failure> {
        self.must("remove", record)
    }

    fn address(&self) -> Option<String> {
        Some(format!("exec {}", self.program.display()))
    }
}
