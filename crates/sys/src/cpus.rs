//! Which CPUs there are, and which one this is. On Linux; elsewhere the kernel does not say.

#[cfg(target_os = "linux")]
use std::io;
#[cfg(any(target_os = "linux", feature = "measuring"))]
use std::ops::RangeInclusive;

/// The CPU that the calling thread runs on, or did a moment ago.
///
/// By the C library, which may have it where the kernel keeps it for restartable sequences: a load. rustix asks the
/// kernel's page (here 2.0 ns instead of 1.3), or on aarch64 the kernel.
#[cfg(target_os = "linux")]
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
#[cfg(target_os = "linux")]
pub fn possible() -> io::Result<u32> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/possible")?;
    let last = parse_list(&text).and_then(|ranges| ranges.last()?.end().checked_add(1));
    last.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// The ranges of a list of CPUs as the kernel writes it, such as `0-3,8`. None where any part of it is not understood:
/// a CPU that is overlooked would count as one that is not there. Nor is a list ever empty, and its end is a line's:
/// else it was cut.
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
        // Some sandboxes have no /sys.
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
