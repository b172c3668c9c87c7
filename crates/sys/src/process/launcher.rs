//! A small process that starts a command, so that the command's peak of memory is its own.
//!
//! When a process becomes a program, Linux counts the memory that was resident before as that of
//! the new program (`setmax_mm_hiwater_rss` in the kernel's `exec_mmap`). A command that is started
//! straight from a process of 200 MB is therefore said to have used 200 MB, whether by `vfork`,
//! `posix_spawn` or `fork`. So each command gets a launcher: a copy of this process, made once,
//! that gives back what it inherited, and starts the command whenever it is asked to.
//!
//! - The command is made with `CLONE_PARENT`: it is our own child, which we wait for and whose
//!   account we get. `CLONE_VM` and `CLONE_VFORK` make that as cheap as `posix_spawn`.
//! - The launcher reads the clock just before, so that the way to it is not in the time.
//! - `CLONE_FILES`: the launcher has our file descriptors, not copies of them. What is opened for
//!   a run is there, and what we close is closed.
//! - It leads a process group of its own, out of reach of the terminal's signals, and ends when we
//!   do; a command that is still running then is killed.

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

/// How often to look whether a launcher that does not answer is still there.
const LOOK: Duration = Duration::from_millis(100);

/// A launcher for one command.
pub(super) struct Launcher {
    image: Image,
    /// An eventfd: the launcher sleeps on it.
    request: OwnedFd,
    pid: Pid,
    /// The process that made it, and the only one that may end it: not a fork of that.
    owner: u64,
    alive: bool,
}

impl Launcher {
    /// What a command inherits (working directory, limits, priority, namespaces, affinity) is what
    /// the calling thread has now.
    pub fn new(path: &Path, command: &Command) -> Result<Self, Error> {
        let image = image(path, command)?;
        let no_launcher = "no process that starts the command";
        let parent = own_pidfd().map_err(Error::system(no_launcher))?;
        let request = eventfd(0, EventfdFlags::CLOEXEC).map_err(Error::system(no_launcher))?;
        // No signal when it ends: nobody who waits for all children should meet it.
        let flags = libc::CLONE_FILES;
        // SAFETY: without CLONE_VM and without a stack this is `fork`: the copy goes on here, with
        // memory of its own. There it calls `serve` only, which keeps to what is allowed in the
        // copy of a process with threads.
        let pid = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
        if pid < 0 {
            return Err(Error::last(no_launcher));
        }
        let Some(pid) = Pid::from_raw(pid as i32) else {
            // SAFETY: this is the copy, where nothing else runs.
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

    /// Starts the command: its process and when that was about to be made. The inner error is the
    /// kernel's reason why not.
    pub fn launch(&mut self, streams: &Streams) -> Result<io::Result<(Pid, u64)>, Error> {
        let control = &*self.image;
        for (place, stream) in control.streams.iter().zip(streams) {
            place.store(stream.as_ref().map_or(-1, OwnedFd::as_raw_fd), Ordering::Relaxed);
        }
        let seen = control.replies.load(Ordering::Acquire);
        rustix::io::write(&self.request, &1_u64.to_ne_bytes()).map_err(Error::system("the launcher was not asked"))?;
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

    /// To be told when the command was waited for: its number may from now on be another's.
    pub fn ended(&self) {
        self.image.pid.store(0, Ordering::Release);
    }

    /// The most memory that was ever resident in the launcher since it gave back what it inherited.
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
                return Err(Error::System { what: "the process that starts the command has ended", source });
            }
        }
        Ok(())
    }
}

impl Drop for Launcher {
    fn drop(&mut self) {
        if self.alive && self.owner == crate::fork::generation() {
            // It is our child and was not waited for yet, so the number is still its.
            let _ = kill_process(self.pid, Signal::KILL);
            // Nothing can be done about a child that can't be waited for.
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
        .map_err(Error::system("no memory to share with the process that starts the command"))
}

/// A descriptor of this process, which is readable when it has ended; made once a process.
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

    /// None, as is said, where the kernel or a filter of system calls does not let us have one: commands are started
    /// otherwise then.
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
