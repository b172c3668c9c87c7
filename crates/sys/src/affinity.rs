//! The set of CPUs on which the calling thread may run.

use std::marker::PhantomData;

use crate::Error;

/// Returns the CPUs that the calling thread may use, in ascending order. If the system does not provide the list,
/// returns `0..n`, where `n` is the number of CPUs that the system reports.
#[must_use]
pub fn allowed() -> Vec<usize> {
    imp::allowed().unwrap_or_else(|| {
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        (0..count).collect()
    })
}

/// Pins the calling thread to one CPU.
///
/// Threads and processes that the calling thread starts from now on inherit the setting.
///
/// # Errors
///
/// [`Error::Pin`] if the CPU does not exist or is not allowed, or if the system does not support pinning (macOS).
pub fn pin_current_thread(cpu: usize) -> Result<(), Error> {
    imp::set(&[cpu]).map_err(|source| Error::Pin { cpu, source })
}

/// Pins the calling thread as [`pin_current_thread`] does, until the returned value is dropped.
///
/// # Errors
///
/// Fails like [`pin_current_thread`].
pub fn pin_for_now(cpu: usize) -> Result<PinnedThread, Error> {
    let before = allowed();
    pin_current_thread(cpu)?;
    Ok(PinnedThread { before, _of_this_thread: PhantomData })
}

/// A thread that is pinned to one CPU. When this is dropped, the thread may use the same CPUs as before.
#[derive(Debug)]
pub struct PinnedThread {
    before: Vec<usize>,
    _of_this_thread: PhantomData<*const ()>,
}

impl Drop for PinnedThread {
    fn drop(&mut self) {
        // Restoring the CPUs that were allowed before rarely fails, and an error here cannot be reported.
        let _ = imp::set(&self.before);
    }
}

/// Uses the C library's functions, which support any number of CPUs. The functions of rustix support only the first
/// 1,024 CPUs, and fail on a kernel that is configured for more.
#[cfg(target_os = "linux")]
mod imp {
    use std::io;

    use crate::syscall::check;

    /// A set of CPUs: one bit per CPU. The kernel can be compiled for at most 8,192 CPUs.
    type Mask = [u64; 128];

    pub fn allowed() -> Option<Vec<usize>> {
        let mut mask: Mask = [0; 128];
        // SAFETY: the kernel writes at most `size_of::<Mask>()` bytes to `mask`, which consists of plain bits: every
        // pattern is valid.
        let written = unsafe { libc::sched_getaffinity(0, size_of::<Mask>(), (&raw mut mask).cast()) };
        let is_set = |cpu: &usize| mask[cpu / 64] >> (cpu % 64) & 1 == 1;
        (written == 0).then(|| (0..mask.len() * 64).filter(is_set).collect())
    }

    pub fn set(cpus: &[usize]) -> io::Result<()> {
        let mut mask: Mask = [0; 128];
        for cpu in cpus {
            *mask.get_mut(cpu / 64).ok_or(io::ErrorKind::InvalidInput)? |= 1 << (cpu % 64);
        }
        // SAFETY: the kernel reads `size_of::<Mask>()` bytes of `mask`.
        check(unsafe { libc::sched_setaffinity(0, size_of::<Mask>(), (&raw const mask).cast()) })
    }
}

#[cfg(not(target_os = "linux"))]
mod imp {
    use std::io;

    pub fn allowed() -> Option<Vec<usize>> {
        None
    }

    pub fn set(_cpus: &[usize]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::testing::left_out;

    #[test]
    fn a_pinned_thread_may_use_that_cpu_only() {
        let pinned = std::thread::spawn(|| {
            let before = allowed();
            let last = *before.last().expect("at least one CPU");
            match pin_for_now(last) {
                Ok(pinned) => {
                    assert_eq!(allowed(), [last]);
                    drop(pinned);
                    assert_eq!(allowed(), before);
                    pin_current_thread(last).expect("pinning worked before");
                    assert_eq!(allowed(), [last]);
                }
                // Some containers have a filter of system calls that forbids pinning.
                Err(Error::Pin { source, .. }) if is_refusal(&source) => left_out(source),
                Err(error) => panic!("{error}"),
            }
        });
        pinned.join().expect("no panic");
    }

    fn is_refusal(error: &std::io::Error) -> bool {
        matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOSYS))
    }

    #[test]
    fn a_cpu_that_is_not_there_is_an_error() {
        for cpu in [8_191, 8_192, usize::MAX] {
            assert!(matches!(pin_current_thread(cpu), Err(Error::Pin { .. })), "{cpu}");
        }
    }
}
