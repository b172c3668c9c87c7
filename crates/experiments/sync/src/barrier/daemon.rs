//! A daemon of this process's own, where it may have one, else the one that runs; and how long the kernel runs its
//! program, which it counts while it is told to.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, PipeWriter};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ascertain_sync::barrierd::{Client, DEFAULT_PATH, Daemon, Error};
use ascertain_sys::bpf::count_run_time;

/// From one heartbeat to the next, at least: the daemon's default.
const PERIOD: Duration = Duration::from_micros(250);

/// A client, and the daemon that it needs.
pub struct Connection {
    pub client: Client,
    /// What the kernel runs at interrupts; none if the daemon is another process, or the kernel tells nothing of it.
    pub program: Option<Program>,
    /// Closing it ends the daemon.
    _running: Option<Running>,
}

struct Running {
    stop: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

impl Connection {
    pub fn new() -> Result<Self, Error> {
        let before = Program::all();
        let mut daemon = match Daemon::new(PERIOD) {
            Ok(daemon) => daemon,
            Err(error) => {
                // Why there is none of our own says more than that none is running.
                let client = Client::open(DEFAULT_PATH).map_err(|_| error)?;
                return Ok(Self { client, program: None, _running: None });
            }
        };
        let program = Program::all().into_iter().find(|program| !before.contains(program));
        let client = daemon.connect()?;
        let failed = |source| Error::File { path: "a pipe".into(), source };
        let (stopped, stop) = io::pipe().map_err(failed)?;
        let thread = thread::Builder::new().name("barrierd".into()).spawn(move || {
            // It works without, only later. An error ends it, and the client says that it is gone.
            let _ = daemon.run_in_real_time();
            let _ = daemon.serve(stopped.as_fd());
        });
        let running = Running { stop: Some(stop), thread: Some(thread.map_err(failed)?) };
        Ok(Self { client, program, _running: Some(running) })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What the kernel says of each descriptor of this process.
const DESCRIPTORS: &str = "/proc/self/fdinfo";
const RUN_TIME: &str = "run_time_ns:";

/// A program that this process has made.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Program(PathBuf);

impl Program {
    /// Those that this process has made so far; none where the kernel tells of none.
    fn all() -> BTreeSet<Program> {
        let descriptors = fs::read_dir(DESCRIPTORS).into_iter().flatten().flatten();
        let programs = descriptors.map(|descriptor| Program(descriptor.path()));
        programs.filter(|program| program.run_ns().is_ok()).collect()
    }

    /// Has the kernel count from here on.
    ///
    /// # Errors
    /// Without the privilege; where the kernel can't.
    pub fn count(&self) -> io::Result<Counted> {
        let counting = count_run_time()?;
        Ok(Counted { before_ns: self.run_ns()?, program: self.clone(), _counting: counting })
    }

    /// How long the kernel has run it, on all CPUs together, while it counted.
    fn run_ns(&self) -> io::Result<u64> {
        let text = fs::read_to_string(&self.0)?;
        let number = text.lines().find_map(|line| line.strip_prefix(RUN_TIME)?.trim().parse().ok());
        number.ok_or_else(|| io::Error::other(format!("{} does not tell of a program", self.0.display())))
    }
}

/// What a program takes while this lives.
pub struct Counted {
    program: Program,
    before_ns: u64,
    _counting: OwnedFd,
}

impl Counted {
    /// So far, on all CPUs together.
    ///
    /// # Errors
    /// None, as long as the program is there.
    pub fn run_ns(&self) -> io::Result<u64> {
        Ok(self.program.run_ns()?.saturating_sub(self.before_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_program_is_an_error() {
        let error = Program(format!("{DESCRIPTORS}/0").into()).run_ns().unwrap_err().to_string();
        assert!(error.contains("does not tell of a program"), "{error}");
        assert!(Program(format!("{DESCRIPTORS}/none").into()).run_ns().is_err());
    }
}
