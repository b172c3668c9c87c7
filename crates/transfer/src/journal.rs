//! The record of a transfer, from which an interrupted transfer can be resumed. It is a file of lines, and lines are
//! only appended.
//!
//! Each line is JSON. The first line describes the source, the destination and the upload. For each part, one line is
//! written before the part is transferred, and a second line afterwards. If the process is killed, the last lines may
//! be missing. Only the parts whose lines are missing are then transferred again.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use ascertain_sys::files::is_named;
use serde::{Deserialize, Serialize};

use crate::crc64::{crc32c_of_blocks, crc64, crc64_of_blocks};
use crate::error::{Error, Result};
use crate::store::StoreLocation;

/// The source or the destination of a transfer: a file or object, and its state when the transfer started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Side {
    /// Path or address, without user, password and query.
    #[serde(rename = "place")]
    pub address: String,
    /// A tag that changes whenever the contents change. `None` if the file or object did not exist, or if the store has
    /// no tags.
    pub version: Option<String>,
    pub bytes: u64,
}

/// The first line of a journal, which describes the transfer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct JournalHeader {
    version: u32,
    pub source: Side,
    pub destination: Side,
    /// The store's identifier for the upload; empty for a download.
    pub upload: String,
    /// The settings that are needed, in addition to an address, to reach the store that has the upload.
    #[serde(rename = "reached", default)]
    pub location: StoreLocation,
    /// The fingerprint of the attributes with which the upload was started; `None` for a download.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub attributes: Option<u64>,
    /// The incomplete file of a download; `None` for an upload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temporary: Option<Temporary>,
}

/// The name and identity of a download's incomplete file. The file is in the same folder as the target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Temporary {
    pub name: OsString,
    pub device: u64,
    pub inode: u64,
}

/// A range of a file that one request transfers. A part with a larger index has a larger offset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Part {
    pub index: usize,
    pub offset: u64,
    pub bytes: u64,
}

/// The proof that a part was transferred: the store's token, and the checksums.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PartReceipt {
    /// The token that the store has returned for the part, and that the commit needs. Empty for a download.
    pub token: String,
    pub crc64: u64,
    /// The CRC-32C of the part, for downloads from a store that knows no other checksum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crc32c: Option<u32>,
}

/// The parts of a file, by index. A part has a receipt if it was transferred.
#[derive(Clone, Debug, Default)]
pub(crate) struct PartList(BTreeMap<usize, (Part, Option<PartReceipt>)>);

impl Part {
    /// Returns the offset of the first byte after the part.
    pub fn end(self) -> u64 {
        self.offset + self.bytes
    }
}

impl PartList {
    pub fn iter(&self) -> impl Iterator<Item = Part> {
        self.0.values().map(|(part, _)| *part)
    }

    /// Returns the part `index` and its receipt; `None` if it was not transferred.
    pub fn get(&self, index: usize) -> Option<(Part, &PartReceipt)> {
        self.0.get(&index).and_then(|(part, receipt)| Some((*part, receipt.as_ref()?)))
    }

    /// Adds a part, without a receipt, before its first or repeated transfer.
    pub fn start(&mut self, part: Part) {
        self.0.insert(part.index, (part, None));
    }

    pub fn complete(&mut self, index: usize, receipt: PartReceipt) {
        self.0.entry(index).and_modify(|(_, there)| *there = Some(receipt));
    }

    /// Removes the receipt of each transferred part for which `is_right` returns `false`, so that this part is
    /// transferred again.
    pub fn recheck(&mut self, is_right: impl Fn(Part, &PartReceipt) -> bool) {
        for (part, receipt) in self.0.values_mut() {
            receipt.take_if(|receipt| !is_right(*part, receipt));
        }
    }

    /// Returns the part that starts where the last part of the list ends. Its size is 0, and must be set by the caller.
    pub fn next(&self) -> Part {
        let last = self.0.values().next_back();
        last.map_or_else(Part::default, |(last, _)| Part {
            index: last.index + 1,
            offset: last.offset + last.bytes,
            bytes: 0,
        })
    }

    /// Returns the parts that have no receipt.
    pub fn pending(&self) -> VecDeque<Part> {
        self.0.values().filter(|(_, receipt)| receipt.is_none()).map(|(part, _)| *part).collect()
    }

    /// Returns whether all parts of a file of `bytes` bytes were transferred.
    pub fn is_complete(&self, bytes: u64) -> bool {
        self.done_bytes() == bytes && self.pending().is_empty()
    }

    fn done(&self) -> impl Iterator<Item = (u64, &PartReceipt)> {
        self.0.values().filter_map(|(part, receipt)| Some((part.bytes, receipt.as_ref()?)))
    }

    pub fn done_bytes(&self) -> u64 {
        self.done().map(|(bytes, _)| bytes).sum()
    }

    /// Returns the CRC-64/NVME of all transferred parts, joined in their order.
    pub fn crc64(&self) -> u64 {
        crc64_of_blocks(self.done().map(|(bytes, receipt)| (bytes, receipt.crc64)))
    }

    /// Returns the CRC-32C of all transferred parts, joined in their order; `None` if a part has no CRC-32C.
    pub fn crc32c(&self) -> Option<u32> {
        let sums = self.done().map(|(bytes, receipt)| Some((bytes, receipt.crc32c?)));
        Some(crc32c_of_blocks(sums.collect::<Option<Vec<_>>>()?))
    }

    pub fn tokens(&self) -> Vec<String> {
        self.done().map(|(_, receipt)| receipt.token.clone()).collect()
    }

    /// Returns whether `part` may start. A part that the list already contains with the same range may be repeated. Any
    /// other part must directly follow the last part of the list, and must be within the `bytes` bytes of the file.
    fn accepts(&self, part: Part, bytes: u64) -> bool {
        match self.0.get(&part.index) {
            Some((there, _)) => *there == part,
            None => {
                let end = part.offset.checked_add(part.bytes);
                part.bytes > 0 && end.is_some_and(|end| end <= bytes) && Part { bytes: 0, ..part } == self.next()
            }
        }
    }
}

#[derive(Serialize, Deserialize)]
enum Line {
    #[serde(rename = "begun")]
    Header(Box<JournalHeader>),
    #[serde(rename = "cut")]
    Started(Part),
    #[serde(rename = "done")]
    Completed { index: usize, part: PartReceipt },
}

/// The extension of a journal's file.
pub(crate) const JOURNAL: &str = ".journal";
/// The extension of the file of a note, a short record of an upload that can't be resumed.
pub(crate) const NOTE: &str = ".note";

/// The version of the journal's format. Journals with another version are rejected.
const VERSION: u32 = 1;

impl JournalHeader {
    pub fn new(source: Side, destination: Side, upload: String, location: StoreLocation) -> Self {
        Self { version: VERSION, source, destination, upload, location, attributes: None, temporary: None }
    }
}

/// The data in the valid lines of a journal.
#[derive(Debug, Default)]
pub(crate) struct JournalContents {
    pub header: Option<JournalHeader>,
    pub parts: PartList,
}

/// A locked record of a transfer: a journal, or a note for an upload that can't be resumed. If it is dropped before its
/// first line is written, its file is removed. The default value has no file, and records nothing.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    file: Option<(File, PathBuf)>,
    is_started: bool,
    is_note: bool,
}

impl Journal {
    /// Opens and reads the journal in `folder` for the transfer from `from` to `to`. If `folder` is `None`, nothing is
    /// recorded. If `is_fresh`, a damaged journal is not an error, because the caller is going to clear it.
    pub fn open(folder: Option<&Path>, from: &str, to: &str, is_fresh: bool) -> Result<(Self, JournalContents)> {
        let Some(folder) = folder else { return Ok(Default::default()) };
        let path = journal_path(folder, &format!("{from}\n{to}"), JOURNAL)?;
        let (file, text) = read_locked(&path)?;
        let (contents, whole_bytes, damage) = parse(&text);
        if let Some(damage) = damage.filter(|_| !is_fresh) {
            return Err(Error::CantResume(format!("{}: {damage}", path.display())));
        }
        if whole_bytes < text.len() {
            file.set_len(whole_bytes as u64).map_err(Error::journal("shortened", &path))?;
        }
        Ok((Self { file: Some((file, path)), is_started: contents.header.is_some(), is_note: false }, contents))
    }

    /// Writes a note for an upload that can't be resumed. A note is a record with only the first line. If this process
    /// is killed, a later command uses the note to abort the upload. Returns a journal without a file if `folder` is
    /// `None` or the note can't be written.
    pub fn note(folder: Option<&Path>, header: JournalHeader) -> Self {
        let write = |folder: &Path| {
            fs::create_dir_all(folder).map_err(Error::journal("made", folder))?;
            let path = folder.join(format!("{:016x}{NOTE}", rand::random::<u64>()));
            let mut note = Self { file: Some((lock(&path)?, path)), is_started: false, is_note: true };
            note.start(header).map(|()| note)
        };
        folder.and_then(|folder| write(folder).ok()).unwrap_or_default()
    }

    /// Opens and reads a journal or a note. Returns the open record, its first line, and its parts. Returns `None` if
    /// the file is gone or empty, or if another process has locked it.
    pub fn reopen(path: &Path) -> Result<Option<(Self, JournalHeader, PartList)>> {
        let Some((file, text)) = reopen_locked(path)? else { return Ok(None) };
        let (JournalContents { header, parts }, _, damage) = parse(&text);
        if let (None, Some(damage)) = (&header, damage) {
            return Err(Error::damaged_journal(path, damage));
        }
        let journal = Self { file: Some((file, path.into())), is_started: !text.is_empty(), is_note: false };
        Ok(header.map(|header| (journal, header, parts)))
    }

    /// Returns whether this record lists the parts in a file, so that the transfer can be resumed. A [`Self::note`]
    /// lists no parts.
    pub fn is_resumable(&self) -> bool {
        self.file.is_some() && !self.is_note
    }

    /// Writes the first line, and waits until it is on the disk. If a crash of the machine destroyed this line, no
    /// later command could abort the upload. Its parts would stay in the store and cost money.
    pub fn start(&mut self, header: JournalHeader) -> Result<()> {
        self.write(&Line::Header(Box::new(header)))?;
        if let Some((file, path)) = &self.file {
            file.sync_data().map_err(Error::journal("written", path))?;
        }
        self.is_started = true;
        Ok(())
    }

    /// Records that a part is about to be transferred.
    pub fn start_part(&mut self, part: Part) -> Result<()> {
        if self.is_note { Ok(()) } else { self.write(&Line::Started(part)) }
    }

    /// Records that the part `index` was transferred. If this line is lost in a power failure, the part is transferred
    /// again.
    pub fn complete_part(&mut self, index: usize, receipt: &PartReceipt) -> Result<()> {
        if self.is_note { Ok(()) } else { self.write(&Line::Completed { index, part: receipt.clone() }) }
    }

    /// Removes the record's file, because there is nothing to resume. Fails if a journal can't be removed. Ignores the
    /// error if a note can't be removed.
    pub fn remove(mut self) -> Result<()> {
        // The destructor must not remove the file a second time.
        self.is_started = true;
        let Some((_, path)) = &self.file else { return Ok(()) };
        match fs::remove_file(path) {
            Err(error) if !self.is_note => Err(Error::journal("removed", path)(error)),
            _ => Ok(()),
        }
    }

    /// Removes all lines from the file.
    pub fn clear(&mut self) -> Result<()> {
        self.is_started = false;
        let Some((file, path)) = &self.file else { return Ok(()) };
        file.set_len(0).map_err(Error::journal("emptied", path))
    }

    fn write(&mut self, line: &Line) -> Result<()> {
        let Some((file, path)) = &mut self.file else { return Ok(()) };
        let mut text = serde_json::to_vec(line).map_err(|error| Error::Request(error.to_string()))?;
        text.push(b'\n');
        // Each line is written with one call, so only the last line can be incomplete.
        file.write_all(&text).map_err(Error::journal("written", path))
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        if let Some((_, path)) = self.file.as_ref().filter(|_| !self.is_started) {
            let _ = fs::remove_file(path);
        }
    }
}

/// Returns the path of the journal for `key` in the folder of journals. Creates the folder if it is missing.
pub(crate) fn journal_path(folder: &Path, key: &str, extension: &str) -> Result<PathBuf> {
    fs::create_dir_all(folder).map_err(Error::journal("made", folder))?;
    Ok(folder.join(format!("{:016x}{extension}", crc64(key.as_bytes()))))
}

/// Time for which a process waits for the lock of its journal. Another process, which lists all journals, may hold the
/// lock for a moment.
const LISTING: Duration = Duration::from_millis(200);

/// Opens and locks a journal, and reads it.
pub(crate) fn read_locked(path: &Path) -> Result<(File, Vec<u8>)> {
    let started = Instant::now();
    loop {
        match lock(path) {
            Err(Error::InUse { .. }) if started.elapsed() < LISTING => thread::sleep(Duration::from_millis(5)),
            locked => return read_all(locked?, path),
        }
    }
}

fn read_all(mut file: File, path: &Path) -> Result<(File, Vec<u8>)> {
    let mut text = Vec::new();
    file.read_to_end(&mut text).map_err(Error::journal("read", path))?;
    Ok((file, text))
}

/// Opens an existing journal like [`read_locked`]. Returns `None` if it is gone, or if another process has locked it.
pub(crate) fn reopen_locked(path: &Path) -> Result<Option<(File, Vec<u8>)>> {
    if !path.exists() {
        return Ok(None);
    }
    match lock(path) {
        Err(Error::InUse { .. }) => Ok(None),
        locked => read_all(locked?, path).map(Some),
    }
}

/// Opens the file of a journal or a note, and locks it. Fails if another process has locked it.
fn lock(path: &Path) -> Result<File> {
    loop {
        let mut open = OpenOptions::new();
        let open = open.read(true).append(true).create(true).mode(0o600);
        let file = open.open(path).map_err(Error::journal("opened", path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::InUse { journal: path.to_path_buf() }),
            Err(TryLockError::Error(error)) => return Err(Error::journal("locked", path)(error)),
        }
        // The previous owner of the lock may have removed the file before this process locked it. If so, this lock
        // protects nothing: another process could create and lock a new file of that name.
        if is_named(&file, path).map_err(Error::journal("read", path))? {
            return Ok(file);
        }
    }
}

/// Parses lines until the first invalid line. Returns the contents of the valid lines, their length in bytes, and a
/// description of the invalid line, if any.
pub(crate) fn parse(text: &[u8]) -> (JournalContents, usize, Option<String>) {
    let mut contents = JournalContents::default();
    let (whole_bytes, invalid) = split_lines(text, |line| {
        let JournalContents { header, parts } = &mut contents;
        match (serde_json::from_slice(line), &header) {
            (Ok(Line::Header(first)), None) if first.version == VERSION => *header = Some(*first),
            (Ok(Line::Started(part)), Some(header)) if parts.accepts(part, header.source.bytes) => parts.start(part),
            (Ok(Line::Completed { index, part }), _) if parts.0.contains_key(&index) => parts.complete(index, part),
            _ => return false,
        }
        true
    });
    (contents, whole_bytes, invalid.map(|(number, line)| describe_damage(number, line, VERSION)))
}

/// Calls `accept` with each line. `accept` returns `false` for an invalid line. Stops before the first invalid line,
/// and before an incomplete last line. Returns the length of the valid lines in bytes. Also returns the number and the
/// text of the invalid line, if any.
pub(crate) fn split_lines(text: &[u8], mut accept: impl FnMut(&[u8]) -> bool) -> (usize, Option<(usize, &[u8])>) {
    let mut whole_bytes = 0;
    for (index, line) in text.split_inclusive(|byte| *byte == b'\n').enumerate() {
        if line.last() != Some(&b'\n') {
            break;
        }
        if !accept(line) {
            // After a crash of the machine, the file may contain zeros in place of the last lines.
            let is_lost = text[whole_bytes..].iter().all(|byte| *byte == 0);
            return (whole_bytes, Some((index + 1, line)).filter(|_| !is_lost));
        }
        whole_bytes += line.len();
    }
    (whole_bytes, None)
}

/// Describes an invalid line. `version` is the version of the format that this program supports.
pub(crate) fn describe_damage(number: usize, line: &[u8], version: u32) -> String {
    let value = serde_json::from_slice(line).unwrap_or(serde_json::Value::Null);
    match value["begun"]["version"].as_u64() {
        Some(theirs) if theirs != u64::from(version) => {
            format!("its format version is {theirs}, but this program supports version {version}")
        }
        _ => format!("line {number} is invalid"),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn header() -> JournalHeader {
        let side = |address: &str| Side { address: address.into(), version: Some("1".into()), bytes: 16 };
        JournalHeader::new(side("a"), side("b"), "u".into(), StoreLocation::default())
    }

    fn open(folder: &Path) -> Result<(Journal, JournalContents)> {
        Journal::open(Some(folder), "a", "b", false)
    }

    fn filled(folder: &Path) -> PathBuf {
        let (mut journal, contents) = open(folder).unwrap();
        assert!(contents.header.is_none() && contents.parts.0.is_empty());
        journal.start(header()).unwrap();
        for index in 0..3 {
            journal.start_part(Part { index, offset: 4 * index as u64, bytes: 4 }).unwrap();
        }
        journal.complete_part(1, &PartReceipt { token: "t".into(), crc64: u64::MAX, crc32c: None }).unwrap();
        journal.file.as_ref().unwrap().1.clone()
    }

    #[test]
    fn only_the_owner_can_read_a_journal() {
        let folder = tempfile::tempdir().unwrap();
        let path = filled(folder.path());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let (journal, contents) = open(folder.path()).unwrap();
        assert_eq!(contents.header, Some(header()));
        let is_done = |index: usize| contents.parts.0[&index].1.is_some();
        assert_eq!([is_done(0), is_done(1), is_done(2)], [false, true, false]);
        assert_eq!(contents.parts.0[&1].1.as_ref().unwrap().crc64, u64::MAX);
        assert!(matches!(open(folder.path()), Err(Error::InUse { .. })));
        journal.remove().unwrap();
        assert!(!path.exists());
    }

    /// A journal that is truncated after any byte still contains all complete lines, and can be continued.
    #[test]
    fn a_truncated_last_line_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let path = filled(folder.path());
        let text = fs::read(&path).unwrap();
        for length in 0..text.len() {
            fs::write(&path, &text[..length]).unwrap();
            let (mut journal, contents) = open(folder.path()).unwrap();
            let lines = text[..length].iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(contents.header.is_some(), lines > 0);
            assert_eq!(contents.parts.0.len(), lines.saturating_sub(1).min(3));
            if contents.header.is_some() {
                journal.start_part(Part { bytes: 1, ..contents.parts.next() }).unwrap();
                drop(journal);
                let (_, again) = open(folder.path()).unwrap();
                assert_eq!(again.parts.0.len(), contents.parts.0.len() + 1);
            }
        }
        let zeros = [&text[..], &[0; 100]].concat();
        fs::write(&path, zeros).unwrap();
        assert_eq!(open(folder.path()).unwrap().1.parts.0.len(), 3);
    }

    #[test]
    fn an_invalid_line_is_refused_until_the_journal_is_started_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = filled(folder.path());
        let text = fs::read_to_string(&path).unwrap();
        let replaced = |from: &str, to: &str| text.replacen(from, to, 1);
        let first = text.lines().next().unwrap();
        let most = format!("{first}\n{{\"cut\":{{\"index\":0,\"offset\":{0},\"bytes\":{0}}}}}\n", u64::MAX);
        for (bad, why) in [
            (replaced("cut", "kut"), "line 2"),
            (replaced("\"version\":1,", "\"version\":9,"), "format version is 9"),
            (replaced("\"version\":1,", "\"version\":9,\"more\":"), "line 1"),
            (String::from("{}\n"), "line 1"),
            (format!("{text}{first}\n"), "line 6"),
            // In these journals, a part is not adjacent to the previous one, is empty, or is beyond the end of the
            // file.
            (replaced("\"offset\":4", "\"offset\":5"), "line 3"),
            (replaced("\"index\":2", "\"index\":3"), "line 4"),
            (replaced("\"offset\":8,\"bytes\":4", "\"offset\":8,\"bytes\":9"), "line 4"),
            (replaced("\"bytes\":4", "\"bytes\":0"), "line 2"),
            (most, "line 2"),
        ] {
            fs::write(&path, &bad).unwrap();
            let said = open(folder.path()).unwrap_err().to_string();
            assert!(said.contains(why) && said.contains(path.to_str().unwrap()), "{bad}: {said}");
            assert_eq!(fs::read_to_string(&path).unwrap(), bad, "a damaged journal is not changed");
            let (mut journal, contents) = Journal::open(Some(folder.path()), "a", "b", true).unwrap();
            assert_eq!(contents.header.is_some(), bad.starts_with(first), "a valid header is used to abort the upload");
            journal.clear().unwrap();
            journal.start(header()).unwrap();
            drop(journal);
            assert_eq!(open(folder.path()).unwrap().1.header, Some(header()));
        }
    }

    #[test]
    fn a_journal_without_a_started_transfer_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        drop(open(folder.path()).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let path = filled(folder.path());
        open(folder.path()).unwrap().0.clear().unwrap();
        assert!(!path.exists());
    }

    /// A process removes its journal at the end. Another process that has opened the same file must not use it.
    #[test]
    fn a_journal_that_is_open_has_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("1.journal");
        let again = || {
            for _ in 0..2000 {
                match lock(&path) {
                    Ok(file) => {
                        assert!(is_named(&file, &path).unwrap());
                        fs::remove_file(&path).unwrap();
                    }
                    Err(error) => assert!(matches!(error, Error::InUse { .. }), "{error}"),
                }
            }
        };
        std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(again))));
    }
}
