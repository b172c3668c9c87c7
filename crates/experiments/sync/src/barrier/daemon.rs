//! The connection to the daemon `barrierd`. If the privileges are sufficient, the daemon runs in this process.
//! Otherwise a daemon must already be running. This module also reads the run time of the daemon's BPF program from the
//! kernel.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, PipeWriter};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use ascertain_sync::barrierd::{Client, DEFAULT_PATH, Daemon, Error};
use ascertain_sys::bpf::count_run_time;
use ascertain_sys::threads::JoinOnDrop;

/// Shortest time between two heartbeats of the daemon. This is also the daemon's default.
const PERIOD: Duration = Duration::from_micros(250);

/// A client of the daemon, and the daemon itself if it runs in this process.
pub struct Connection {
    pub client: Client,
    /// The BPF program that the kernel runs at interrupts. `None` if the daemon is another process, or if the kernel
    /// gives no information about BPF programs.
    pub program: Option<Program>,
    /// Keeps the daemon running if it is in this process; otherwise `None`. Closing the pipe makes the daemon's thread
    /// end, and dropping the thread waits until it has ended.
    _running: Option<(PipeWriter, JoinOnDrop)>,
}

impl Connection {
    pub fn new() -> Result<Self, Error> {
        let before = Program::all();
        let mut daemon = match Daemon::new(PERIOD) {
            Ok(daemon) => daemon,
            Err(error) => {
                // If no other process runs the daemon either, report why this process cannot run it. This reason helps
                // the user more than the failed connection.
                let client = Client::open(DEFAULT_PATH).map_err(|_| error)?;
                return Ok(Self { client, program: None, _running: None });
            }
        };
        let program = Program::all().into_iter().find(|program| !before.contains(program));
        let client = daemon.connect()?;
        let failed = |source| Error::File { path: "a pipe".into(), source };
        let (stopped, stop) = io::pipe().map_err(failed)?;
        let thread = thread::Builder::new().name("barrierd".into()).spawn(move || {
            // The daemon works without real-time priority, but less promptly. If it fails, the client reports that it
            // is gone.
            let _ = daemon.run_in_real_time();
            let _ = daemon.serve(stopped.as_fd());
        });
        Ok(Self { client, program, _running: Some((stop, thread.map_err(failed)?.into())) })
    }
}

/// The folder with the kernel's information about each file descriptor of this process.
const DESCRIPTORS: &str = "/proc/self/fdinfo";
const RUN_TIME: &str = "run_time_ns:";

/// A BPF program of this process, identified by the path of the kernel's information about it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Program(PathBuf);

impl Program {
    /// Returns the BPF programs to which this process has file descriptors. Returns an empty set if the kernel gives no
    /// information about BPF programs.
    fn all() -> BTreeSet<Program> {
        let descriptors = fs::read_dir(DESCRIPTORS).into_iter().flatten().flatten();
        let programs = descriptors.map(|descriptor| Program(descriptor.path()));
        programs.filter(|program| program.run_ns().is_ok()).collect()
    }

    /// Makes the kernel count the run time of the BPF program from now on.
    ///
    /// # Errors
    /// Fails if this process lacks the privilege, or if the kernel cannot count run times.
    pub fn count(&self) -> io::Result<RunTimeCounter> {
        let counting = count_run_time()?;
        Ok(RunTimeCounter { before_ns: self.run_ns()?, program: self.clone(), _counting: counting })
    }

    /// Returns the run time of the BPF program, in nanoseconds, summed over all CPUs. The kernel counts it only while
    /// such counting is [enabled](Self::count).
    fn run_ns(&self) -> io::Result<u64> {
        let text = fs::read_to_string(&self.0)?;
        let number = text.lines().find_map(|line| line.strip_prefix(RUN_TIME)?.trim().parse().ok());
        number.ok_or_else(|| {
            io::Error::other(format!("{} does not contain the run time of the BPF program", self.0.display()))
        })
    }
}

/// Makes the kernel count the run time of a BPF program as long as this object lives.
pub struct RunTimeCounter {
    program: Program,
    before_ns: u64,
    _counting: OwnedFd,
}

impl RunTimeCounter {
    /// Returns the run time of the BPF program since counting began, in nanoseconds, summed over all CPUs.
    ///
    /// # Errors
    /// Fails only if the program no longer exists.
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
        assert!(error.contains("does not contain the run time of the BPF program"), "{error}");
        assert!(Program(format!("{DESCRIPTORS}/none").into()).run_ns().is_err());
    }
}
