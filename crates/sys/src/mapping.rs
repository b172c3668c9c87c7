//! Memory that processes share, with an interface that is safe even if another process is not trusted. Linux only.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use rustix::fs::{self, MemfdFlags, SealFlags};
use rustix::mm::{self, MprotectFlags, ProtFlags};

use crate::futex;
use crate::journal::Pages;

/// Memory of another process, mapped for reading.
#[derive(Debug)]
pub struct Mapping(Pages);

/// Memory of this process that other processes may map for reading. Its size is fixed, and no other process can write
/// to it.
#[derive(Debug)]
pub struct SharedMemory {
    pages: Pages,
    fd: OwnedFd,
}

impl Mapping {
    /// Maps the first `bytes` of the object behind a descriptor.
    ///
    /// Accepts only an object that cannot shrink: after shrinking, the next access of a reader would end the reader's
    /// process (SIGBUS). Memory that is sealed like [`SharedMemory`] cannot shrink. Neither can kernel objects other
    /// than files, such as the map of a BPF program.
    ///
    /// # Errors
    /// `InvalidData` if the object has fewer bytes or may shrink; otherwise the kernel's error.
    pub fn new(fd: BorrowedFd<'_>, bytes: usize) -> io::Result<Self> {
        if !is_fixed(fd, bytes)? {
            let why = format!("the shared memory has fewer than {bytes} bytes, or may shrink");
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        Pages::map(fd, bytes, ProtFlags::READ).map(Self)
    }

    /// Reads the eight bytes at `offset`, which other processes may write at the same time. Add a fence if the order
    /// matters.
    ///
    /// # Panics
    /// If the bytes are not in the mapping, or `offset` is not a multiple of eight.
    #[inline]
    #[must_use]
    pub fn load(&self, offset: usize) -> u64 {
        // Relaxed is the only ordering that Rust allows for memory that may only be read.
        self.0.word(offset).load(Ordering::Relaxed)
    }

    /// Reads the four bytes at `offset`, like [`load`](Self::load).
    ///
    /// # Panics
    /// If the bytes are not in the mapping, or `offset` is not a multiple of four.
    #[inline]
    #[must_use]
    pub fn load_u32(&self, offset: usize) -> u32 {
        half(&self.0, offset).load(Ordering::Relaxed)
    }

    /// Sleeps while the four bytes at `offset` are `expected`, until a wake-up or for at most `timeout`: see
    /// [`futex::wait`].
    ///
    /// # Panics
    /// Panics in the same cases as [`load_u32`](Self::load_u32).
    pub fn wait(&self, offset: usize, expected: u32, timeout: Duration) -> bool {
        futex::wait(half(&self.0, offset), expected, Some(timeout), futex::Scope::Machine)
    }
}

impl SharedMemory {
    /// Allocates `bytes` bytes of zeroed memory. `name` is shown in `/proc/PID/maps` and has no other effect.
    ///
    /// # Errors
    /// `EINVAL` from kernels before 5.1; otherwise the kernel's error.
    pub fn new(name: &std::ffi::CStr, bytes: usize) -> io::Result<Self> {
        let fd = fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        fs::ftruncate(&fd, bytes as u64)?;
        let pages = Pages::map(fd.as_fd(), bytes, ProtFlags::READ | ProtFlags::WRITE)?;
        fs::fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::FUTURE_WRITE | SealFlags::SEAL)?;
        Ok(Self { pages, fd })
    }

    /// Returns the eight bytes at `offset`.
    ///
    /// # Panics
    /// Panics in the same cases as [`Mapping::load`].
    #[must_use]
    pub fn word(&self, offset: usize) -> &AtomicU64 {
        self.pages.word(offset)
    }

    /// Returns the four bytes at `offset`.
    ///
    /// # Panics
    /// Panics in the same cases as [`Mapping::load_u32`].
    #[must_use]
    pub fn half(&self, offset: usize) -> &AtomicU32 {
        half(&self.pages, offset)
    }
}

impl AsFd for SharedMemory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A page of memory for causing interrupts: its write permission is removed and restored. Because CPUs may cache the
/// page table entry, the kernel interrupts the CPUs that run threads of this process. Programs used this as a barrier
/// before membarrier(2) existed.
///
/// This is not a reliable barrier: no kernel promises to interrupt the CPUs, or to wait until they were interrupted.
/// Use it only for measurements.
#[derive(Debug)]
pub struct Shootdown(Pages);

impl Shootdown {
    /// Maps a page that is used only for [`shoot`](Self::shoot).
    ///
    /// # Errors
    /// The kernel's error.
    pub fn new() -> io::Result<Self> {
        // The smallest page size of all machines that this crate compiles for.
        let bytes = 4096;
        let memory = SharedMemory::new(c"shootdown", bytes)?;
        Ok(Self(memory.pages))
    }

    /// Writes to the page, then removes the write permission and restores it.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn shoot(&mut self) -> io::Result<()> {
        self.0.word(0).fetch_add(1, Ordering::Relaxed);
        for protection in [MprotectFlags::READ, MprotectFlags::READ | MprotectFlags::WRITE] {
            // SAFETY: the pages are ours, and only this function uses them; they are writable again at its end.
            unsafe { mm::mprotect(self.0.start.as_ptr().cast(), self.0.bytes, protection) }?;
        }
        Ok(())
    }
}

/// Returns whether the object behind the descriptor has at least `bytes` bytes and cannot shrink.
fn is_fixed(fd: BorrowedFd<'_>, bytes: usize) -> io::Result<bool> {
    let stat = fs::fstat(fd)?;
    if stat.st_mode & libc::S_IFMT == 0 {
        // This is not a file but a kernel object, such as the map of a BPF program, whose memory cannot shrink. Its
        // size is not known here, but mapping it fails if it has fewer than `bytes` bytes.
        return Ok(true);
    }
    // Reading the seals of an object that cannot be sealed returns an error, so such an object is refused.
    Ok(fs::fcntl_get_seals(fd).is_ok_and(|seals| seals.contains(SealFlags::SHRINK))
        && u64::try_from(stat.st_size).is_ok_and(|size| size >= bytes as u64))
}

/// Returns the four bytes at `offset` of the mapped pages.
#[inline]
fn half(pages: &Pages, offset: usize) -> &AtomicU32 {
    // SAFETY: `at` checks that the four bytes are in the mapping and aligned; pages contain plain numbers, which are
    // accessed only as atomics.
    unsafe { &*pages.at(offset, size_of::<u32>()).cast() }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn what_one_writes_the_other_reads() {
        let ours = SharedMemory::new(c"test", 4096).unwrap();
        let theirs = Mapping::new(ours.as_fd(), 4096).unwrap();
        ours.word(8).store(7, Ordering::Relaxed);
        ours.half(4092).store(9, Ordering::Relaxed);
        assert_eq!((theirs.load(8), theirs.load_u32(4092)), (7, 9));
        assert!(!theirs.wait(4092, 9, Duration::from_millis(1)));
        assert!(theirs.wait(4092, 8, Duration::from_secs(3600)));
    }

    #[test]
    fn a_sleeper_is_woken_through_memory_that_it_can_only_read() {
        let ours = SharedMemory::new(c"test", 64).unwrap();
        let theirs = Mapping::new(ours.as_fd(), 64).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| while theirs.load_u32(0) == 0 && theirs.wait(0, 0, Duration::from_secs(3600)) {});
            ours.half(0).store(1, Ordering::SeqCst);
            futex::wake_all(ours.half(0), futex::Scope::Machine);
        });
    }

    #[test]
    fn nobody_else_writes_or_truncates() {
        let ours = SharedMemory::new(c"test", 4096).unwrap();
        let mut file = std::fs::File::from(ours.as_fd().try_clone_to_owned().unwrap());
        assert!(file.write(b"x").is_err());
        assert!(file.set_len(0).is_err() && file.set_len(8192).is_err());
        assert!(Pages::map(ours.as_fd(), 4096, ProtFlags::READ | ProtFlags::WRITE).is_err());
    }

    #[test]
    fn what_may_shrink_or_is_short_is_refused() {
        let ours = SharedMemory::new(c"test", 4096).unwrap();
        assert!(Mapping::new(ours.as_fd(), 4097).is_err());
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[0; 4096]).unwrap();
        let error = Mapping::new(file.as_fd(), 4096).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert!(Mapping::new(std::io::pipe().unwrap().0.as_fd(), 1).is_err());
    }

    #[test]
    fn a_page_is_shot_down_and_comes_back() {
        let mut page = Shootdown::new().unwrap();
        (0..3).for_each(|_| page.shoot().unwrap());
        assert_eq!(page.0.word(0).load(Ordering::Relaxed), 3);
    }

    #[test]
    fn outside_of_it_is_a_panic() {
        let ours = SharedMemory::new(c"test", 64).unwrap();
        for offset in [57, 64, 4, usize::MAX - 7] {
            let read =
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| ours.word(offset).load(Ordering::Relaxed)));
            assert!(read.is_err(), "{offset}");
        }
    }
}
