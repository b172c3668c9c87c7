//! Which trial has been begun, so that a killed run can't have lost a slow one: the file `begun` in its folder.
//!
//! The page is mapped: where the disk is full and the file system writes elsewhere what is written over (copy on
//! write), a store to it may end the process.
//!
//! Its first page holds numbers: one more than the trial's, how many arms it has, and which. They are stored through a
//! mapping, which costs a few nanoseconds a trial and outlives the process. Behind the page is a line for each arm.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::block::MAX_ARMS;
use crate::experiment::{Arm, Point};

#[cfg(target_os = "linux")]
use ascertain_sys::journal::Journal;
#[cfg(target_os = "linux")]
use std::{
    fs::File,
    io::{self, Write},
    sync::atomic::Ordering::Relaxed,
};

const BEGUN: &str = "begun";
const PAGE_BYTES: usize = 4096;
const WORD_BYTES: usize = 8;

/// The file while its run goes on. Where it can't be had (a file system without shared mappings, a system without this)
/// a kill may lose the trial that it comes in.
pub(super) struct Begun(#[cfg(target_os = "linux")] Option<(File, Journal)>);

/// An arm as its line has it.
#[derive(Serialize, Deserialize)]
struct ArmLine {
    experiment: String,
    #[serde(default)]
    lane: usize,
    variant: String,
    point: Point,
}

/// A trial that was begun: its number, and its arms with their experiment.
pub(super) struct BegunTrial {
    pub number: u64,
    pub experiment: String,
    pub lane: usize,
    pub arms: Vec<Arm>,
}

#[cfg(target_os = "linux")]
impl Begun {
    /// Begins the file anew: no trial has been begun.
    pub fn create(run: &Path) -> Begun {
        let create = || {
            let mut file = File::options().read(true).write(true).create(true).truncate(true).open(run.join(BEGUN))?;
            file.write_all(&[0; PAGE_BYTES])?;
            let page = Journal::of(&file, PAGE_BYTES)?;
            io::Result::Ok((file, page))
        };
        Begun(create().ok())
    }

    /// Notes an arm; they are numbered from 0.
    pub fn add_arm(&mut self, experiment: &str, lane: usize, arm: &Arm) {
        let Some((file, _)) = &mut self.0 else { return };
        let Arm { variant, point } = arm.clone();
        let text = serde_json::to_string(&ArmLine { experiment: experiment.to_string(), lane, variant, point });
        let written = text.map_err(io::Error::from).and_then(|text| writeln!(file, "{text}"));
        if written.is_err() {
            self.0 = None;
        }
    }

    /// A trial of these arms begins.
    pub fn begin(&self, trial: u64, arms: impl Iterator<Item = usize>) {
        let Some((_, page)) = &self.0 else { return };
        let word = |index: usize| page.word(index * WORD_BYTES);
        // A kill between two of these leaves no trial.
        word(0).store(0, Relaxed);
        let mut count = 0;
        for arm in arms.take(MAX_ARMS) {
            word(2 + count).store(arm as u64, Relaxed);
            count += 1;
        }
        word(1).store(count as u64, Relaxed);
        word(0).store(trial + 1, Relaxed);
    }
}

#[cfg(not(target_os = "linux"))]
impl Begun {
    pub fn create(_: &Path) -> Begun {
        Begun()
    }

    pub fn add_arm(&mut self, _: &str, _: usize, _: &Arm) {}

    pub fn begin(&self, _: u64, _: impl Iterator<Item = usize>) {}
}

/// The trial that a run had begun last, if it left word.
pub(super) fn read(run: &Path) -> Option<BegunTrial> {
    let bytes = fs::read(run.join(BEGUN)).ok()?;
    let (page, lines) = bytes.split_at_checked(PAGE_BYTES)?;
    let word = |index: usize| {
        let bytes = page[index * WORD_BYTES..].first_chunk::<WORD_BYTES>();
        bytes.map_or(0, |bytes| u64::from_ne_bytes(*bytes))
    };
    let number = word(0).checked_sub(1)?;
    let known: Vec<ArmLine> = serde_json::Deserializer::from_slice(lines).into_iter().map_while(Result::ok).collect();
    let count = usize::try_from(word(1)).ok().filter(|count| *count <= MAX_ARMS)?;
    let of_trial = (0..count).map(|index| known.get(usize::try_from(word(2 + index)).ok()?));
    let of_trial: Vec<&ArmLine> = of_trial.collect::<Option<_>>()?;
    let (experiment, lane) = (of_trial.first()?.experiment.clone(), of_trial.first()?.lane);
    let arm = |line: &&ArmLine| Arm { variant: line.variant.clone(), point: line.point.clone() };
    Some(BegunTrial { number, experiment, lane, arms: of_trial.iter().map(arm).collect() })
}

/// The run has ended: whatever it had begun it has recorded.
pub(super) fn remove(run: &Path) {
    let _ = fs::remove_file(run.join(BEGUN));
}
