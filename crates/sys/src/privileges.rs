//! Giving up what a daemon no longer needs. Linux only.

use std::io;

use rustix::process;
use rustix::thread::{self, CapabilitySet, CapabilitySets};

/// The user and group that own nothing, on every Linux.
pub const NOBODY: u32 = 65_534;

/// Privileges apart from the superuser's: capabilities(7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Capability {
    /// Programs in the kernel.
    Bpf = 39,
}

/// The effective user of this process; 0 is root.
#[must_use]
pub fn effective_user() -> u32 {
    process::geteuid().as_raw()
}

/// The user that the kernel shows in place of each one who has no number in this user namespace: it stands for any
/// number of strangers. [`NOBODY`], unless somebody said otherwise (`/proc/sys/kernel/overflowuid`). None where each
/// user has a number, as in the first of all namespaces: there nobody is a user like any other.
#[must_use]
pub fn overflow_user() -> Option<u32> {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    // All numbers but the last, which is no user's.
    let is_whole = read("/proc/self/uid_map").split_whitespace().eq(["0", "0", "4294967295"]);
    (!is_whole).then(|| read("/proc/sys/kernel/overflowuid").trim().parse().unwrap_or(NOBODY))
}

/// Becomes [`NOBODY`], without any groups, keeps the capabilities named and can never have others again, nor any
/// program that it starts. Capabilities are the calling thread's: call it before there are other threads.
///
/// # Errors
/// As the kernel says: `EPERM` without root. The process may have some of its privileges left then, and should end.
pub fn drop_all_but(keep: &[Capability]) -> io::Result<()> {
    let check = |answer: libc::c_int| if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
    thread::set_keep_capabilities(true)?;
    // The C library's, for they are every thread's; rustix's are the calling one's.
    // SAFETY: numbers only, and an empty list.
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

/// Puts the calling thread before all that are not in real time: it gets a CPU as soon as it wants one.
///
/// # Errors
/// `EPERM` without `CAP_SYS_NICE`, or in a control group that gives no real time.
pub fn run_in_real_time() -> io::Result<()> {
    set_scheduler(libc::SCHED_FIFO, 1)
}

/// Takes that back: the calling thread shares the CPUs as others do.
///
/// # Errors
/// As the kernel says.
pub fn leave_real_time() -> io::Result<()> {
    set_scheduler(libc::SCHED_OTHER, 0)
}

fn set_scheduler(policy: libc::c_int, priority: libc::c_int) -> io::Result<()> {
    let policy = policy | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the kernel reads a `sched_param`, which is one number. musl's own function refuses; rustix has none.
    match unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const priority) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Puts the calling thread behind others: `nice` 19.
pub fn run_last() {
    // It is always allowed; on Linux it is for the calling thread.
    let _ = process::setpriority_process(None, 19);
}
