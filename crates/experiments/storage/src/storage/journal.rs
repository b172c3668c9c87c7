//! The journal of the objects that a run writes: a file that names each object before it is sent. Only objects in a
//! journal are ever deleted.
//!
//! The first line is the address of the store and the URL of its bucket. The URL contains the endpoint, which may come
//! from the environment. Each other line is an event and a key. The event is `put` before a key is
//! sent, and `gone` after the removal. `done` is followed by the version that the store has given to the object.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ascertain_engine::evidence::runs_folder;
use ascertain_sys::files::is_named;

/// The first word of a journal.
const FORMAT: &str = "ascertain-storage-2 ";

/// A journal that is being written. The file is locked as long as this value exists.
pub struct Journal {
    path: PathBuf,
    file: File,
    /// `true` after a failed write, which may have left a part of a line.
    is_broken: bool,
}

/// The store of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalStore {
    /// The address as the user gave it.
    pub address: String,
    /// The URL of the bucket or container, without secrets.
    pub base: String,
}

/// A journal that a run has left behind.
pub enum LeftJournal {
    /// A run still uses the journal.
    InUse,
    /// The run ended before it wrote the first line, and so before it sent an object. The journal was removed.
    Empty,
    Ended(Journal, JournalStore, Remaining),
}

/// The objects that may still exist, each with its version if it is known.
pub type Remaining = BTreeMap<String, Option<String>>;

/// Returns the folder of journals, which is next to the folder of runs.
pub fn folder() -> PathBuf {
    runs_folder().with_file_name("storage-objects")
}

impl Journal {
    /// Creates a journal for objects in `store`. `run` is the random part of its file's name.
    pub fn create(folder: &Path, run: &str, store: &JournalStore) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let path = folder.join(format!("{run}-{}", std::process::id()));
        let file = loop {
            let file = File::options().append(true).create_new(true).open(&path)?;
            file.lock()?;
            // A clean-up may have removed the empty file before it was locked.
            if is_named(&file, &path)? {
                break file;
            }
        };
        let mut journal = Self { path, file, is_broken: false };
        journal.write(&format!("{FORMAT}{}\t{}\n", store.address, store.base))?;
        journal.file.sync_all()?;
        // The name of the file must be on the disk, too.
        File::open(folder)?.sync_all()?;
        Ok(journal)
    }

    /// Appends whole lines. After a failure, appends nothing more, because a new line would continue an incomplete one.
    fn write(&mut self, lines: &str) -> io::Result<()> {
        if self.is_broken {
            return Err(io::Error::other("an earlier write to the journal failed"));
        }
        let written = self.file.write_all(lines.as_bytes());
        self.is_broken = written.is_err();
        written
    }

    /// Records that these keys are about to be sent.
    pub fn put(&mut self, keys: &[String]) -> io::Result<()> {
        let lines: String = keys.iter().map(|key| format!("put {key}\n")).collect();
        self.write(&lines)?;
        // Without this, a crash of the machine could lose the names of objects that were sent.
        self.file.sync_data().inspect_err(|_| self.is_broken = true)
    }

    /// Records the version that the store has given to an object.
    pub fn done(&mut self, key: &str, version: &str) -> io::Result<()> {
        self.write(&format!("done {key} {version}\n"))
    }

    /// Records that an object was removed.
    pub fn gone(&mut self, key: &str) -> io::Result<()> {
        self.write(&format!("gone {key}\n"))
    }

    /// Removes the journal. Call this when all of its objects are removed.
    pub fn finish(self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

/// Opens a journal. Removes the last line if it has no line feed: it was not written completely, so its key was not
/// sent.
///
/// # Errors
/// Returns the errors of reading the file, and an error if its first line does not belong to a journal.
pub fn reopen(path: &Path) -> io::Result<LeftJournal> {
    let file = File::options().append(true).read(true).open(path)?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => return Ok(LeftJournal::InUse),
        Err(TryLockError::Error(error)) => return Err(error),
        // Another clean-up may have removed the file before it was locked.
        Ok(()) if !is_named(&file, path)? => return Ok(LeftJournal::Empty),
        Ok(()) => {}
    }
    let bytes = fs::read(path)?;
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
    let text = std::str::from_utf8(&bytes[..end]).map_err(io::Error::other)?;
    if text.is_empty() && FORMAT.as_bytes().starts_with(&bytes[..bytes.len().min(FORMAT.len())]) {
        // The run that creates this file notices that it is gone.
        fs::remove_file(path)?;
        return Ok(LeftJournal::Empty);
    }
    let (store, remaining) =
        parse(text).ok_or_else(|| io::Error::other("its first line does not belong to a journal, so it was kept"))?;
    if end < bytes.len() {
        file.set_len(end as u64)?;
    }
    Ok(LeftJournal::Ended(Journal { path: path.into(), file, is_broken: false }, store, remaining))
}

/// Returns the paths of all journals in a folder.
pub fn journals(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    Ok(paths)
}

/// Parses the complete lines of a journal. `None` if the first line does not belong to a journal.
fn parse(text: &str) -> Option<(JournalStore, Remaining)> {
    let mut lines = text.lines();
    let (address, base) = lines.next()?.strip_prefix(FORMAT)?.split_once('\t')?;
    let store = JournalStore { address: address.into(), base: base.into() };
    let mut remaining = Remaining::new();
    for line in lines {
        match line.split_once(' ').unwrap_or_default() {
            ("put", key) => _ = remaining.insert(key.into(), None),
            ("done", rest) => {
                if let Some((key, version)) = rest.rsplit_once(' ')
                    && let Some(known) = remaining.get_mut(key)
                {
                    *known = Some(version.into());
                }
            }
            ("gone", key) => _ = remaining.remove(key),
            _ => {}
        }
    }
    Some((store, remaining))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> JournalStore {
        JournalStore { address: "s3://bucket/a b/".into(), base: "https://host/bucket".into() }
    }

    fn ended(path: &Path) -> (Journal, JournalStore, Remaining) {
        match reopen(path).unwrap() {
            LeftJournal::Ended(journal, store, remaining) => (journal, store, remaining),
            _ => panic!("the journal has ended"),
        }
    }

    #[test]
    fn a_journal_names_the_objects_that_may_exist() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(folder.path(), "ab", &store()).unwrap();
        journal.put(&["a b/1".into(), "a b/2".into(), "a b/3".into()]).unwrap();
        journal.done("a b/2", "v2").unwrap();
        journal.gone("a b/1").unwrap();
        let [path] = &journals(folder.path()).unwrap()[..] else { panic!("one journal") };
        assert!(matches!(reopen(path).unwrap(), LeftJournal::InUse));
        drop(journal);
        // The write of the last line was cut off. The next record does not continue it.
        fs::write(path, fs::read_to_string(path).unwrap() + "done a b/3 v").unwrap();
        let expected = [("a b/2".into(), Some("v2".into())), ("a b/3".into(), None)];
        let (mut journal, opened, remaining) = ended(path);
        assert_eq!((opened, remaining), (store(), expected.clone().into_iter().collect()));
        journal.gone("a b/2").unwrap();
        drop(journal);
        let (journal, _, remaining) = ended(path);
        assert_eq!(remaining, expected[1..].iter().cloned().collect());
        journal.finish().unwrap();
        assert!(journals(folder.path()).unwrap().is_empty());
    }

    #[test]
    fn only_an_empty_file_is_removed_without_a_first_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        for text in ["", "ascertain-st", "ascertain-storage-2 s3://b"] {
            fs::write(&path, text).unwrap();
            assert!(matches!(reopen(&path).unwrap(), LeftJournal::Empty), "{text}");
            assert!(!path.exists());
        }
        for text in ["other", "other\nput a\n", "ascertain-storage-2 s3://b\nput a\n"] {
            fs::write(&path, text).unwrap();
            assert!(reopen(&path).is_err(), "{text}");
            assert!(path.exists());
        }
    }

    /// A failed write may leave a part of a line, which the next record must not continue.
    #[test]
    #[cfg(target_os = "linux")]
    fn after_a_failed_write_nothing_more_is_recorded() {
        let file = |path: &str| File::options().write(true).open(path).unwrap();
        let mut journal = Journal { path: "/dev/full".into(), file: file("/dev/full"), is_broken: false };
        assert!(journal.put(&["a".into()]).is_err());
        journal.file = file("/dev/null");
        assert!(journal.put(&["b".into()]).unwrap_err().to_string().contains("earlier write"));
    }

    #[test]
    fn a_version_of_an_unknown_key_is_ignored() {
        let text = format!("{FORMAT}s3://b\thttp://h/b\nput a\ndone ab v\ndone a v\n");
        assert_eq!(parse(&text).unwrap().1, [("a".into(), Some("v".into()))].into_iter().collect());
    }
}
