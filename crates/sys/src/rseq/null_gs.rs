//! What people did before there were restartable sequences: a segment selector of zero in GS, by which a thread can
//! tell that it was stopped. To be tried out, not to be relied upon.
//!
//! On x86-64 GS has a base, which is added to addresses, and a selector, which may be null: 0 to 3.
//!
//! - An interrupt's return to the program sets a null selector that is not 0 to 0 ([`interrupts_seen`]).
//! - Linux took a selector of 0 to mean that the base is the one that it was last told by `arch_prctl`. Where a program
//!   had written 0 into GS, which sets the base to 0, its thread got the old base back when it was next switched to
//!   ([`switches_seen`]). Since Linux 5.9 the kernel reads the base itself, where the processor has the
//!   instructions for that (FSGSBASE).
//!
//! Both leave GS as programs on Linux have it: null, base 0. Nobody else uses it there. Elsewhere than on Linux and
//! x86-64 both are an error of kind [`Unsupported`](std::io::ErrorKind::Unsupported).

pub use imp::{interrupts_seen, switches_seen};

/// How often a thread was switched away from, and how often GS showed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switches {
    /// Switches that GS showed.
    pub seen: u64,
    /// Switches that the kernel counted.
    pub counted: u64,
}

#[cfg(all(target_os = "linux", target_arch = "x86_64", target_pointer_width = "64", not(miri)))]
mod imp {
    use std::arch::asm;
    use std::io;
    use std::thread;
    use std::time::Duration;

    use super::Switches;
    use crate::clock;

    /// From the kernel's arch/x86/include/uapi/asm/prctl.h.
    const ARCH_SET_GS: libc::c_int = 0x1001;
    /// Null, and yet not 0.
    const NULL: u32 = 3;

    /// Sleeps so many times, each time with a base that would come back.
    ///
    /// # Errors
    /// [`Unsupported`](io::ErrorKind::Unsupported) where a null selector does not set the base to 0 (AMD before Zen 2).
    pub fn switches_seen(sleeps: u32) -> io::Result<Switches> {
        // What is read with base 0, and with base 8.
        let values = [0_u64, 1];
        let before = switches()?;
        let mut seen = 0;
        for _ in 0..sleeps {
            set_base(8)?;
            set_selector(0);
            if read_by_gs(&values) != 0 {
                set_base(0)?;
                let reason = "on this processor a null selector leaves the segment's base as it was";
                return Err(io::Error::new(io::ErrorKind::Unsupported, reason));
            }
            thread::sleep(Duration::from_micros(20));
            seen += read_by_gs(&values);
        }
        set_base(0)?;
        Ok(Switches { seen, counted: switches()? - before })
    }

    /// How many interrupts GS shows to the calling thread while it does nothing else for so long.
    ///
    /// # Errors
    /// None here.
    pub fn interrupts_seen(duration: Duration) -> io::Result<u64> {
        let start_ns = clock::now_ns();
        let mut seen = 0;
        set_selector(NULL);
        while u128::from(clock::now_ns() - start_ns) < duration.as_nanos() {
            if selector() != NULL {
                seen += 1;
                set_selector(NULL);
            }
        }
        // One may have come since the last look, and have taken the time that was left.
        seen += u64::from(selector() != NULL);
        set_selector(0);
        Ok(seen)
    }

    fn set_base(base: usize) -> io::Result<()> {
        // SAFETY: nothing in this program is addressed by GS but what `read_by_gs` reads.
        match unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_SET_GS, base) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn set_selector(selector: u32) {
        // SAFETY: a null selector may be loaded at any time; for what GS addresses see `set_base`.
        unsafe { asm!("mov gs, {selector:e}", selector = in(reg) selector, options(nostack, preserves_flags)) };
    }

    fn selector() -> u32 {
        let selector: u32;
        // SAFETY: reads a register.
        unsafe { asm!("mov {selector:e}, gs", selector = out(reg) selector, options(nostack, preserves_flags)) };
        selector
    }

    /// The first value where GS has base 0, the second where it has base 8.
    fn read_by_gs(values: &[u64; 2]) -> u64 {
        let value: u64;
        // SAFETY: the base is 0 or 8, as no other is ever set: both addresses are the array's.
        unsafe {
            asm!(
                "mov {value}, gs:[{values}]",
                value = out(reg) value,
                values = in(reg) values,
                options(nostack, readonly)
            );
        }
        value
    }

    /// How often the calling thread was switched away from since it began.
    fn switches() -> io::Result<u64> {
        // SAFETY: the kernel writes one `rusage`, which is plain numbers, for which zero is a value.
        unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            match libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) {
                0 => Ok((usage.ru_nvcsw + usage.ru_nivcsw) as u64),
                _ => Err(io::Error::last_os_error()),
            }
        }
    }
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64", target_pointer_width = "64", not(miri))))]
#[allow(missing_docs, clippy::missing_errors_doc)]
mod imp {
    use std::io;
    use std::time::Duration;

    use super::Switches;

    pub fn switches_seen(_sleeps: u32) -> io::Result<Switches> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub fn interrupts_seen(_duration: Duration) -> io::Result<u64> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::time::Duration;

    use super::*;

    /// What is seen is the machine's affair, and so are the switches: who is kept from a CPU for longer than he was to
    /// sleep makes none. That all of it is put back is ours.
    #[test]
    fn nothing_is_seen_that_was_not() {
        let tried =
            std::thread::spawn(|| (switches_seen(20), interrupts_seen(Duration::from_millis(20)), switches_seen(20)));
        let (first, interrupts, second) = tried.join().unwrap();
        for switches in [first, second] {
            match switches {
                Ok(Switches { seen, .. }) => assert!(seen <= 20, "{seen}"),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Unsupported),
            }
        }
        assert!(interrupts.map_or_else(|error| error.kind() == ErrorKind::Unsupported, |seen| seen < 1_000_000));
    }
}
