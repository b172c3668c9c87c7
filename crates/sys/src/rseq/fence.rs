//! Sequences on other CPUs, brought to an end.

use std::io;
use std::sync::atomic::Ordering;

use super::Stack;
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

/// A CPU's stack that no sequence can touch while this exists.
#[derive(Debug)]
pub struct Stopped<'a>(&'a Stack);

impl Stack {
    /// Stops the sequences on this stack, that of the CPU, and waits for one that is under way: the caller has it to
    /// itself until it drops what it gets. None where somebody else has it.
    ///
    /// # Errors
    /// Those of [`fence`]. Sequences go on, then.
    pub fn stop(&self, cpu: usize) -> io::Result<Option<Stopped<'_>>> {
        if self.is_stopped.swap(true, Ordering::Acquire) {
            return Ok(None);
        }
        self.admit(false);
        let stopped = Stopped(self);
        fence(Some(cpu)).map(|()| Some(stopped))
    }
}

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        self.0.admit(true);
        self.0.is_stopped.store(false, Ordering::Release);
    }
}
