//! A small process that starts a command, so that the command's peak of memory does not include this process.
//!
//! When a process executes a program, Linux counts the memory that was resident before as memory of the new program
//! (`setmax_mm_hiwater_rss` in the kernel's `exec_mmap`). A command that is started directly from a process of 200 MB
//! is therefore reported with at least 200 MB, with `vfork`, `posix_spawn` and `fork` alike. So each command gets a
//! launcher. It is a copy of this process that is made once, releases the inherited memory, and starts the command at
//! each request.
//!
//! - The launcher creates the command with `CLONE_PARENT`: it is our own child, so we wait for it and get its
//!   accounting. `CLONE_VM` and `CLONE_VFORK` make that as cheap as `posix_spawn`.
//! - The launcher reads the clock just before it creates the command, so the time does not include our request to it.
//! - The launcher itself was created with `CLONE_FILES`, so it shares our file descriptors instead of copying them. A
//!   file that we open for a run is also open in the launcher, and a file that we close is also closed in the launcher.
//! - The launcher leads its own process group, so that it does not get signals from the terminal. The launcher ends
//!   when this process ends, and kills a command that is still running then.

use std::ffi::OsString;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{fs, io};

use rustix::event::{EventfdFlags, eventfd};
use rustix::process::{Pid, PidfdFlags, Signal, getpid, kill_process, pidfd_open};

use super::Command;
use super::image::{Image, discardable};
use super::resolve::{c_string, environment};
use super::serve::serve;
use super::stdio::Streams;
use super::wait::reap;
use crate::Error;
use crate::futex::{self, Scope};

/// Interval at which this process checks that a launcher still exists, while it waits for a reply.
const LOOK: Duration = Duration::from_millis(100);

/// A launcher for one command: a small process that starts the command whenever it is requested.
pub(super) struct Launcher {
    image: Image,
    /// An eventfd that wakes the launcher when there is a request.
    request: OwnedFd,
    pid: Pid,
    /// The process that created the launcher, identified by its [`generation`](crate::fork::generation). Only that
    /// process may end the launcher; a fork of that process may not.
    owner: u64,
    alive: bool,
}

impl Launcher {
    /// Creates a launcher. A command inherits the working directory, limits, priority, namespaces and affinity that the
    /// calling thread has now.
    pub fn new(path: &Path, command: &Command) -> Result<Self, Error> {
        let image = image(path, command)?;
        let no_launcher = "could not create the process that starts the command";
        let parent = own_pidfd().map_err(Error::system(no_launcher))?;
        let request = eventfd(0, EventfdFlags::CLOEXEC).map_err(Error::system(no_launcher))?;
        // The launcher sends no signal when it ends, so that code that waits for all children does not receive it.
        let flags = libc::CLONE_FILES;
        // SAFETY: without CLONE_VM and without a stack this is `fork`: the copy continues here, with its own memory.
        // The copy only calls `serve`, which does only what is allowed in the copy of a process with threads.
        let pid = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
        if pid < 0 {
            return Err(Error::last(no_launcher));
        }
        let Some(pid) = Pid::from_raw(pid as i32) else {
            // SAFETY: this is the copy, in which no other thread runs.
            unsafe { serve(&image, request.as_fd(), parent.as_fd()) }
        };
        let owner = crate::fork::generation();
        let mut launcher = Self { image, request, pid, owner, alive: true };
        launcher.await_reply(0)?;
        Ok(launcher)
    }

    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Starts the command. Returns the ID of its process and the time just before the process was created. The inner
    /// error is the kernel's reason why the command could not be started; the outer one is a failure of the launcher.
    pub fn launch(&mut self, streams: &Streams) -> Result<io::Result<(Pid, u64)>, Error> {
        let control = &*self.image;
        for (place, stream) in control.streams.iter().zip(streams) {
            place.store(stream.as_ref().map_or(-1, OwnedFd::as_raw_fd), Ordering::Relaxed);
        }
        let seen = control.replies.load(Ordering::Acquire);
        rustix::io::write(&self.request, &1_u64.to_ne_bytes())
            .map_err(Error::system("could not send a request to the launcher"))?;
        self.await_reply(seen)?;
        let control = &*self.image;
        let pid = Pid::from_raw(control.pid.load(Ordering::Relaxed));
        match (pid, control.error.load(Ordering::Relaxed)) {
            (Some(pid), 0) => Ok(Ok((pid, control.start_ns.load(Ordering::Relaxed)))),
            (pid, error) => {
                if let Some(pid) = pid {
                    reap(pid, 0)?;
                }
                self.ended();
                Ok(Err(io::Error::from_raw_os_error(error)))
            }
        }
    }

    /// Forgets the process of the command. Call this when the command has been waited for, because another process may
    /// then get the same process ID.
    pub fn ended(&self) {
        self.image.pid.store(0, Ordering::Release);
    }

    /// Returns the peak of resident memory in the launcher since it released the inherited memory.
    pub fn memory_peak_bytes(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid.as_raw_pid())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib * 1024)
    }

    fn await_reply(&mut self, seen: u32) -> Result<(), Error> {
        while self.image.replies.load(Ordering::Acquire) == seen {
            futex::wait(&self.image.replies, seen, Some(LOOK), Scope::Machine);
            if self.alive
                && self.image.replies.load(Ordering::Acquire) == seen
                && reap(self.pid, libc::WNOHANG)?.is_some()
            {
                self.alive = false;
            }
            if !self.alive {
                let source = io::Error::from_raw_os_error(libc::ESRCH);
                return Err(Error::System {
                    what: "the process that should start the command ended unexpectedly",
                    source,
                });
            }
        }
        Ok(())
    }
}

impl Drop for Launcher {
    fn drop(&mut self) {
        if self.alive && self.owner == crate::fork::generation() {
            // The launcher is our child and has not been waited for, so no other process has its process ID.
            let _ = kill_process(self.pid, Signal::KILL);
            // If the child cannot be waited for, no other action is possible.
            let _ = reap(self.pid, 0);
        }
    }
}

fn image(path: &Path, command: &Command) -> Result<Image, Error> {
    let args = [&command.program].into_iter().chain(&command.args);
    let args = args.map(|text| c_string(text)).collect::<Result<Vec<_>, _>>()?;
    let variable = |(name, value): (OsString, OsString)| c_string(&[name, value].join("=".as_ref()));
    let env = environment(command).into_iter().map(variable).collect::<Result<Vec<_>, _>>()?;

    let maps = fs::read("/proc/self/maps").unwrap_or_default();
    let on_stack = 0_u8;
    // SAFETY: the call has no conditions.
    let thread_local = unsafe { libc::__errno_location() };
    let keep = [(&raw const on_stack).addr(), thread_local.addr()];
    let discard = discardable(&String::from_utf8_lossy(&maps), keep);
    let program = c_string(path.as_os_str())?;
    Image::new(&program, &args, &env, &discard)
        .map_err(Error::system("could not create memory to share with the process that starts the command"))
}

/// Returns a descriptor of this process, which is readable when the process has ended. It is created once per process.
fn own_pidfd() -> io::Result<Arc<OwnedFd>> {
    static OWN: Mutex<Option<(u64, Arc<OwnedFd>)>> = Mutex::new(None);
    let id = crate::fork::generation();
    let mut own = OWN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    match &*own {
        Some((owner, pidfd)) if *owner == id => Ok(pidfd.clone()),
        _ => {
            let pidfd = Arc::new(pidfd_open(getpid(), PidfdFlags::empty())?);
            *own = Some((id, pidfd.clone()));
            Ok(pidfd)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::or_left_out;

    /// Returns a launcher for a test. If the kernel or a filter of system calls does not allow one, prints a message
    /// and returns `None`. Commands are then started in a different way.
    fn launcher() -> Option<Launcher> {
        or_left_out(pidfd_open(getpid(), PidfdFlags::empty()))?;
        Some(Launcher::new(Path::new("/bin/true"), &Command::new("true", &[])).unwrap())
    }

    #[test]
    fn a_launcher_that_was_killed_is_an_error() {
        let Some(mut launcher) = launcher() else { return };
        kill_process(launcher.pid, Signal::KILL).unwrap();
        for _ in 0..2 {
            assert!(matches!(launcher.launch(&[None, None, None]), Err(Error::System { .. })));
        }
    }

    #[test]
    fn little_memory_is_left_in_a_launcher() {
        let Some(launcher) = launcher() else { return };
        let peak_bytes = launcher.memory_peak_bytes().unwrap();
        assert!(peak_bytes < 4 << 20, "{peak_bytes}");
    }
}
