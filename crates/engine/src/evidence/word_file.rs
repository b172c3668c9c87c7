//! Files of 64-bit integers, called words. The process changes a word in mapped memory, without a system call. A change
//! therefore takes only a few nanoseconds, and it stays in the file even if the process is killed.
//!
//! A file begins with pages of words in the byte order of the machine. The first word, the mark, identifies the kind of
//! file. JSON begins at the start of the page after the words.
//!
//! If the disk is full and the file system is copy-on-write, writing to a mapped page may kill the process.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
#[cfg(target_os = "linux")]
use std::sync::atomic::Ordering::Relaxed;

use ascertain_sys::files::{self, Draft, Lasting};
#[cfg(target_os = "linux")]
use ascertain_sys::journal::Journal;
use serde::Serialize;

const PAGE_BYTES: usize = 4096;
const WORD_BYTES: usize = 8;
/// Maximum size of a file, in bytes. No run needs a larger one.
const MOST_BYTES: u64 = 1 << 30;

/// A file of 64-bit words that this process writes. On systems other than Linux the words keep their initial values.
pub(super) struct WordFile(#[cfg(target_os = "linux")] Journal);

impl WordFile {
    /// Creates the file with these words, followed by `json`, or replaces an existing file. `lock` is called with the
    /// new file while it still has a temporary name. Returns the words, which can now be changed, and the open file.
    ///
    /// # Errors
    /// If the file cannot be written, or if the file system has no shared mappings.
    pub fn create(
        path: &Path,
        words: &[u64],
        json: &impl Serialize,
        lock: impl FnOnce(&File) -> io::Result<()>,
    ) -> io::Result<(WordFile, File)> {
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        bytes.resize(pages_bytes(words.len()), 0);
        serde_json::to_writer(&mut bytes, json)?;
        let folder = files::open_folder(path.parent().unwrap_or(path))?;
        let draft = Draft::create_in(folder, path.file_name().unwrap_or_default())?;
        lock(draft.file())?;
        draft.file().write_all(&bytes)?;
        let file = draft.publish(Lasting::WhileRunning)?;
        #[cfg(target_os = "linux")]
        let words = WordFile(Journal::new(&file, pages_bytes(words.len()))?);
        #[cfg(not(target_os = "linux"))]
        let words = WordFile();
        Ok((words, file))
    }

    /// Replaces the word at this index by the number that `change` makes of it. No other process may change the file.
    pub fn update(&self, index: usize, change: impl FnOnce(u64) -> u64) {
        #[cfg(target_os = "linux")]
        {
            let word = self.0.word(index * WORD_BYTES);
            word.store(change(word.load(Relaxed)), Relaxed);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = (index, change);
    }
}

/// The contents of a file that a [`WordFile`] has written.
pub(super) struct Words(Vec<u8>);

impl Words {
    /// Reads the file. Returns `None` if the file cannot be read, or if its first word is not `mark`.
    pub fn read(path: &Path, mark: u64) -> Option<Words> {
        let words = Words(files::read_regular(path, MOST_BYTES).ok()?);
        (words.get(0)? == mark).then_some(words)
    }

    pub fn get(&self, index: usize) -> Option<u64> {
        let bytes = self.0.get(index.checked_mul(WORD_BYTES)?..)?;
        Some(u64::from_ne_bytes(*bytes.first_chunk()?))
    }

    /// Returns the JSON in the file, if the file has `words` words. The JSON begins after the pages of these words.
    pub fn json(&self, words: usize) -> Option<&[u8]> {
        self.0.get(pages_bytes(Some(words).filter(|&words| words < self.0.len())?)..)
    }
}

/// Returns the size, in bytes, of the pages that hold `words` words.
fn pages_bytes(words: usize) -> usize {
    (words * WORD_BYTES).next_multiple_of(PAGE_BYTES)
}
