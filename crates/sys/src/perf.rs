//! What the processor and the kernel count of a command: instructions, cache misses, page faults.
//!
//! Page faults and context switches are in the kernel's account of every process (`wait4`). The rest is counted where
//! [`Prepared::counting`](crate::process::Prepared::counting) asks for it, by perf_event_open(2): of the command and
//! all of its descendants, from when it has become the program until its end. It is Linux's alone.
//!
//! - What the processor counts is counted of the program's own code and not of the kernel for it: that is what
//!   everybody may count by default (`kernel.perf_event_paranoid` of 2), and what differs least from run to run.
//! - The processor has few counters. One group has all of ours, so that they are counted together or not at all; and a
//!   count that was suspended, since others needed the counters, is none: nothing here is extrapolated. So the group is
//!   not pinned either: what is pinned is given up for good in a process where it can't be counted, and what a parent
//!   reads of its children tells neither that nor the time that was missed from then on.
//! - Switches to another CPU happen in the kernel. Whoever may not count there would be told zero, and is told why not.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use rustix::process::Pid;

use crate::Error;

pub use crate::command::{COUNTERS, Counter, Counts};

impl Counter {
    /// Whether this machine counts it, of commands of this process.
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
    /// Why not: the machine has no such counter, or it may not be used.
    pub fn available(self) -> Result<(), Error> {
        match EVENTS.iter().position(|event| event.counter == self) {
            None => Ok(()),
            Some(index) => open(&EVENTS, None).swap_remove(index).map(drop),
        }
    }
}

/// What is asked of perf_event_open(2).
#[derive(Clone, Copy)]
pub(crate) struct Event {
    counter: Counter,
    /// `type` of the kernel's `perf_event_attr`.
    kind: u32,
    config: u64,
    /// Whether it is not counted in the kernel, and belongs to the group.
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

/// Counters of the program that a process's next child becomes. Each run has its own: the kernel may let parent and
/// child change places in what it counts, after which a later child is not counted.
pub(crate) struct Counters(Vec<(Counter, OwnedFd)>);

/// What the kernel tells of a counter, summed over all processes that it was counted in.
#[derive(Clone, Copy)]
struct Reading {
    count: u64,
    /// How long it was to be counted.
    enabled_ns: u64,
    /// How long it was.
    running_ns: u64,
}

impl Counters {
    /// Of a child that the process makes from now on. What can't be counted is left out.
    pub fn of_child(parent: Pid, events: &[Event]) -> Counters {
        // The usual case is that nobody asks.
        let opened = if events.is_empty() { Vec::new() } else { open(events, Some(parent)) };
        Counters(events.iter().zip(opened).filter_map(|(event, fd)| Some((event.counter, fd.ok()?))).collect())
    }

    /// What was counted of the child, once it has ended, and of its descendants as far as they have.
    pub fn read(&self) -> Counts {
        let mut counts = Counts::default();
        for (counter, fd) in &self.0 {
            counts[*counter as usize] = Reading::of(fd).and_then(Reading::whole);
        }
        counts
    }
}

impl Reading {
    fn of(fd: &OwnedFd) -> Option<Reading> {
        let mut bytes = [0; 24];
        let [count, enabled_ns, running_ns] = match rustix::io::read(fd, &mut bytes) {
            Ok(24) => [0, 8, 16].map(|at| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap_or_default())),
            _ => return None,
        };
        Some(Reading { count, enabled_ns, running_ns })
    }

    /// None where it was suspended meanwhile: how much was missed nobody knows. Nor where it was never to be counted.
    fn whole(self) -> Option<u64> {
        (self.running_ns == self.enabled_ns && self.enabled_ns > 0).then_some(self.count)
    }
}

/// Opens each event, those of own code as one group, of this thread or of a process.
fn open(events: &[Event], pid: Option<Pid>) -> Vec<Result<OwnedFd, Error>> {
    let mut leader = None;
    let open = |event: &Event| {
        let opened = open_event(*event, pid.map_or(0, Pid::as_raw_pid), leader.filter(|_| event.is_own_code));
        if let (Ok(fd), true) = (&opened, event.is_own_code) {
            // It lives as long as the vector that it goes to.
            leader.get_or_insert(fd.as_raw_fd());
        }
        opened.map_err(refused)
    };
    events.iter().map(open).collect()
}

/// What an error of perf_event_open(2) means, and what could be done.
fn refused(source: io::Error) -> Error {
    let what = match source.raw_os_error() {
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV | libc::ENXIO) => return Error::NoCounter,
        Some(libc::EACCES | libc::EPERM) => {
            "perf_event_open is not permitted: CAP_PERFMON or a lower kernel.perf_event_paranoid would do, and in a \
             container a seccomp profile that lets it pass"
        }
        Some(libc::EINVAL | libc::ENOSPC) => "the processor can't count it together with the others",
        _ => "perf_event_open",
    };
    Error::System { what, source }
}

#[cfg(all(target_os = "linux", target_endian = "little", not(miri)))]
fn open_event(event: Event, pid: i32, leader: Option<RawFd>) -> io::Result<OwnedFd> {
    use std::os::fd::FromRawFd;

    /// The kernel's `perf_event_attr` as it first was, which all kernels take.
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
    /// Also of the processes that it makes, and theirs.
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
    // SAFETY: the pointer is to a local of the size that it says, which the call reads; the rest are integers.
    let fd = unsafe { libc::syscall(libc::SYS_perf_event_open, attributes, pid, ANY_CPU, group, CLOSE_ON_EXEC) };
    match fd {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: the kernel has just made it, for us alone.
        fd => Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) }),
    }
}

#[cfg(not(all(target_os = "linux", target_endian = "little", not(miri))))]
fn open_event(_event: Event, _pid: i32, _leader: Option<RawFd>) -> io::Result<OwnedFd> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "only Linux has it"))
}

#[cfg(all(test, target_os = "linux", target_endian = "little", not(miri)))]
mod tests {
    use super::*;
    use crate::process::{Command, Prepared, shell};
    use crate::testing::or_left_out;

    const PAGE_FAULTS: Event = Event { counter: Counter::PageFaults, kind: SOFTWARE, config: 2, is_own_code: true };
    /// Time on CPUs, in nanoseconds: any counter's place will do.
    const TASK_CLOCK: Event = Event { counter: Counter::Cycles, kind: SOFTWARE, config: 1, is_own_code: true };

    fn counted(events: &'static [Event], command: &Command, runs: usize) -> Vec<Counts> {
        let prepared = Prepared::new(command).unwrap().counting_events(events);
        (0..runs).map(|_| prepared.run(None).unwrap().counts).collect()
    }

    /// Twenty programs fault some twenty times as often as one; a second run is not charged with the first one's.
    #[test]
    fn a_group_counts_each_run_with_its_descendants() {
        const EVENTS: [Event; 2] = [TASK_CLOCK, PAGE_FAULTS];
        // A filter of system calls may let nobody count.
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
        let said = |code| refused(io::Error::from_raw_os_error(code)).to_string();
        assert_eq!(said(libc::ENOENT), "this machine has no such hardware counter, like most virtual machines");
        for code in [libc::EACCES, libc::EPERM] {
            assert!(said(code).contains("perf_event_paranoid") && said(code).contains("seccomp"));
        }
    }
}
