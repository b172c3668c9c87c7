//! Memory that processes share, safely even where one of them is not to be trusted. Linux only.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use rustix::fs::{self, MemfdFlags, SealFlags};
use rustix::mm::{self, MprotectFlags, ProtFlags};

use crate::futex;
use crate::journal::Pages;

/// Somebody else's memory, mapped to be read.
#[derive(Debug)]
pub struct Mapping(Pages);

/// Memory of ours, which others may map to read: once made it neither shrinks nor grows, and nobody else can write.
#[derive(Debug)]
pub struct Shared {
    pages: Pages,
    fd: OwnedFd,
}

impl Mapping {
    /// The first `bytes` behind a descriptor.
    ///
    /// Only what can't shrink under the reader, whose next access would be the end of its process (SIGBUS): memory
    /// sealed as [`Shared`] is, or an object of the kernel's that is no file, such as the map of a program.
    ///
    /// # Errors
    /// `InvalidData` if what is there has fewer bytes, or may shrink; as the kernel says.
    pub fn of(fd: BorrowedFd<'_>, bytes: usize) -> io::Result<Self> {
        if !is_fixed(fd, bytes)? {
            let why = format!("it is shorter than {bytes} bytes, or may become so");
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        Pages::of(fd, bytes, ProtFlags::READ).map(Self)
    }

    /// The eight bytes at `offset`, of which others may write at the same time. A fence orders it, if need be.
    ///
    /// # Panics
    /// If they are not in the mapping, or `offset` is not a multiple of eight.
    #[inline]
    #[must_use]
    pub fn load(&self, offset: usize) -> u64 {
        // Relaxed is the one ordering that Rust allows of memory that may only be read.
        self.0.word(offset).load(Ordering::Relaxed)
    }

    /// The four bytes at `offset`, as [`load`](Self::load).
    ///
    /// # Panics
    /// As [`load`](Self::load), of four.
    #[inline]
    #[must_use]
    pub fn load_u32(&self, offset: usize) -> u32 {
        half(&self.0, offset).load(Ordering::Relaxed)
    }

    /// Sleeps while the four bytes at `offset` are `expected`, until woken, for `timeout` at most: [`futex::wait`].
    ///
    /// # Panics
    /// As [`load_u32`](Self::load_u32).
    pub fn wait(&self, offset: usize, expected: u32, timeout: Duration) -> bool {
        futex::wait(half(&self.0, offset), expected, Some(timeout), futex::Scope::Machine)
    }
}

impl Shared {
    /// `bytes` of zeros.
    ///
    /// # Errors
    /// `EINVAL` from kernels before 5.1; as the kernel says.
    pub fn new(name: &std::ffi::CStr, bytes: usize) -> io::Result<Self> {
        let fd = fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        fs::ftruncate(&fd, bytes as u64)?;
        let pages = Pages::of(fd.as_fd(), bytes, ProtFlags::READ | ProtFlags::WRITE)?;
        fs::fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::FUTURE_WRITE | SealFlags::SEAL)?;
        Ok(Self { pages, fd })
    }

    /// The eight bytes at `offset`.
    ///
    /// # Panics
    /// As [`Mapping::load`].
    #[must_use]
    pub fn word(&self, offset: usize) -> &AtomicU64 {
        self.pages.word(offset)
    }

    /// The four bytes at `offset`.
    ///
    /// # Panics
    /// As [`Mapping::load_u32`].
    #[must_use]
    pub fn half(&self, offset: usize) -> &AtomicU32 {
        half(&self.pages, offset)
    }
}

impl AsFd for Shared {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A page whose rights are taken away and given back, so that the kernel interrupts the CPUs that run threads of this
/// process, for they may remember the page: what was used for a barrier before there was membarrier(2).
///
/// It is none that could be relied upon: no kernel promises an interrupt, nor to wait for one. To be measured only.
#[derive(Debug)]
pub struct Shootdown(Pages);

impl Shootdown {
    /// A page of its own.
    ///
    /// # Errors
    /// As the kernel says.
    pub fn new() -> io::Result<Self> {
        // The smallest page of any machine that this crate compiles for.
        let bytes = 4096;
        let memory = Shared::new(c"shootdown", bytes)?;
        Ok(Self(memory.pages))
    }

    /// Uses the page, then takes the right to write to it away and gives it back.
    ///
    /// # Errors
    /// As the kernel says.
    pub fn shoot(&mut self) -> io::Result<()> {
        self.0.word(0).fetch_add(1, Ordering::Relaxed);
        for protection in [MprotectFlags::READ, MprotectFlags::READ | MprotectFlags::WRITE] {
            // SAFETY: the pages are ours, and nobody uses them but this function, which can write again at its end.
            unsafe { mm::mprotect(self.0.start.as_ptr().cast(), self.0.bytes, protection) }?;
        }
        Ok(())
    }
}

/// Whether `bytes` are there and stay.
fn is_fixed(fd: BorrowedFd<'_>, bytes: usize) -> io::Result<bool> {
    let stat = fs::fstat(fd)?;
    if stat.st_mode & libc::S_IFMT == 0 {
        // No file at all: mapping more than there is fails, and what is mapped stays.
        return Ok(true);
    }
    // What can't be sealed gives an error.
    Ok(fs::fcntl_get_seals(fd).is_ok_and(|seals| seals.contains(SealFlags::SHRINK))
        && u64::try_from(stat.st_size).is_ok_and(|size| size >= bytes as u64))
}

/// The four bytes at `offset`.
#[inline]
fn half(pages: &Pages, offset: usize) -> &AtomicU32 {
    // SAFETY: in the mapping and aligned, says `at`; pages hold plain numbers, which nobody accesses but as atomics.
    unsafe { &*pages.at(offset, size_of::<u32>()).cast() }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn what_one_writes_the_other_reads() {
        let ours = Shared::new(c"test", 4096).unwrap();
        let theirs = Mapping::of(ours.as_fd(), 4096).unwrap();
        ours.word(8).store(7, Ordering::Relaxed);
        ours.half(4092).store(9, Ordering::Relaxed);
        assert_eq!((theirs.load(8), theirs.load_u32(4092)), (7, 9));
        assert!(!theirs.wait(4092, 9, Duration::from_millis(1)));
        assert!(theirs.wait(4092, 8, Duration::from_secs(3600)));
    }

    #[test]
    fn a_sleeper_is_woken_through_memory_that_it_can_only_read() {
        let ours = Shared::new(c"test", 64).unwrap();
        let theirs = Mapping::of(ours.as_fd(), 64).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| while theirs.load_u32(0) == 0 && theirs.wait(0, 0, Duration::from_secs(3600)) {});
            ours.half(0).store(1, Ordering::SeqCst);
            futex::wake_all(ours.half(0), futex::Scope::Machine);
        });
    }

    #[test]
    fn nobody_else_writes_or_truncates() {
        let ours = Shared::new(c"test", 4096).unwrap();
        let mut file = std::fs::File::from(ours.as_fd().try_clone_to_owned().unwrap());
        assert!(file.write(b"x").is_err());
        assert!(file.set_len(0).is_err() && file.set_len(8192).is_err());
        assert!(Pages::of(ours.as_fd(), 4096, ProtFlags::READ | ProtFlags::WRITE).is_err());
    }

    #[test]
    fn what_may_shrink_or_is_short_is_refused() {
        let ours = Shared::new(c"test", 4096).unwrap();
        assert!(Mapping::of(ours.as_fd(), 4097).is_err());
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[0; 4096]).unwrap();
        let error = Mapping::of(file.as_fd(), 4096).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert!(Mapping::of(std::io::pipe().unwrap().0.as_fd(), 1).is_err());
    }

    #[test]
    fn a_page_is_shot_down_and_comes_back() {
        let mut page = Shootdown::new().unwrap();
        (0..3).for_each(|_| page.shoot().unwrap());
        assert_eq!(page.0.word(0).load(Ordering::Relaxed), 3);
    }

    #[test]
    fn outside_of_it_is_a_panic() {
        let ours = Shared::new(c"test", 64).unwrap();
        for offset in [57, 64, 4, usize::MAX - 7] {
            let read =
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| ours.word(offset).load(Ordering::Relaxed)));
            assert!(read.is_err(), "{offset}");
        }
    }
}
