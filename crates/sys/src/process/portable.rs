//! Starting a command by the standard library, where there is no launcher.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;

use rustix::process::Pid;

use super::resolve::environment;
use super::stdio::Streams;
use super::{Command, wait};
use crate::clock;

/// A command of the standard library, kept for all runs.
pub(super) struct Portable {
    command: std::process::Command,
}

impl Portable {
    pub fn new(path: &Path, command: &Command) -> Self {
        let mut portable = std::process::Command::new(path);
        portable.arg0(&command.program).args(&command.args).process_group(0);
        portable.env_clear().envs(environment(command));
        Self { command: portable }
    }

    /// The new process, and when it was about to be made.
    pub fn start(&mut self, streams: Streams) -> io::Result<(Pid, u64)> {
        let [stdin, stdout, stderr] = streams.map(|stream| stream.map_or_else(Stdio::inherit, Stdio::from));
        self.command.stdin(stdin).stdout(stdout).stderr(stderr);
        let start_ns = clock::now_ns();
        let child = self.command.spawn()?;
        // Who drops a `Child` does not wait for it: that is left to us, who want its account.
        Ok((Pid::from_child(&child), start_ns))
    }
}

/// The most memory that was ever resident in this process, which a command inherits.
pub(super) fn memory_peak_bytes() -> u64 {
    // SAFETY: `rusage` is plain data for which zeros are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to an rusage to write to.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    wait::memory_peak_bytes(&usage)
}
