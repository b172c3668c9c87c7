//! Which CPUs there are, and which one this is. Linux only.

use std::io;

use crate::cpu_list;

/// The CPU that the calling thread runs on, or did a moment ago.
///
/// By the C library, which may have it where the kernel keeps it for restartable sequences: a load. rustix asks the kernel's
/// page (here 2.0 ns instead of 1.3), or on aarch64 the kernel.
#[inline]
#[must_use]
pub fn current() -> Option<u32> {
    // SAFETY: no conditions.
    u32::try_from(unsafe { libc::sched_getcpu() }).ok()
}

/// As many as the CPU numbers that this machine can ever have, offline and empty sockets counted.
///
/// Which of them are online is not told here: some containers put a list of their own over the kernel's
/// (`/sys/devices/system/cpu/online`), which has fewer CPUs than the container's threads run on.
///
/// # Errors
/// Where `/sys` is not mounted, or says something else.
pub fn possible() -> io::Result<u32> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/possible")?;
    let last = cpu_list::parse(&text).and_then(|ranges| ranges.last()?.end().checked_add(1));
    last.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::left_out::or_left_out;

    #[test]
    fn the_cpu_that_this_runs_on_is_possible() {
        // Some sandboxes have no /sys.
        let Some(possible) = or_left_out(possible()) else { return };
        assert!(current().unwrap() < possible);
    }
}
