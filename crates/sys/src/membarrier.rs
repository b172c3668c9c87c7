//! The membarrier(2) system call: memory barriers on behalf of other threads.
//!
//! On systems other than Linux, and under Miri, each function returns an error of kind
//! [`Unsupported`](std::io::ErrorKind::Unsupported).

use std::ffi::c_int;
use std::io;

// From the kernel's include/uapi/linux/membarrier.h.
const QUERY: c_int = 0;
const GLOBAL: c_int = 1 << 0;
const PRIVATE_EXPEDITED: c_int = 1 << 3;
const REGISTER_PRIVATE_EXPEDITED: c_int = 1 << 4;
const PRIVATE_EXPEDITED_RSEQ: c_int = 1 << 7;
const REGISTER_PRIVATE_EXPEDITED_RSEQ: c_int = 1 << 8;

/// Returns whether the kernel supports [`private_expedited`] (Linux 4.14).
///
/// # Errors
/// `ENOSYS` if the kernel does not have membarrier(2) at all, `EPERM` if a filter of system calls forbids it.
pub fn is_expedited_supported() -> io::Result<bool> {
    is_supported(PRIVATE_EXPEDITED | REGISTER_PRIVATE_EXPEDITED)
}

/// Returns whether the kernel supports [`global`] (Linux 4.3, unless some CPUs run without its timer: `nohz_full`).
///
/// # Errors
/// Fails like [`is_expedited_supported`].
pub fn is_global_supported() -> io::Result<bool> {
    is_supported(GLOBAL)
}

/// Registers the intent of this process to use [`private_expedited`]. One call per process is enough; further calls do
/// no harm.
///
/// # Errors
/// `EINVAL` if the kernel does not know the command; otherwise the errors of [`is_expedited_supported`].
pub fn register_private_expedited() -> io::Result<()> {
    membarrier(REGISTER_PRIVATE_EXPEDITED).map(drop)
}

/// Executes a full memory barrier on each running thread of this process. When it returns, each of these threads has
/// passed a full memory barrier since the call began, because the kernel interrupted its CPU. This takes microseconds.
///
/// # Errors
/// `EPERM` before [`register_private_expedited`], `ENOMEM` if the kernel cannot allocate its list of CPUs.
pub fn private_expedited() -> io::Result<()> {
    membarrier(PRIVATE_EXPEDITED).map(drop)
}

/// Executes a full memory barrier on each running thread of the machine. When it returns, each of these threads has
/// passed a full memory barrier since the call began. The kernel waits until each CPU has run the scheduler, which
/// takes milliseconds.
///
/// # Errors
/// `EINVAL` if CPUs run without the kernel's timer (`nohz_full`); otherwise the errors of [`is_expedited_supported`].
pub fn global() -> io::Result<()> {
    membarrier(GLOBAL).map(drop)
}

/// Registers the intent of this process to use [`restart_sequences`]. One call per process is enough; further calls do
/// no harm.
///
/// # Errors
/// `EINVAL` if the kernel does not know the command (before Linux 5.10); otherwise the errors of
/// [`is_expedited_supported`].
pub fn register_restart_sequences() -> io::Result<()> {
    membarrier(REGISTER_PRIVATE_EXPEDITED_RSEQ).map(drop)
}

/// Interrupts the restartable sequences of this process on one CPU, or on all CPUs if `cpu` is `None`. When it returns,
/// each sequence that was running on these CPUs when the call began has committed or been aborted.
///
/// # Errors
/// `EPERM` before [`register_restart_sequences`]; otherwise the errors of that function.
pub fn restart_sequences(cpu: Option<usize>) -> io::Result<()> {
    membarrier_on(PRIVATE_EXPEDITED_RSEQ, cpu).map(drop)
}

fn is_supported(commands: c_int) -> io::Result<bool> {
    Ok(membarrier(QUERY)? & commands == commands)
}

fn membarrier(command: c_int) -> io::Result<c_int> {
    membarrier_on(command, None)
}

/// Calls membarrier(2) without rustix, which does not return the error of a query that fails. The error shows whether
/// the kernel lacks the call or a filter forbids it.
#[cfg(all(target_os = "linux", not(miri)))]
fn membarrier_on(command: c_int, cpu: Option<usize>) -> io::Result<c_int> {
    const FLAG_CPU: c_int = 1 << 0;
    let (flags, cpu) = cpu.map_or((0, 0), |cpu| (FLAG_CPU, cpu as c_int));
    // SAFETY: membarrier takes three integers and accesses no memory.
    match unsafe { libc::syscall(libc::SYS_membarrier, command, flags, cpu) } {
        -1 => Err(io::Error::last_os_error()),
        answer => Ok(answer as c_int),
    }
}

#[cfg(any(not(target_os = "linux"), miri))]
fn membarrier_on(_command: c_int, _cpu: Option<usize>) -> io::Result<c_int> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn what_is_supported_works() {
        if is_expedited_supported().unwrap_or(false) {
            register_private_expedited().unwrap();
            private_expedited().unwrap();
        } else {
            assert!(private_expedited().is_err());
        }
        assert_eq!(is_global_supported().unwrap_or(false), global().is_ok());
    }
}
