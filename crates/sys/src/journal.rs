//! Writes 64-bit words to a mapped file without a system call. Linux only.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use rustix::mm::{self, MapFlags, ProtFlags};

/// The first bytes of a file, mapped so that words can be written to them without a system call. If this process is
/// killed, the words stay in the file. If the machine crashes, a word survives only if the kernel had written it to the
/// disk.
#[derive(Debug)]
pub struct Journal(Pages);

impl Journal {
    /// Maps the first `bytes` of the file, which must have at least that many. No other program may shorten the file:
    /// if one does, the next access ends this process (SIGBUS).
    ///
    /// # Errors
    /// The kernel's error: some file systems do not support shared mappings.
    pub fn new(file: &std::fs::File, bytes: usize) -> io::Result<Self> {
        if file.metadata()?.len() < bytes as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Pages::map(file.as_fd(), bytes, ProtFlags::READ | ProtFlags::WRITE).map(Self)
    }

    /// Returns the eight bytes at `offset`.
    ///
    /// # Panics
    /// Panics in the same cases as [`Mapping::load`](crate::mapping::Mapping::load).
    #[inline]
    #[must_use]
    pub fn word(&self, offset: usize) -> &AtomicU64 {
        self.0.word(offset)
    }
}

/// Pages of memory that are mapped into this process, until this is dropped.
#[derive(Debug)]
pub(crate) struct Pages {
    pub start: NonNull<u8>,
    pub bytes: usize,
}

// SAFETY: the memory is accessed only through atomics, and stays mapped until this is dropped.
unsafe impl Send for Pages {}
// SAFETY: the memory is accessed only through atomics.
unsafe impl Sync for Pages {}

impl Pages {
    pub fn map(fd: BorrowedFd<'_>, bytes: usize, protection: ProtFlags) -> io::Result<Self> {
        // SAFETY: the kernel chooses the address, so no existing mapping is replaced.
        let start = unsafe { mm::mmap(std::ptr::null_mut(), bytes, protection, MapFlags::SHARED, fd, 0) }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, bytes })
    }

    #[inline]
    pub fn word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: `at` checks that the word is in the mapping and aligned; pages contain plain numbers, which are
        // accessed only as atomics.
        unsafe { &*self.at(offset, size_of::<u64>()).cast() }
    }

    /// Returns the address of `bytes` bytes at `offset`. They must be in the mapping, and aligned to their size.
    #[inline]
    pub fn at(&self, offset: usize, bytes: usize) -> *const u8 {
        let is_inside = offset.is_multiple_of(bytes) && self.bytes >= bytes && offset <= self.bytes - bytes;
        assert!(
            is_inside,
            "{bytes} bytes at offset {offset} are not aligned, or not in the mapping of {} bytes",
            self.bytes
        );
        self.start.as_ptr().wrapping_add(offset)
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: `map` mapped the pages, and references to them cannot outlive `self`.
        let _ = unsafe { mm::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn what_was_written_is_in_the_file() {
        let mut file = tempfile::tempfile().unwrap();
        assert!(Journal::new(&file, 16).is_err(), "it is empty");
        file.write_all(&[0; 16]).unwrap();
        let journal = Journal::new(&file, 16).unwrap();
        journal.word(8).store(0x0102, Ordering::Relaxed);
        let mut bytes = [0; 16];
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut bytes, 0).unwrap();
        assert_eq!(bytes[8..], 0x0102_u64.to_ne_bytes());
    }
}
