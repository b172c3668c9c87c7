//! Counters of the processor and the kernel for a command: instructions, cache misses, page faults.
//!
//! Page faults and context switches are in the kernel's accounting of every process (`wait4`). The other counters use
//! perf_event_open(2) if [`Prepared::counting`](crate::process::Prepared::counting) requests them. They count the
//! command and all of its descendants, from the `exec` of the command until its end. Linux only.
//!
//! - The processor's counters count only the program's own code, not the kernel's work for it. By default, every user
//!   may count that code (`kernel.perf_event_paranoid` of 2). These counts vary least from run to run.
//! - The processor has few counters. This module puts all of them in one group, so that they are counted together or
//!   not at all. If other programs need the counters meanwhile, counting is suspended. The counts are then `None`:
//!   nothing is extrapolated. The group is not pinned. The kernel permanently disables a pinned group in a process as
//!   soon as the processor has no counters free for it. A parent that reads the counts of its children would not learn
//!   that a group was disabled, or how much time was not counted.
//! - Migrations to another CPU happen in the kernel. For a user who may not count there, the kernel would report zero;
//!   this module returns the reason instead.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use rustix::process::Pid;

use crate::Error;

pub use crate::command::{COUNTERS, Counter, Counts};

impl Counter {
    /// Checks whether this machine can count this event for commands that this process starts.
    ///
    /// ```
    /// use ascertain_sys::perf::Counter;
    ///
    /// assert!(Counter::PageFaults.available().is_ok());
    /// if let Err(reason) = Counter::Cycles.available() {
    ///     println!("no cycles: {reason}");
    /// }
    /// ```
    ///
    /// # Errors
    /// Returns the reason why the counter is not available: the machine does not have this counter, or this process may
    /// not use it.
    pub fn available(self) -> Result<(), Error> {
        match EVENTS.iter().position(|event| event.counter == self) {
            None => Ok(()),
            Some(index) => open(&EVENTS, None).swap_remove(index).map(drop),
        }
    }
}

/// A counter, and the parameters with which perf_event_open(2) counts it.
#[derive(Clone, Copy)]
pub(crate) struct Event {
    counter: Counter,
    /// The field `type` of the kernel's `perf_event_attr`.
    kind: u32,
    config: u64,
    /// `true` if the counter counts only in user mode, and not in the kernel. All such counters of a process are in one
    /// group: they are counted together or not at all.
    is_own_code: bool,
}

// From the kernel's include/uapi/linux/perf_event.h.
const HARDWARE: u32 = 0;
const SOFTWARE: u32 = 1;

pub(crate) const EVENTS: [Event; 6] = [
    Event { counter: Counter::Instructions, kind: HARDWARE, config: 1, is_own_code: true },
    Event { counter: Counter::Cycles, kind: HARDWARE, config: 0, is_own_code: true },
    Event { counter: Counter::CacheReferences, kind: HARDWARE, config: 2, is_own_code: true },
    Event { counter: Counter::CacheMisses, kind: HARDWARE, config: 3, is_own_code: true },
    Event { counter: Counter::BranchMisses, kind: HARDWARE, config: 5, is_own_code: true },
    Event { counter: Counter::CpuMigrations, kind: SOFTWARE, config: 4, is_own_code: false },
];

/// Counters for the next child of a process. They start when the child executes a program. They serve only one child:
/// the kernel may swap the counters of parent and child, and a later child would then not be counted.
pub(crate) struct Counters(Vec<(Counter, OwnedFd)>);

/// The value of one counter as the kernel reports it, summed over all processes in which it counted.
#[derive(Clone, Copy)]
struct Reading {
    count: u64,
    /// The time for which the counter was enabled, in nanoseconds.
    enabled_ns: u64,
    /// The time for which the counter was actually counting, in nanoseconds.
    running_ns: u64,
}

impl Counters {
    /// Opens counters for the next child that `parent` creates. Leaves out events that cannot be counted.
    pub fn of_child(parent: Pid, events: &[Event]) -> Counters {
        // In the usual case no events are requested.
        let opened = if events.is_empty() { Vec::new() } else { open(events, Some(parent)) };
        Counters(events.iter().zip(opened).filter_map(|(event, fd)| Some((event.counter, fd.ok()?))).collect())
    }

    /// Returns the counts of the child and of its descendants that have ended. Call this when the child has ended.
    pub fn read(&self) -> Counts {
        let mut counts = Counts::default();
        for (counter, fd) in &self.0 {
            counts[*counter as usize] = Reading::read(fd).and_then(Reading::whole);
        }
        counts
    }
}

impl Reading {
    fn read(fd: &OwnedFd) -> Option<Reading> {
        let mut bytes = [0; 24];
        let [count, enabled_ns, running_ns] = match rustix::io::read(fd, &mut bytes) {
            Ok(24) => [0, 8, 16].map(|at| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap_or_default())),
            _ => return None,
        };
        Some(Reading { count, enabled_ns, running_ns })
    }

    /// Returns the count. Returns `None` if the counter was never enabled. Also returns `None` if it was enabled but
    /// not counting at times, because the missed count is unknown.
    fn whole(self) -> Option<u64> {
        (self.running_ns == self.enabled_ns && self.enabled_ns > 0).then_some(self.count)
    }
}

/// Opens one counter for each event, and returns the descriptors in the same order. They count the process `pid`, or
/// this thread if `pid` is `None`. Events of user mode form one group.
fn open(events: &[Event], pid: Option<Pid>) -> Vec<Result<OwnedFd, Error>> {
    let mut leader = None;
    let open = |event: &Event| {
        let opened = open_event(*event, pid.map_or(0, Pid::as_raw_pid), leader.filter(|_| event.is_own_code));
        if let (Ok(fd), true) = (&opened, event.is_own_code) {
            // The number stays valid, because the descriptor is moved to the returned vector and stays open.
            leader.get_or_insert(fd.as_raw_fd());
        }
        opened.map_err(refused)
    };
    events.iter().map(open).collect()
}

/// Converts an error of perf_event_open(2) into an error with an explanation and a remedy.
fn refused(source: io::Error) -> Error {
    let what = match source.raw_os_error() {
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV | libc::ENXIO) => return Error::NoCounter,
        Some(libc::EACCES | libc::EPERM) => {
            "perf_event_open is not permitted: grant CAP_PERFMON or lower kernel.perf_event_paranoid, and in a \
             container use a seccomp profile that allows it"
        }
        Some(libc::EINVAL | libc::ENOSPC) => "the processor cannot count this event together with the other events",
        _ => "perf_event_open",
    };
    Error::System { what, source }
}

#[cfg(all(target_os = "linux", target_endian = "little", not(miri)))]
fn open_event(event: Event, pid: i32, leader: Option<RawFd>) -> io::Result<OwnedFd> {
    use std::os::fd::FromRawFd;

    /// The first version of the kernel's `perf_event_attr`, which all kernels accept.
    #[repr(C)]
    struct Attributes {
        kind: u32,
        size: u32,
        config: u64,
        sample_period: u64,
        sample_type: u64,
        read_format: u64,
        flags: u64,
        wakeup_events: u32,
        breakpoint_type: u32,
        breakpoint_address: u64,
    }
    const TOTAL_TIME_ENABLED_AND_RUNNING: u64 = 1 | 2;
    const DISABLED: u64 = 1;
    /// The flag for counting the descendants of the process too.
    const INHERIT: u64 = 1 << 1;
    const EXCLUDE_KERNEL: u64 = 1 << 5;
    const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
    const ENABLE_ON_EXEC: u64 = 1 << 12;
    const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;
    const ANY_CPU: libc::c_int = -1;

    let own_code = if event.is_own_code { EXCLUDE_KERNEL } else { 0 };
    let attributes = Attributes {
        kind: event.kind,
        size: size_of::<Attributes>() as u32,
        config: event.config,
        sample_period: 0,
        sample_type: 0,
        read_format: TOTAL_TIME_ENABLED_AND_RUNNING,
        flags: DISABLED | INHERIT | ENABLE_ON_EXEC | EXCLUDE_HYPERVISOR | own_code,
        wakeup_events: 0,
        breakpoint_type: 0,
        breakpoint_address: 0,
    };
    let (attributes, group) = (&raw const attributes, leader.unwrap_or(-1));
    // SAFETY: the pointer is to a local variable of the given size, which the call reads; the other arguments are
    // integers.
    let fd = unsafe { libc::syscall(libc::SYS_perf_event_open, attributes, pid, ANY_CPU, group, CLOSE_ON_EXEC) };
    match fd {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: the kernel has just created the descriptor for this process.
        fd => Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) }),
    }
}

#[cfg(not(all(target_os = "linux", target_endian = "little", not(miri))))]
fn open_event(_event: Event, _pid: i32, _leader: Option<RawFd>) -> io::Result<OwnedFd> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "perf_event_open is available only on Linux"))
}

#[cfg(all(test, target_os = "linux", target_endian = "little", not(miri)))]
mod tests {
    use super::*;
    use crate::process::{Command, Prepared, shell};
    use crate::testing::or_left_out;

    const PAGE_FAULTS: Event = Event { counter: Counter::PageFaults, kind: SOFTWARE, config: 2, is_own_code: true };
    /// Time on CPUs, in nanoseconds. This time has no [`Counter`] of its own, so the tests store it as `Cycles`.
    const TASK_CLOCK: Event = Event { counter: Counter::Cycles, kind: SOFTWARE, config: 1, is_own_code: true };

    fn counted(events: &'static [Event], command: &Command, runs: usize) -> Vec<Counts> {
        let prepared = Prepared::new(command).unwrap().counting_events(events);
        (0..runs).map(|_| prepared.run(None).unwrap().counts).collect()
    }

    /// Twenty programs have about twenty times as many page faults as one. The count of a second run does not include
    /// the first run.
    #[test]
    fn a_group_counts_each_run_with_its_descendants() {
        const EVENTS: [Event; 2] = [TASK_CLOCK, PAGE_FAULTS];
        // A filter of system calls may forbid counting.
        let Some(_) = or_left_out(open(&EVENTS, None).into_iter().collect::<Result<Vec<_>, _>>()) else { return };
        let one = counted(&EVENTS, &Command::new("env", &[]), 2);
        let many =
            counted(&EVENTS, &shell("for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do env; done"), 3);
        let count = |counts: &Counts, event: Event| counts[event.counter as usize].unwrap();
        assert!(one.iter().chain(&many).all(|counts| count(counts, TASK_CLOCK) > 0), "{one:?} {many:?}");
        let faults = one.iter().map(|counts| count(counts, PAGE_FAULTS)).max().unwrap();
        assert!(faults > 0);
        assert!(
            many.iter().all(|counts| (10 * faults..40 * faults).contains(&count(counts, PAGE_FAULTS))),
            "{one:?} {many:?}"
        );
    }

    #[test]
    fn what_was_suspended_is_no_count() {
        let whole = |enabled_ns, running_ns| Reading { count: 15, enabled_ns, running_ns }.whole();
        assert_eq!([whole(150, 150), whole(150, 149), whole(0, 0)], [Some(15), None, None]);
    }

    #[test]
    fn refusals_say_what_to_do() {
        let message = |code| refused(io::Error::from_raw_os_error(code)).to_string();
        assert_eq!(
            message(libc::ENOENT),
            "this machine does not provide this hardware counter (most virtual machines provide none)"
        );
        for code in [libc::EACCES, libc::EPERM] {
            assert!(message(code).contains("perf_event_paranoid") && message(code).contains("seccomp"));
        }
    }
}
