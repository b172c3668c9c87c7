//! Files of this machine as a store: below one folder, each whole or not there.

use std::fs::{self, DirBuilder, DirEntry, File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use ascertain_sys::files::{self, Access, Identity, Target};
use async_trait::async_trait;
use rustix::fs::statvfs;
use rustix::process::{Resource, geteuid, getrlimit};

use crate::buffers::{Buffers, Filling};
use crate::crc64::crc64_of_blocks;
use crate::error::{LeftOut, failure};
use crate::names::{Filter, beneath, beside};
use crate::store::{Attempt, Block, Failure, Integrity, Kind, Limits, Meta, PutOptions, Store, Upload};
use crate::unfinished::{Made, UPLOAD};

/// Files below a folder, by their paths relative to it.
///
/// What is being written lies in `.NAME.ID.upload` folders beside it, which [`Store::list`] leaves out. A symbolic link
/// is followed.
#[derive(Clone, Debug)]
pub struct Local {
    folder: PathBuf,
    /// The only file, whatever its name.
    only: Option<PathBuf>,
    buffers: Buffers,
}

/// A file that is being read, and what of it was read last.
struct Reading {
    file: File,
    path: PathBuf,
    of: Meta,
    step: Vec<u8>,
}

/// What is read of a file at a time.
const READ_BYTES: usize = 1 << 20;

/// Tells apart the uploads of one process.
static UPLOADS: AtomicU64 = AtomicU64::new(0);

impl Local {
    /// The files below this folder. It need not be there yet.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), only: None, buffers: Buffers::default() }
    }

    /// A store with one file, whose path need not be text.
    #[must_use]
    pub fn of_file(path: impl Into<PathBuf>) -> Self {
        Self { only: Some(path.into()), ..Self::new("") }
    }

    fn path(&self, name: &str) -> Result<PathBuf, Failure> {
        if let Some(only) = &self.only {
            return Ok(only.clone());
        }
        beneath(&self.folder, name).map_err(|error| Failure { kind: Kind::Fatal, said: error.to_string() })
    }

    /// The file that an object is or becomes, and who may do what with the one that is there.
    fn target(&self, name: &str) -> Result<(PathBuf, Option<Access>), Failure> {
        let path = self.path(name)?;
        match files::target(&path) {
            Ok(Target::File { path, there }) => Ok((path, there)),
            Ok(Target::Direct(_)) => Err(no_file(&path)),
            Err(error) => Err(failure("can't write", &path, &error)),
        }
    }

    /// Where the blocks of an upload lie.
    fn blocks(&self, upload: &Upload) -> Result<PathBuf, Failure> {
        let path = self.path(&upload.name)?;
        let path = files::end_of_links(&path).map_err(|error| failure("can't write", &path, &error))?;
        Ok(beside(&path, &format!(".{}{UPLOAD}", upload.id)))
    }

    /// A new upload, and its folder: nobody else can guess its name or look into it.
    fn new_upload(&self, name: &str) -> Result<(Upload, PathBuf), Failure> {
        let number = UPLOADS.fetch_add(1, Ordering::Relaxed);
        let id = format!("{:x}-{:x}-{number:x}", rand::random::<u64>(), std::process::id());
        let upload = Upload { name: name.to_string(), id };
        let folder = self.blocks(&upload)?;
        let made = folder.parent().map_or(Ok(()), fs::create_dir_all);
        let made = made.and_then(|()| DirBuilder::new().mode(0o700).create(&folder));
        made.map_err(|error| failure("can't make", &folder, &error))?;
        Ok((upload, folder))
    }

    /// Makes the object of its blocks: copied into one file, which gets the name if what was copied is what was sent.
    fn assemble(&self, upload: &Upload, blocks: &[String], crc64: u64, options: &PutOptions) -> Result<Meta, Failure> {
        let (path, there) = self.target(&upload.name)?;
        let folder = self.blocks(upload)?;
        if !folder.is_dir() {
            return Err(Failure { kind: Kind::Missing, said: format!("no such upload: {}", folder.display()) });
        }
        // One for each attempt: one that was given up may still be writing, and would leave a hole in another's file.
        let whole = folder.join(format!("whole-{:x}", rand::random::<u64>()));
        let joined = || {
            let (mut file, mut sums) = (File::create_new(&whole)?, Vec::new());
            if let Some(access) = there {
                access.give_to(&file)?;
            }
            for block in blocks {
                let part = File::open(folder.join(block_name(block)?))?;
                let part = self.buffers.read(&part, 0, part.metadata()?.len())?;
                file.write_all(&part.bytes)?;
                sums.push((part.bytes.len() as u64, part.crc64));
            }
            file.sync_all()?;
            Ok(crc64_of_blocks(sums))
        };
        let published = || {
            if joined().map_err(|error| failure("can't put together", &whole, &error))? != crc64 {
                // The next attempt would read the same.
                let said = format!("{}: its blocks are not what was sent; they must be sent anew", path.display());
                return Err(Failure { kind: Kind::Fatal, said });
            }
            publish(&whole, &path, options.no_clobber).map_err(|error| failure("can't write", &path, &error))
        };
        // With a journal the blocks stay for the next attempt, which makes a file of its own of them.
        published().inspect_err(|_| drop(fs::remove_file(&whole)))?;
        // What is left behind costs room, but nothing else.
        let _ = fs::remove_dir_all(&folder);
        self.meta(&upload.name)?.ok_or_else(|| Failure { kind: Kind::Changed, said: "it was removed".into() })
    }

    fn meta(&self, name: &str) -> Result<Option<Meta>, Failure> {
        let path = self.path(name)?;
        match fs::metadata(&path) {
            Ok(metadata) if metadata.is_file() => Ok(Some(meta_of(name, &metadata))),
            Ok(_) => Err(no_file(&path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failure("can't read", &path, &error)),
        }
    }

    fn open(&self, of: Meta) -> Result<Reading, Failure> {
        let path = self.path(&of.name)?;
        let file = File::open(&path).map_err(|error| failure("can't read", &path, &error))?;
        Ok(Reading { file, path, of, step: Vec::new() })
    }

    fn find(&self, prefix: &str) -> Result<Vec<Meta>, Failure> {
        let mut found = Vec::new();
        // Only what is below the last whole folder of the prefix can begin with it.
        let parent = prefix.rsplit_once('/').map_or(String::new(), |(parent, _)| format!("{parent}/"));
        let folder = if parent.is_empty() { self.folder.clone() } else { self.path(parent.trim_end_matches('/'))? };
        let mut unread = None;
        Walk::default().go(&folder, &parent, &mut |Entry { name, path, of }| match of {
            Ok(metadata) if name.starts_with(prefix) => found.push(meta_of(&name, &metadata)),
            Err(LeftOut::Unreadable(error)) => _ = unread.get_or_insert(failure("can't read", &path, &error)),
            _ => {}
        });
        if let Some(failure) = unread {
            return Err(failure);
        }
        found.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(found)
    }
}

/// Removes an upload's folder. Blocks that were under way when it was given up may still be arriving there.
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

/// The block files are named by their indices, and nothing else.
fn block_name(block: &str) -> io::Result<&str> {
    let is_index = !block.is_empty() && block.bytes().all(|byte| byte.is_ascii_digit());
    if is_index { Ok(block) } else { Err(io::Error::new(io::ErrorKind::InvalidInput, "no such block")) }
}

fn meta_of(name: &str, metadata: &fs::Metadata) -> Meta {
    // The time of the last change too, which nobody can set back.
    let times = [(metadata.mtime(), metadata.mtime_nsec()), (metadata.ctime(), metadata.ctime_nsec())];
    let [modified, changed] = times.map(|(seconds, ns)| format!("{seconds:x}.{ns:09}"));
    let etag = format!("{:x}-{:x}-{modified}-{changed}", metadata.ino(), metadata.len());
    Meta {
        name: name.to_string(),
        bytes: metadata.len(),
        etag: Some(etag),
        modified: metadata.modified().ok(),
        crc64: None,
        crc32c: None,
    }
}

fn no_file(path: &Path) -> Failure {
    Failure { kind: Kind::Fatal, said: format!("{} is no file", path.display()) }
}

/// What becomes of symbolic links in a folder. Those to files are followed, unless links are skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Links {
    /// Those to folders and to nothing are left out, and that is an error.
    #[default]
    FilesOnly,
    /// Those to folders are followed too.
    Follow,
    /// All of them are left out, and that is no error.
    Skip,
}

/// How a folder is gone through. Names are filtered before anything is opened or refused.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Walk<'a> {
    pub filter: Option<&'a Filter>,
    pub links: Links,
}

/// What is found: a file, or what is left out.
pub(crate) struct Entry {
    /// Its name relative to the folder, behind a prefix; of one that is not UTF-8, something like it.
    pub name: String,
    pub path: PathBuf,
    pub of: Result<Metadata, LeftOut>,
}

impl Walk<'_> {
    /// Tells of every file below a folder, and of everything that is left out. A folder that is missing has none.
    pub fn go(self, folder: &Path, prefix: &str, found: &mut dyn FnMut(Entry)) {
        self.walk(folder, prefix, &mut Vec::new(), found);
    }

    /// `above` has the folders on the way.
    fn walk(self, folder: &Path, prefix: &str, above: &mut Vec<Identity>, found: &mut dyn FnMut(Entry)) {
        let unreadable = |error| {
            let name = prefix.trim_end_matches('/').to_string();
            Entry { name, path: folder.to_path_buf(), of: Err(LeftOut::Unreadable(error)) }
        };
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            // It has gone meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => return found(unreadable(error)),
        };
        if let Ok(there) = fs::metadata(folder) {
            above.push(Identity::of(&there));
        }
        for entry in entries {
            match entry {
                Ok(entry) => self.entry(&entry, prefix, above, found),
                Err(error) => found(unreadable(error)),
            }
        }
        above.pop();
    }

    fn entry(self, entry: &DirEntry, prefix: &str, above: &mut Vec<Identity>, found: &mut dyn FnMut(Entry)) {
        let (file_name, path) = (entry.file_name(), entry.path());
        let name = format!("{prefix}{}", file_name.to_string_lossy());
        let mut tell = |of| found(Entry { name: name.clone(), path: path.clone(), of });
        let is_meant = || self.filter.is_none_or(|filter| filter.takes(&name));
        let leaves_out_folder = || self.filter.is_some_and(|filter| filter.leaves_out_folder(&name));
        let kind = match entry.file_type() {
            Ok(kind) => kind,
            Err(error) => {
                return if is_meant() {
                    tell(Err(LeftOut::Unreadable(error)))
                };
            }
        };
        if kind.is_symlink() && self.links == Links::Skip {
            return;
        }
        let there = match fs::metadata(&path) {
            Ok(there) => there,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !kind.is_symlink() => return,
            Err(_) if !is_meant() => return,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return tell(Err(LeftOut::BrokenLink)),
            Err(error) => return tell(Err(LeftOut::Unreadable(error))),
        };
        if there.is_dir() {
            let is_ours = !kind.is_symlink() && Made::parse(&file_name.to_string_lossy()).is_some();
            if is_ours || leaves_out_folder() {
                return;
            }
            match file_name.to_str() {
                _ if kind.is_symlink() && self.links != Links::Follow => tell(Err(LeftOut::LinkToFolder)),
                _ if above.contains(&Identity::of(&there)) => tell(Err(LeftOut::Circle)),
                Some(_) => self.walk(&path, &format!("{name}/"), above, found),
                None => tell(Err(LeftOut::NotUnicode)),
            }
        } else if is_meant() {
            tell(match file_name.to_str() {
                _ if !there.is_file() => Err(LeftOut::Special),
                None => Err(LeftOut::NotUnicode),
                Some(_) => Ok(there),
            });
        }
    }
}

/// Refuses a file that would get `bytes` in all, of which `there_bytes` are on the disk already, if the disk has no room
/// for it. Nothing is reserved: file systems that compress would not do that, and some write all of it for that.
pub(crate) fn check_room(path: &Path, there_bytes: u64, bytes: u64) -> io::Result<()> {
    if let Some(most) = getrlimit(Resource::Fsize).current.filter(|most| *most < bytes) {
        let said = format!("it will have {bytes} bytes, and files may have {most} at most (ulimit -f)");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, said));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let (needed_bytes, system) = (bytes.saturating_sub(there_bytes), statvfs(folder)?);
    let free_blocks = if geteuid().is_root() { system.f_bfree } else { system.f_bavail };
    let free_bytes = free_blocks.saturating_mul(system.f_frsize);
    // Some don't know how large they are.
    if system.f_blocks > 0 && free_bytes < needed_bytes && !may_compress(folder)? {
        let said = format!("{needed_bytes} bytes are missing, and {} has room for {free_bytes}", folder.display());
        return Err(io::Error::new(io::ErrorKind::StorageFull, said));
    }
    Ok(())
}

/// Whether more may fit there than there is room for.
fn may_compress(folder: &Path) -> io::Result<bool> {
    #[cfg(target_os = "linux")]
    {
        // btrfs, ZFS and bcachefs.
        const COMPRESSING: [u32; 3] = [0x9123_683e, 0x2fc1_2fc1, 0xca45_1a4e];
        Ok(COMPRESSING.contains(&(rustix::fs::statfs(folder)?.f_type as u32)))
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = folder;
        Ok(false)
    }
}

/// Gives a file that is whole its name, and makes that last.
fn publish(whole: &Path, path: &Path, no_clobber: bool) -> io::Result<()> {
    if no_clobber {
        // A second name is refused where the first is taken; a rename is not.
        fs::hard_link(whole, path)?;
        fs::remove_file(whole)?;
    } else {
        fs::rename(whole, path)?;
    }
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => File::open(folder)?.sync_all(),
        _ => File::open(".")?.sync_all(),
    }
}

impl Reading {
    /// Reads so much from a place on, if the file is still the one that it was.
    fn next(mut self, at: u64, bytes: usize) -> Result<Self, Failure> {
        let cant = |error: io::Error| failure("can't read", &self.path, &error);
        self.step.resize(bytes, 0);
        let read = self.file.read_exact_at(&mut self.step, at);
        let now = meta_of(&self.of.name, &self.file.metadata().map_err(cant)?);
        if (now.bytes, &now.etag) != (self.of.bytes, &self.of.etag) {
            return Err(Failure { kind: Kind::Changed, said: format!("{} has changed", self.path.display()) });
        }
        read.map_err(cant)?;
        Ok(self)
    }
}

/// Runs what may wait for a disk where it holds nobody up.
async fn apart<T: Send + 'static>(
    seen: &mut Attempt,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    seen.began = Some(Instant::now());
    let done = tokio::task::spawn_blocking(work).await;
    seen.last_byte = Some(Instant::now());
    done.unwrap_or_else(|error| Err(Failure { kind: Kind::Fatal, said: error.to_string() }))
}

#[async_trait]
impl Store for Local {
    fn limits(&self) -> Limits {
        Limits {
            min_block_bytes: 1,
            max_block_bytes: 1 << 40,
            max_blocks: 100_000,
            max_put_bytes: 1 << 40,
            integrity: Integrity::Whole,
        }
    }

    fn file(&self, name: &str) -> Option<PathBuf> {
        self.path(name).ok()
    }

    async fn head(&self, name: &str, seen: &mut Attempt) -> Result<Option<Meta>, Failure> {
        let (local, name) = (self.clone(), name.to_string());
        apart(seen, move || local.meta(&name)).await
    }

    async fn get_into(&self, of: &Meta, mut into: Filling, seen: &mut Attempt) -> Result<Filling, Failure> {
        let (local, of, range) = (self.clone(), of.clone(), into.range());
        let mut reading = apart(seen, move || local.open(of)).await?;
        let began = seen.began;
        for at in range.clone().step_by(READ_BYTES) {
            let bytes = READ_BYTES.min(usize::try_from(range.end - at).unwrap_or(READ_BYTES));
            reading = apart(seen, move || reading.next(at, bytes)).await?;
            // Not by who reads: given up, that goes on, and would write what somebody else has put right.
            into.add(&reading.step)?;
        }
        seen.began = began;
        Ok(into)
    }

    async fn put(&self, name: &str, body: Block, options: &PutOptions, seen: &mut Attempt) -> Result<Meta, Failure> {
        let (local, name, options) = (self.clone(), name.to_string(), options.clone());
        apart(seen, move || {
            let (upload, folder) = local.new_upload(&name)?;
            let path = folder.join("0");
            let written = fs::write(&path, &body.bytes).map_err(|error| failure("can't write", &path, &error));
            let made = written.and_then(|()| local.assemble(&upload, &["0".into()], body.crc64, &options));
            made.inspect_err(|_| drop(remove(&folder)))
        })
        .await
    }

    async fn begin(&self, name: &str, _options: &PutOptions, seen: &mut Attempt) -> Result<Upload, Failure> {
        let (local, name) = (self.clone(), name.to_string());
        apart(seen, move || Ok(local.new_upload(&name)?.0)).await
    }

    async fn put_block(
        &self,
        upload: &Upload,
        index: usize,
        body: Block,
        seen: &mut Attempt,
    ) -> Result<String, Failure> {
        let (local, upload) = (self.clone(), upload.clone());
        apart(seen, move || {
            let folder = local.blocks(&upload)?;
            let path = folder.join(index.to_string());
            let written = || {
                let mut file = File::create(&path)?;
                file.write_all(&body.bytes)?;
                // A journal is going to say that it is there, after a power failure too.
                file.sync_data()
            };
            written().map_err(|error| failure("can't write", &path, &error))?;
            Ok(index.to_string())
        })
        .await
    }

    async fn commit(
        &self,
        upload: &Upload,
        blocks: &[String],
        crc64: u64,
        options: &PutOptions,
        seen: &mut Attempt,
    ) -> Result<Meta, Failure> {
        let (local, upload, blocks, options) = (self.clone(), upload.clone(), blocks.to_vec(), options.clone());
        apart(seen, move || local.assemble(&upload, &blocks, crc64, &options)).await
    }

    async fn abort(&self, upload: &Upload, seen: &mut Attempt) -> Result<(), Failure> {
        let (local, upload) = (self.clone(), upload.clone());
        apart(seen, move || {
            let folder = local.blocks(&upload)?;
            remove(&folder).map_err(|error| failure("can't remove", &folder, &error))
        })
        .await
    }

    async fn remove(&self, name: &str, seen: &mut Attempt) -> Result<(), Failure> {
        let path = self.path(name)?;
        apart(seen, move || match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failure("can't remove", &path, &error)),
            _ => Ok(()),
        })
        .await
    }

    async fn list(&self, prefix: &str, seen: &mut Attempt) -> Result<Vec<Meta>, Failure> {
        let (local, prefix) = (self.clone(), prefix.to_string());
        apart(seen, move || local.find(&prefix)).await
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
        let names = |found: Vec<Meta>| found.into_iter().map(|meta| meta.name).collect::<Vec<_>>();
        let found = names(local.find("").unwrap());
        assert_eq!(found, [".a.1-2.upload/x", ".cache.upload/x", ".upload/x", "new.upload/x"]);
        local.assemble(&upload, &["0".into()], crc64(b"x"), &PutOptions::default()).unwrap();
        assert_eq!(names(local.find("mine").unwrap()), ["mine/a.b"]);
    }

    /// An attempt to put the blocks together that was given up goes on writing, while another one is done.
    #[test]
    fn what_an_earlier_attempt_still_writes_to_is_not_published() {
        let folder = tempfile::tempdir().unwrap();
        let local = Local::new(folder.path());
        let (upload, blocks) = local.new_upload("a").unwrap();
        fs::write(blocks.join("0"), b"right").unwrap();
        // It waits for its second block until somebody opens the other end.
        let (waits, opens) = (blocks.join("1"), folder.path().join("fifo"));
        // Not by a program: until that is there it would have what other tests hold locked.
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
        // For reading too, which waits for nobody.
        let _open = File::options().read(true).write(true).open(&opens).unwrap();
        earlier.join().unwrap().unwrap_err();
        assert_eq!(fs::read(folder.path().join("a")).unwrap(), b"right");
    }

    #[test]
    fn blocks_that_are_not_what_was_sent_get_no_name() {
        let folder = tempfile::tempdir().unwrap();
        let local = Local::new(folder.path());
        let (upload, blocks) = local.new_upload("a").unwrap();
        for (block, bytes) in [("0", b"good"), ("1", b"gooD")] {
            fs::write(blocks.join(block), bytes).unwrap();
        }
        let sum = crc64(b"goodgood");
        let (tokens, options) = (["0".into(), "1".into()], PutOptions::default());
        let failure = local.assemble(&upload, &tokens, sum, &options).unwrap_err();
        assert!(failure.kind == Kind::Fatal && failure.said.contains("sent anew"), "{failure}");
        assert!(!folder.path().join("a").exists());
        fs::write(blocks.join("1"), b"good").unwrap();
        local.assemble(&upload, &tokens, sum, &options).unwrap();
        assert_eq!(fs::read(folder.path().join("a")).unwrap(), b"goodgood");
    }
}
