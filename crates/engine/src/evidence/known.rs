//! Records in this user's state folder of the runs that were recorded on this machine: a file for each run, with its
//! plan and the size of its evidence.
//!
//! A copy of a run's folder that is older than this is not continued: whoever copies a run, watches it, and goes back
//! to the copy could otherwise choose among its trials. A run that is not known here came from elsewhere, and so may
//! its command lines.
//!
//! The file begins with a page of three words: a mark, the bytes of `trials.jsonl` when rows were last written, and how
//! many trials were begun since. Behind it is the plan as JSON. The file is locked while its run is measured.

use std::fs::{self, DirBuilder, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use ascertain_sys::files::{self, Draft, Lasting};
use serde_json::Value;

use super::error::Error;
use super::folder::{Header, is_run_id};
use super::writer::LockedFile;

#[cfg(target_os = "linux")]
use ascertain_sys::journal::Journal;
#[cfg(target_os = "linux")]
use std::sync::atomic::Ordering::Relaxed;

const PAGE_BYTES: usize = 4096;
const WORD_BYTES: usize = 8;
const MARK: u64 = u64::from_be_bytes(*b"known\0\0\x01");
const BYTES: usize = WORD_BYTES;
const BEGUN: usize = 2 * WORD_BYTES;
/// No plan is larger.
const MOST_BYTES: u64 = 1 << 30;

/// The file of a run while it is measured.
pub(super) struct Known {
    #[cfg(target_os = "linux")]
    words: Journal,
    _locked: LockedFile,
}

/// The size of a run's evidence when the run was last measured here.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Progress {
    /// The bytes of its rows.
    bytes: u64,
    /// Trials begun since they were written.
    begun: u64,
}

impl Known {
    /// Begins the file of a new run. None where the folder can't be written to, which is no reason not to measure.
    pub fn create(known: &Path, header: &Header) -> Option<Known> {
        write(known, header, Progress::default()).ok()
    }

    /// Takes the file of a run up again whose folder has so many bytes of rows, and says that so many more trials were
    /// begun.
    ///
    /// # Errors
    /// If more is known of the run than its folder has, or if another process is measuring it, in this folder or in a
    /// copy.
    pub fn resume(known: &Path, run: &Path, header: &Header, bytes: u64, begun: u64) -> Result<Option<Known>, Error> {
        let Some(path) = path(known, &header.run_id) else { return Ok(None) };
        let there = Progress { bytes, begun };
        if path.exists() {
            let locked = lock(&path, run)?;
            let then = read(&path).map(|(then, _)| then).unwrap_or_default();
            if there.bytes < then.bytes || there.bytes == then.bytes && there.begun < then.begun {
                return Err(Error::OlderCopy { run: run.to_path_buf() });
            }
            drop(locked);
        }
        Ok(write(known, header, there).ok())
    }

    /// A trial begins.
    pub fn begin(&self) {
        #[cfg(target_os = "linux")]
        {
            let begun = self.words.word(BEGUN);
            begun.store(begun.load(Relaxed) + 1, Relaxed);
        }
    }

    /// The rows of all trials that were begun are written, and have so many bytes.
    pub fn written(&self, bytes: u64) {
        #[cfg(target_os = "linux")]
        {
            self.words.word(BYTES).store(bytes, Relaxed);
            self.words.word(BEGUN).store(0, Relaxed);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = bytes;
    }
}

/// Whether this user has recorded the run, or continued it, on this machine, with the plan that its folder has now.
#[must_use]
pub fn is_known(known: &Path, header: &Header) -> bool {
    let plan = path(known, &header.run_id).and_then(|path| serde_json::from_slice::<Value>(&read(&path)?.1).ok());
    plan.is_some_and(|plan| plan_of(header).is_ok_and(|now| now == plan))
}

/// Forgets a run that was deleted.
pub fn forget(known: &Path, run_id: &str) {
    if let Some(path) = path(known, run_id) {
        // One that is left says no more than that the run was recorded here.
        let _ = fs::remove_file(path);
    }
}

/// The file of a run, if its id is one that this program gives.
fn path(known: &Path, run_id: &str) -> Option<PathBuf> {
    is_run_id(run_id).then(|| known.join(run_id))
}

/// The plan as it is when `run.json` was read: numbers that were written and read may differ in their last digit.
fn plan_of(header: &Header) -> io::Result<Value> {
    let mut plan = serde_json::to_value(&header.plan)?;
    for _ in 0..2 {
        plan = serde_json::from_slice(&serde_json::to_vec(&plan)?)?;
    }
    Ok(plan)
}

fn read(path: &Path) -> Option<(Progress, Vec<u8>)> {
    let mut bytes = files::read_regular(path, MOST_BYTES).ok()?;
    let word = |offset: usize| Some(u64::from_ne_bytes(*bytes.get(offset..)?.first_chunk()?));
    let progress = Progress { bytes: word(BYTES)?, begun: word(BEGUN)? };
    if word(0)? != MARK || bytes.len() < PAGE_BYTES {
        return None;
    }
    Some((progress, bytes.split_off(PAGE_BYTES)))
}

fn write(known: &Path, header: &Header, progress: Progress) -> io::Result<Known> {
    let path = path(known, &header.run_id).ok_or(io::ErrorKind::InvalidInput)?;
    DirBuilder::new().recursive(true).mode(0o700).create(known)?;
    let mut bytes = vec![0; PAGE_BYTES];
    for (offset, word) in [(0, MARK), (BYTES, progress.bytes), (BEGUN, progress.begun)] {
        bytes[offset..offset + WORD_BYTES].copy_from_slice(&word.to_ne_bytes());
    }
    bytes.extend(serde_json::to_vec(&plan_of(header)?)?);
    let draft = Draft::create_in(files::open_folder(known)?, path.file_name().unwrap_or_default())?;
    draft.file().try_lock()?;
    let mut file = draft.file();
    file.write_all(&bytes)?;
    let file = draft.publish(Lasting::WhileRunning)?;
    Ok(Known {
        #[cfg(target_os = "linux")]
        words: Journal::of(&file, PAGE_BYTES)?,
        _locked: LockedFile(file),
    })
}

/// Locks the file that is there, to see that nobody measures the run. A killed process holds its lock until the kernel
/// has closed its files.
fn lock(path: &Path, run: &Path) -> Result<LockedFile, Error> {
    const MOST_TRIES: u32 = 100;
    let file = files::open_regular(path).map_err(Error::write(path))?;
    for _ in 0..MOST_TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(LockedFile(file)),
            Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(1)),
            Err(TryLockError::Error(reason)) => return Err(Error::Write { path: path.into(), reason }),
        }
    }
    Err(Error::Locked { run: run.into() })
}
