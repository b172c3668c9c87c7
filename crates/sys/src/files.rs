//! Files that nobody else can redirect: written under a name of their own until they are whole, and read only where they
//! are regular files.
//!
//! | who named the file | a symbolic link of that name | a device or a pipe |
//! |---|---|---|
//! | the user ([`Draft::create`]) | is followed | is written to directly |
//! | a store, a run folder, this program ([`Draft::create_in`], [`open_regular`]) | is replaced, or refused | is refused |

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{self as kernel, AtFlags, FileType, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;

/// The ending of names of files that are not whole yet.
pub const UNFINISHED: &str = ".part";

/// A file that gets its name when it is whole. Dropped before that, it is removed.
///
/// Until then it has a name of its own in the same folder, which nobody can guess, and which must not exist before.
/// It has the mode of the file that it is going to replace, and its owner where the system allows that.
///
/// ```
/// use std::io::Write;
///
/// use ascertain_sys::files::{Draft, Lasting};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("report.html");
/// let draft = Draft::create(&path)?;
/// draft.file().write_all(b"<p>")?;
/// assert!(!path.exists());
/// draft.publish(Lasting::ThroughCrash)?;
/// assert_eq!(std::fs::read(&path)?, b"<p>");
/// # std::io::Result::Ok(())
/// ```
#[derive(Debug)]
pub struct Draft {
    file: File,
    /// The folder, and the two names there; none of what is written to directly.
    place: Option<Place>,
}

#[derive(Debug)]
struct Place {
    folder: OwnedFd,
    temporary: OsString,
    name: OsString,
    is_kept: bool,
}

/// Whether a published file must survive a crash of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasting {
    /// A crash of the machine soon after may lose it.
    WhileRunning,
    /// It is on the disk when [`Draft::publish`] returns.
    ThroughCrash,
}

impl Draft {
    /// Begins a file at a path that the user named. A symbolic link is followed, also to a file that does not exist
    /// yet. A device, a pipe and what standard output is are opened as they are: what is written there can't be taken
    /// back.
    ///
    /// # Errors
    /// If the path is a folder's, or the file may not be written, or its folder is missing.
    pub fn create(path: &Path) -> io::Result<Draft> {
        match target(path)? {
            Target::Direct(file) => Ok(Draft { file, place: None }),
            Target::File { path, there } => {
                let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
                Draft::begin(open_folder(parent(&path))?, name, there)
            }
        }
    }

    /// Begins a file in an open folder, under a name that a store, another program or this one gave it. A symbolic link
    /// of that name is replaced by the file.
    ///
    /// # Errors
    /// If something of that name is neither a file nor a link, or the folder can't be written to.
    pub fn create_in(folder: impl AsFd, name: &OsStr) -> io::Result<Draft> {
        let folder = folder.as_fd().try_clone_to_owned()?;
        let there = regular_there(folder.as_fd(), name)?;
        Draft::begin(folder, name, there)
    }

    fn begin(folder: OwnedFd, name: &OsStr, there: Option<Access>) -> io::Result<Draft> {
        let mut tries = 0;
        let (temporary, file) = loop {
            let temporary = temporary_name(name);
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            match kernel::openat(&folder, &temporary, flags, Mode::from_raw_mode(0o666)) {
                Err(Errno::EXIST) if tries < 100 => tries += 1,
                opened => break (temporary, File::from(opened?)),
            }
        };
        let place = Place { folder, temporary, name: name.to_os_string(), is_kept: false };
        let draft = Draft { file, place: Some(place) };
        if let Some(there) = there {
            there.give_to(&draft.file)?;
        }
        Ok(draft)
    }

    /// Takes up a file again that was [kept](Self::keep) under its temporary name, if it is still the same file, this
    /// user's own, and has no other name.
    ///
    /// # Errors
    /// If it is not, or can't be opened.
    pub fn reopen_in(folder: impl AsFd, name: &OsStr, temporary: &OsStr, identity: Identity) -> io::Result<Draft> {
        let folder = folder.as_fd().try_clone_to_owned()?;
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(kernel::openat(&folder, temporary, flags, Mode::empty())?);
        let there = file.metadata()?;
        let is_ours = there.is_file() && there.nlink() == 1 && there.uid() == rustix::process::geteuid().as_raw();
        if !is_ours || Identity::of(&there) != identity {
            return Err(io::Error::other("it is not the file that was begun"));
        }
        let place = Place { folder, temporary: temporary.into(), name: name.into(), is_kept: false };
        Ok(Draft { file, place: Some(place) })
    }

    /// The file, open for reading and writing; a device or a pipe is open for writing alone.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The temporary name, and what identifies the file, for whoever takes it up again.
    ///
    /// # Errors
    /// If the file can't be looked at.
    pub fn identity(&self) -> io::Result<(OsString, Identity)> {
        let temporary = self.place.as_ref().map(|place| place.temporary.clone()).unwrap_or_default();
        Ok((temporary, Identity::of(&self.file.metadata()?)))
    }

    /// Leaves the file under its temporary name when this is dropped.
    pub fn keep(&mut self, is_kept: bool) {
        if let Some(place) = &mut self.place {
            place.is_kept = is_kept;
        }
    }

    /// Gives the file its name, in place of whatever file had it. Returns the file, still open.
    ///
    /// # Errors
    /// If it can't be brought to disk or renamed; then it is removed, unless it is to be [kept](Self::keep).
    pub fn publish(self, lasting: Lasting) -> io::Result<File> {
        self.finish(lasting, |place| kernel::renameat(&place.folder, &place.temporary, &place.folder, &place.name))
    }

    /// Gives the file its name, unless something has that name already.
    ///
    /// # Errors
    /// As [`publish`](Self::publish), and if something has that name.
    pub fn publish_new(self, lasting: Lasting) -> io::Result<File> {
        self.finish(lasting, |place| {
            // A second name is refused where the first is taken; a rename is not.
            kernel::linkat(&place.folder, &place.temporary, &place.folder, &place.name, AtFlags::empty())?;
            kernel::unlinkat(&place.folder, &place.temporary, AtFlags::empty())
        })
    }

    fn finish(mut self, lasting: Lasting, name: impl FnOnce(&Place) -> Result<(), Errno>) -> io::Result<File> {
        let file = self.file.try_clone()?;
        let Some(place) = &mut self.place else { return Ok(file) };
        if lasting == Lasting::ThroughCrash {
            file.sync_all()?;
        }
        name(place)?;
        place.is_kept = true;
        if lasting == Lasting::ThroughCrash {
            sync_folder(place.folder.as_fd())?;
        }
        Ok(file)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(place) = self.place.as_ref().filter(|place| !place.is_kept) {
            // A file that is left behind is hidden and harmless; there is nobody to tell.
            let _ = kernel::unlinkat(&place.folder, &place.temporary, AtFlags::empty());
        }
    }
}

/// Tells one file from another on this machine, whatever their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The file system.
    pub device: u64,
    /// The file's number there.
    pub inode: u64,
}

impl Identity {
    /// The identity of the file with these metadata.
    #[must_use]
    pub fn of(there: &Metadata) -> Identity {
        Identity { device: there.dev(), inode: there.ino() }
    }
}

/// What a path leads to that the user named for writing.
#[derive(Debug)]
pub enum Target {
    /// A regular file, or none yet.
    File {
        /// Where it is, with no symbolic link in its last part.
        path: PathBuf,
        /// Who may do what with the file that is there.
        there: Option<Access>,
    },
    /// A device, a pipe, or what standard output is: open for writing.
    Direct(File),
}

/// Finds out what a path leads to that the user named for writing. Symbolic links are followed.
///
/// # Errors
/// If it is a folder, may not be written, or has too many links.
pub fn target(path: &Path) -> io::Result<Target> {
    let there = match fs::metadata(path) {
        Ok(there) => there,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Target::File { path: end_of_links(path)?, there: None });
        }
        Err(error) => return Err(error),
    };
    if there.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    // Standard output may be a file: opened a second time, it would be written from its start again.
    let stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    if stdout.metadata().is_ok_and(|stdout| Identity::of(&stdout) == Identity::of(&there)) {
        return Ok(Target::Direct(stdout));
    }
    let file = OpenOptions::new().append(true).open(path)?;
    if !there.is_file() {
        return Ok(Target::Direct(file));
    }
    Ok(Target::File { path: fs::canonicalize(path)?, there: Some(Access::of(&there)) })
}

/// The path that a chain of symbolic links ends with, whether or not anything is there.
///
/// # Errors
/// If there are too many links.
pub fn end_of_links(path: &Path) -> io::Result<PathBuf> {
    const MOST_LINKS: u32 = 40;
    let mut path = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&path) {
            Ok(next) => path = parent(&path).join(next),
            Err(_) => return Ok(path),
        }
    }
    Err(Errno::LOOP.into())
}

/// The folder that a file is in: `.` of a name alone.
fn parent(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Who may do what with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// The bits of the mode that `chmod` sets.
    pub mode: u32,
}

impl Access {
    /// The access to the file with these metadata.
    #[must_use]
    pub fn of(there: &Metadata) -> Access {
        Access { uid: there.uid(), gid: there.gid(), mode: there.mode() & 0o7777 }
    }

    /// Gives a new file this mode, and this owner and group where the system allows that.
    ///
    /// # Errors
    /// If the mode can't be set.
    pub fn give_to(self, file: &File) -> io::Result<()> {
        let now = Access::of(&file.metadata()?);
        let (uid, gid) = (Some(Uid::from_raw(self.uid)), Some(Gid::from_raw(self.gid)));
        let is_given = (now.uid, now.gid) == (self.uid, self.gid)
            || kernel::fchown(file, uid, gid).is_ok()
            || now.uid == self.uid && kernel::fchown(file, None, gid).is_ok();
        // Programs must not run with the rights of this user in place of the former owner's.
        let mode = if is_given { self.mode } else { self.mode & 0o1777 };
        Ok(kernel::fchmod(file, Mode::from_raw_mode(mode as _))?)
    }
}

/// Opens a folder, to make and find files there.
///
/// # Errors
/// If it is missing, or no folder.
pub fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    Ok(kernel::open(path, folder_flags(), Mode::empty())?)
}

#[cfg(target_os = "linux")]
fn folder_flags() -> OFlags {
    // The folder need not be readable.
    OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC
}

#[cfg(not(target_os = "linux"))]
fn folder_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC
}

/// Opens a folder below another one, and makes it if it is missing. No symbolic link on the way is followed, so that
/// names from elsewhere can't lead out of the folder.
///
/// # Errors
/// If a part of the path is a link, a file, or `..`.
pub fn make_folder_beneath(folder: impl AsFd, path: &Path) -> io::Result<OwnedFd> {
    let mut folder = folder.as_fd().try_clone_to_owned()?;
    for part in path.components() {
        let Component::Normal(part) = part else { return Err(io::ErrorKind::InvalidInput.into()) };
        let flags = folder_flags() | OFlags::NOFOLLOW;
        folder = match kernel::openat(&folder, part, flags, Mode::empty()) {
            Err(Errno::NOENT) => {
                match kernel::mkdirat(&folder, part, Mode::from_raw_mode(0o777)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                kernel::openat(&folder, part, flags, Mode::empty())?
            }
            opened => opened?,
        };
    }
    Ok(folder)
}

/// The access to a regular file of that name; none if there is nothing, or a link.
fn regular_there(folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<Option<Access>> {
    let there = match kernel::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(there) => there,
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mode = Mode::from_raw_mode(there.st_mode).bits() as u32 & 0o7777;
    match FileType::from_raw_mode(there.st_mode) {
        FileType::Symlink => Ok(None),
        FileType::RegularFile => Ok(Some(Access { uid: there.st_uid, gid: there.st_gid, mode })),
        FileType::Directory => Err(io::ErrorKind::IsADirectory.into()),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a device, a pipe or a socket")),
    }
}

fn sync_folder(folder: BorrowedFd<'_>) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match kernel::openat(folder, ".", flags, Mode::empty()) {
        Ok(folder) => File::from(folder).sync_all(),
        // It can be written to and not read.
        Err(Errno::ACCESS) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A hidden name beside another one, with as much of it as fits: `.NAME.0123456789abcdef-42.part`. Nobody can guess it,
/// and it says which process made the file.
fn temporary_name(name: &OsStr) -> OsString {
    /// The longest name of nearly all file systems.
    const NAME_BYTES: usize = 255;
    // Its keys are random.
    let random = RandomState::new().build_hasher().finish();
    let ending = format!(".{random:016x}-{}{UNFINISHED}", std::process::id());
    let mut end = name.len().min(NAME_BYTES - ending.len() - 1);
    while name.to_str().is_some_and(|name| !name.is_char_boundary(end)) {
        end -= 1;
    }
    OsString::from_vec([b".", &name.as_bytes()[..end], ending.as_bytes()].concat())
}

/// Opens a file for reading whose name somebody else may have given: only a regular file, and not through a symbolic
/// link of that name, so that neither a pipe nor a device can block or redirect.
///
/// # Errors
/// If it is missing, or not such a file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path);
    let file = opened.map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::LOOP | Errno::MLINK) => io::Error::other("it is a symbolic link, and is not followed here"),
        _ => error,
    })?;
    let there = file.metadata()?;
    if there.is_file() {
        return Ok(file);
    }
    let kind = if there.is_dir() { io::ErrorKind::IsADirectory } else { io::ErrorKind::InvalidInput };
    Err(io::Error::new(kind, "it is not a regular file"))
}

/// Reads a regular file of at most so many bytes, as [`open_regular`] opens it.
///
/// # Errors
/// If it can't be opened so, or is larger.
pub fn read_regular(path: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
    let file = open_regular(path)?;
    let mut bytes = Vec::with_capacity(file.metadata()?.len().min(most_bytes) as usize);
    file.take(most_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most_bytes {
        let said = format!("it has more than the {most_bytes} bytes that such a file may have");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, said));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use rustix::fs::{CWD, mknodat};

    use super::*;

    fn write(path: &Path, text: &str) -> io::Result<()> {
        let draft = Draft::create(path)?;
        draft.file().write_all(text.as_bytes())?;
        draft.publish(Lasting::ThroughCrash).map(drop)
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    fn pipe(path: &Path) {
        mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    }

    #[test]
    fn a_file_has_its_name_once_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        write(&path, "old").unwrap();
        let draft = Draft::create(&path).unwrap();
        draft.file().write_all(b"half").unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap(), names(folder.path()).len()), ("old".into(), 2));
        drop(draft);
        assert_eq!(names(folder.path()), ["a"]);
        write(&path, "new").unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap(), names(folder.path()).len()), ("new".into(), 1));
        let draft = Draft::create(&path).unwrap();
        let error = draft.publish_new(Lasting::WhileRunning).unwrap_err();
        assert_eq!((error.kind(), names(folder.path()).len()), (io::ErrorKind::AlreadyExists, 1));
    }

    #[test]
    fn a_link_that_the_user_named_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("sub")).unwrap();
        symlink("sub/file", path("link")).unwrap();
        symlink("link", path("chain")).unwrap();
        symlink("circle", path("circle")).unwrap();
        for (through, text) in [("chain", "made through a broken link"), ("link", "replaced through a link")] {
            write(&path(through), text).unwrap();
            assert_eq!(fs::read_to_string(path("sub/file")).unwrap(), text);
            assert!(path("link").is_symlink() && path("chain").is_symlink());
        }
        assert!(write(&path("circle"), "").is_err() && write(&path("sub"), "").is_err());
    }

    /// Somebody who may write into the folder can make links of names that they know.
    #[test]
    fn a_link_in_the_place_of_a_name_from_elsewhere_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("precious"), "mine").unwrap();
        fs::create_dir_all(path("in/sub")).unwrap();
        for link in ["in/out", "in/sub/file"] {
            symlink(path("precious"), path(link)).unwrap();
        }
        symlink(folder.path(), path("in/up")).unwrap();
        let within = open_folder(&path("in")).unwrap();
        for name in ["out", "sub/file", "new/deep/file"] {
            let below = make_folder_beneath(&within, Path::new(name).parent().unwrap()).unwrap();
            let draft = Draft::create_in(below, Path::new(name).file_name().unwrap()).unwrap();
            draft.file().write_all(b"theirs").unwrap();
            draft.publish(Lasting::WhileRunning).unwrap();
            assert_eq!(fs::read_to_string(path("in").join(name)).unwrap(), "theirs");
        }
        assert_eq!(fs::read_to_string(path("precious")).unwrap(), "mine");
        for leads_out in ["up", "../in", "/tmp", "sub/../sub"] {
            assert!(make_folder_beneath(&within, Path::new(leads_out)).is_err(), "{leads_out}");
        }
        pipe(&path("in/pipe"));
        assert!(Draft::create_in(&within, OsStr::new("pipe")).is_err(), "nobody would read it");
        assert!(open_regular(&path("in/pipe")).is_err() && open_regular(&path("in/up")).is_err());
        assert!(open_regular(&path("in")).is_err());
        assert!(read_regular(&path("precious"), 3).is_err() && read_regular(&path("precious"), 4).is_ok());
    }

    #[test]
    fn what_is_replaced_keeps_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        fs::write(&path, "old").unwrap();
        for bits in [0o600, 0o640, 0o755] {
            fs::set_permissions(&path, fs::Permissions::from_mode(bits)).unwrap();
            let draft = Draft::create(&path).unwrap();
            let (temporary, _) = draft.identity().unwrap();
            assert_eq!(mode(&folder.path().join(temporary)), bits, "from the start");
            draft.publish(Lasting::WhileRunning).unwrap();
            assert_eq!(mode(&path), bits);
        }
    }

    #[test]
    fn a_pipe_is_written_to_and_stays_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        pipe(&path);
        // For reading and writing, which waits for nobody.
        let mut open = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let draft = Draft::create(&path).unwrap();
        assert_eq!(names(folder.path()), ["pipe"], "it has no temporary name");
        drop(draft);
        write(&path, "text").unwrap();
        let mut text = [0; 4];
        open.read_exact(&mut text).unwrap();
        assert!(&text == b"text" && names(folder.path()) == ["pipe"]);
    }

    #[test]
    fn what_was_kept_is_taken_up_again_unless_it_is_another_file() {
        let folder = tempfile::tempdir().unwrap();
        let (within, name) = (open_folder(folder.path()).unwrap(), OsStr::new("a"));
        let mut draft = Draft::create_in(&within, name).unwrap();
        draft.keep(true);
        let (temporary, identity) = draft.identity().unwrap();
        drop(draft);
        let reopen = || Draft::reopen_in(&within, name, &temporary, identity);
        reopen().unwrap().keep(true);
        let mut draft = reopen().unwrap();
        draft.keep(true);
        drop(draft);
        let (there, other) = (folder.path().join(&temporary), folder.path().join("other"));
        fs::hard_link(&there, &other).unwrap();
        assert!(reopen().is_err(), "somebody else has it open by another name");
        fs::rename(&other, folder.path().join("third")).unwrap();
        fs::remove_file(&there).unwrap();
        symlink("third", &there).unwrap();
        assert!(reopen().is_err());
        fs::remove_file(&there).unwrap();
        fs::write(&there, "theirs").unwrap();
        assert!(reopen().is_err());
    }

    #[test]
    fn names_are_hidden_unguessable_and_not_too_long() {
        let long = "é".repeat(127);
        let (one, other) = (temporary_name(OsStr::new(&long)), temporary_name(OsStr::new(&long)));
        assert!(one != other && one.len() <= 255 && one.to_str().is_some_and(|name| name.starts_with(".éé")));
        let bytes = temporary_name(OsStr::from_bytes(b"\xff"));
        assert!(bytes.as_bytes().starts_with(b".\xff."));
    }
}
