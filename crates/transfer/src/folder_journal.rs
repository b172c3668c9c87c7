//! The journal of a command with several files: the files that are complete. If the command is interrupted, the same
//! command transfers only the other files. A large file also has its own [`Journal`](crate::journal::Journal), with its
//! parts.
//!
//! The journal does not prove that a file was transferred. It only names the versions of both sides, and a file counts
//! as transferred if both sides still have these versions. So the lines need not be on the disk before the command goes
//! on. A loss of power does no harm: if a line is lost, its file is transferred again. If the lines reached the disk,
//! but a downloaded file did not, the file still has its temporary name (see
//! [`Publisher`](crate::publisher::Publisher)). The next command compares such a file with the recorded checksum. If
//! the file is missing or incomplete, the command fetches it again.
//!
//! A small download is recorded when its bytes are complete, before it waits for the disk and gets its name. Otherwise
//! a kill would lose all the files that wait.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use ascertain_sys::files::{self, Draft};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::journal::{Temporary, describe_damage, journal_path, read_locked, reopen_locked, split_lines};
use crate::manager::{Resume, Settings};
use crate::plan::{Listing, PlannedFile};
use crate::result::{TransferResult, TransferStatus};
use crate::run::Direction;
use crate::store::ObjectMeta;

/// The extension of the file of a folder's journal.
pub(crate) const FOLDER: &str = ".folder";

/// The version of the journal's format. Journals with another version are rejected.
pub(crate) const VERSION: u32 = 1;

/// The description of a command. Each process that carries out the command writes it before its first file. If files
/// are listed while others are transferred, the process writes it again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FolderHeader {
    version: u32,
    pub direction: Direction,
    /// Paths or addresses of the sources, without user, password and query.
    pub sources: Vec<String>,
    /// Path or address of the destination, without user, password and query.
    pub destination: String,
    /// Number and total size in bytes of the files to transfer.
    pub files: u64,
    pub bytes: u64,
}

impl FolderHeader {
    pub fn new(direction: Direction, sources: Vec<String>, destination: String, files: &[PlannedFile]) -> Self {
        let bytes = files.iter().map(|file| file.bytes).sum();
        Self { version: VERSION, direction, sources, destination, files: files.len() as u64, bytes }
    }

    /// Adds files that were listed later.
    pub fn add(&mut self, files: &[PlannedFile]) {
        self.files += files.len() as u64;
        self.bytes += files.iter().map(|file| file.bytes).sum::<u64>();
    }
}

/// The record of a file that was transferred.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CompleteFile {
    /// Name of the object that is the source or the target.
    object: String,
    bytes: u64,
    pub crc64: Option<u64>,
    verified: bool,
    /// The version of the source: the tag of a local file, or the ETag of an object.
    source: String,
    /// The ETag of the object that an upload has stored. `None` for a download.
    #[serde(skip_serializing_if = "Option::is_none")]
    destination: Option<String>,
    /// The modification time that a downloaded file had when it was recorded. `None` in the journal of an older
    /// version, in which the file has the time of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    modified: Option<String>,
    /// The fingerprint of the attributes that the object or the file got. `None` in an older journal.
    #[serde(skip_serializing_if = "Option::is_none")]
    attributes: Option<u64>,
    /// The file of a download that was recorded before it got its name. `None` if it already had its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temporary: Option<Temporary>,
    /// The tag ([`file_tag`]) of the earlier file that the download replaces; `None` if there is no such file.
    #[serde(skip_serializing_if = "Option::is_none")]
    replaced: Option<String>,
}

impl CompleteFile {
    /// Creates the record of a file whose source has the version `source`.
    fn new(object: &str, result: &TransferResult, attributes: u64, source: String) -> Self {
        let (object, attributes) = (object.to_string(), Some(attributes));
        let TransferResult { bytes, crc64, verified, .. } = *result;
        let (destination, modified, temporary, replaced) = Default::default();
        Self { object, bytes, crc64, verified, source, destination, modified, attributes, temporary, replaced }
    }

    /// Returns whether the file of this download still has its temporary name. `path` is the path that it should get.
    fn has_no_name(&self, path: &Path) -> bool {
        let temporary = self.temporary.as_ref().map(|temporary| path.with_file_name(&temporary.name));
        temporary.is_some_and(|temporary| fs::symlink_metadata(temporary).is_ok_and(|there| self.is_file(&there)))
    }

    /// Returns whether `there` describes the file of this download, if its identity was recorded.
    fn is_file(&self, there: &Metadata) -> bool {
        let is_same = |&Temporary { device, inode, .. }: &Temporary| {
            files::Identity::from_metadata(there) == files::Identity { device, inode }
        };
        self.temporary.as_ref().is_none_or(is_same)
    }
}

#[derive(Serialize, Deserialize)]
enum Line {
    #[serde(rename = "begun")]
    Header(FolderHeader),
    #[serde(rename = "done")]
    Complete(CompleteFile),
}

/// The data in the valid lines of a folder's journal.
#[derive(Debug, Default)]
pub(crate) struct FolderContents {
    /// The description of the command by the last process that carried it out.
    pub header: Option<FolderHeader>,
    /// The complete files, by the names of their objects.
    complete: BTreeMap<String, CompleteFile>,
}

impl FolderContents {
    /// Returns the number and the total size in bytes of the complete files.
    pub fn done(&self) -> (u64, u64) {
        (self.complete.len() as u64, self.complete.values().map(|file| file.bytes).sum())
    }
}

/// The end of a journal, at which the next line is written.
#[derive(Debug, Default)]
struct JournalEnd {
    /// The description of the command, until it is written.
    unwritten: Option<FolderHeader>,
    /// Number of bytes of the journal. No other process writes to it.
    bytes: u64,
}

/// The locked journal of a command with several files. If it is dropped before its first line is written, its file is
/// removed. The default value has no file, and records nothing.
#[derive(Debug, Default)]
pub(crate) struct FolderJournal {
    place: Option<(File, PathBuf)>,
    end: Mutex<JournalEnd>,
    direction: Direction,
    earlier: FolderContents,
    /// `true` if the earlier attempt is not resumed. Its records are then only used to remove its temporary files.
    is_discarded: bool,
    /// The reason why the earlier attempt can't be resumed: the journal is damaged.
    pub restart_reason: Option<String>,
}

impl FolderJournal {
    /// Opens and reads the journal of a command, in the folder of the settings. If there is no such folder, nothing is
    /// recorded. Discards a damaged journal, unless the settings require that the earlier attempt is resumed.
    pub fn open(settings: &Settings, header: FolderHeader) -> Result<Self> {
        let Some(folder) = &settings.journals else { return Ok(Self::default()) };
        let key = format!("{:?}\n{}\n{}", header.direction, header.sources.join("\n"), header.destination);
        let path = journal_path(folder, &key, FOLDER)?;
        let (file, text) = read_locked(&path)?;
        let (earlier, mut whole_bytes, damage) = parse(&text);
        let mut is_discarded = false;
        let restart_reason = damage.map(|damage| format!("{}: {damage}", path.display()));
        match settings.resume {
            Resume::Only if restart_reason.is_some() => {
                return Err(Error::CantResume(restart_reason.unwrap_or_default()));
            }
            Resume::IfSame | Resume::Only if restart_reason.is_none() => {}
            _ => (is_discarded, whole_bytes) = (true, 0),
        }
        let restart_reason = restart_reason.filter(|_| settings.resume != Resume::Never);
        if whole_bytes < text.len() {
            file.set_len(whole_bytes as u64).map_err(Error::journal("shortened", &path))?;
        }
        let (place, direction) = (Some((file, path)), header.direction);
        let end = JournalEnd { unwritten: Some(header), bytes: whole_bytes as u64 };
        Ok(Self { place, end: Mutex::new(end), direction, earlier, is_discarded, restart_reason })
    }

    /// Opens and reads a journal. Returns `None` if the file is gone or empty, or if another process has locked it.
    pub fn reopen(path: &Path) -> Result<Option<(Self, FolderHeader, FolderContents)>> {
        let Some((file, text)) = reopen_locked(path)? else { return Ok(None) };
        let (mut contents, _, damage) = parse(&text);
        if let Some(damage) = damage {
            return Err(Error::damaged_journal(path, damage));
        }
        let mut journal = Self::default();
        journal.place = Some((file, path.into()));
        Ok(contents.header.take().map(|header| (journal, header, contents)))
    }

    /// Sets the description of the command. It is written before the next complete file.
    pub fn describe(&self, header: FolderHeader) {
        self.end.lock().unwrap_or_else(PoisonError::into_inner).unwritten = Some(header);
    }

    /// Returns whether an earlier attempt has transferred any files.
    pub fn has_complete_files(&self) -> bool {
        !self.is_discarded && !self.earlier.complete.is_empty()
    }

    /// Returns the record of a file that an earlier attempt has transferred.
    fn earlier(&self, object: &str) -> Option<&CompleteFile> {
        self.earlier.complete.get(object).filter(|_| !self.is_discarded)
    }

    /// Returns the result of a file that an earlier attempt has transferred. Returns `None` if the file must be
    /// transferred, because the journal does not name it, or because the target is gone or was not listed. Also returns
    /// `None` if `verify` is set, but the file was not read back. `attributes` is the fingerprint of the attributes
    /// that the file would get now.
    ///
    /// # Errors
    /// Returns [`Error::CantResume`] if the journal names the file, but one of the sides has changed since, or the
    /// attributes were different.
    pub fn earlier_result(
        &self,
        file: &PlannedFile,
        address: &str,
        attributes: u64,
        verify: bool,
    ) -> Result<Option<TransferResult>> {
        let (Some(complete), Listing::There(object)) = (self.earlier(&file.object), &file.listing) else {
            return Ok(None);
        };
        let path = || file.path.display().to_string();
        let (source, here) = match self.direction {
            Direction::Put => (file.version.as_deref(), path()),
            Direction::Get => (object.etag.as_deref(), address.to_string()),
        };
        let changed = |side: String| {
            Err(Error::CantResume(format!("{side} has changed since an earlier attempt was interrupted")))
        };
        if (source, file.bytes) != (Some(&complete.source), complete.bytes) {
            return changed(here);
        }
        let is_same = match self.direction {
            Direction::Put => object.bytes == complete.bytes && object.etag == complete.destination,
            Direction::Get => match fs::symlink_metadata(&file.path) {
                Err(_) => return Ok(None),
                // The process was killed before it gave the download its name. An earlier file may have this name, and
                // the temporary file may be gone.
                Ok(there) if complete.has_no_name(&file.path) || complete.replaced == Some(file_tag(&there)) => {
                    return Ok(None);
                }
                Ok(there) => {
                    let modified = there.modified().ok();
                    let is_old = match &complete.modified {
                        Some(then) => modified.is_some_and(|modified| time_tag(modified) == *then),
                        None => modified.is_some() && modified == object.modified,
                    };
                    there.is_file() && there.len() == complete.bytes && is_old && complete.is_file(&there)
                }
            },
        };
        let target = if self.direction == Direction::Put { address.to_string() } else { path() };
        if !is_same {
            return changed(target);
        }
        if complete.attributes.is_some_and(|then| then != attributes) {
            return Err(Error::CantResume(format!("an earlier attempt had other metadata for {target}")));
        }
        if verify && !complete.verified {
            return Ok(None);
        }
        Ok(Some(TransferResult {
            path: file.path.clone(),
            address: address.to_string(),
            bytes: complete.bytes,
            status: TransferStatus::Transferred,
            resumed_bytes: complete.bytes,
            crc64: complete.crc64,
            verified: complete.verified,
            etag: object.etag.clone(),
            ..TransferResult::default()
        }))
    }

    /// Returns the record of a downloaded file, if its object is unchanged. The file may still have its temporary name.
    /// `attributes` is the fingerprint of the attributes that the file would get now. Returns `None` if another
    /// fingerprint was recorded.
    pub fn fetched(&self, object: &ObjectMeta, attributes: u64) -> Option<&CompleteFile> {
        let complete = self.earlier(&object.name).filter(|complete| Some(&complete.source) == object.etag.as_ref())?;
        complete.attributes.is_none_or(|then| then == attributes).then_some(complete)
    }

    /// Returns the temporary file of a download that an earlier attempt has recorded, even if that attempt is not
    /// resumed.
    pub fn temporary(&self, object: &str) -> Option<&Temporary> {
        self.earlier.complete.get(object)?.temporary.as_ref()
    }

    /// Records a file that was sent, with the fingerprint of its attributes. Does nothing if a side has no version,
    /// because a later change could not be detected.
    pub fn record_upload(&self, file: &PlannedFile, result: &TransferResult, attributes: u64) {
        let (Some(source), destination @ Some(_)) = (file.version.clone(), result.etag.clone()) else { return };
        if result.is_transferred() && result.bytes == file.bytes {
            let complete = CompleteFile::new(&file.object, result, attributes, source);
            self.write(Line::Complete(CompleteFile { destination, ..complete }));
        }
    }

    /// Records a file that was fetched, with the fingerprint of its attributes. `there` are the metadata of the file.
    /// `draft` is the file if it still has its temporary name, which it keeps until its batch of files is on the disk.
    /// Does nothing if the object has no version.
    pub fn record_download(
        &self,
        object: &str,
        result: &TransferResult,
        attributes: u64,
        there: Option<&Metadata>,
        draft: Option<&Draft>,
    ) {
        let Some(source) = result.etag.clone().filter(|_| result.is_transferred()) else { return };
        let temporary = draft.zip(there).map(|(draft, there)| {
            let files::Identity { device, inode } = files::Identity::from_metadata(there);
            Temporary { name: draft.temporary_name().to_os_string(), device, inode }
        });
        let complete = CompleteFile::new(object, result, attributes, source);
        // The file system may have rounded the time that was set.
        let modified = there.and_then(|there| there.modified().ok()).map(time_tag);
        let replaced = draft
            .filter(|draft| draft.may_replace())
            .and_then(|_| fs::symlink_metadata(&result.path).ok())
            .as_ref()
            .map(file_tag);
        self.write(Line::Complete(CompleteFile { modified, temporary, replaced, ..complete }));
    }

    /// Writes a line. A failure, for example because the disk is full, does not affect the transfers. The journal then
    /// stays as it is, so the file is transferred again if the command is interrupted.
    fn write(&self, line: Line) {
        let Some((mut journal, _)) = self.place.as_ref().map(|(file, path)| (file, path)) else { return };
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = Vec::new();
        for line in end.unwritten.clone().map(Line::Header).into_iter().chain([line]) {
            if serde_json::to_writer(&mut text, &line).is_err() {
                return;
            }
            text.push(b'\n');
        }
        // The lines are written with one call, so only the last line can be incomplete.
        match journal.write_all(&text) {
            Ok(()) => *end = JournalEnd { unwritten: None, bytes: end.bytes + text.len() as u64 },
            // Removes an incomplete line, because another line would follow it.
            Err(_) => drop(journal.set_len(end.bytes)),
        }
    }

    /// Removes the journal's file, because there is nothing to resume.
    pub fn remove(mut self) -> Result<()> {
        // The destructor must not remove the file a second time.
        let Some((_file, path)) = self.place.take() else { return Ok(()) };
        fs::remove_file(&path).map_err(Error::journal("removed", &path))
    }
}

impl Drop for FolderJournal {
    fn drop(&mut self) {
        if let Some((file, path)) = &self.place
            && file.metadata().is_ok_and(|there| there.len() == 0)
        {
            let _ = fs::remove_file(path);
        }
    }
}

/// Returns a text that stays the same until the file is modified or replaced.
fn file_tag(there: &Metadata) -> String {
    let files::Identity { device, inode } = files::Identity::from_metadata(there);
    format!("{device}-{inode}-{:?}", there.modified().ok())
}

/// Converts a time to a text. Different times have different texts.
fn time_tag(time: SystemTime) -> String {
    format!("{time:?}")
}

/// Returns the names of the files that the journal in `text` records, and that may not have their final names yet.
pub(crate) fn temporary_names(text: &[u8]) -> Vec<OsString> {
    parse(text).0.complete.into_values().filter_map(|file| Some(file.temporary?.name)).collect()
}

/// Parses lines until the first invalid line. Returns the contents of the valid lines, their length in bytes, and a
/// description of the invalid line, if any.
fn parse(text: &[u8]) -> (FolderContents, usize, Option<String>) {
    let mut contents = FolderContents::default();
    let (whole_bytes, invalid) = split_lines(text, |line| {
        match (serde_json::from_slice(line), &contents.header) {
            (Ok(Line::Header(header)), _) if header.version == VERSION => contents.header = Some(header),
            (Ok(Line::Complete(file)), Some(_)) => drop(contents.complete.insert(file.object.clone(), file)),
            _ => return false,
        }
        true
    });
    (contents, whole_bytes, invalid.map(|(number, line)| describe_damage(number, line, VERSION)))
}
