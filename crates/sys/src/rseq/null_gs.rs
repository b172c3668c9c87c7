//! A technique from the time before restartable sequences: a thread sets the segment selector in GS to zero to detect
//! that it was stopped. This is for experiments only; do not rely on it.
//!
//! On x86-64, GS has a base, which is added to addresses, and a selector. The selector is null if it is 0 to 3.
//!
//! - Interrupts: when the kernel returns from an interrupt to the program, a null selector other than 0 becomes 0
//!   ([`interrupts_seen`]).
//! - Context switches: a program sets the base by `arch_prctl`, and then writes the selector 0 into GS, which sets the
//!   base to 0. Older kernels assumed that the base from `arch_prctl` is valid whenever the selector is 0. When such a
//!   kernel next switched to the thread, it restored the base from `arch_prctl` ([`switches_seen`]). Since Linux 5.9
//!   the kernel saves the actual base, if the processor has the instructions for that (FSGSBASE).
//!
//! Both functions leave GS in its usual state on Linux: null, with base 0. Other code does not use GS there. On other
//! platforms than Linux on x86-64, both return an error of kind [`Unsupported`](std::io::ErrorKind::Unsupported).

pub use imp::{interrupts_seen, switches_seen};

/// The number of context switches of a thread, and how many of them were detected by a change of the register GS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switches {
    /// Number of context switches that were detected by a change of the register GS.
    pub seen: u64,
    /// Number of context switches that the kernel counted.
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
    use crate::syscall::check;

    /// The command of arch_prctl(2) that sets the base of GS, from the kernel's arch/x86/include/uapi/asm/prctl.h.
    const ARCH_SET_GS: libc::c_int = 0x1001;
    /// A null selector other than 0. An interrupt replaces it by 0.
    const NULL: u32 = 3;

    /// Sleeps `sleeps` times. Before each sleep it sets the register GS such that an older kernel restores another base
    /// when it switches back to this thread. Returns how often the base had changed after a sleep, and how many
    /// switches the kernel counted.
    ///
    /// # Errors
    /// [`Unsupported`](io::ErrorKind::Unsupported) if a null selector does not set the base to 0 (AMD before Zen 2).
    pub fn switches_seen(sleeps: u32) -> io::Result<Switches> {
        // `read_by_gs` returns 0 at base 0, and 1 at base 8.
        let values = [0_u64, 1];
        let before = switches()?;
        let mut seen = 0;
        for _ in 0..sleeps {
            set_base(8)?;
            set_selector(0);
            if read_by_gs(&values) != 0 {
                set_base(0)?;
                let reason = "on this processor a null selector does not change the base of the segment";
                return Err(io::Error::new(io::ErrorKind::Unsupported, reason));
            }
            thread::sleep(Duration::from_micros(20));
            seen += read_by_gs(&values);
        }
        set_base(0)?;
        Ok(Switches { seen, counted: switches()? - before })
    }

    /// Checks the register GS repeatedly for `duration`. Returns the number of interrupts of the calling thread that
    /// changed the register.
    ///
    /// # Errors
    /// This never fails on Linux on x86-64.
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
        // An interrupt may have come after the last check, and may have lasted until the end of `duration`.
        seen += u64::from(selector() != NULL);
        set_selector(0);
        Ok(seen)
    }

    fn set_base(base: usize) -> io::Result<()> {
        // SAFETY: this program addresses nothing by GS except in `read_by_gs`.
        check(unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_SET_GS, base) })
    }

    fn set_selector(selector: u32) {
        // SAFETY: a null selector may be loaded at any time; for accesses through GS see `set_base`.
        unsafe { asm!("mov gs, {selector:e}", selector = in(reg) selector, options(nostack, preserves_flags)) };
    }

    fn selector() -> u32 {
        let selector: u32;
        // SAFETY: the instruction only reads a register.
        unsafe { asm!("mov {selector:e}, gs", selector = out(reg) selector, options(nostack, preserves_flags)) };
        selector
    }

    /// Returns the first of the values if the base of GS is 0, and the second if the base is 8.
    fn read_by_gs(values: &[u64; 2]) -> u64 {
        let value: u64;
        // SAFETY: the base is always 0 or 8, so both addresses are in the array.
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

    /// Returns the number of context switches away from the calling thread since it started.
    fn switches() -> io::Result<u64> {
        // SAFETY: the kernel writes one `rusage`, which consists of numbers, for which zero is valid.
        unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            check(libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage))?;
            Ok((usage.ru_nvcsw + usage.ru_nivcsw) as u64)
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

    /// The number of events that GS shows depends on the machine. So does the number of switches, because not every
    /// sleep causes one. The test checks that the functions restore everything.
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
