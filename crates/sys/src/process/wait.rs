//! Waiting for a command's end, with a time limit, an ear for signals, and its output drained.

use std::fs;
use std::io;
use std::mem;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Child;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, geteuid, kill_process_group, test_kill_process};

use super::stdio::Reader;
use super::{Exit, Usage};
use crate::interrupt::Stop;
use crate::perf::{Counter, Counts};
use crate::{Error, clock, futex};

/// How often to look for the end where the kernel has no descriptor that tells of it.
const LOOK: Duration = Duration::from_millis(1);

/// The longest time-out: some systems take none above 24 days. Who wakes before the deadline sleeps again.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A command that was started.
pub(super) struct Running {
    pub pid: Pid,
    pub start_ns: u64,
    /// Readable when it has ended: see [`exit_descriptor`].
    pub end: Option<OwnedFd>,
    /// Its output, to be thrown away.
    pub reader: Option<Reader>,
    /// Whether the bytes that it reads are counted.
    pub counts_reads: bool,
}

/// What a process left behind when it was waited for.
pub(super) struct Remains {
    status: libc::c_int,
    usage: libc::rusage,
}

/// Why the group was killed.
#[derive(Clone, Copy, PartialEq)]
enum Killed {
    TimedOut,
    Interrupted,
}

/// Waits for the end of `running`, and no longer: what descendants still write is not read.
pub(super) fn wait(
    mut running: Running,
    time_limit: Option<Duration>,
    stop: &Stop,
    buffer: &mut [u8],
) -> Result<Usage, Error> {
    let limit_ns = time_limit.and_then(|limit| u64::try_from(limit.as_nanos()).ok());
    let deadline_ns = limit_ns.and_then(|limit_ns| running.start_ns.checked_add(limit_ns));
    let (mut killed, mut read_bytes) = (None, None);
    let (remains, end_ns) = loop {
        let signals = stop.wake_fd().filter(|_| killed.is_none());
        let descriptors =
            [running.end.as_ref().map(AsFd::as_fd), signals, running.reader.as_ref().map(|reader| reader.pipe.as_fd())];
        let there = descriptors.iter().flatten();
        let mut events: Vec<_> = there.map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
        let deadline_ns = deadline_ns.filter(|_| killed.is_none());
        let timeout = futex::timespec(timeout(deadline_ns, running.end.is_some()));
        // An interrupted call is as one that timed out: whatever may have happened is looked at below.
        let _ = poll(&mut events, timeout.as_ref());
        let now_ns = clock::now_ns();
        let mut events = events.iter();
        let [has_ended, is_interrupted, has_output] = descriptors
            .map(|descriptor| descriptor.is_some() && events.next().is_some_and(|event| !event.revents().is_empty()));
        if has_ended && running.counts_reads {
            read_bytes = bytes_read(running.pid);
        }
        if (has_ended || running.end.is_none())
            && let Some(remains) = reap(running.pid, libc::WNOHANG)?
        {
            break (remains, now_ns);
        }
        let cause = match deadline_ns {
            _ if is_interrupted => Some(Killed::Interrupted),
            Some(deadline_ns) if now_ns >= deadline_ns => Some(Killed::TimedOut),
            _ => None,
        };
        if let Some(cause) = cause {
            // The command leads its group and was not waited for, so that the number is still that of its group.
            let _ = kill_process_group(running.pid, Signal::KILL);
            killed = Some((cause, now_ns));
        }
        if has_output && !drain(&mut running.reader, buffer) {
            running.reader = None;
        }
    };
    Ok(Usage { read_bytes, ..usage(&remains, killed, end_ns, running.start_ns) })
}

/// Kills a child that leads a group of its own, and whoever is in that. Nobody has waited for it yet, so that the number
/// is still that of its group.
pub fn kill_group(leader: &Child) {
    let _ = kill_process_group(Pid::from_child(leader), Signal::KILL);
}

/// Whether a file or folder is this user's, and no process here has the number that its maker had. That may be on
/// another machine, or in another container.
///
/// # Errors
/// As the system says of the file.
pub fn is_left_behind(path: &Path, maker: u32) -> io::Result<bool> {
    let is_ours = fs::symlink_metadata(path)?.uid() == geteuid().as_raw();
    let pid = i32::try_from(maker).ok().and_then(Pid::from_raw);
    // Somebody else's may not be told of, and is there.
    Ok(is_ours && pid.is_none_or(|pid| test_kill_process(pid) == Err(Errno::SRCH)))
}

/// Waits for one child: what it left behind; nothing yet if `WNOHANG` is among the options. rustix waits without the
/// kernel's account.
pub(super) fn reap(pid: Pid, options: libc::c_int) -> Result<Option<Remains>, Error> {
    // Children that don't send SIGCHLD too: the launcher and what it failed to start.
    #[cfg(target_os = "linux")]
    let options = options | libc::__WALL;
    loop {
        let mut status = 0;
        // SAFETY: `rusage` is plain data for which zeros are valid; the pointers are to it and to a status to write to.
        let (found, usage) = unsafe {
            let mut usage = mem::zeroed();
            (libc::wait4(pid.as_raw_pid(), &raw mut status, options, &raw mut usage), usage)
        };
        match found {
            0 => return Ok(None),
            1.. => return Ok(Some(Remains { status, usage })),
            _ if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            _ => return Err(Error::last("the command could not be waited for")),
        }
    }
}

/// A descriptor that is readable when the process has ended; none on a kernel without it (before Linux 5.3).
#[cfg(target_os = "linux")]
pub(super) fn exit_descriptor(pid: Pid) -> Option<OwnedFd> {
    use rustix::process::{PidfdFlags, pidfd_open};

    pidfd_open(pid, PidfdFlags::empty()).ok()
}

/// A kqueue that is readable when the process has ended.
#[cfg(target_vendor = "apple")]
pub(super) fn exit_descriptor(pid: Pid) -> Option<OwnedFd> {
    use rustix::event::kqueue::{Event, EventFilter, EventFlags, ProcessEvents, kevent, kqueue};

    let queue = kqueue().ok()?;
    let filter = EventFilter::Proc { pid, flags: ProcessEvents::EXIT };
    let events = [Event::new(filter, EventFlags::ADD, std::ptr::null_mut())];
    let mut none: [Event; 0] = [];
    // SAFETY: a process is watched, and no descriptor, which could be closed meanwhile.
    unsafe { kevent(&queue, &events, &mut none, None) }.ok()?;
    Some(queue)
}

#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
pub(super) fn exit_descriptor(_pid: Pid) -> Option<OwnedFd> {
    None
}

/// How long to sleep at most: to the deadline; for ever without one, if the end wakes.
fn timeout(deadline_ns: Option<u64>, end_wakes: bool) -> Option<Duration> {
    let left = deadline_ns.map(|deadline_ns| Duration::from_nanos(deadline_ns.saturating_sub(clock::now_ns())));
    match (left, end_wakes) {
        (left, true) => left.map(|left| left.min(DAY)),
        (left, false) => Some(left.unwrap_or(LOOK).min(LOOK)),
    }
}

/// Reads once; false when nothing more will come.
fn drain(reader: &mut Option<Reader>, buffer: &mut [u8]) -> bool {
    match reader.as_mut().map(|reader| reader.drain(buffer)) {
        Some(Ok(bytes)) => bytes > 0,
        Some(Err(error)) => error.kind() == io::ErrorKind::Interrupted,
        None => false,
    }
}

/// Bytes that a process which has ended, and its descendants, read by system calls.
fn bytes_read(pid: Pid) -> Option<u64> {
    let io = fs::read_to_string(format!("/proc/{}/io", pid.as_raw_pid())).ok()?;
    io.lines().find_map(|line| line.strip_prefix("rchar: ")?.parse().ok())
}

fn usage(remains: &Remains, killed: Option<(Killed, u64)>, end_ns: u64, start_ns: u64) -> Usage {
    let Remains { status, usage } = remains;
    let (exit, end_ns) = match killed {
        Some((Killed::TimedOut, _)) => (Exit::TimedOut, end_ns),
        // It was seen to run until then; how long it would have is not known.
        Some((Killed::Interrupted, killed_ns)) => (Exit::Interrupted, killed_ns),
        None if libc::WIFSIGNALED(*status) => (Exit::Signal(libc::WTERMSIG(*status)), end_ns),
        None => (Exit::Code(libc::WEXITSTATUS(*status)), end_ns),
    };
    Usage {
        exit,
        wall_ns: end_ns - start_ns,
        user_ns: nanoseconds(usage.ru_utime),
        system_ns: nanoseconds(usage.ru_stime),
        memory_peak_bytes: memory_peak_bytes(usage),
        read_bytes: None,
        counts: accounted(usage),
    }
}

/// What the kernel counts of every process.
fn accounted(usage: &libc::rusage) -> Counts {
    let mut counts = Counts::default();
    counts[Counter::PageFaults as usize] = Some((usage.ru_minflt + usage.ru_majflt) as u64);
    counts[Counter::ContextSwitches as usize] = Some((usage.ru_nvcsw + usage.ru_nivcsw) as u64);
    counts
}

fn nanoseconds(time: libc::timeval) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000
}

/// The peak of resident memory, which Apple gives in bytes and everyone else in KiB.
pub(super) fn memory_peak_bytes(usage: &libc::rusage) -> u64 {
    let unit_bytes = if cfg!(target_vendor = "apple") { 1 } else { 1024 };
    usage.ru_maxrss as u64 * unit_bytes
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use super::*;

    #[expect(clippy::zombie_processes, reason = "`wait` waits for it")]
    fn start(line: &str) -> Running {
        let start_ns = clock::now_ns();
        let child = Command::new("sh").args(["-c", line]).process_group(0).spawn().unwrap();
        Running { pid: Pid::from_child(&child), start_ns, end: None, reader: None, counts_reads: false }
    }

    #[test]
    fn without_a_descriptor_the_end_is_looked_for() {
        let usage = wait(start("sleep 0.02; exit 5"), None, &Stop::default(), &mut []).unwrap();
        assert_eq!(usage.exit, Exit::Code(5));
        assert!(usage.wall_ns >= 20_000_000);
        let start_ns = clock::now_ns();
        let usage = wait(start("sleep 3600"), Some(Duration::from_millis(20)), &Stop::default(), &mut []).unwrap();
        assert_eq!(usage.exit, Exit::TimedOut);
        assert!((20_000_000..=clock::now_ns() - start_ns).contains(&usage.wall_ns));
    }

    #[test]
    fn a_group_is_killed_whole() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 3600 & echo; wait"]).process_group(0).stdout(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut output = child.stdout.take().unwrap();
        output.read_exact(&mut [0]).unwrap();
        kill_group(&child);
        child.wait().unwrap();
        // It ends when nobody has it any more.
        assert_eq!(output.read(&mut [0]).unwrap(), 0);
    }

    #[test]
    fn sleeping_until_the_deadline() {
        assert_eq!(timeout(None, true), None);
        assert_eq!(timeout(None, false), Some(LOOK));
        assert_eq!(timeout(Some(0), true), Some(Duration::ZERO));
        assert_eq!(timeout(Some(u64::MAX), true), Some(DAY));
        assert_eq!(timeout(Some(u64::MAX), false), Some(LOOK));
    }
}
