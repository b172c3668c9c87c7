//! The list of the runs that this user has recorded on this machine. It is a folder with one file per run, which has
//! the run's plan and the size of its evidence.
//!
//! A copy of a run's folder with fewer trials than listed here cannot be continued. Otherwise a user could copy a run,
//! measure more trials, and return to the copy if these trials are unfavourable. A run that is not in the list was
//! recorded elsewhere, so its command lines may come from somebody else.
//!
//! A file begins with three 64-bit integers, called words: a mark, the size of `trials.jsonl` when rows were last
//! written, and the number of trials that were begun since then. JSON with the plan follows. The file is locked while
//! its run is measured.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use ascertain_sys::files;
use serde_json::Value;

use super::error::Error;
use super::folder::{Header, is_run_id};
use super::word_file::{WordFile, Words};
use super::writer::LockedFile;

const MARK: u64 = u64::from_be_bytes(*b"known\0\0\x01");
/// Index of the word that holds the size of `trials.jsonl` in bytes.
const BYTES: usize = 1;
/// Index of the word that holds the number of trials that have begun since `trials.jsonl` was last written.
const BEGUN: usize = 2;

/// A run that is being measured, as an entry of the list of known runs. Each entry is a separate file.
pub(super) struct KnownRun {
    words: WordFile,
    _locked: LockedFile,
}

impl KnownRun {
    /// Adds a new run to the list of known runs, the folder `known`. Returns `None` if the list cannot be written; the
    /// run can be measured nevertheless.
    pub fn create(known: &Path, header: &Header) -> Option<KnownRun> {
        write(known, header, (0, 0)).ok()
    }

    /// Opens the list's file for a run that is continued, or creates it. `bytes` is the size of the rows in the run's
    /// folder, and `begun` is the number of trials that were begun but not recorded. Returns `None` if the list cannot
    /// be written; the run can be measured nevertheless.
    ///
    /// # Errors
    /// If the list has more trials of the run than the run's folder. Also if another process is measuring the run, in
    /// this folder or in a copy.
    pub fn resume(
        known: &Path,
        run: &Path,
        header: &Header,
        bytes: u64,
        begun: u64,
    ) -> Result<Option<KnownRun>, Error> {
        let Some(path) = path(known, &header.run_id) else { return Ok(None) };
        let there = (bytes, begun);
        if path.exists() {
            let file = files::open_regular(&path).map_err(Error::write(&path))?;
            // Getting the lock shows that no other process is measuring the run.
            let _locked = LockedFile::lock(file, &path, run, || true)?;
            let then = Words::read(&path, MARK).and_then(|words| words.get(BYTES).zip(words.get(BEGUN)));
            if Some(there) < then {
                return Err(Error::OlderCopy(run.to_path_buf()));
            }
        }
        Ok(write(known, header, there).ok())
    }

    /// Adds one to the number of trials that have begun.
    pub fn begin_trial(&self) {
        self.words.update(BEGUN, |begun| begun + 1);
    }

    /// Stores that the rows of all trials are written. `bytes` is the size of `trials.jsonl` then.
    pub fn set_written(&self, bytes: u64) {
        self.words.update(BYTES, |_| bytes);
        self.words.update(BEGUN, |_| 0);
    }
}

/// Returns whether this user has recorded or continued the run on this machine. The plan in the list must equal the
/// plan that is now in the run's folder.
#[must_use]
pub fn is_known(known: &Path, header: &Header) -> bool {
    let words = path(known, &header.run_id).and_then(|path| Words::read(&path, MARK));
    let plan = words.and_then(|words| serde_json::from_slice::<Value>(words.json(BEGUN + 1)?).ok());
    plan.is_some_and(|plan| plan_of(header).is_ok_and(|now| now == plan))
}

/// Removes a deleted run from the list.
pub fn forget_run(known: &Path, run_id: &str) {
    if let Some(path) = path(known, run_id) {
        // A file that cannot be removed does no harm: it only shows that the run was recorded here.
        let _ = fs::remove_file(path);
    }
}

/// Returns the path of a run's file in the list; `None` if the id does not have the form of [`is_run_id`].
fn path(known: &Path, run_id: &str) -> Option<PathBuf> {
    is_run_id(run_id).then(|| known.join(run_id))
}

/// Returns the plan as JSON, in a form in which equal plans compare as equal. Writing a number as JSON and reading it
/// back can change its last digit. A new plan may therefore differ from the same plan in `run.json`. After two such
/// passes, further passes change nothing, so each plan is written and read twice.
fn plan_of(header: &Header) -> io::Result<Value> {
    let mut plan = serde_json::to_value(&header.plan)?;
    for _ in 0..2 {
        plan = serde_json::from_slice(&serde_json::to_vec(&plan)?)?;
    }
    Ok(plan)
}

fn write(known: &Path, header: &Header, (bytes, begun): (u64, u64)) -> io::Result<KnownRun> {
    let path = path(known, &header.run_id).ok_or(io::ErrorKind::InvalidInput)?;
    DirBuilder::new().recursive(true).mode(0o700).create(known)?;
    let words = [MARK, bytes, begun];
    let (words, file) = WordFile::create(&path, &words, &plan_of(header)?, |file| Ok(file.try_lock()?))?;
    Ok(KnownRun { words, _locked: LockedFile(file) })
}
