//! Functions that drop the privileges that a daemon no longer needs. Linux only.

use std::io;

use rustix::process;
use rustix::thread::{self, CapabilitySet, CapabilitySets};

use crate::syscall::check;

/// The ID of the user `nobody` and of its group, which own no files on any Linux system.
pub const NOBODY: u32 = 65_534;

/// Privileges of the superuser that a process can have separately: capabilities(7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Capability {
    /// The right to load programs into the kernel (`CAP_BPF`).
    Bpf = 39,
}

/// Returns the effective user of this process; 0 is root.
#[must_use]
pub fn effective_user() -> u32 {
    process::geteuid().as_raw()
}

/// Returns the ID that the kernel shows for users without an ID in this user namespace. Unrelated users share this ID.
/// It is [`NOBODY`] unless `/proc/sys/kernel/overflowuid` was changed. Returns `None` if each user has an ID. This is
/// so in the initial user namespace, where [`NOBODY`] is an ordinary user.
#[must_use]
pub fn overflow_user() -> Option<u32> {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    // This mapping contains all IDs except the last ID, which no user can have.
    let is_whole = read("/proc/self/uid_map").split_whitespace().eq(["0", "0", "4294967295"]);
    (!is_whole).then(|| read("/proc/sys/kernel/overflowuid").trim().parse().unwrap_or(NOBODY))
}

/// Changes this process to the user [`NOBODY`], without any groups, and keeps only the named capabilities. Neither the
/// process nor any program that it starts can gain other capabilities later. Capabilities belong to the calling thread,
/// so call this before other threads exist.
///
/// # Errors
/// The kernel's error: `EPERM` without root. The process may still have some of its privileges then, and should end.
pub fn drop_all_but(keep: &[Capability]) -> io::Result<()> {
    thread::set_keep_capabilities(true)?;
    // Uses the C library's functions, which apply to all threads; those of rustix apply only to the calling thread.
    // SAFETY: the arguments are numbers and an empty list.
    unsafe {
        check(libc::setgroups(0, std::ptr::null()))?;
        check(libc::setresgid(NOBODY, NOBODY, NOBODY))?;
        check(libc::setresuid(NOBODY, NOBODY, NOBODY))?;
    }
    let kept = keep.iter().fold(0, |bits, &capability| bits | 1 << capability as u32);
    let kept = CapabilitySet::from_bits_retain(kept);
    let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    thread::set_capabilities(None, sets)?;
    Ok(thread::set_no_new_privs(true)?)
}

/// Gives the calling thread priority over all threads that do not have real-time scheduling: it gets a CPU as soon as
/// it is ready to run.
///
/// # Errors
/// `EPERM` without `CAP_SYS_NICE`, or in a control group that does not allow real-time scheduling.
pub fn run_in_real_time() -> io::Result<()> {
    set_scheduler(libc::SCHED_FIFO, 1)
}

/// Ends the real-time scheduling of the calling thread: it shares the CPUs as other threads do.
///
/// # Errors
/// The kernel's error.
pub fn leave_real_time() -> io::Result<()> {
    set_scheduler(libc::SCHED_OTHER, 0)
}

fn set_scheduler(policy: libc::c_int, priority: libc::c_int) -> io::Result<()> {
    let policy = policy | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the kernel reads a `sched_param`, which is one number. The function of musl always fails, and rustix does
    // not have one.
    check(unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const priority) })
}

/// Gives the calling thread the lowest priority: `nice` 19.
pub fn run_last() {
    // Setting the lowest priority is always allowed. On Linux it applies only to the calling thread.
    let _ = process::setpriority_process(None, 19);
}
