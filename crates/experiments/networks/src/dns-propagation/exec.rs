//! A program that changes a zone, whoever has it.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use ascertain_sys::interrupt::Stop;
use ascertain_sys::process::kill_group;

use super::providers::{Failure, Provider, Record};

/// How long the program may take each time, and until it says that a change is done.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often it is looked whether it has ended, and how often it is asked whether a change is done.
const LOOK: Duration = Duration::from_millis(5);
const ASK: Duration = Duration::from_millis(200);
/// What it says when something is not done yet.
const NOT_YET: i32 = 1;

/// A program that is called with `add`, `done` or `remove`, a name and a text.
pub struct Exec {
    program: PathBuf,
}

impl Exec {
    pub fn new(program: PathBuf) -> Self {
        Self { program }
    }

    /// How it ended. What it has to say it says to whoever started us.
    fn call(&self, what: &str, record: &Record) -> Result<ExitStatus, Failure> {
        let failed =
            |why: String, is_sure| Failure { why: format!("{} {what}: {why}", self.program.display()), is_sure };
        let mut command = Command::new(&self.program);
        command.arg(what).arg(record.name.to_ascii()).arg(&record.text).stdin(Stdio::null()).stdout(Stdio::null());
        // Ctrl-C is for us, who take away what it has added.
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
        // What a shell has started too: it might add the record when that was taken away.
        kill_group(&child);
        _ = child.wait();
        Err(failed(format!("it did not end within {PATIENCE:?}"), false))
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
            let is_waiting = status.code() == Some(NOT_YET) && start.elapsed() < PATIENCE && !stop.is_asked();
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
