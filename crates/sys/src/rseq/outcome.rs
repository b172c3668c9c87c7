//! What callers learn of sequences: what became of one, why there are none, and that those on other CPUs have ended.

use std::{fmt, io};

use crate::membarrier;

/// What became of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    /// It ran to its end.
    Done,
    /// It had no effect, for the reason that the sequence gives.
    Refused,
    /// It had no effect, because the kernel stopped the thread in its middle.
    Aborted,
}

/// What became of a sequence that yields something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Yielded<T> {
    /// It ran to its end.
    Done(T),
    /// See [`Outcome::Refused`].
    Refused,
    /// See [`Outcome::Aborted`].
    Aborted,
}

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

/// When it returns, whatever sequence was under way on a CPU (on `cpu`, or on each) when it was called has committed,
/// which the caller sees, or has been aborted: membarrier(2)'s command for that (Linux 5.10), by an interrupt.
/// Sequences that begin later see what the caller wrote before it.
///
/// # Errors
/// `EINVAL` where the kernel does not know the command, `ENOSYS` and `EPERM` where it has no membarrier(2) or a filter
/// forbids it, [`Unsupported`](io::ErrorKind::Unsupported) without Linux.
pub fn fence(cpu: Option<usize>) -> io::Result<()> {
    let fenced = membarrier::restart_sequences(cpu);
    let is_unregistered = |error: &io::Error| error.raw_os_error() == Some(libc::EPERM);
    if !fenced.as_ref().is_err_and(is_unregistered) {
        return fenced;
    }
    // The process has not said yet that it will use the command.
    membarrier::register_restart_sequences()?;
    membarrier::restart_sequences(cpu)
}
