//! Which trials have been begun, so that neither a kill nor a full disk can drop one: the file `begun` in a run's
//! folder.
//!
//! It begins with pages of words, in the byte order of the machine: a mark, how many lanes there are, and a word for
//! each lane. A lane's word counts the trials that this process has begun there, above 16 bits that say which arms
//! those trials had. A trial is noted by one store through a mapping, which costs a few nanoseconds and outlives the
//! process. Behind the pages is a description of the lanes, as JSON.
//!
//! The pages are mapped: where the disk is full and the file system writes elsewhere what is written over (copy on
//! write), a store to them may end the process.

use std::path::Path;

use ascertain_sys::files;
use serde::{Deserialize, Serialize};

use crate::block::{MAX_ARMS, Slots};
use crate::experiment::Arm;

#[cfg(target_os = "linux")]
use ascertain_sys::journal::Journal;
#[cfg(target_os = "linux")]
use std::ffi::OsStr;
#[cfg(target_os = "linux")]
use std::io::{self, Write};
#[cfg(target_os = "linux")]
use std::sync::atomic::Ordering::Relaxed;

const BEGUN: &str = "begun";
const PAGE_BYTES: usize = 4096;
const WORD_BYTES: usize = 8;
/// The first word.
const MARK: u64 = u64::from_be_bytes(*b"begun\0\0\x02");
/// Words before that of the first lane.
const WORDS_BEFORE: usize = 2;
/// The bits of a lane's word that say which arms.
const ARM_BITS: u32 = MAX_ARMS as u32;
/// The file is not larger than this, whatever its run measures.
const MOST_BYTES: u64 = 1 << 30;

/// The file while its run goes on. Where it can't be had (a file system without shared mappings, a system without this)
/// a kill may lose the trials that were not written yet.
#[derive(Default)]
pub(super) struct Begun(#[cfg(target_os = "linux")] Option<Journal>);

/// The lanes that the words belong to.
#[derive(Serialize, Deserialize)]
struct Meaning {
    /// The number of trials recorded before this process began its first one.
    recorded: usize,
    lanes: Vec<BegunLane>,
}

/// A lane: its experiment, and its arms in the order of their places.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct BegunLane {
    pub experiment: String,
    pub arms: Vec<Arm>,
}

/// Trials that a lane had begun and not recorded: so many, and all arms that any of them may have had.
#[derive(Debug, PartialEq)]
pub(super) struct LostTrials {
    pub lane: usize,
    pub experiment: String,
    pub trials: u64,
    pub arms: Vec<Arm>,
}

#[cfg(target_os = "linux")]
impl Begun {
    /// Begins the file anew, for a run that has recorded so many trials: none of these lanes has begun one.
    pub fn create(run: &Path, recorded: usize, lanes: &[BegunLane]) -> Begun {
        let create = || {
            let mut bytes = vec![0; pages_bytes(lanes.len())];
            bytes[..WORD_BYTES].copy_from_slice(&MARK.to_ne_bytes());
            bytes[WORD_BYTES..2 * WORD_BYTES].copy_from_slice(&(lanes.len() as u64).to_ne_bytes());
            let pages = bytes.len();
            serde_json::to_writer(&mut bytes, &Meaning { recorded, lanes: lanes.to_vec() })?;
            let draft = files::Draft::create_in(files::open_folder(run)?, OsStr::new(BEGUN))?;
            let mut file = draft.file();
            file.write_all(&bytes)?;
            Journal::of(&draft.publish(files::Lasting::WhileRunning)?, pages)
        };
        let created: io::Result<Journal> = create();
        if created.is_err() {
            remove(run);
        }
        Begun(created.ok())
    }

    /// A trial of these arms of the lane begins.
    pub fn begin(&self, lane: usize, arms: Slots) {
        let Some(pages) = &self.0 else { return };
        let word = pages.word((WORDS_BEFORE + lane) * WORD_BYTES);
        // This process is the only one that writes here.
        word.store((word.load(Relaxed) + (1 << ARM_BITS)) | u64::from(arms.bits()), Relaxed);
    }
}

#[cfg(not(target_os = "linux"))]
impl Begun {
    pub fn create(_: &Path, _: usize, _: &[BegunLane]) -> Begun {
        Begun()
    }

    pub fn begin(&self, _: usize, _: Slots) {}
}

/// The bytes of the pages that have the words of so many lanes.
fn pages_bytes(lanes: usize) -> usize {
    ((WORDS_BEFORE + lanes) * WORD_BYTES).next_multiple_of(PAGE_BYTES)
}

/// The trials that were begun and are not among those recorded, if the run left word. `lanes` has the lane of each
/// recorded trial, as far as its rows say.
pub(super) fn lost(run: &Path, lanes: &[Option<u32>]) -> Vec<LostTrials> {
    read(run, lanes).unwrap_or_default()
}

fn read(run: &Path, recorded_lanes: &[Option<u32>]) -> Option<Vec<LostTrials>> {
    let bytes = files::read_regular(&run.join(BEGUN), MOST_BYTES).ok()?;
    let word = |index: usize| {
        let bytes = bytes.get(index * WORD_BYTES..)?.first_chunk::<WORD_BYTES>()?;
        Some(u64::from_ne_bytes(*bytes))
    };
    if word(0)? != MARK {
        return None;
    }
    let lanes = usize::try_from(word(1)?).ok().filter(|lanes| *lanes < bytes.len())?;
    let meaning: Meaning = serde_json::from_slice(bytes.get(pages_bytes(lanes)..)?).ok()?;
    let since = recorded_lanes.get(meaning.recorded..).unwrap_or_default();
    let lost =
        meaning.lanes.into_iter().take(lanes).enumerate().filter_map(|(lane, BegunLane { experiment, arms })| {
            let word = word(WORDS_BEFORE + lane)?;
            let recorded = since.iter().filter(|of| **of == Some(lane as u32)).count() as u64;
            let trials = (word >> ARM_BITS).saturating_sub(recorded);
            let arms = arms.into_iter().enumerate().filter(|(slot, _)| word >> slot & 1 == 1).map(|(_, arm)| arm);
            (trials > 0).then(|| LostTrials { lane, experiment, trials, arms: arms.collect() })
        });
    Some(lost.collect())
}

/// The run has ended: it has recorded every trial that it had begun.
pub(super) fn remove(run: &Path) {
    let _ = std::fs::remove_file(run.join(BEGUN));
}
