//! Waiting for a command. At a time limit, or when a stop is requested, the command is killed. Meanwhile its output is
//! drained.

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

/// Interval at which this process checks whether the command has ended, if the kernel cannot report the end by a
/// descriptor.
const LOOK: Duration = Duration::from_millis(1);

/// Maximum timeout of one wait: some systems do not accept more than 24 days. If the wait ends before the deadline, it
/// is repeated.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A command that was started.
pub(super) struct Running {
    pub pid: Pid,
    pub start_ns: u64,
    /// A descriptor that is readable when the command has ended: see [`exit_descriptor`].
    pub end: Option<OwnedFd>,
    /// The pipe with the output of the command, from which the output is drained and discarded.
    pub reader: Option<Reader>,
    /// `true` if the bytes that the command reads are counted.
    pub counts_reads: bool,
}

/// The status and the accounting of a process that has ended.
pub(super) struct ExitRecord {
    status: libc::c_int,
    usage: libc::rusage,
}

/// Waits for the end of the command `running`, and kills it at the time limit or when `stop` is requested. Does not
/// wait for its descendants, whose later output is not read. `buffer` is used for draining the output.
pub(super) fn wait(
    mut running: Running,
    time_limit: Option<Duration>,
    stop: &Stop,
    buffer: &mut [u8],
) -> Result<Usage, Error> {
    let limit_ns = time_limit.and_then(|limit| u64::try_from(limit.as_nanos()).ok());
    let deadline_ns = limit_ns.and_then(|limit_ns| running.start_ns.checked_add(limit_ns));
    let (mut killed, mut read_bytes) = (None, None);
    let (record, end_ns) = loop {
        let signals = stop.wake_fd().filter(|_| killed.is_none());
        let descriptors =
            [running.end.as_ref().map(AsFd::as_fd), signals, running.reader.as_ref().map(|reader| reader.pipe.as_fd())];
        let there = descriptors.iter().flatten();
        let mut events: Vec<_> = there.map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
        let deadline_ns = deadline_ns.filter(|_| killed.is_none());
        let timeout = futex::timespec(timeout(deadline_ns, running.end.is_some()));
        // An interrupted call is treated like a timeout: the code below checks everything that may have happened.
        let _ = poll(&mut events, timeout.as_ref());
        let now_ns = clock::now_ns();
        let mut events = events.iter();
        let [has_ended, is_interrupted, has_output] = descriptors
            .map(|descriptor| descriptor.is_some() && events.next().is_some_and(|event| !event.revents().is_empty()));
        if has_ended && running.counts_reads {
            read_bytes = bytes_read(running.pid);
        }
        if (has_ended || running.end.is_none())
            && let Some(record) = reap(running.pid, libc::WNOHANG)?
        {
            break (record, now_ns);
        }
        let cause = match deadline_ns {
            _ if is_interrupted => Some(Exit::Interrupted),
            Some(deadline_ns) if now_ns >= deadline_ns => Some(Exit::TimedOut),
            _ => None,
        };
        if let Some(cause) = cause {
            // The command leads its group and has not been waited for, so no other group has this process ID.
            let _ = kill_process_group(running.pid, Signal::KILL);
            killed = Some((cause, now_ns));
        }
        if has_output && !drain(&mut running.reader, buffer) {
            running.reader = None;
        }
    };
    Ok(Usage { read_bytes, ..usage(&record, killed, end_ns, running.start_ns) })
}

/// Kills a child that leads its own process group, and all processes in the group. The child has not been waited for,
/// so no other group has its process ID.
pub fn kill_group(leader: &Child) {
    let _ = kill_process_group(Pid::from_child(leader), Signal::KILL);
}

/// Returns whether two conditions hold for a file or folder: it belongs to this user, and the process that made it,
/// `maker`, does not exist on this machine. A maker on another machine or in another container may still be running.
///
/// # Errors
/// Fails if the system reports an error when reading the metadata of the file.
pub fn is_left_behind(path: &Path, maker: u32) -> io::Result<bool> {
    let is_ours = fs::symlink_metadata(path)?.uid() == geteuid().as_raw();
    let pid = i32::try_from(maker).ok().and_then(Pid::from_raw);
    // A process of another user exists, even if the kernel does not allow a signal to it.
    Ok(is_ours && pid.is_none_or(|pid| test_kill_process(pid) == Err(Errno::SRCH)))
}

/// Waits for one child and returns its status and accounting; `None` if `options` contains `WNOHANG` and the child has
/// not ended. Does not use rustix, whose `wait` returns no accounting.
pub(super) fn reap(pid: Pid, options: libc::c_int) -> Result<Option<ExitRecord>, Error> {
    // Includes children that do not send SIGCHLD: the launcher, and processes that it failed to start.
    #[cfg(target_os = "linux")]
    let options = options | libc::__WALL;
    loop {
        let mut status = 0;
        // SAFETY: `rusage` is plain data for which zeros are valid; both pointers are to local variables, which are
        // written to.
        let (found, usage) = unsafe {
            let mut usage = mem::zeroed();
            (libc::wait4(pid.as_raw_pid(), &raw mut status, options, &raw mut usage), usage)
        };
        match found {
            0 => return Ok(None),
            1.. => return Ok(Some(ExitRecord { status, usage })),
            _ if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            _ => return Err(Error::last("could not wait for the command")),
        }
    }
}

/// Returns a descriptor that is readable when the process has ended; `None` if the kernel does not support it (before
/// Linux 5.3).
#[cfg(target_os = "linux")]
pub(super) fn exit_descriptor(pid: Pid) -> Option<OwnedFd> {
    use rustix::process::{PidfdFlags, pidfd_open};

    pidfd_open(pid, PidfdFlags::empty()).ok()
}

/// Returns a kqueue that is readable when the process has ended.
#[cfg(target_vendor = "apple")]
pub(super) fn exit_descriptor(pid: Pid) -> Option<OwnedFd> {
    use rustix::event::kqueue::{Event, EventFilter, EventFlags, ProcessEvents, kevent, kqueue};

    let queue = kqueue().ok()?;
    let filter = EventFilter::Proc { pid, flags: ProcessEvents::EXIT };
    let events = [Event::new(filter, EventFlags::ADD, std::ptr::null_mut())];
    let mut none: [Event; 0] = [];
    // SAFETY: the event watches a process, not a descriptor, which could be closed meanwhile.
    unsafe { kevent(&queue, &events, &mut none, None) }.ok()?;
    Some(queue)
}

#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
pub(super) fn exit_descriptor(_pid: Pid) -> Option<OwnedFd> {
    None
}

/// Returns the maximum duration of the next wait, which ends at the deadline at the latest; `None` if it may last for
/// ever. `end_wakes` is `true` if the end of the process wakes this thread. Otherwise the wait ends after [`LOOK`].
fn timeout(deadline_ns: Option<u64>, end_wakes: bool) -> Option<Duration> {
    let left = deadline_ns.map(|deadline_ns| Duration::from_nanos(deadline_ns.saturating_sub(clock::now_ns())));
    match (left, end_wakes) {
        (left, true) => left.map(|left| left.min(DAY)),
        (left, false) => Some(left.unwrap_or(LOOK).min(LOOK)),
    }
}

/// Drains the pipe once, if there is one. Returns `false` if no more output will come.
fn drain(reader: &mut Option<Reader>, buffer: &mut [u8]) -> bool {
    match reader.as_mut().map(|reader| reader.drain(buffer)) {
        Some(Ok(bytes)) => bytes > 0,
        Some(Err(error)) => error.kind() == io::ErrorKind::Interrupted,
        None => false,
    }
}

/// Returns the number of bytes that a process and its descendants have read by system calls. The process must have
/// ended.
fn bytes_read(pid: Pid) -> Option<u64> {
    let io = fs::read_to_string(format!("/proc/{}/io", pid.as_raw_pid())).ok()?;
    io.lines().find_map(|line| line.strip_prefix("rchar: ")?.parse().ok())
}

fn usage(record: &ExitRecord, killed: Option<(Exit, u64)>, end_ns: u64, start_ns: u64) -> Usage {
    let ExitRecord { status, usage } = record;
    let (exit, end_ns) = match killed {
        // The command ran until it was killed; how much longer it would have run is unknown.
        Some((Exit::Interrupted, killed_ns)) => (Exit::Interrupted, killed_ns),
        Some((exit, _)) => (exit, end_ns),
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

/// Returns the counts that the kernel keeps for every process.
fn accounted(usage: &libc::rusage) -> Counts {
    let mut counts = Counts::default();
    counts[Counter::PageFaults as usize] = Some((usage.ru_minflt + usage.ru_majflt) as u64);
    counts[Counter::ContextSwitches as usize] = Some((usage.ru_nvcsw + usage.ru_nivcsw) as u64);
    counts
}

fn nanoseconds(time: libc::timeval) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000
}

/// Returns the peak of resident memory in bytes. Apple's systems report it in bytes, all others in KiB.
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
        // The output ends when no process has it open any more.
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
