//! The pages of a file that the kernel keeps in memory. Linux only.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use rustix::fs::{Advice, fadvise};
use rustix::mm::ProtFlags;

use crate::journal::Pages;
use crate::syscall::check;

/// Requests that the kernel drops the pages of a file from memory. Pages that have not been written to the disk stay,
/// and file systems without a disk keep everything. [`resident_share`] returns the share that stayed.
///
/// # Errors
/// The kernel's error.
pub fn forget(file: &File) -> io::Result<()> {
    Ok(fadvise(file, 0, None, Advice::DontNeed)?)
}

/// Returns the share of a file's pages that the kernel has in memory; 0 for an empty file. This does not read the file.
/// The kernel gives this information only for files that we own or may write to; for other files it reports that all
/// pages are in memory.
///
/// # Errors
/// The kernel's error.
pub fn resident_share(file: &File) -> io::Result<f64> {
    let bytes = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
    if bytes == 0 {
        return Ok(0.0);
    }
    // SAFETY: the call only returns a number.
    let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let mut pages = vec![0_u8; bytes.div_ceil(usize::try_from(page_bytes).map_err(io::Error::other)?)];
    // Nothing is read or written through the mapping, so it does no harm if the file shrinks.
    let mapped = Pages::map(file.as_fd(), bytes, ProtFlags::READ)?;
    // SAFETY: the list has one byte for each page of the mapping.
    check(unsafe { libc::mincore(mapped.start.as_ptr().cast(), bytes, pages.as_mut_ptr()) })?;
    // The other bits are reserved and may get a meaning.
    Ok(pages.iter().filter(|page| **page & 1 == 1).count() as f64 / pages.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::or_left_out;

    #[test]
    fn what_is_forgotten_is_not_in_memory() {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, vec![7; 100_001]).unwrap();
        let file = File::open(&path).unwrap();
        assert_eq!(resident_share(&file).unwrap(), 1.0);
        file.sync_all().unwrap();
        forget(&file).unwrap();
        let is_forgotten = match resident_share(&file).unwrap() {
            0.0 => Ok(()),
            share => Err(format!("this file system keeps {share} of a file that is to be forgotten")),
        };
        if or_left_out(is_forgotten).is_some() {
            std::fs::read(&path).unwrap();
            assert_eq!(resident_share(&file).unwrap(), 1.0);
        }
        let empty = File::create(folder.path().join("empty")).unwrap();
        assert_eq!(resident_share(&empty).unwrap(), 0.0);
    }
}
