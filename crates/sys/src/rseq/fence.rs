//! Sequences on other CPUs, brought to an end.

use std::io;

use crate::membarrier;

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
