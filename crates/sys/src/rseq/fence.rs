//! Sequences on other CPUs, brought to an end.

use std::io;
use std::sync::atomic::Ordering;

use super::Stack;

/// When it returns, whatever sequence was under way on a CPU (on `cpu`, or on each) when it was called has committed,
/// which the caller sees, or has been aborted: membarrier(2)'s command for that (Linux 5.10), by an interrupt.
/// Sequences that begin later see what the caller wrote before it.
///
/// # Errors
/// `EINVAL` where the kernel does not know the command, `ENOSYS` and `EPERM` where it has no membarrier(2) or a filter
/// forbids it, [`Unsupported`](io::ErrorKind::Unsupported) without Linux.
pub fn fence(cpu: Option<usize>) -> io::Result<()> {
    imp::fence(cpu)
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

#[cfg(all(target_os = "linux", not(miri)))]
mod imp {
    use std::ffi::c_int;
    use std::io;

    // From the kernel's include/uapi/linux/membarrier.h.
    const PRIVATE_EXPEDITED_RSEQ: c_int = 1 << 7;
    const REGISTER_PRIVATE_EXPEDITED_RSEQ: c_int = 1 << 8;
    const FLAG_CPU: c_int = 1 << 0;

    fn membarrier(command: c_int, cpu: Option<usize>) -> io::Result<()> {
        let (flags, cpu) = cpu.map_or((0, 0), |cpu| (FLAG_CPU, cpu as c_int));
        // SAFETY: membarrier takes three integers and touches no memory of ours.
        match unsafe { libc::syscall(libc::SYS_membarrier, command, flags, cpu) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    pub fn fence(cpu: Option<usize>) -> io::Result<()> {
        let fenced = membarrier(PRIVATE_EXPEDITED_RSEQ, cpu);
        let is_unregistered = |error: &io::Error| error.raw_os_error() == Some(libc::EPERM);
        if !fenced.as_ref().is_err_and(is_unregistered) {
            return fenced;
        }
        // The process has not said yet that it will use the command.
        membarrier(REGISTER_PRIVATE_EXPEDITED_RSEQ, None)?;
        membarrier(PRIVATE_EXPEDITED_RSEQ, cpu)
    }
}

#[cfg(any(not(target_os = "linux"), miri))]
mod imp {
    use std::io;

    pub fn fence(_cpu: Option<usize>) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
