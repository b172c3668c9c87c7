//! What the kernel has in memory of a file. Linux only.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use rustix::fs::{Advice, fadvise};

/// Asks the kernel to forget what it has of a file. What has not been written to the disk stays, and file systems that
/// have no disk keep everything: [`resident_share`] says what became of it.
///
/// # Errors
/// As the kernel says.
pub fn forget(file: &File) -> io::Result<()> {
    Ok(fadvise(file, 0, None, Advice::DontNeed)?)
}

/// The share of a file's pages that the kernel has in memory; 0 of an empty file. Nothing is read to find out. The
/// kernel tells that of files that we own or may write to, and says that it has all of any other.
///
/// # Errors
/// As the kernel says.
pub fn resident_share(file: &File) -> io::Result<f64> {
    let bytes = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
    if bytes == 0 {
        return Ok(0.0);
    }
    // SAFETY: it asks for a number.
    let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let mut pages = vec![0_u8; bytes.div_ceil(usize::try_from(page_bytes).map_err(io::Error::other)?)];
    let check = |answer: libc::c_int| if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
    // SAFETY: the mapping is new, is never read or written through, so that a file which shrinks does no harm, and is
    // gone when this returns; the list has a byte for each of its pages.
    unsafe {
        let (read, shared) = (libc::PROT_READ, libc::MAP_SHARED);
        let mapped = libc::mmap(std::ptr::null_mut(), bytes, read, shared, file.as_raw_fd(), 0);
        if mapped == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let told = check(libc::mincore(mapped, bytes, pages.as_mut_ptr()));
        check(libc::munmap(mapped, bytes))?;
        told?;
    }
    // The other bits may mean something one day.
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
