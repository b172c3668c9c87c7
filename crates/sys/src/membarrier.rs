//! The membarrier(2) system call: memory barriers on other threads' behalf.
//!
//! Where the system is not Linux, or Miri's, each function is an error of kind
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

/// Whether the kernel knows [`private_expedited`] (Linux 4.14).
///
/// # Errors
/// `ENOSYS` where the kernel has no membarrier(2) at all, `EPERM` where a filter of system calls forbids it.
pub fn is_expedited_supported() -> io::Result<bool> {
    is_supported(PRIVATE_EXPEDITED | REGISTER_PRIVATE_EXPEDITED)
}

/// Whether the kernel knows [`global`] (Linux 4.3, unless some CPUs run without its timer: `nohz_full`).
///
/// # Errors
/// As of [`is_expedited_supported`].
pub fn is_global_supported() -> io::Result<bool> {
    is_supported(GLOBAL)
}

/// Says that this process will use [`private_expedited`]. It may be said again; one call a process is enough.
///
/// # Errors
/// `EINVAL` where the kernel does not know the command; as of [`is_expedited_supported`].
pub fn register_private_expedited() -> io::Result<()> {
    membarrier(REGISTER_PRIVATE_EXPEDITED).map(drop)
}

/// When it returns, each running thread of this process has passed a full memory barrier since it was called, by
/// an interrupt to its CPU: microseconds.
///
/// # Errors
/// `EPERM` before [`register_private_expedited`], `ENOMEM` when the kernel can't note the CPUs that it means.
pub fn private_expedited() -> io::Result<()> {
    membarrier(PRIVATE_EXPEDITED).map(drop)
}

/// When it returns, each running thread of the machine has passed a full memory barrier since it was called: the
/// kernel waits until each CPU has scheduled, which takes milliseconds.
///
/// # Errors
/// `EINVAL` where CPUs run without the kernel's timer (`nohz_full`); as of [`is_expedited_supported`].
pub fn global() -> io::Result<()> {
    membarrier(GLOBAL).map(drop)
}

/// Says that this process will use [`restart_sequences`]. It may be said again; one call a process is enough.
///
/// # Errors
/// `EINVAL` where the kernel does not know the command (before Linux 5.10); as of [`is_expedited_supported`].
pub fn register_restart_sequences() -> io::Result<()> {
    membarrier(REGISTER_PRIVATE_EXPEDITED_RSEQ).map(drop)
}

/// When it returns, each restartable sequence of this process that was under way when it was called, on that CPU or
/// on any, has committed or been aborted, by an interrupt.
///
/// # Errors
/// `EPERM` before [`register_restart_sequences`]; as of that.
pub fn restart_sequences(cpu: Option<usize>) -> io::Result<()> {
    membarrier_on(PRIVATE_EXPEDITED_RSEQ, cpu).map(drop)
}

fn is_supported(commands: c_int) -> io::Result<bool> {
    Ok(membarrier(QUERY)? & commands == commands)
}

fn membarrier(command: c_int) -> io::Result<c_int> {
    membarrier_on(command, None)
}

/// Not by rustix, which does not say why the kernel can't tell what it knows: that it has no such call, or a filter
/// forbids it.
#[cfg(all(target_os = "linux", not(miri)))]
fn membarrier_on(command: c_int, cpu: Option<usize>) -> io::Result<c_int> {
    const FLAG_CPU: c_int = 1 << 0;
    let (flags, cpu) = cpu.map_or((0, 0), |cpu| (FLAG_CPU, cpu as c_int));
    // SAFETY: membarrier takes three integers and touches no memory of ours.
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
