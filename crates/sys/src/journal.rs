//! A few words in a file, written without a call of the kernel's. Linux only.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use rustix::mm::{self, MapFlags, ProtFlags};

/// The beginning of a file, to which a few words are written without a call of the kernel's. They are in the file also
/// after this process was killed; not after a crash of the machine, unless the kernel had written them by then.
#[derive(Debug)]
pub struct Journal(Pages);

impl Journal {
    /// The first `bytes` of the file, which it must have. Whoever makes the file shorter ends this process (SIGBUS)
    /// with its next access: a file of one's own.
    ///
    /// # Errors
    /// As the kernel says: some file systems have no shared mappings.
    pub fn of(file: &std::fs::File, bytes: usize) -> io::Result<Self> {
        if file.metadata()?.len() < bytes as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Pages::of(file.as_fd(), bytes, ProtFlags::READ | ProtFlags::WRITE).map(Self)
    }

    /// The eight bytes at `offset`.
    ///
    /// # Panics
    /// As [`Mapping::load`](crate::mapping::Mapping::load).
    #[inline]
    #[must_use]
    pub fn word(&self, offset: usize) -> &AtomicU64 {
        self.0.word(offset)
    }
}

/// Pages that are mapped, and unmapped when dropped.
#[derive(Debug)]
pub(crate) struct Pages {
    pub start: NonNull<u8>,
    pub bytes: usize,
}

// SAFETY: the memory is used through atomics only, and stays mapped until the drop.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    pub fn of(fd: BorrowedFd<'_>, bytes: usize, protection: ProtFlags) -> io::Result<Self> {
        // SAFETY: the kernel chooses where, so that nothing of ours is replaced.
        let start = unsafe { mm::mmap(std::ptr::null_mut(), bytes, protection, MapFlags::SHARED, fd, 0) }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, bytes })
    }

    #[inline]
    pub fn word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: in the mapping and aligned, says `at`; pages hold plain numbers, which nobody accesses but as
        // atomics.
        unsafe { &*self.at(offset, size_of::<u64>()).cast() }
    }

    /// The address of `bytes` that are in the mapping and aligned to their own size.
    #[inline]
    pub fn at(&self, offset: usize, bytes: usize) -> *const u8 {
        let is_inside = offset.is_multiple_of(bytes) && self.bytes >= bytes && offset <= self.bytes - bytes;
        assert!(is_inside, "{bytes} bytes at {offset} of {}", self.bytes);
        self.start.as_ptr().wrapping_add(offset)
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: mapped by `of`, and references to it can't outlive `self`.
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
        assert!(Journal::of(&file, 16).is_err(), "it is empty");
        file.write_all(&[0; 16]).unwrap();
        let journal = Journal::of(&file, 16).unwrap();
        journal.word(8).store(0x0102, Ordering::Relaxed);
        let mut bytes = [0; 16];
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut bytes, 0).unwrap();
        assert_eq!(bytes[8..], 0x0102_u64.to_ne_bytes());
    }
}
