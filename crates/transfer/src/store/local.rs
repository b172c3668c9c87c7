//! A store of files in a folder of this machine. Each file is either complete or missing.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use ascertain_sys::files::{self, Access, WriteTarget};
use async_trait::async_trait;
use rustix::fs::statvfs;
use rustix::process::{Resource, geteuid, getrlimit};

use super::Result;
use crate::buffers::{Buffers, RangeWriter};
use crate::crc64::crc64_of_blocks;
use crate::error::{Omission, file_failure};
use crate::names::{beneath, beside};
use crate::source::version;
use crate::store::{Attempt, Attributes, Failure, Kind, Limits, ObjectMeta, PartBody, PutOptions, Store, Upload};
use crate::walk::{Entry, Walk};

/// The extension of a folder that contains the parts of an upload.
pub(crate) const LOCAL_UPLOAD: &str = ".upload";

/// A store of the files below a folder. An object's name is the path of its file, relative to the folder.
///
/// The parts of an upload are in a folder `.NAME.ID.upload` next to the target. [`Store::list`] omits such folders.
/// Symbolic links are followed.
#[derive(Clone, Debug)]
pub struct Local {
    folder: PathBuf,
    /// Path of the only file in this store. `None` if the store contains all files below `folder`.
    only: Option<PathBuf>,
    buffers: Buffers,
}

/// An open file. It is read in steps of [`READ_BYTES`].
struct Reader {
    file: File,
    path: PathBuf,
    meta: ObjectMeta,
    step: Vec<u8>,
}

/// Number of bytes that [`Reader`] reads in one step.
const READ_BYTES: usize = 1 << 20;

/// Number of uploads that this process has started so far. It is part of each upload's id.
static UPLOADS: AtomicU64 = AtomicU64::new(0);

impl Local {
    /// Creates a store of the files below a folder. The folder need not exist yet.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), only: None, buffers: Buffers::default() }
    }

    /// Creates a store that contains a single file, whose path need not be UTF-8.
    #[must_use]
    pub fn from_file(path: impl Into<PathBuf>) -> Self {
        Self { only: Some(path.into()), ..Self::new("") }
    }

    fn path(&self, name: &str) -> Result<PathBuf> {
        if let Some(only) = &self.only {
            return Ok(only.clone());
        }
        beneath(&self.folder, name).map_err(|error| Failure::fatal(error.to_string()))
    }

    /// Returns the path of the file for the object `name`, and the file's access rights if it exists.
    fn target(&self, name: &str) -> Result<(PathBuf, Option<Access>)> {
        let path = self.path(name)?;
        match files::write_target(&path) {
            Ok(WriteTarget::File { path, there }) => Ok((path, there)),
            Ok(WriteTarget::Direct(_)) => Err(not_a_file(&path)),
            Err(error) => Err(file_failure("can't write", &path, &error)),
        }
    }

    /// Returns the path of the folder that contains the parts of an upload.
    fn parts_folder(&self, upload: &Upload) -> Result<PathBuf> {
        let path = self.path(&upload.name)?;
        let path = files::end_of_links(&path).map_err(|error| file_failure("can't write", &path, &error))?;
        Ok(beside(&path, &format!(".{}{LOCAL_UPLOAD}", upload.id)))
    }

    /// Starts an upload. Creates the folder for its parts. The folder has a random name, and only its owner can open
    /// it.
    fn new_upload(&self, name: &str) -> Result<(Upload, PathBuf)> {
        let number = UPLOADS.fetch_add(1, Ordering::Relaxed);
        let id = format!("{:x}-{:x}-{number:x}", rand::random::<u64>(), std::process::id());
        let upload = Upload { name: name.to_string(), id };
        let folder = self.parts_folder(&upload)?;
        let made = folder.parent().map_or(Ok(()), fs::create_dir_all);
        let made = made.and_then(|()| DirBuilder::new().mode(0o700).create(&folder));
        made.map_err(|error| file_failure("can't create", &folder, &error))?;
        Ok((upload, folder))
    }

    /// Copies the parts of an upload into one file, in the order of `parts`. Gives the file its final name if its
    /// checksum is `crc64`; otherwise fails.
    fn assemble(&self, upload: &Upload, parts: &[String], crc64: u64, options: &PutOptions) -> Result<ObjectMeta> {
        let (path, there) = self.target(&upload.name)?;
        let folder = self.parts_folder(upload)?;
        if !folder.is_dir() {
            return Err(Failure::new(Kind::Missing, format!("no such upload: {}", folder.display())));
        }
        // Each attempt writes to its own file, because an abandoned earlier attempt may still be writing.
        let whole = folder.join(format!("whole-{:x}", rand::random::<u64>()));
        let joined = || {
            let (mut file, mut sums) = (File::create_new(&whole)?, Vec::new());
            if let Some(access) = there {
                access.give_to(&file)?;
            }
            for part in parts {
                let part = File::open(folder.join(part_name(part)?))?;
                let body = self.buffers.read(&part, 0, part.metadata()?.len())?;
                file.write_all(&body.bytes)?;
                sums.push((body.bytes.len() as u64, body.crc64));
            }
            if let Some(modified) = options.attributes.modified {
                file.set_modified(modified)?;
            }
            file.sync_all()?;
            Ok(crc64_of_blocks(sums))
        };
        let published = || {
            if joined().map_err(|error| file_failure("can't assemble", &whole, &error))? != crc64 {
                // Another attempt would read the same bytes. So the upload counts as lost, and is not resumed.
                let message =
                    format!("{}: the stored parts differ from those that were sent; send them again", path.display());
                return Err(Failure::new(Kind::Missing, message));
            }
            publish(&whole, &path, options.no_clobber).map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => Failure::new(Kind::Changed, format!("{} exists", path.display())),
                _ => file_failure("can't write", &path, &error),
            })
        };
        // The parts are kept, so that the next attempt can copy them into a new file.
        published().inspect_err(|_| drop(fs::remove_file(&whole)))?;
        // A folder that can't be removed does no harm: it only occupies space.
        let _ = remove(&folder);
        self.meta(&upload.name)?
            .ok_or_else(|| Failure::new(Kind::Changed, format!("{} was removed after it was stored", path.display())))
    }

    fn meta(&self, name: &str) -> Result<Option<ObjectMeta>> {
        let path = self.path(name)?;
        match fs::metadata(&path) {
            Ok(metadata) if metadata.is_file() => Ok(Some(meta_of(name, &metadata))),
            Ok(_) => Err(not_a_file(&path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(file_failure("can't read", &path, &error)),
        }
    }

    fn open(&self, meta: ObjectMeta) -> Result<Reader> {
        let path = self.path(&meta.name)?;
        let file = File::open(&path).map_err(|error| file_failure("can't read", &path, &error))?;
        Ok(Reader { file, path, meta, step: Vec::new() })
    }

    fn find(&self, prefix: &str) -> Result<Vec<ObjectMeta>> {
        let mut found = Vec::new();
        // The text before the last slash of the prefix is a folder. All names that start with the prefix belong to
        // files in or below this folder.
        let parent = prefix.rsplit_once('/').map_or(String::new(), |(parent, _)| format!("{parent}/"));
        let folder = if parent.is_empty() { self.folder.clone() } else { self.path(parent.trim_end_matches('/'))? };
        let mut unread = None;
        Walk::default().visit(&folder, &parent, &mut |Entry { name, path, found: entry }| match entry {
            Ok(metadata) if name.starts_with(prefix) => found.push(meta_of(&name, &metadata)),
            Err(Omission::Unreadable(error)) => _ = unread.get_or_insert(file_failure("can't read", &path, &error)),
            _ => {}
        });
        unread.map_or(Ok(()), Err)?;
        found.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(found)
    }
}

/// Removes the folder of an upload and all its parts. Tries several times, because parts that were in flight may still
/// arrive.
fn remove(folder: &Path) -> io::Result<()> {
    for _ in 0..1000 {
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            removed => return removed,
        }
    }
    Err(io::ErrorKind::DirectoryNotEmpty.into())
}

/// Returns the name of the file that has the part with this token. The name and the token are both the index of the
/// part.
fn part_name(token: &str) -> io::Result<&str> {
    let is_index = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_digit());
    if is_index { Ok(token) } else { Err(io::Error::new(io::ErrorKind::InvalidInput, "no such part")) }
}

fn meta_of(name: &str, metadata: &fs::Metadata) -> ObjectMeta {
    let (name, bytes, modified) = (name.to_string(), metadata.len(), metadata.modified().ok());
    ObjectMeta { name, bytes, etag: Some(version(metadata)), modified, ..ObjectMeta::default() }
}

fn not_a_file(path: &Path) -> Failure {
    Failure::fatal(format!("{} is not a regular file", path.display()))
}

/// Returns an error if the disk has no room for a file of `bytes` bytes. The first `there_bytes` of them are already on
/// the disk. The room is not reserved. File systems with compression can't reserve room. On some other file systems, a
/// reservation writes the whole file, which takes too long.
pub(crate) fn check_room(path: &Path, there_bytes: u64, bytes: u64) -> io::Result<()> {
    if let Some(most) = getrlimit(Resource::Fsize).current.filter(|most| *most < bytes) {
        let message = format!("the file needs {bytes} bytes, but the limit on the size of files is {most} (ulimit -f)");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    let folder = files::parent(path);
    let (needed_bytes, system) = (bytes.saturating_sub(there_bytes), statvfs(folder)?);
    let free_blocks = if geteuid().is_root() { system.f_bfree } else { system.f_bavail };
    let free_bytes = free_blocks.saturating_mul(system.f_frsize);
    // A file system that does not know its size reports 0 blocks.
    if system.f_blocks > 0 && free_bytes < needed_bytes && !may_compress(folder)? {
        let message = format!("{needed_bytes} bytes are needed, but {} has room for {free_bytes}", folder.display());
        return Err(io::Error::new(io::ErrorKind::StorageFull, message));
    }
    Ok(())
}

/// Returns whether the file system of the folder may compress files. A file that is larger than the free space may then
/// still fit.
fn may_compress(folder: &Path) -> io::Result<bool> {
    #[cfg(target_os = "linux")]
    {
        // The magic numbers of btrfs, ZFS and bcachefs. These file systems support compression.
        const COMPRESSING: [u32; 3] = [0x9123_683e, 0x2fc1_2fc1, 0xca45_1a4e];
        Ok(COMPRESSING.contains(&(rustix::fs::statfs(folder)?.f_type as u32)))
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = folder;
        Ok(false)
    }
}

/// Gives the complete file `whole` the final name `path`, and waits until this name is on the disk. If `no_clobber`,
/// fails if the name exists.
fn publish(whole: &Path, path: &Path, no_clobber: bool) -> io::Result<()> {
    if no_clobber {
        // Unlike a rename, a hard link fails if the name already exists.
        fs::hard_link(whole, path)?;
        fs::remove_file(whole)?;
    } else {
        fs::rename(whole, path)?;
    }
    File::open(files::parent(path))?.sync_all()
}

impl Reader {
    /// Reads `bytes` bytes at the offset `at` into the reader's buffer. Fails if the file has changed since it was
    /// opened.
    fn next(mut self, at: u64, bytes: usize) -> Result<Self> {
        let cant = |error: io::Error| file_failure("can't read", &self.path, &error);
        self.step.resize(bytes, 0);
        let read = self.file.read_exact_at(&mut self.step, at);
        let now = meta_of(&self.meta.name, &self.file.metadata().map_err(cant)?);
        if (now.bytes, &now.etag) != (self.meta.bytes, &self.meta.etag) {
            return Err(Failure::new(Kind::Changed, format!("{} has changed", self.path.display())));
        }
        read.map_err(cant)?;
        Ok(self)
    }
}

/// Runs `work`, which may wait for a disk, on a separate thread. Records its start and end in `attempt`.
async fn run_blocking<T: Send + 'static>(
    attempt: &mut Attempt,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    attempt.began = Some(Instant::now());
    let done = tokio::task::spawn_blocking(work).await;
    attempt.last_byte = Some(Instant::now());
    done.unwrap_or_else(|error| Err(Failure::fatal(error.to_string())))
}

#[async_trait]
impl Store for Local {
    fn limits(&self) -> Limits {
        Limits { min_part_bytes: 1, max_part_bytes: 1 << 40, max_parts: 100_000, max_put_bytes: 1 << 40 }
    }

    fn check_attributes(&self, attributes: &Attributes, address: &str) -> crate::error::Result<()> {
        attributes.check(address, "a file", &[])
    }

    fn local_path(&self, name: &str) -> Option<PathBuf> {
        self.path(name).ok()
    }

    async fn head(&self, name: &str, attempt: &mut Attempt) -> Result<Option<ObjectMeta>> {
        let (local, name) = (self.clone(), name.to_string());
        run_blocking(attempt, move || local.meta(&name)).await
    }

    async fn get_range(&self, of: &ObjectMeta, mut into: RangeWriter, attempt: &mut Attempt) -> Result<RangeWriter> {
        let (local, of, range) = (self.clone(), of.clone(), into.range());
        let mut reading = run_blocking(attempt, move || local.open(of)).await?;
        let began = attempt.began;
        for at in range.clone().step_by(READ_BYTES) {
            let bytes = READ_BYTES.min(usize::try_from(range.end - at).unwrap_or(READ_BYTES));
            reading = run_blocking(attempt, move || reading.next(at, bytes)).await?;
            // The bytes are added here, and not by the thread that reads them. That thread may outlive this future, and
            // would then overwrite bytes of the next attempt.
            into.add(&reading.step)?;
            attempt.record_progress();
        }
        attempt.began = began;
        Ok(into)
    }

    async fn put(&self, name: &str, body: PartBody, options: &PutOptions, attempt: &mut Attempt) -> Result<ObjectMeta> {
        let (local, name, options) = (self.clone(), name.to_string(), options.clone());
        run_blocking(attempt, move || {
            let (upload, folder) = local.new_upload(&name)?;
            let path = folder.join("0");
            let written = fs::write(&path, &body.bytes).map_err(|error| file_failure("can't write", &path, &error));
            let made = written.and_then(|()| local.assemble(&upload, &["0".into()], body.crc64, &options));
            made.inspect_err(|_| drop(remove(&folder)))
        })
        .await
    }

    async fn start_upload(&self, name: &str, _options: &PutOptions, attempt: &mut Attempt) -> Result<Upload> {
        let (local, name) = (self.clone(), name.to_string());
        run_blocking(attempt, move || Ok(local.new_upload(&name)?.0)).await
    }

    async fn put_part(&self, upload: &Upload, index: usize, body: PartBody, attempt: &mut Attempt) -> Result<String> {
        let (local, upload) = (self.clone(), upload.clone());
        run_blocking(attempt, move || {
            let folder = local.parts_folder(&upload)?;
            // Each attempt writes to its own file, because an abandoned earlier attempt may still be writing.
            let path = folder.join(format!("{index}-{:x}", rand::random::<u64>()));
            let written = || {
                let mut file = File::create_new(&path)?;
                file.write_all(&body.bytes)?;
                fs::rename(&path, folder.join(index.to_string()))?;
                // The journal will record that this part was transferred. The record must be true even after a power
                // failure.
                file.sync_data()
            };
            written().map_err(|error| {
                let _ = fs::remove_file(&path);
                file_failure("can't write", &path, &error)
            })?;
            Ok(index.to_string())
        })
        .await
    }

    async fn commit(
        &self,
        upload: &Upload,
        tokens: &[String],
        crc64: u64,
        options: &PutOptions,
        attempt: &mut Attempt,
    ) -> Result<ObjectMeta> {
        let (local, upload, tokens, options) = (self.clone(), upload.clone(), tokens.to_vec(), options.clone());
        run_blocking(attempt, move || local.assemble(&upload, &tokens, crc64, &options)).await
    }

    async fn abort(&self, upload: &Upload, attempt: &mut Attempt) -> Result<()> {
        let (local, upload) = (self.clone(), upload.clone());
        run_blocking(attempt, move || {
            let folder = local.parts_folder(&upload)?;
            remove(&folder).map_err(|error| file_failure("can't remove", &folder, &error))
        })
        .await
    }

    async fn remove(&self, name: &str, attempt: &mut Attempt) -> Result<()> {
        let path = self.path(name)?;
        run_blocking(attempt, move || match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(file_failure("can't remove", &path, &error)),
            _ => Ok(()),
        })
        .await
    }

    async fn list(&self, prefix: &str, attempt: &mut Attempt) -> Result<Vec<ObjectMeta>> {
        let (local, prefix) = (self.clone(), prefix.to_string());
        run_blocking(attempt, move || local.find(&prefix)).await
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;
    use std::thread;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;
    use crate::crc64;

    #[test]
    fn only_our_own_unfinished_uploads_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let local = Local::new(folder.path());
        let (upload, blocks) = local.new_upload("mine/a.b").unwrap();
        fs::write(blocks.join("0"), b"x").unwrap();
        for theirs in ["new.upload", ".upload", ".cache.upload", ".a.1-2.upload"] {
            fs::create_dir(folder.path().join(theirs)).unwrap();
            fs::write(folder.path().join(theirs).join("x"), b"x").unwrap();
        }
        let names = |found: Vec<ObjectMeta>| found.into_iter().map(|meta| meta.name).collect::<Vec<_>>();
        let found = names(local.find("").unwrap());
        assert_eq!(found, [".a.1-2.upload/x", ".cache.upload/x", ".upload/x", "new.upload/x"]);
        local.assemble(&upload, &["0".into()], crc64(b"x"), &PutOptions::default()).unwrap();
        assert_eq!(names(local.find("mine").unwrap()), ["mine/a.b"]);
    }

    /// An abandoned attempt to assemble the parts may still write to its file while the next attempt completes. That
    /// file must not get the final name.
    #[test]
    fn a_file_that_an_earlier_attempt_still_writes_is_not_published() {
        let folder = tempfile::tempdir().unwrap();
        let local = Local::new(folder.path());
        let (upload, blocks) = local.new_upload("a").unwrap();
        fs::write(blocks.join("0"), b"right").unwrap();
        // The attempt waits at its second part, which is a pipe, until another process opens the pipe.
        let (waits, opens) = (blocks.join("1"), folder.path().join("fifo"));
        // A system call creates the pipe. Another program, such as `mkfifo`, would inherit the file locks of other
        // tests.
        mknodat(CWD, &waits, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        fs::hard_link(&waits, &opens).unwrap();
        let begun = || {
            let mut paths = fs::read_dir(&blocks).unwrap().map(|entry| entry.unwrap().path());
            paths.find(|path| fs::metadata(path).unwrap().is_file() && !path.ends_with("0"))
        };
        let options = PutOptions::default();
        let earlier = {
            let (local, upload, options) = (local.clone(), upload.clone(), options.clone());
            thread::spawn(move || local.assemble(&upload, &["0".into(), "1".into()], 0, &options))
        };
        let begun = loop {
            assert!(!earlier.is_finished(), "it did not wait");
            if let Some(begun) = begun() {
                break begun;
            }
            thread::yield_now();
        };
        let writing = File::options().write(true).open(begun).unwrap();
        local.assemble(&upload, &["0".into()], crc64(b"right"), &options).unwrap();
        writing.write_all_at(b"wrong", 0).unwrap();
        // Opening a pipe for reading and writing does not wait for another process.
        let _open = File::options().read(true).write(true).open(&opens).unwrap();
        earlier.join().unwrap().unwrap_err();
        assert_eq!(fs::read(folder.path().join("a")).unwrap(), b"right");
    }

    /// A late request for a part is sent a second time. The two requests must not write to the same file.
    #[tokio::test]
    async fn two_requests_for_a_part_do_not_share_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let local = Local::new(folder.path());
        let (upload, parts) = local.new_upload("a").unwrap();
        let body = |bytes: &'static [u8]| PartBody { crc64: crc64(bytes), bytes: bytes.into() };
        local.put_part(&upload, 0, body(b"first"), &mut Attempt::default()).await.unwrap();
        let mut earlier = File::open(parts.join("0")).unwrap();
        local.put_part(&upload, 0, body(b"other"), &mut Attempt::default()).await.unwrap();
        let mut kept = String::new();
        io::Read::read_to_string(&mut earlier, &mut kept).unwrap();
        assert_eq!((&*kept, &*fs::read(parts.join("0")).unwrap()), ("first", &b"other"[..]));
        assert_eq!(fs::read_dir(&parts).unwrap().count(), 1);
    }

    #[test]
    fn an_object_whose_parts_differ_from_the_sent_ones_is_not_published() {
        let folder = tempfile::tempdir().unwrap();
        let local = Local::new(folder.path());
        let (upload, blocks) = local.new_upload("a").unwrap();
        for (block, bytes) in [("0", b"good"), ("1", b"gooD")] {
            fs::write(blocks.join(block), bytes).unwrap();
        }
        let sum = crc64(b"goodgood");
        let (tokens, options) = (["0".into(), "1".into()], PutOptions::default());
        let failure = local.assemble(&upload, &tokens, sum, &options).unwrap_err();
        assert!(failure.kind == Kind::Missing && failure.message.contains("send them again"), "{failure}");
        assert!(!folder.path().join("a").exists());
        fs::write(blocks.join("1"), b"good").unwrap();
        local.assemble(&upload, &tokens, sum, &options).unwrap();
        assert_eq!(fs::read(folder.path().join("a")).unwrap(), b"goodgood");
    }
}
