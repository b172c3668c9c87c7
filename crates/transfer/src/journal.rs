//! What has been moved so far, for whoever goes on with it: a file of lines, appended to and never rewritten.
//!
//! Each line is JSON. The first names both sides and the upload; then a line for each piece that is cut, before it is
//! sent, and one for each that is done. What a kill tears off the end only costs that piece once more.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::crc64::crc64;
use crate::error::Error;

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
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Begun(Begun),
    Cut(Piece),
    Done { index: usize, part: Part },
}

/// The version of these lines.
pub(crate) const VERSION: u32 = 1;

/// What a journal says.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    pub begun: Option<Begun>,
    pub pieces: BTreeMap<usize, (Piece, Option<Part>)>,
}

/// A journal, which nobody else has open.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    path: PathBuf,
}

impl Journal {
    /// The journal of a move from one place to the other, in a folder of journals; and what it says already.
    pub fn open(folder: &Path, from: &str, to: &str) -> Result<(Self, Recorded), Error> {
        fs::create_dir_all(folder).map_err(Error::file("can't make", folder))?;
        let path = folder.join(format!("{}.journal", id(from, to)));
        let mut open = OpenOptions::new();
        let open = open.read(true).append(true).create(true).mode(0o600);
        let mut file = open.open(&path).map_err(Error::file("can't open", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::InUse { journal: path }),
            Err(TryLockError::Error(error)) => return Err(Error::file("can't lock", &path)(error)),
        }
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(Error::file("can't read", &path))?;
        let (recorded, whole_bytes) = read(&text)
            .map_err(|line| Error::CantResume { what: format!("line {line} of {} can't be read", path.display()) })?;
        if whole_bytes < text.len() {
            file.set_len(whole_bytes as u64).map_err(Error::file("can't shorten", &path))?;
        }
        Ok((Self { file, path }, recorded))
    }

    /// Both sides and the upload, so that it lasts: an upload that nobody remembers costs money.
    pub fn begin(&mut self, begun: Begun) -> Result<(), Error> {
        self.write(&Line::Begun(begun))?;
        self.file.sync_data().map_err(Error::file("can't write", &self.path))
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
    pub fn remove(self) -> Result<(), Error> {
        fs::remove_file(&self.path).map_err(Error::file("can't remove", &self.path))
    }

    /// Begins anew.
    pub fn clear(&mut self) -> Result<(), Error> {
        self.file.set_len(0).map_err(Error::file("can't empty", &self.path))
    }

    fn write(&mut self, line: &Line) -> Result<(), Error> {
        let mut text = serde_json::to_vec(line).map_err(|error| Error::Request(error.to_string()))?;
        text.push(b'\n');
        // One call a line, so that lines are torn only where the file ends.
        self.file.write_all(&text).map_err(Error::file("can't write", &self.path))
    }
}

/// What a move is known by among others.
pub(crate) fn id(from: &str, to: &str) -> String {
    format!("{:016x}", crc64(format!("{from}\n{to}").as_bytes()))
}

/// What the lines say, and how long the whole ones are; or the number of the line that makes no sense.
fn read(text: &[u8]) -> Result<(Recorded, usize), usize> {
    let mut recorded = Recorded::default();
    let mut whole_bytes = 0;
    for (index, line) in text.split_inclusive(|byte| *byte == b'\n').enumerate() {
        if line.last() != Some(&b'\n') {
            break;
        }
        let line_bytes = line.len();
        match (serde_json::from_slice(line), &mut recorded) {
            (Ok(Line::Begun(begun)), Recorded { begun: none @ None, .. }) if begun.version == VERSION => {
                *none = Some(begun);
            }
            (Ok(Line::Cut(piece)), Recorded { begun: Some(_), pieces }) => {
                pieces.insert(piece.index, (piece, None));
            }
            (Ok(Line::Done { index: piece, part }), Recorded { begun: Some(_), pieces }) => {
                pieces.get_mut(&piece).ok_or(index + 1)?.1 = Some(part);
            }
            // A crash of the machine may leave zeros where the last lines were.
            _ if text[whole_bytes..].iter().all(|byte| *byte == 0) => break,
            _ => return Err(index + 1),
        }
        whole_bytes += line_bytes;
    }
    Ok((recorded, whole_bytes))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn begun() -> Begun {
        let side = |place: &str| Side { place: place.into(), version: Some("1".into()), bytes: 10 };
        Begun { version: VERSION, source: side("a"), destination: side("b"), upload: "u".into() }
    }

    fn filled(folder: &Path) -> PathBuf {
        let (mut journal, recorded) = Journal::open(folder, "a", "b").unwrap();
        assert!(recorded.begun.is_none() && recorded.pieces.is_empty());
        journal.begin(begun()).unwrap();
        for index in 0..3 {
            journal.cut(Piece { index, offset: 4 * index as u64, bytes: 4 }).unwrap();
        }
        journal.done(1, &Part { token: "t".into(), crc64: u64::MAX }).unwrap();
        journal.path.clone()
    }

    #[test]
    fn what_was_written_is_read_by_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = filled(folder.path());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let (journal, recorded) = Journal::open(folder.path(), "a", "b").unwrap();
        assert_eq!(recorded.begun, Some(begun()));
        let is_done = |index: usize| recorded.pieces[&index].1.is_some();
        assert_eq!([is_done(0), is_done(1), is_done(2)], [false, true, false]);
        assert_eq!(recorded.pieces[&1].1.as_ref().unwrap().crc64, u64::MAX);
        assert!(matches!(Journal::open(folder.path(), "a", "b"), Err(Error::InUse { .. })));
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
            let (mut journal, recorded) = Journal::open(folder.path(), "a", "b").unwrap();
            let lines = text[..length].iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(recorded.begun.is_some(), lines > 0);
            assert_eq!(recorded.pieces.len(), lines.saturating_sub(1).min(3));
            if recorded.begun.is_some() {
                journal.cut(Piece { index: 7, offset: 0, bytes: 1 }).unwrap();
                drop(journal);
                let (_, again) = Journal::open(folder.path(), "a", "b").unwrap();
                assert_eq!(again.pieces.len(), recorded.pieces.len() + 1);
            }
        }
        let zeros = [&text[..], &[0; 100]].concat();
        fs::write(&path, zeros).unwrap();
        assert_eq!(Journal::open(folder.path(), "a", "b").unwrap().1.pieces.len(), 3);
    }

    #[test]
    fn a_line_that_makes_no_sense_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = filled(folder.path());
        let text = fs::read_to_string(&path).unwrap();
        for bad in [text.replacen("cut", "kut", 1), text.replace("\"version\":1,", "\"version\":9,"), "{}\n".into()] {
            fs::write(&path, bad).unwrap();
            let said = Journal::open(folder.path(), "a", "b").unwrap_err().to_string();
            assert!(said.contains("line") && said.contains("--fresh"), "{said}");
        }
    }
}
