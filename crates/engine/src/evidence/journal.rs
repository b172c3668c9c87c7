//! The journal of the trials that a run has begun: the file `begun` in the run's folder. A continuation compares the
//! journal with the recorded trials, to find the trials that were begun but not recorded. Neither a kill nor a full
//! disk can therefore hide a trial.
//!
//! The file begins with 64-bit integers, called words: a mark, the number of lanes, and one word for each lane. The low
//! 16 bits of a lane's word are a mask of the arms in its trials. The other bits count the trials of the lane that the
//! measuring process has begun. JSON that describes the lanes follows.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::word_file::{WordFile, Words};
use crate::block::{MAX_ARMS, Slots};
use crate::experiment::Arm;

const FILE: &str = "begun";
/// The first word of the file, which identifies it as a journal.
const MARK: u64 = u64::from_be_bytes(*b"begun\0\0\x02");
/// Number of 64-bit words at the start of the file, before the words of the lanes: the mark and the number of lanes.
const WORDS_BEFORE: usize = 2;
/// Number of low bits of a lane's word that hold the mask of its arms. The other bits count its trials.
const ARM_BITS: u32 = MAX_ARMS as u32;

/// The journal of a run that is being measured. `None` if the file cannot be created, for example on a file system
/// without shared mappings. In that case, a kill may lose trials that were not written yet.
pub(super) struct TrialJournal(Option<WordFile>);

/// The JSON in the file, which describes the lanes.
#[derive(Serialize, Deserialize)]
struct Description {
    /// Number of trials that the run had recorded before this process began its first trial.
    recorded: usize,
    lanes: Vec<JournalLane>,
}

/// A lane: a group of arms that are measured together. `experiment` is the id of their experiment. The journal has a
/// bit mask of arms for each lane, in which bit i stands for the arm with index i.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct JournalLane {
    pub experiment: String,
    pub arms: Vec<Arm>,
}

/// The trials that a lane had begun but not recorded: their number, and each arm that may have been in any of them.
#[derive(Debug, PartialEq)]
pub(super) struct LostTrials {
    pub lane: usize,
    pub experiment: String,
    pub trials: u64,
    pub arms: Vec<Arm>,
}

impl TrialJournal {
    /// Creates the journal of a run that has recorded `recorded` trials so far. For each lane, the count of trials that
    /// have begun starts at zero.
    pub fn create(run: &Path, recorded: usize, lanes: &[JournalLane]) -> TrialJournal {
        let mut words = vec![MARK, lanes.len() as u64];
        words.resize(WORDS_BEFORE + lanes.len(), 0);
        let description = Description { recorded, lanes: lanes.to_vec() };
        let created = WordFile::create(&run.join(FILE), &words, &description, |_| Ok(()));
        if created.is_err() {
            remove(run);
        }
        TrialJournal(created.ok().map(|(words, _)| words))
    }

    /// Notes in the journal that the lane with the index `lane` begins a trial with these arms.
    pub fn begin(&self, lane: usize, arms: Slots) {
        if let Some(words) = &self.0 {
            words.update(WORDS_BEFORE + lane, |word| (word + (1 << ARM_BITS)) | u64::from(arms.bits()));
        }
    }
}

/// Returns the trials that the run has begun but not recorded, according to its journal. Without a journal, returns an
/// empty list. `recorded_lanes` has the lane of each recorded trial.
pub(super) fn lost_trials(run: &Path, recorded_lanes: &[u32]) -> Vec<LostTrials> {
    read(run, recorded_lanes).unwrap_or_default()
}

fn read(run: &Path, recorded_lanes: &[u32]) -> Option<Vec<LostTrials>> {
    let words = Words::read(&run.join(FILE), MARK)?;
    let count = usize::try_from(words.get(1)?).ok()?;
    let description: Description = serde_json::from_slice(words.json(WORDS_BEFORE.checked_add(count)?)?).ok()?;
    let since = recorded_lanes.get(description.recorded..).unwrap_or_default();
    let lanes = description.lanes.into_iter().take(count).enumerate();
    let lost = lanes.filter_map(|(lane, JournalLane { experiment, arms })| {
        let word = words.get(WORDS_BEFORE + lane)?;
        let recorded = since.iter().filter(|&&recorded| recorded == lane as u32).count() as u64;
        let trials = (word >> ARM_BITS).saturating_sub(recorded);
        let arms = arms.into_iter().enumerate().filter(|(slot, _)| word >> slot & 1 == 1).map(|(_, arm)| arm);
        (trials > 0).then(|| LostTrials { lane, experiment, trials, arms: arms.collect() })
    });
    Some(lost.collect())
}

/// Removes the journal of a run that has ended, because all its trials are recorded.
pub(super) fn remove(run: &Path) {
    let _ = std::fs::remove_file(run.join(FILE));
}
