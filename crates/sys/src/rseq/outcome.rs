//! The results of sequences, the reasons why sequences are not available, and the fence that ends sequences on other
//! CPUs.

use std::{fmt, io};

use crate::membarrier;

/// The result of a restartable sequence, a few instructions that the kernel aborts if it stops their thread. A sequence
/// may return a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Outcome<T = ()> {
    /// The sequence has run to its end; this is its value.
    Done(T),
    /// The sequence had no effect, for example because the stack is full. The function that executes the sequence
    /// documents the reasons.
    Refused,
    /// The sequence had no effect, because the kernel stopped the thread in the middle of it.
    Aborted,
}

/// The reason why a program has no restartable sequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// Restartable sequences are implemented here only for Linux on x86-64.
    Platform,
    /// The C library cannot register threads for restartable sequences.
    Library,
    /// The C library can register threads for restartable sequences, but did not do so for this thread.
    Unregistered,
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Platform => "restartable sequences are supported only on Linux on x86-64",
            Self::Library => {
                "the C library does not register threads for rseq(2): use glibc 2.35 or newer, linked dynamically"
            }
            Self::Unregistered => {
                "the C library did not register threads for rseq(2): the kernel is older than Linux 4.18, a filter of \
                 system calls forbids it, or GLIBC_TUNABLES has glibc.pthread.rseq=0"
            }
        })
    }
}

impl std::error::Error for Unavailable {}

/// Returns how many CPU numbers this machine can ever have, including CPUs that are off or not plugged in yet. If the
/// system does not report it, returns the number of CPUs that this process may use. A sequence is refused on a CPU
/// whose number is not below the result.
#[must_use]
pub fn possible_cpus() -> usize {
    #[cfg(target_os = "linux")]
    if let Ok(cpus) = crate::cpus::possible() {
        return cpus as usize;
    }
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Ends the sequences that are running on `cpu`, or on all CPUs if it is `None`. Each sequence that was running on
/// these CPUs at the call has ended when this returns. Either it has committed, and the caller sees the commit, or it
/// has been aborted. Sequences that begin later see what the caller wrote before the call. Uses a command of
/// membarrier(2) (Linux 5.10), which interrupts the CPUs.
///
/// # Errors
/// `EINVAL` if the kernel does not know the command. `ENOSYS` if the kernel does not have membarrier(2), `EPERM` if a
/// filter forbids it. [`Unsupported`](io::ErrorKind::Unsupported) on systems other than Linux.
pub fn fence(cpu: Option<usize>) -> io::Result<()> {
    let fenced = membarrier::restart_sequences(cpu);
    let is_unregistered = |error: &io::Error| error.raw_os_error() == Some(libc::EPERM);
    if !fenced.as_ref().is_err_and(is_unregistered) {
        return fenced;
    }
    // The process has not registered its intent to use the command yet.
    membarrier::register_restart_sequences()?;
    membarrier::restart_sequences(cpu)
}
