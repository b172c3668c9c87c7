//! The journal of the objects that a run writes: a file that names each object before it is sent. Only objects in a
//! journal are ever deleted.
//!
//! The first line is the address of the store. Each other line is an event and a key. The event is `put` before a key is
//! sent, and `gone` after the removal. `done` is followed by the version that the store has given to the object.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ascertain_engine::evidence::runs_folder;

/// The first word of a journal.
const FORMAT: &str = "ascertain-storage-1";

/// A journal that is being written. The file is locked as long as this value exists.
pub struct Journal {
    path: PathBuf,
    file: File,
}

/// The objects that may still exist, each with its version if it is known.
pub type Remaining = BTreeMap<String, Option<String>>;

/// Returns the folder of journals, which is next to the folder of runs.
pub fn folder() -> PathBuf {
    runs_folder().with_file_name("storage-objects")
}

impl Journal {
    /// Creates a journal for objects in the store at `address`. `run` is the random part of its file's name.
    pub fn create(folder: &Path, run: &str, address: &str) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let path = folder.join(format!("{run}-{}", std::process::id()));
        let mut file = File::options().write(true).create_new(true).open(&path)?;
        file.lock()?;
        writeln!(file, "{FORMAT} {address}")?;
        file.sync_all()?;
        // The name of the file must be on the disk, too.
        File::open(folder)?.sync_all()?;
        Ok(Self { path, file })
    }

    /// Records that these keys are about to be sent.
    pub fn put(&mut self, keys: &[String]) -> io::Result<()> {
        let lines: String = keys.iter().map(|key| format!("put {key}\n")).collect();
        self.file.write_all(lines.as_bytes())?;
        self.file.sync_data()
    }

    /// Records the version that the store has given to an object.
    pub fn done(&mut self, key: &str, version: &str) -> io::Result<()> {
        writeln!(self.file, "done {key} {version}")
    }

    /// Records that an object was removed.
    pub fn gone(&mut self, key: &str) -> io::Result<()> {
        writeln!(self.file, "gone {key}")
    }

    /// Removes the journal. Call this when all of its objects are removed.
    pub fn finish(self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

/// Opens a journal that a run has left behind. Returns the journal, the address and the remaining objects. `None` if a
/// run still uses it.
pub fn reopen(path: &Path) -> io::Result<Option<(Journal, String, Remaining)>> {
    let file = File::options().append(true).read(true).open(path)?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(error),
        Ok(()) => {}
    }
    let (address, remaining) = parse(&fs::read_to_string(path)?);
    Ok(Some((Journal { path: path.into(), file }, address, remaining)))
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

/// Parses a journal. A last line without an end was not written completely, so its key was not sent.
fn parse(text: &str) -> (String, Remaining) {
    let complete = text.rsplit_once('\n').map_or("", |(complete, _)| complete);
    let mut lines = complete.lines();
    let address = lines.next().and_then(|line| line.strip_prefix(FORMAT)).unwrap_or_default().trim().to_string();
    let mut remaining = Remaining::new();
    for line in lines {
        match line.split_once(' ').unwrap_or_default() {
            ("put", key) => _ = remaining.insert(key.into(), None),
            ("done", rest) => {
                if let Some((key, version)) = rest.rsplit_once(' ') {
                    remaining.insert(key.into(), Some(version.into()));
                }
            }
            ("gone", key) => _ = remaining.remove(key),
            _ => {}
        }
    }
    (address, remaining)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_names_the_objects_that_may_exist() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(folder.path(), "ab", "s3://bucket/a b/").unwrap();
        journal.put(&["a b/1".into(), "a b/2".into(), "a b/3".into()]).unwrap();
        journal.done("a b/2", "v2").unwrap();
        journal.gone("a b/1").unwrap();
        let [path] = &journals(folder.path()).unwrap()[..] else { panic!("one journal") };
        assert!(reopen(path).unwrap().is_none(), "a run still uses it");
        drop(journal);
        fs::write(path, fs::read_to_string(path).unwrap() + "put cut").unwrap();
        let (mut journal, address, remaining) = reopen(path).unwrap().unwrap();
        assert_eq!(address, "s3://bucket/a b/");
        let expected = [("a b/2".into(), Some("v2".into())), ("a b/3".into(), None)];
        assert_eq!(remaining, expected.into_iter().collect());
        journal.gone("a b/2").unwrap();
        journal.finish().unwrap();
        assert!(journals(folder.path()).unwrap().is_empty());
    }
}
