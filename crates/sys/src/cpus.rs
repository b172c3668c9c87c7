//! The CPUs of this machine, and the CPU on which the current thread runs. Linux only; other kernels do not report
//! them.

#[cfg(target_os = "linux")]
use std::io;
#[cfg(any(target_os = "linux", feature = "measuring"))]
use std::ops::RangeInclusive;

/// Returns the CPU on which the calling thread runs, or ran a moment ago.
///
/// Uses the C library, which can read the CPU with one load if the kernel stores it for restartable sequences. The
/// function of rustix takes longer: it uses the kernel's vDSO (2.0 ns instead of 1.3 ns) or, on aarch64, a system call.
#[cfg(target_os = "linux")]
#[inline]
#[must_use]
pub fn current() -> Option<u32> {
    // SAFETY: no conditions.
    u32::try_from(unsafe { libc::sched_getcpu() }).ok()
}

/// Returns how many CPU numbers this machine can ever have, including offline CPUs and empty sockets.
///
/// The kernel's list of online CPUs is not used. Some containers replace that list (`/sys/devices/system/cpu/online`)
/// with their own list. It omits CPUs on which threads of the container run.
///
/// # Errors
/// If `/sys` is not mounted, or the file has an unexpected format.
#[cfg(target_os = "linux")]
pub fn possible() -> io::Result<u32> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/possible")?;
    let last = parse_list(&text).and_then(|ranges| ranges.last()?.end().checked_add(1));
    last.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Returns the ranges in a list of CPUs as the kernel writes it, such as `0-3,8`. Returns `None` if any part of the
/// text cannot be parsed. A partial result would be wrong, because callers treat each CPU that is missing from the
/// result as absent. A valid list has at least one range and ends with a newline; a list without the newline has been
/// cut.
#[cfg(any(target_os = "linux", feature = "measuring"))]
pub(crate) fn parse_list(text: &str) -> Option<Vec<RangeInclusive<u32>>> {
    let range = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let range = first.parse().ok()?..=last.parse().ok()?;
        (!range.is_empty()).then_some(range)
    };
    text.strip_suffix('\n')?.split(',').map(range).collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::testing::or_left_out;

    #[test]
    fn the_cpu_that_this_runs_on_is_possible() {
        // Some sandboxes do not have `/sys`.
        let Some(possible) = or_left_out(possible()) else { return };
        assert!(current().unwrap() < possible);
    }

    #[test]
    fn a_list_is_understood_wholly_or_not_at_all() {
        assert_eq!(parse_list("0-3,8,10-11\n"), Some(vec![0..=3, 8..=8, 10..=11]));
        assert_eq!(parse_list("0\n"), Some(vec![0..=0]));
        let cut = ["0-3,8", "0-3,", "0-", "0", ""];
        for wrong in ["\n", "a\n", "0-\n", "x-3\n", "3-1\n", "0,x\n", "0,,1\n", "0\n\n"].iter().chain(&cut) {
            assert_eq!(parse_list(wrong), None, "{wrong}");
        }
    }
}
