//! Finds and removes incomplete files and uploads that killed processes have left on this machine and in stores.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ascertain_sys::interrupt::Stop;
use tokio::runtime::Builder;

use crate::download::TargetPath;
use crate::error::{Error, Result};
use crate::folder_journal::{FOLDER, FolderJournal, temporary_names};
use crate::journal::{JOURNAL, Journal, JournalContents, JournalHeader, NOTE, Side, parse};
use crate::location::Location;
use crate::manager::{Settings, TransferManager};
use crate::result::TransferResult;
use crate::store::{LOCAL_UPLOAD, Local, Options, Upload, open};

/// The extension of the files of incomplete downloads.
const DOWNLOAD: &str = ascertain_sys::files::UNFINISHED;

/// Time for which the abort of an upload is retried if its store does not answer. It is short, because uploads are
/// aborted one after the other.
const RETRY_FOR: Duration = Duration::from_secs(15);

/// The name of a temporary file or folder: an incomplete download, or an incomplete upload to a local store.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TemporaryName<'a> {
    pub id: &'a str,
    pub process: u32,
}

impl<'a> TemporaryName<'a> {
    /// Parses a file name. Returns `None` if this crate does not create names of this form.
    pub fn parse(name: &'a str) -> Option<Self> {
        let hidden = name.strip_prefix('.')?;
        let is_hex = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_hexdigit());
        let (target, id, process) = if let Some(hidden) = hidden.strip_suffix(LOCAL_UPLOAD) {
            let (target, id) = hidden.rsplit_once('.')?;
            let [random, process, number] = *id.split('-').collect::<Vec<_>>() else { return None };
            let process = u32::from_str_radix(process, 16).ok().filter(|_| is_hex(random) && is_hex(number));
            (target, id, process)
        } else {
            let (target, id) = hidden.strip_suffix(DOWNLOAD)?.rsplit_once('.')?;
            let (random, process) = id.split_once('-')?;
            (target, id, process.parse().ok().filter(|_| is_hex(random) && random.len() == 16))
        };
        Some(Self { id, process: process.filter(|_| !target.is_empty())? })
    }
}

/// A path that can't be read, and the reason.
type Unread = (PathBuf, io::Error);

/// Finds the incomplete local uploads and downloads below `folder` that belong to no journal in the folder `journals`.
/// Returns each path with the id of the process that created it; that process may still run. Links are not followed.
///
/// Also returns the paths that can't be read. If a journal is unreadable or damaged, no uploads are returned, because
/// any of them may belong to that journal.
#[must_use]
pub fn leftovers(folder: &Path, journals: &Path) -> (Vec<(PathBuf, u32)>, Vec<Unread>) {
    let (kept, mut unread) = ids_in_journals(journals);
    let (are_all_kept, mut found, mut folders) = (!unread.is_empty(), Vec::new(), vec![folder.to_path_buf()]);
    while let Some(next) = folders.pop() {
        let entries = match entries(&next) {
            Ok(entries) => entries,
            // After this folder was listed, another process removed it.
            Err(error) if error.kind() == io::ErrorKind::NotFound && next != folder => continue,
            Err(error) => {
                unread.push((next, error));
                continue;
            }
        };
        for entry in entries {
            let name = entry.file_name();
            let name = name.to_str().unwrap_or_default();
            match TemporaryName::parse(name) {
                Some(temporary) if kept.contains(temporary.id) || are_all_kept && name.ends_with(LOCAL_UPLOAD) => {}
                Some(temporary) => found.push((entry.path(), temporary.process)),
                None if entry.file_type().is_ok_and(|kind| kind.is_dir()) => folders.push(entry.path()),
                None => {}
            }
        }
    }
    found.sort();
    (found, unread)
}

/// Returns the ids of the uploads and downloads that journals record, and the journals that can't be read.
fn ids_in_journals(journals: &Path) -> (BTreeSet<String>, Vec<Unread>) {
    let (mut ids, mut unread) = (BTreeSet::new(), Vec::new());
    let entries = match existing_entries(journals) {
        Ok(entries) => entries,
        Err(error) => return (ids, vec![(journals.to_path_buf(), error)]),
    };
    let id_of = |name: OsString| {
        let name = name.into_string().ok()?;
        TemporaryName::parse(&name).map(|temporary| temporary.id.to_string())
    };
    for path in entries.iter().map(DirEntry::path) {
        if path.to_string_lossy().ends_with(FOLDER) {
            match fs::read(&path) {
                Ok(text) => ids.extend(temporary_names(&text).into_iter().filter_map(id_of)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => unread.push((path, error)),
            }
            continue;
        }
        if !path.to_string_lossy().ends_with(JOURNAL) {
            continue;
        }
        let damaged =
            |damage| io::Error::new(io::ErrorKind::InvalidData, format!("{damage}; incomplete uploads are kept"));
        let header = fs::read(&path).and_then(|text| match parse(&text) {
            (JournalContents { header: None, .. }, _, Some(damage)) => Err(damaged(damage)),
            (JournalContents { header, .. }, ..) => Ok(header),
        });
        match header {
            Ok(Some(JournalHeader { upload, temporary, .. })) => {
                ids.extend(temporary.and_then(|temporary| id_of(temporary.name)));
                ids.insert(upload);
            }
            Ok(None) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => unread.push((path, error)),
        }
    }
    (ids, unread)
}

/// An interrupted transfer, as its journal or note records it. No process was continuing it when the record was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterruptedTransfer {
    /// Path of the transfer's journal, or of its note. A note is the record of an upload that can't be resumed.
    pub journal: PathBuf,
    /// Path or address of the source; `-` for a stream. Several sources are separated by commas.
    pub from: String,
    /// Path or address of the destination.
    pub to: String,
    /// Number of bytes that were transferred before the interruption.
    pub done_bytes: u64,
    /// Size of the whole file in bytes; `None` for a stream.
    pub bytes: Option<u64>,
    /// The number of complete files and the number of all files, for a folder or several files; `None` for a single
    /// file. A large file of a folder has its own journal while it is incomplete.
    pub files: Option<[u64; 2]>,
    /// `true` if the transfer can be resumed, because its record is a journal and not only a note. A stream can never
    /// be resumed.
    pub is_resumable: bool,
    /// Time since the journal or note was last changed.
    pub idle: Duration,
}

/// The fate of the parts that were already transferred, if an interrupted transfer is aborted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbortOutcome {
    /// The parts were removed. For a folder, only the journal was removed: the complete files stay, because they are
    /// useful.
    Removed,
    /// The store keeps the parts, and removes them later. Azure does so within a week.
    Expires,
}

/// An interrupted transfer, and the outcome of aborting it. `None` means that it was not aborted, because another
/// process now continues it.
pub type Aborted = (InterruptedTransfer, Result<Option<AbortOutcome>>);

/// Aborts interrupted transfers, one after the other; see [`InterruptedTransfer::abort`].
///
/// # Errors
/// Fails if the async runtime can't be started.
pub fn abort_all(transfers: Vec<InterruptedTransfer>, options: &Options) -> Result<Vec<Aborted>> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Error::Request(format!("could not start the async runtime: {error}")))?;
    let aborted = transfers.into_iter().map(|transfer| {
        // Each transfer may be at another store, so each has its own time for retries.
        let settings = Settings { retry_for: RETRY_FOR, ..Settings::default() };
        let manager = TransferManager::new(settings, Stop::default(), Box::new(()));
        let aborted = runtime.block_on(transfer.abort(&manager, options));
        (transfer, aborted)
    });
    let aborted = aborted.collect();
    // A program that prints credentials may still run. Its output is not needed any more.
    runtime.shutdown_background();
    Ok(aborted)
}

/// Reads the journals and notes in a folder, and returns their transfers. Also returns the paths that can't be read,
/// with the error.
#[must_use]
pub fn interrupted_transfers(journals: &Path) -> (Vec<InterruptedTransfer>, Vec<(PathBuf, Error)>) {
    let (mut found, mut unread) = (Vec::new(), Vec::new());
    let entries = match existing_entries(journals) {
        Ok(entries) => entries,
        Err(error) => return (found, vec![(journals.to_path_buf(), Error::file("can't read", journals)(error))]),
    };
    for path in entries.iter().map(DirEntry::path) {
        match InterruptedTransfer::read(&path) {
            Ok(transfer) => found.extend(transfer),
            Err(error) => unread.push((path, error)),
        }
    }
    found.sort_by(|one, other| one.journal.cmp(&other.journal));
    (found, unread)
}

impl InterruptedTransfer {
    /// Reads a journal or a note. Returns `None` if the file is neither of these, or if another process has locked it.
    fn read(path: &Path) -> Result<Option<Self>> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(FOLDER) {
            return Self::read_folder(path);
        }
        let is_resumable = name.ends_with(JOURNAL);
        if !is_resumable && !name.ends_with(NOTE) {
            return Ok(None);
        }
        let Some((_, JournalHeader { source, destination, .. }, parts)) = Journal::reopen(path)? else {
            return Ok(None);
        };
        Ok(Some(Self {
            journal: path.to_path_buf(),
            files: None,
            bytes: (source.address != "-").then_some(source.bytes),
            from: source.address,
            to: destination.address,
            done_bytes: parts.done_bytes(),
            is_resumable,
            idle: idle(path)?,
        }))
    }

    /// Reads the journal of a folder like [`Self::read`].
    fn read_folder(path: &Path) -> Result<Option<Self>> {
        let Some((_, header, contents)) = FolderJournal::reopen(path)? else { return Ok(None) };
        let (done_files, done_bytes) = contents.done();
        Ok(Some(Self {
            journal: path.to_path_buf(),
            from: header.sources.join(", "),
            to: header.destination,
            done_bytes,
            bytes: Some(header.bytes),
            files: Some([done_files, header.files]),
            is_resumable: true,
            idle: idle(path)?,
        }))
    }

    /// Returns whether this is an earlier attempt at the transfer with the given result.
    #[must_use]
    pub fn is_of(&self, result: &TransferResult) -> bool {
        let path = fs::canonicalize(&result.path).map(|path| path.display().to_string());
        let path = path.unwrap_or_else(|_| Side::of_file(&result.path).address);
        let (from, to) = (&self.from, &self.to);
        (from, to) == (&path, &result.address) || (from, to) == (&result.address, &path)
    }

    /// Aborts the upload if its store supports this. Then removes the incomplete file and the journal. Returns `None`
    /// if another process now continues the transfer.
    ///
    /// # Errors
    /// Fails if the store can't be reached or refuses the request. The journal is then kept.
    pub async fn abort(&self, manager: &TransferManager, options: &Options) -> Result<Option<AbortOutcome>> {
        if self.files.is_some() {
            let Some((journal, ..)) = FolderJournal::reopen(&self.journal)? else { return Ok(None) };
            return journal.remove().map(|()| Some(AbortOutcome::Removed));
        }
        let Some((journal, header, _)) = Journal::reopen(&self.journal)? else { return Ok(None) };
        let outcome = if header.upload.is_empty() {
            // Dropping the draft removes the incomplete file, if it is still the file that the journal describes.
            let target = TargetPath::new(PathBuf::from(&header.destination.address));
            drop(target.ok().and_then(|target| target.reopen(&header).ok()));
            AbortOutcome::Removed
        } else if let Some(to) = find_upload(&header, options)? {
            let upload = Upload { name: to.name.clone(), id: header.upload };
            manager.abort(&to, &upload).await?;
            AbortOutcome::Removed
        } else {
            AbortOutcome::Expires
        };
        journal.remove().map(|()| Some(outcome))
    }
}

/// Returns the time since a journal was last changed.
fn idle(path: &Path) -> Result<Duration> {
    let written = fs::metadata(path).and_then(|there| there.modified()).map_err(Error::file("can't read", path))?;
    Ok(written.elapsed().unwrap_or_default())
}

/// Returns the location of the object that an interrupted upload would create; `None` if its store can't abort uploads.
fn find_upload(header: &JournalHeader, options: &Options) -> Result<Option<Location>> {
    let (address, location) = (&header.destination.address, header.location.clone());
    if let Some(path) = address.strip_prefix("file:///") {
        let (store, name) = (Arc::new(Local::new("/")), path.to_string());
        return Ok(Some(Location { store, name, address: address.clone() }));
    }
    if !address.starts_with("s3://") && !address.starts_with("gs://") {
        return Ok(None);
    }
    let options = Options {
        endpoint_url: location.endpoint_url.or(options.endpoint_url.clone()),
        region: location.region.or(options.region.clone()),
        profile: location.profile.or(options.profile.clone()),
        virtual_hosted: location.virtual_hosted,
        anonymous: location.anonymous || options.anonymous,
        requester_pays: location.requester_pays || options.requester_pays,
        ..options.clone()
    };
    open(address, &options).map(Some)
}

fn entries(folder: &Path) -> io::Result<Vec<DirEntry>> {
    fs::read_dir(folder).and_then(Iterator::collect)
}

/// Returns the entries of a folder. A missing folder counts as empty.
fn existing_entries(folder: &Path) -> io::Result<Vec<DirEntry>> {
    match entries(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        entries => entries,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::StoreLocation;

    #[test]
    fn an_upload_is_aborted_with_the_options_that_started_it() {
        let here = Options { endpoint_url: Some("http://127.0.0.1:1".into()), ..Options::default() };
        let options = Options { anonymous: true, requester_pays: true, ..here.clone() };
        let location = open("s3://bucket/a", &options).unwrap().store.location();
        let side = |address: &str| Side { address: address.into(), version: None, bytes: 1 };
        let (source, destination) = (side("a"), side("s3://bucket/a"));
        let mut header = JournalHeader::new(source, destination, "1".into(), location.clone());
        let to = find_upload(&header, &here).unwrap().unwrap();
        assert_eq!(to.store.location(), location);
        // Settings that the journal does not contain are taken from the caller's options.
        header.location = StoreLocation { anonymous: false, requester_pays: false, ..location };
        let to = find_upload(&header, &options).unwrap().unwrap();
        assert!(to.store.location().anonymous && to.store.location().requester_pays);
    }

    #[test]
    fn only_temporary_names_of_this_program_are_recognized() {
        let made = |name| TemporaryName::parse(name).map(|made| (made.id, made.process));
        assert_eq!(made(".a.b.18f-2a-0.upload"), Some(("18f-2a-0", 42)));
        assert_eq!(made(".a.0123456789abcdef-42.part"), Some(("0123456789abcdef-42", 42)));
        for theirs in [
            "a.18f-2a-0.upload",
            "..18f-2a-0.upload",
            ".18f-2a-0.upload",
            ".a.1-2.upload",
            ".a.1-2-3-4.upload",
            ".a.1-123456789-3.upload",
            ".a.x-2-3.upload",
            ".upload",
            ".cache.upload",
            // A name of this form belongs to a download that has a journal. Such a name contains no process id.
            ".a.0123456789abcdef.part",
            ".a.0123-42.part",
            ".part",
            ".a",
        ] {
            assert_eq!(made(theirs), None, "{theirs}");
        }
    }

    #[test]
    fn unreadable_folders_are_reported_and_the_rest_is_searched() {
        let folder = tempfile::tempdir().unwrap();
        let (root, left) = (folder.path(), folder.path().join("z/.a.18f-2a-0.upload"));
        fs::create_dir_all(&left).unwrap();
        // The path is longer than the system permits, so not even the superuser can read it.
        let mut deep = root.join("a");
        while fs::create_dir(&deep).is_ok() {
            deep.push("a".repeat(100));
        }
        fs::rename(root.join("a"), root.join("a".repeat(200))).unwrap();
        let (found, unread) = leftovers(root, &root.join("none"));
        assert_eq!((found, unread.len()), (vec![(left, 42)], 1), "{unread:?}");
        assert!(unread[0].0.starts_with(root.join("a".repeat(200))), "{unread:?}");
        let (found, unread) = leftovers(&root.join("none"), root);
        assert!(found.is_empty() && unread[0].0 == root.join("none"), "{unread:?}");
    }

    /// A downloaded file of a folder may be complete, and still have its temporary name.
    #[test]
    fn a_file_that_the_journal_of_a_folder_records_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (root, journals) = (folder.path(), folder.path().join("journals"));
        let parts = ["42", "43"].map(|process| root.join(format!(".a.0123456789abcdef-{process}.part")));
        parts.iter().for_each(|part| fs::write(part, "").unwrap());
        fs::create_dir(&journals).unwrap();
        let header = r#"{"begun":{"version":VERSION,"direction":"get","sources":["s3://b/"],"destination":"/a","files":2,"bytes":2}}"#;
        let name = parts[0].file_name().unwrap();
        let temporary = serde_json::to_string(&crate::journal::Temporary { name: name.into(), device: 1, inode: 1 });
        let done = format!(
            r#"{{"done":{{"object":"a","bytes":1,"crc64":null,"verified":false,"source":"1","temporary":{}}}}}"#,
            temporary.unwrap()
        );
        let header = header.replace("VERSION", &crate::folder_journal::VERSION.to_string());
        fs::write(journals.join(format!("1{FOLDER}")), format!("{header}\n{done}\n")).unwrap();
        assert_eq!(leftovers(root, &journals).0, [(parts[1].clone(), 43)]);
    }

    #[test]
    fn an_unreadable_journal_protects_all_incomplete_uploads() {
        let folder = tempfile::tempdir().unwrap();
        let (root, journals) = (folder.path(), folder.path().join("journals"));
        let parts = [root.join(".a.0123456789abcdef-42.part"), root.join(".a.18f-2a-0.upload")];
        parts.iter().for_each(|part| fs::write(part, "").unwrap());
        fs::create_dir(&journals).unwrap();
        let journal = journals.join("1.journal");
        let left = || leftovers(root, &journals).0.into_iter().map(|(path, _)| path).collect::<Vec<_>>();
        // The first file is a journal that was truncated in its first line. The second one is not a journal.
        for (name, text) in [("1.journal", "{"), ("other", "nonsense\n")] {
            fs::write(journals.join(name), text).unwrap();
            assert_eq!(left(), parts, "{name}");
        }
        for text in ["nonsense\n", "{\"begun\":{\"version\":2}}\n"] {
            fs::write(&journal, text).unwrap();
            assert_eq!(left(), parts[..1], "{text}");
            let (path, error) = leftovers(root, &journals).1.remove(0);
            assert!(path == journal && error.to_string().contains("uploads are kept"), "{error}");
        }
        fs::remove_file(&journal).unwrap();
        fs::create_dir(&journal).unwrap();
        assert_eq!(left(), parts[..1]);
    }
}
