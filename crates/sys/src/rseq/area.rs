//! Where there are restartable sequences, and why not.

use std::fmt;

/// Why a program has no restartable sequences here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// They are written for Linux on x86-64 only.
    Platform,
    /// The C library does not register threads.
    Library,
    /// The C library knows how to, and did not.
    Unregistered,
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Platform => "restartable sequences are written for Linux on x86-64 only",
            Self::Library => {
                "the C library does not register threads for rseq(2): needs glibc 2.35, linked dynamically"
            }
            Self::Unregistered => {
                "the C library did not register threads for rseq(2): the kernel is older than Linux 4.18, a filter of \
                 system calls forbids it, or GLIBC_TUNABLES has glibc.pthread.rseq=0"
            }
        })
    }
}

impl std::error::Error for Unavailable {}

/// As many as the CPU numbers that this machine can ever have, with CPUs that are off or not plugged in yet. Where the
/// system does not tell, as many as this process may use; a sequence is refused on a CPU beyond.
#[must_use]
pub fn possible_cpus() -> usize {
    #[cfg(target_os = "linux")]
    if let Ok(cpus) = crate::cpus::possible() {
        return cpus as usize;
    }
    std::thread::available_parallelism().map_or(1, usize::from)
}
