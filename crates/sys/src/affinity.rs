//! Which CPUs the calling thread may use.

use std::marker::PhantomData;

use crate::Error;

/// The CPUs that the calling thread may use, in ascending order. Where the system does not tell,
/// as many as it says there are.
#[must_use]
pub fn allowed() -> Vec<usize> {
    imp::allowed().unwrap_or_else(|| {
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        (0..count).collect()
    })
}

/// Ties the calling thread to one CPU.
///
/// Threads and processes that it starts from now on inherit that.
///
/// # Errors
///
/// [`Error::Pin`] if there is no such CPU, it is not allowed, or the system can't (macOS).
pub fn pin_current_thread(cpu: usize) -> Result<(), Error> {
    imp::set(&[cpu]).map_err(|source| Error::Pin { cpu, source })
}

/// As [`pin_current_thread`], until what is returned is dropped.
///
/// # Errors
///
/// As there.
pub fn pin_for_now(cpu: usize) -> Result<Pinned, Error> {
    let before = allowed();
    pin_current_thread(cpu)?;
    Ok(Pinned { before, _of_this_thread: PhantomData })
}

/// A thread that is tied to one CPU. Dropped, it may use those again that it might before.
#[derive(Debug)]
pub struct Pinned {
    before: Vec<usize>,
    _of_this_thread: PhantomData<*const ()>,
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // It was allowed before.
        let _ = imp::set(&self.before);
    }
}

/// The C library's calls, for rustix has them for the first 1,024 CPUs only: on a kernel for more the first fails.
#[cfg(target_os = "linux")]
mod imp {
    use std::io;

    /// One bit a CPU. The kernel is compiled for 8,192 at most.
    type Mask = [u64; 128];

    pub fn allowed() -> Option<Vec<usize>> {
        let mut mask: Mask = [0; 128];
        // SAFETY: the kernel writes at most `size_of::<Mask>()` bytes to `mask`, which are plain
        // bits without a forbidden pattern.
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
        match unsafe { libc::sched_setaffinity(0, size_of::<Mask>(), (&raw const mask).cast()) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
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
                    pin_current_thread(last).expect("it could before");
                    assert_eq!(allowed(), [last]);
                }
                // A filter of system calls, as some containers have one.
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
