//! Reading one folder: its watch first, then its entries, so that no change between the two is lost.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, WatchFlags};
use rustix::fs::{self, AtFlags, FileType, Mode, OFlags};

/// Events for which folders are watched. Only the root also needs the events about the folder itself.
pub const FOLDER_EVENTS: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO);
/// Events of a file that has its own watch: writes through any of its names, and a change of the number of names.
pub const FILE_EVENTS: WatchFlags = WatchFlags::MODIFY.union(WatchFlags::ATTRIB).union(WatchFlags::CLOSE_WRITE);

/// Longest path that is passed to the kernel at once. Linux allows 4,095 bytes.
const PATH_MAX: usize = 4000;

/// Opens a folder below another one, without following a link at its end. The path may be longer than the kernel
/// allows.
pub fn open_folder(root: BorrowedFd<'_>, path: &[u8], extra: OFlags) -> io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | extra;
    if path.is_empty() {
        return Ok(fs::openat(root, c".", flags, Mode::empty())?);
    }
    if path.len() <= PATH_MAX {
        return Ok(fs::openat(root, path, flags, Mode::empty())?);
    }
    let cut = path[..PATH_MAX].iter().rposition(|byte| *byte == b'/').ok_or(io::ErrorKind::InvalidFilename)?;
    let part = fs::openat(root, &path[..cut], OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    open_folder(part.as_fd(), &path[cut + 1..], extra)
}

/// Adds a watch of an open file or folder. Returns its number, which is the same for each name of the file.
pub fn add_watch(inotify: BorrowedFd<'_>, there: BorrowedFd<'_>, events: WatchFlags) -> io::Result<i32> {
    Ok(inotify::add_watch(inotify, format!("/proc/self/fd/{}", there.as_raw_fd()), events)?)
}

/// Adds a watch of an open folder, and makes it the current folder: that is much quicker than a path below /proc.
pub fn add_folder_watch(inotify: BorrowedFd<'_>, folder: BorrowedFd<'_>, events: WatchFlags) -> io::Result<i32> {
    // A folder can be readable and yet not be entered.
    match rustix::process::fchdir(folder) {
        Ok(()) => Ok(inotify::add_watch(inotify, c".", events)?),
        Err(_) => add_watch(inotify, folder, events),
    }
}

/// Returns whether entries of this kind can have several names that git tracks.
fn may_be_linked(kind: FileType) -> bool {
    matches!(kind, FileType::RegularFile | FileType::Symlink)
}

/// Opens a file or a symbolic link below the root so that it can be watched; returns it with its number of names.
/// Returns `None` for anything else.
pub fn open_regular(root: BorrowedFd<'_>, path: &Path) -> io::Result<Option<(OwnedFd, u64)>> {
    let file = fs::openat(root, path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    let there = fs::fstat(&file)?;
    Ok(may_be_linked(FileType::from_raw_mode(there.st_mode)).then_some((file, there.st_nlink as u64)))
}

/// Returns the number of names of an entry if it is a file or a symbolic link.
pub fn names_of(root: BorrowedFd<'_>, path: &Path) -> Option<u64> {
    let there = fs::statat(root, path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    may_be_linked(FileType::from_raw_mode(there.st_mode)).then_some(there.st_nlink as u64)
}

/// Looks up files one after the other. It is quick if files of the same folder follow each other.
pub struct Names<'a> {
    root: BorrowedFd<'a>,
    /// The path of the last folder, and the folder if it could be opened.
    last: (Vec<u8>, Option<OwnedFd>),
}

impl<'a> Names<'a> {
    pub fn new(root: BorrowedFd<'a>) -> Names<'a> {
        Names { root, last: (Vec::new(), None) }
    }

    /// Returns the number of names of an entry if it is a file or a symbolic link.
    pub fn of(&mut self, path: &[u8]) -> Option<u64> {
        let Some(cut) = path.iter().rposition(|byte| *byte == b'/') else {
            return names_of(self.root, Path::new(OsStr::from_bytes(path)));
        };
        if self.last.0 != path[..cut] {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            self.last = (path[..cut].to_vec(), fs::openat(self.root, &path[..cut], flags, Mode::empty()).ok());
        }
        names_of(self.last.1.as_ref()?.as_fd(), Path::new(OsStr::from_bytes(&path[cut + 1..])))
    }
}

/// An entry of a folder.
pub struct Entry<'a> {
    /// Name of the entry.
    pub name: &'a [u8],
    /// `true` for a folder, but not for a link to one.
    pub is_folder: bool,
}

/// Calls `action` for each entry of an open folder.
pub fn entries(folder: OwnedFd, mut action: impl FnMut(Entry<'_>)) -> io::Result<()> {
    let mut folder = fs::Dir::new(folder)?;
    while let Some(entry) = folder.read() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => fs::statat(folder.fd()?, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)
                .map_or(FileType::Unknown, |there| FileType::from_raw_mode(there.st_mode)),
            known => known,
        };
        action(Entry { name, is_folder: kind == FileType::Directory });
    }
    Ok(())
}

/// Returns device and inode of an open file.
pub fn identity(file: impl AsFd) -> io::Result<(u64, u64)> {
    let there = fs::fstat(file)?;
    Ok((there.st_dev as u64, there.st_ino as u64))
}

/// Returns the current path of an open folder.
pub fn path_of(folder: &OwnedFd) -> io::Result<PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{}", folder.as_raw_fd()))
}

/// Returns a limit of the kernel from a file below /proc/sys.
pub fn limit(path: &str) -> Option<u64> {
    let mut text = String::new();
    io::Read::read_to_string(&mut File::open(Path::new("/proc/sys").join(path)).ok()?, &mut text).ok()?;
    text.trim().parse().ok()
}
