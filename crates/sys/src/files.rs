//! Safe reading and writing of files in folders that other users may write to, so that a symbolic link of another user
//! cannot redirect a file. A file has a temporary name until it is complete. Only regular files are read.
//!
//! | origin of the name | handling of a symbolic link | handling of a device or a pipe |
//! |---|---|---|
//! | the user ([`Draft::create`]) | follows it | writes to it directly |
//! | a store, a run folder, Ascertain ([`Draft::create_in`], [`open_regular`]) | replaces or refuses it | refuses it |

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{self as kernel, AtFlags, FileType, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;

/// Suffix of the temporary names of incomplete files.
pub const UNFINISHED: &str = ".part";

/// A file that gets its final name only when [`publish`](Self::publish) is called. If the draft is dropped without
/// that, the file is removed.
///
/// Until the file is published, it has a unique temporary name in the same folder, which other users cannot guess. The
/// file has the mode of the file that it is going to replace. It also has that file's owner, if the system allows this.
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
    /// The folder, the temporary name and the final name of the file; `None` if the target is written to directly.
    place: Option<DraftLocation>,
}

/// The names of a draft. If it is dropped before the draft is published, the file is removed, unless it is kept.
#[derive(Debug)]
struct DraftLocation {
    folder: Arc<OwnedFd>,
    temporary: OsString,
    name: OsString,
    /// `false` if nothing had the final name when the draft was created.
    may_replace: bool,
    is_kept: bool,
}

/// The durability of a published file, if the machine crashes. A file is published when it gets its final name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasting {
    /// The file may be lost if the machine crashes soon after publishing.
    WhileRunning,
    /// The file is on the disk when [`Draft::publish`] returns.
    ThroughCrash,
}

impl Draft {
    /// Creates a file at a path that the user chose. Follows a symbolic link, even to a file that does not exist yet.
    /// Opens a device, a pipe and the target of standard output directly, without a temporary name: data that was
    /// written there cannot be removed again.
    ///
    /// # Errors
    /// If the path is a folder, if its folder is missing, or if the user lacks the permission to write the file.
    pub fn create(path: &Path) -> io::Result<Draft> {
        match write_target(path)? {
            WriteTarget::Direct(file) => Ok(Draft { file, place: None }),
            WriteTarget::File { path, there } => {
                let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
                Draft::create_named(open_folder(parent(&path))?.into(), name, (there.is_some(), there))
            }
        }
    }

    /// Creates a file in an open folder, under a name that the user did not choose. Such a name comes from a remote
    /// store, from another program or from this program. The file replaces a symbolic link of that name.
    ///
    /// # Errors
    /// If the name belongs to a folder, a device, a pipe or a socket, or the folder is not writable.
    pub fn create_in(folder: impl Into<Arc<OwnedFd>>, name: &OsStr) -> io::Result<Draft> {
        Draft::create_shared(folder.into(), name)
    }

    fn create_shared(folder: Arc<OwnedFd>, name: &OsStr) -> io::Result<Draft> {
        let there = regular_there(folder.as_fd(), name)?;
        Draft::create_named(folder, name, there)
    }

    /// Creates a file. `there` contains whether anything has the name, and the access rights that the file must get.
    fn create_named(
        folder: Arc<OwnedFd>,
        name: &OsStr,
        (may_replace, there): (bool, Option<Access>),
    ) -> io::Result<Draft> {
        let mut tries = 0;
        let (temporary, file) = loop {
            let temporary = temporary_name(name);
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            match kernel::openat(&folder, &temporary, flags, Mode::from_raw_mode(0o666)) {
                Err(Errno::EXIST) if tries < 100 => tries += 1,
                opened => break (temporary, File::from(opened?)),
            }
        };
        let place = DraftLocation { folder, temporary, name: name.to_os_string(), may_replace, is_kept: false };
        let draft = Draft { file, place: Some(place) };
        if let Some(there) = there {
            there.give_to(&draft.file)?;
        }
        Ok(draft)
    }

    /// Reopens a file that was [kept](Self::keep) under its temporary name. It must still be the same file, belong to
    /// this user, and have only this name.
    ///
    /// # Errors
    /// If one of these conditions is not met, or the file cannot be opened.
    pub fn reopen_in(folder: impl AsFd, name: &OsStr, temporary: &OsStr, identity: Identity) -> io::Result<Draft> {
        let folder = folder.as_fd().try_clone_to_owned()?;
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(kernel::openat(&folder, temporary, flags, Mode::empty())?);
        let there = file.metadata()?;
        let is_ours = there.is_file() && there.nlink() == 1 && there.uid() == rustix::process::geteuid().as_raw();
        if !is_ours || Identity::from_metadata(&there) != identity {
            return Err(io::Error::other("the temporary file was replaced, or has another owner or a second name"));
        }
        let (folder, temporary, name) = (Arc::new(folder), temporary.into(), name.into());
        let place = DraftLocation { folder, temporary, name, may_replace: true, is_kept: false };
        Ok(Draft { file, place: Some(place) })
    }

    /// Returns the file, open for reading and writing. A device or a pipe is open only for writing.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns the temporary name and the identity of the file, which [`reopen_in`](Self::reopen_in) needs.
    ///
    /// # Errors
    /// If the metadata of the file cannot be read.
    pub fn identity(&self) -> io::Result<(OsString, Identity)> {
        Ok((self.temporary_name().to_os_string(), Identity::from_metadata(&self.file.metadata()?)))
    }

    /// Returns the temporary name of the file. It is empty if the target is written to directly.
    #[must_use]
    pub fn temporary_name(&self) -> &OsStr {
        self.place.as_ref().map_or(OsStr::new(""), |place| &place.temporary)
    }

    /// Returns `false` if nothing had the final name of the file when the draft was created.
    #[must_use]
    pub fn may_replace(&self) -> bool {
        self.place.as_ref().is_some_and(|place| place.may_replace)
    }

    /// Sets whether the file stays, under its temporary name, if the draft is dropped before it is published.
    pub fn keep(&mut self, is_kept: bool) {
        if let Some(place) = &mut self.place {
            place.is_kept = is_kept;
        }
    }

    /// Gives the file its final name, and replaces any file that has this name. Returns the file, still open.
    ///
    /// # Errors
    /// If the file cannot be written to the disk or renamed. The file is then removed, or stays under its temporary
    /// name if it is to be [kept](Self::keep).
    pub fn publish(self, lasting: Lasting) -> io::Result<File> {
        self.finish(lasting, |place| kernel::renameat(&place.folder, &place.temporary, &place.folder, &place.name))
    }

    /// Gives the file its final name, unless something has that name already.
    ///
    /// # Errors
    /// Fails like [`publish`](Self::publish), and if the name exists already.
    pub fn publish_new(self, lasting: Lasting) -> io::Result<File> {
        self.finish(lasting, |place| {
            // Creating a second link fails if the name exists; renaming would replace the file.
            kernel::linkat(&place.folder, &place.temporary, &place.folder, &place.name, AtFlags::empty())?;
            kernel::unlinkat(&place.folder, &place.temporary, AtFlags::empty())
        })
    }

    fn finish(self, lasting: Lasting, name: impl FnOnce(&DraftLocation) -> Result<(), Errno>) -> io::Result<File> {
        let Draft { file, place } = self;
        let Some(mut place) = place else { return Ok(file) };
        if lasting == Lasting::ThroughCrash {
            file.sync_all()?;
        }
        name(&place)?;
        place.is_kept = true;
        if lasting == Lasting::ThroughCrash {
            sync_folder(place.folder.as_fd())?;
        }
        Ok(file)
    }
}

impl Drop for DraftLocation {
    fn drop(&mut self) {
        if !self.is_kept {
            // A file that is left behind is hidden and harmless, and an error here cannot be reported.
            let _ = kernel::unlinkat(&self.folder, &self.temporary, AtFlags::empty());
        }
    }
}

/// The identity of a file on this machine, independent of its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// ID of the file system (`st_dev`).
    pub device: u64,
    /// Inode number of the file, unique in its file system.
    pub inode: u64,
}

impl Identity {
    /// Returns the identity of the file with these metadata.
    #[must_use]
    pub fn from_metadata(there: &Metadata) -> Identity {
        Identity { device: there.dev(), inode: there.ino() }
    }
}

/// Returns whether `file` still has the name `path`. Another process may have removed or replaced the file after we
/// opened it and before we locked it. The lock is then useless, and the caller must open and lock the path again.
///
/// # Errors
/// If the metadata of the file or of the path cannot be read.
pub fn is_named(file: &File, path: &Path) -> io::Result<bool> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        there => Ok(Identity::from_metadata(&there?) == Identity::from_metadata(&file.metadata()?)),
    }
}

/// The target of a path that the user chose for writing.
#[derive(Debug)]
pub enum WriteTarget {
    /// A regular file, or a path at which a file can be created.
    File {
        /// The path of the file, with no symbolic link as its last component.
        path: PathBuf,
        /// The owner, the group and the mode of the file; `None` if there is no file yet.
        there: Option<Access>,
    },
    /// A device, a pipe, or the target of standard output. It is open for writing.
    Direct(File),
}

/// Finds the target of a path that the user chose for writing. Follows symbolic links.
///
/// # Errors
/// If the target is a folder or not writable, or the path has too many links.
pub fn write_target(path: &Path) -> io::Result<WriteTarget> {
    let there = match fs::metadata(path) {
        Ok(there) => there,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(WriteTarget::File { path: end_of_links(path)?, there: None });
        }
        Err(error) => return Err(error),
    };
    if there.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    // Standard output may be a file. If the file were opened a second time, it would be written again from its start.
    let stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    if stdout.metadata().is_ok_and(|stdout| Identity::from_metadata(&stdout) == Identity::from_metadata(&there)) {
        return Ok(WriteTarget::Direct(stdout));
    }
    let file = OpenOptions::new().append(true).open(path)?;
    if !there.is_file() {
        return Ok(WriteTarget::Direct(file));
    }
    Ok(WriteTarget::File { path: fs::canonicalize(path)?, there: Some(Access::from_metadata(&there)) })
}

/// Follows a chain of symbolic links, and returns the path to which the last link leads, even if there is no file at
/// that path.
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

/// Returns the folder of a file: `.` if the path is only a name.
#[must_use]
pub fn parent(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The owner, the group and the mode of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The user ID of the owner.
    pub uid: u32,
    /// The group ID of the file.
    pub gid: u32,
    /// The bits of the mode that `chmod` sets.
    pub mode: u32,
}

impl Access {
    /// Returns the owner, the group and the mode from these metadata.
    #[must_use]
    pub fn from_metadata(there: &Metadata) -> Access {
        Access { uid: there.uid(), gid: there.gid(), mode: there.mode() & 0o7777 }
    }

    /// Gives a new file this mode, and this owner and group if the system allows that.
    ///
    /// # Errors
    /// If the mode cannot be set.
    pub fn give_to(self, file: &File) -> io::Result<()> {
        let now = Access::from_metadata(&file.metadata()?);
        let (uid, gid) = (Some(Uid::from_raw(self.uid)), Some(Gid::from_raw(self.gid)));
        let is_given = (now.uid, now.gid) == (self.uid, self.gid)
            || kernel::fchown(file, uid, gid).is_ok()
            || now.uid == self.uid && kernel::fchown(file, None, gid).is_ok();
        // If the file cannot be given to the former owner, it loses the set-user-ID and set-group-ID bits. With these
        // bits, the file would run with the rights of this user instead.
        let mode = if is_given { self.mode } else { self.mode & 0o1777 };
        Ok(kernel::fchmod(file, Mode::from_raw_mode(mode as _))?)
    }
}

/// Opens a folder, to create and find files in it.
///
/// # Errors
/// If the path is missing, or is not a folder.
pub fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    Ok(kernel::open(path, folder_flags(), Mode::empty())?)
}

#[cfg(target_os = "linux")]
fn folder_flags() -> OFlags {
    // The flag `O_PATH` is enough, so the folder need not be readable.
    OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC
}

#[cfg(not(target_os = "linux"))]
fn folder_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC
}

/// Opens a folder below another one, and creates it if it is missing. Follows no symbolic link in `path`, so that a
/// name that another user or host chose cannot lead out of `folder`.
///
/// # Errors
/// If a component of the path is a link, a file, or `..`.
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

/// Returns whether the name exists, and the owner, the group and the mode of the regular file of that name. These are
/// `None` if the name is free or belongs to a symbolic link. Fails if the name belongs to anything else.
fn regular_there(folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<(bool, Option<Access>)> {
    let there = match kernel::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(there) => there,
        Err(Errno::NOENT) => return Ok((false, None)),
        Err(error) => return Err(error.into()),
    };
    let mode = Mode::from_raw_mode(there.st_mode).bits() as u32 & 0o7777;
    match FileType::from_raw_mode(there.st_mode) {
        FileType::Symlink => Ok((true, None)),
        FileType::RegularFile => Ok((true, Some(Access { uid: there.st_uid, gid: there.st_gid, mode }))),
        FileType::Directory => Err(io::ErrorKind::IsADirectory.into()),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "the name belongs to a device, a pipe or a socket")),
    }
}

fn sync_folder(folder: BorrowedFd<'_>) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match kernel::openat(folder, ".", flags, Mode::empty()) {
        Ok(folder) => File::from(folder).sync_all(),
        // A folder that is not readable cannot be opened, so it is not synchronised.
        Err(Errno::ACCESS) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Returns a hidden name for a temporary file, with as much of `name` as fits: `.NAME.0123456789abcdef-42.part`. The 16
/// hexadecimal digits cannot be guessed. The last number is the ID of the process that created the file.
fn temporary_name(name: &OsStr) -> OsString {
    /// Maximum length of a name, in bytes, that nearly all file systems allow.
    const NAME_BYTES: usize = 255;
    // The hash of no data depends only on the keys of `RandomState`, which are random.
    let random = RandomState::new().build_hasher().finish();
    let ending = format!(".{random:016x}-{}{UNFINISHED}", std::process::id());
    let mut end = name.len().min(NAME_BYTES - ending.len() - 1);
    while name.to_str().is_some_and(|name| !name.is_char_boundary(end)) {
        end -= 1;
    }
    OsString::from_vec([b".", &name.as_bytes()[..end], ending.as_bytes()].concat())
}

/// Opens, for reading, a file whose name may come from another user. Opens only a regular file: a pipe or a device
/// could block the reader, and a symbolic link could redirect it.
///
/// # Errors
/// If the file is missing, or is not a regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path);
    let file = opened.map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::LOOP | Errno::MLINK) => io::Error::other("the path is a symbolic link, which is not followed here"),
        _ => error,
    })?;
    let there = file.metadata()?;
    if there.is_file() {
        return Ok(file);
    }
    let kind = if there.is_dir() { io::ErrorKind::IsADirectory } else { io::ErrorKind::InvalidInput };
    Err(io::Error::new(kind, "it is not a regular file"))
}

/// Reads a regular file of at most `most_bytes` bytes, opened as by [`open_regular`].
///
/// # Errors
/// Fails like [`open_regular`], and if the file is larger.
pub fn read_regular(path: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
    let file = open_regular(path)?;
    let mut bytes = Vec::with_capacity(file.metadata()?.len().min(most_bytes) as usize);
    file.take(most_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most_bytes {
        let message = format!("the file is larger than the limit of {most_bytes} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
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

    /// Another user who may write into the folder can create links, if that user knows the names of the files.
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
        let within = Arc::new(open_folder(&path("in")).unwrap());
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
        assert!(Draft::create_in(within, OsStr::new("pipe")).is_err(), "no process would read it");
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
        // Opening a pipe for both reading and writing does not block.
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
        let (within, name) = (Arc::new(open_folder(folder.path()).unwrap()), OsStr::new("a"));
        let mut draft = Draft::create_in(Arc::clone(&within), name).unwrap();
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
        assert!(reopen().is_err(), "another process may have it open by the other name");
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
