//! What has been moved so far, for whoever goes on with it: a file of lines, appended to and never rewritten.
//!
//! Each line is JSON. The first names both sides and the upload; then a line for each piece that is cut, before it is
//! sent, and one for each that is done. What a kill tears off the end only costs that piece once more.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::crc64::crc64;
use crate::error::Error;
use crate::store::Reached;

/// One side of a move, as it was when that began. It names a place without user, password or query.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Side {
    pub place: String,
    /// What changes when it changes; none if there was nothing, or nobody says.
    pub version: Option<String>,
    pub bytes: u64,
}

/// What a move is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Begun {
    pub version: u32,
    pub source: Side,
    pub destination: Side,
    /// The store's name for the upload; empty for a download.
    pub upload: String,
    /// How the store that has the upload is reached; older journals don't say.
    #[serde(default)]
    pub reached: Reached,
    /// The file of a download, while it is not whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temporary: Option<Temporary>,
}

/// A file that is not whole yet, in the folder of the one that it becomes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Temporary {
    pub name: OsString,
    pub device: u64,
    pub inode: u64,
}

/// A part of the whole. Indices increase with offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Piece {
    pub index: usize,
    pub offset: u64,
    pub bytes: u64,
}

/// What there is of a piece that was moved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Part {
    /// What the store must be told of it; empty for a download.
    pub token: String,
    pub crc64: u64,
    /// Of a download whose store knows no other sum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crc32c: Option<u32>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Begun(Box<Begun>),
    Cut(Piece),
    Done { index: usize, part: Part },
}

/// What the names of journals end with, …
pub(crate) const JOURNAL: &str = ".journal";
/// … and those of notes.
pub(crate) const NOTE: &str = ".note";

/// The version of these lines.
pub(crate) const VERSION: u32 = 1;

/// What a journal says.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    pub begun: Option<Begun>,
    pub pieces: BTreeMap<usize, (Piece, Option<Part>)>,
}

/// A journal, which nobody else has open. One that nothing was begun in leaves no file behind.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    path: PathBuf,
    is_begun: bool,
}

impl Journal {
    /// The journal of a move from one place to the other, in a folder of journals; and what it says already. One that
    /// is `fresh` may hold nonsense: its caller is going to clear it.
    pub fn open(folder: &Path, from: &str, to: &str, fresh: bool) -> Result<(Self, Recorded), Error> {
        fs::create_dir_all(folder).map_err(Error::journal("made", folder))?;
        let path = folder.join(format!("{}{JOURNAL}", id(from, to)));
        let mut file = locked(&path)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(Error::journal("read", &path))?;
        let (recorded, whole_bytes, nonsense) = read(&text);
        if let Some(why) = nonsense.filter(|_| !fresh) {
            return Err(Error::CantResume { what: format!("{}: {why}", path.display()) });
        }
        if whole_bytes < text.len() {
            file.set_len(whole_bytes as u64).map_err(Error::journal("shortened", &path))?;
        }
        Ok((Self { file, path, is_begun: recorded.begun.is_some() }, recorded))
    }

    /// A note of an upload that nobody can go on with, so that it can be given up if we are killed.
    pub fn note(folder: &Path, begun: Begun) -> Result<Self, Error> {
        fs::create_dir_all(folder).map_err(Error::journal("made", folder))?;
        let path = folder.join(format!("{:016x}{NOTE}", rand::random::<u64>()));
        let mut note = Self { file: locked(&path)?, path, is_begun: false };
        note.begin(begun).map(|()| note)
    }

    /// One that nobody has open, and what it says; none if it has gone.
    pub fn open_there(path: &Path) -> Result<Option<(Self, Recorded)>, Error> {
        if !path.exists() {
            return Ok(None);
        }
        let mut file = locked(path)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(Error::journal("read", path))?;
        let (recorded, _, nonsense) = read(&text);
        if let (None, Some(why)) = (&recorded.begun, nonsense) {
            let error = io::Error::new(io::ErrorKind::InvalidData, why);
            return Err(Error::file("can't read the journal", path)(error));
        }
        Ok(Some((Self { file, path: path.to_path_buf(), is_begun: !text.is_empty() }, recorded)))
    }

    /// Both sides and the upload, so that it lasts: an upload that nobody remembers costs money.
    pub fn begin(&mut self, begun: Begun) -> Result<(), Error> {
        self.write(&Line::Begun(Box::new(begun)))?;
        self.file.sync_data().map_err(Error::journal("written", &self.path))?;
        self.is_begun = true;
        Ok(())
    }

    /// A piece is about to be moved.
    pub fn cut(&mut self, piece: Piece) -> Result<(), Error> {
        self.write(&Line::Cut(piece))
    }

    /// A piece is there. After a power failure this line may be missing, which costs the piece once more.
    pub fn done(&mut self, index: usize, part: &Part) -> Result<(), Error> {
        self.write(&Line::Done { index, part: part.clone() })
    }

    /// Nothing is left to be gone on with.
    pub fn remove(mut self) -> Result<(), Error> {
        // Once is enough.
        self.is_begun = true;
        fs::remove_file(&self.path).map_err(Error::journal("removed", &self.path))
    }

    /// Begins anew.
    pub fn clear(&mut self) -> Result<(), Error> {
        self.is_begun = false;
        self.file.set_len(0).map_err(Error::journal("emptied", &self.path))
    }

    fn write(&mut self, line: &Line) -> Result<(), Error> {
        let mut text = serde_json::to_vec(line).map_err(|error| Error::Request(error.to_string()))?;
        text.push(b'\n');
        // One call a line, so that lines are torn only where the file ends.
        self.file.write_all(&text).map_err(Error::journal("written", &self.path))
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        if !self.is_begun {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The file of a journal, locked.
fn locked(path: &Path) -> Result<File, Error> {
    loop {
        let mut open = OpenOptions::new();
        let open = open.read(true).append(true).create(true).mode(0o600);
        let file = open.open(path).map_err(Error::journal("opened", path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::InUse { journal: path.to_path_buf() }),
            Err(TryLockError::Error(error)) => return Err(Error::journal("locked", path)(error)),
        }
        // Who had it may have removed it before we locked it: the next one would lock another file of that name.
        if is_named(&file, path).map_err(Error::journal("read", path))? {
            return Ok(file);
        }
    }
}

/// Whether this file is the one of that name.
fn is_named(file: &File, path: &Path) -> io::Result<bool> {
    let ours = file.metadata()?;
    match fs::metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) == (ours.dev(), ours.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// What a move is known by among others.
pub(crate) fn id(from: &str, to: &str) -> String {
    format!("{:016x}", crc64(format!("{from}\n{to}").as_bytes()))
}

/// Where the pieces end.
pub(crate) fn end_of(pieces: &BTreeMap<usize, (Piece, Option<Part>)>) -> Piece {
    let last = pieces.values().next_back().map(|(piece, _)| *piece);
    last.map_or(Piece { index: 0, offset: 0, bytes: 0 }, |last| Piece {
        index: last.index + 1,
        offset: last.offset + last.bytes,
        bytes: 0,
    })
}

/// Whether a piece is the next one, or one that is moved again.
fn fits(piece: Piece, begun: &Begun, pieces: &BTreeMap<usize, (Piece, Option<Part>)>) -> bool {
    match pieces.get(&piece.index) {
        Some((there, _)) => *there == piece,
        None => {
            let next = end_of(pieces);
            let end = piece.offset.checked_add(piece.bytes);
            let is_inside = piece.bytes > 0 && end.is_some_and(|end| end <= begun.source.bytes);
            is_inside && Piece { bytes: 0, ..piece } == next
        }
    }
}

/// What the lines say until one makes no sense, how long they are, and why that one doesn't.
pub(crate) fn read(text: &[u8]) -> (Recorded, usize, Option<String>) {
    let mut recorded = Recorded::default();
    let mut whole_bytes = 0;
    for (index, line) in text.split_inclusive(|byte| *byte == b'\n').enumerate() {
        if line.last() != Some(&b'\n') {
            break;
        }
        match (serde_json::from_slice(line), &mut recorded) {
            (Ok(Line::Begun(begun)), Recorded { begun: none @ None, .. }) if begun.version == VERSION => {
                *none = Some(*begun);
            }
            (Ok(Line::Cut(piece)), Recorded { begun: Some(begun), pieces }) if fits(piece, begun, pieces) => {
                pieces.insert(piece.index, (piece, None));
            }
            (Ok(Line::Done { index, part }), Recorded { pieces, .. }) if pieces.contains_key(&index) => {
                pieces.entry(index).and_modify(|(_, done)| *done = Some(part));
            }
            // A crash of the machine may leave zeros where the last lines were.
            _ if text[whole_bytes..].iter().all(|byte| *byte == 0) => break,
            _ => return (recorded, whole_bytes, Some(senseless(index + 1, line))),
        }
        whole_bytes += line.len();
    }
    (recorded, whole_bytes, None)
}

/// Why a line makes no sense.
fn senseless(number: usize, line: &[u8]) -> String {
    let value = serde_json::from_slice(line).unwrap_or(serde_json::Value::Null);
    match value["begun"]["version"].as_u64() {
        Some(version) if version != u64::from(VERSION) => {
            format!("it is of version {version}, and this program writes and reads version {VERSION}")
        }
        _ => format!("its line {number} makes no sense"),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn begun() -> Begun {
        let side = |place: &str| Side { place: place.into(), version: Some("1".into()), bytes: 16 };
        Begun {
            version: VERSION,
            source: side("a"),
            destination: side("b"),
            upload: "u".into(),
            reached: Reached::default(),
            temporary: None,
        }
    }

    fn open(folder: &Path) -> Result<(Journal, Recorded), Error> {
        Journal::open(folder, "a", "b", false)
    }

    fn filled(folder: &Path) -> PathBuf {
        let (mut journal, recorded) = open(folder).unwrap();
        assert!(recorded.begun.is_none() && recorded.pieces.is_empty());
        journal.begin(begun()).unwrap();
        for index in 0..3 {
            journal.cut(Piece { index, offset: 4 * index as u64, bytes: 4 }).unwrap();
        }
        journal.done(1, &Part { token: "t".into(), crc64: u64::MAX, crc32c: None }).unwrap();
        journal.path.clone()
    }

    #[test]
    fn what_was_written_is_read_by_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = filled(folder.path());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let (journal, recorded) = open(folder.path()).unwrap();
        assert_eq!(recorded.begun, Some(begun()));
        let is_done = |index: usize| recorded.pieces[&index].1.is_some();
        assert_eq!([is_done(0), is_done(1), is_done(2)], [false, true, false]);
        assert_eq!(recorded.pieces[&1].1.as_ref().unwrap().crc64, u64::MAX);
        assert!(matches!(open(folder.path()), Err(Error::InUse { .. })));
        journal.remove().unwrap();
        assert!(!path.exists());
    }

    /// Cut off anywhere, it says no more than before, and can be gone on with.
    #[test]
    fn a_torn_tail_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = filled(folder.path());
        let text = fs::read(&path).unwrap();
        for length in 0..text.len() {
            fs::write(&path, &text[..length]).unwrap();
            let (mut journal, recorded) = open(folder.path()).unwrap();
            let lines = text[..length].iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(recorded.begun.is_some(), lines > 0);
            assert_eq!(recorded.pieces.len(), lines.saturating_sub(1).min(3));
            if recorded.begun.is_some() {
                journal.cut(Piece { bytes: 1, ..end_of(&recorded.pieces) }).unwrap();
                drop(journal);
                let (_, again) = open(folder.path()).unwrap();
                assert_eq!(again.pieces.len(), recorded.pieces.len() + 1);
            }
        }
        let zeros = [&text[..], &[0; 100]].concat();
        fs::write(&path, zeros).unwrap();
        assert_eq!(open(folder.path()).unwrap().1.pieces.len(), 3);
    }

    #[test]
    fn a_line_that_makes_no_sense_is_refused_until_it_is_begun_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = filled(folder.path());
        let text = fs::read_to_string(&path).unwrap();
        let replaced = |from: &str, to: &str| text.replacen(from, to, 1);
        let first = text.lines().next().unwrap();
        let most = format!("{first}\n{{\"cut\":{{\"index\":0,\"offset\":{0},\"bytes\":{0}}}}}\n", u64::MAX);
        for (bad, why) in [
            (replaced("cut", "kut"), "line 2"),
            (replaced("\"version\":1,", "\"version\":9,"), "of version 9"),
            (replaced("\"version\":1,", "\"version\":9,\"more\":"), "line 1"),
            (String::from("{}\n"), "line 1"),
            (format!("{text}{first}\n"), "line 6"),
            // Pieces that are not beside each other, that are empty, or beyond the end.
            (replaced("\"offset\":4", "\"offset\":5"), "line 3"),
            (replaced("\"index\":2", "\"index\":3"), "line 4"),
            (replaced("\"offset\":8,\"bytes\":4", "\"offset\":8,\"bytes\":9"), "line 4"),
            (replaced("\"bytes\":4", "\"bytes\":0"), "line 2"),
            (most, "line 2"),
        ] {
            fs::write(&path, &bad).unwrap();
            let said = open(folder.path()).unwrap_err().to_string();
            assert!(said.contains(why) && said.contains(path.to_str().unwrap()), "{bad}: {said}");
            assert_eq!(fs::read_to_string(&path).unwrap(), bad, "it is left as it is");
            let (mut journal, recorded) = Journal::open(folder.path(), "a", "b", true).unwrap();
            assert_eq!(recorded.begun.is_some(), bad.starts_with(first), "what can be given up is");
            journal.clear().unwrap();
            journal.begin(begun()).unwrap();
            drop(journal);
            assert_eq!(open(folder.path()).unwrap().1.begun, Some(begun()));
        }
    }

    #[test]
    fn a_journal_that_nothing_was_begun_in_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        drop(open(folder.path()).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let path = filled(folder.path());
        open(folder.path()).unwrap().0.clear().unwrap();
        assert!(!path.exists());
    }

    /// Who is done removes it, and another one may have opened it by then.
    #[test]
    fn a_journal_that_is_open_has_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let again = || {
            for _ in 0..2000 {
                match open(folder.path()) {
                    Ok((mut journal, _)) => {
                        journal.begin(begun()).unwrap();
                        assert!(is_named(&journal.file, &journal.path).unwrap());
                        journal.remove().unwrap();
                    }
                    Err(error) => assert!(matches!(error, Error::InUse { .. }), "{error}"),
                }
            }
        };
        std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(again))));
    }
}
