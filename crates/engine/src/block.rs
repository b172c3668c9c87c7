//! A trial as plain data: what a worker is asked for, what it saw, and what does the work.
//!
//! Measuring knows nothing of claims, and judging knows nothing of sessions: a [`Block`] goes one way and a
//! [`TrialRecord`] comes back, in this process or from elsewhere.

use std::ops::Range;

use crate::experiment::{Arm, Metric, Point, Reduce, Sample, Samples, Status, TargetError};
use crate::values::Bounds;

/// The most arms that a lane, and so a trial, may hold.
pub(crate) const MAX_ARMS: usize = 16;

/// A set of slots, each below [`MAX_ARMS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slots(u16);

impl Slots {
    pub fn with(self, slot: usize) -> Slots {
        Slots(self.0 | 1 << slot)
    }

    pub fn without(self, slot: usize) -> Slots {
        Slots(self.0 & !(1 << slot))
    }

    pub fn union(self, other: Slots) -> Slots {
        Slots(self.0 | other.0)
    }

    pub fn contains(self, other: Slots) -> bool {
        self.0 & other.0 == other.0
    }

    /// A bit for each slot.
    pub fn bits(self) -> u16 {
        self.0
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The slots, in ascending order.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..MAX_ARMS).filter(move |&slot| self.0 >> slot & 1 == 1)
    }
}

impl FromIterator<usize> for Slots {
    fn from_iter<I: IntoIterator<Item = usize>>(slots: I) -> Slots {
        slots.into_iter().fold(Slots::default(), Slots::with)
    }
}

/// One trial: arms of a lane, each to be measured once, in an order drawn from the seed.
///
/// The lane's number, the trial's and the seed identify it: a record that comes twice counts once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The lane's number within the run.
    pub lane: usize,
    /// The arms, by their places in the lane.
    pub arms: Slots,
    /// The trial's number within the experiment, from 0; [`WARM_UP`](Self::WARM_UP) for one that nobody counts.
    pub trial: u64,
    /// The run's seed.
    pub seed: u64,
}

impl Block {
    /// The number of trials that are thrown away.
    pub const WARM_UP: u64 = u64::MAX;
}

/// What came of a block.
#[derive(Clone, Debug, Default)]
pub struct TrialRecord {
    /// Which one it was; none before the first.
    pub block: Option<Block>,
    /// The arms that were measured, in their order.
    pub measured: Vec<MeasuredArm>,
    /// What was seen, arm after arm.
    pub samples: Samples,
    /// How long it took.
    pub elapsed_ns: u64,
    /// How it ended.
    pub end: End,
    /// An arm (its place in the lane) that failed, or whose answer was found to be wrong afterwards.
    pub failure: Option<(usize, TargetError)>,
}

/// One arm of a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasuredArm {
    /// Its place in the lane.
    pub slot: usize,
    /// When its measurement began, as the clock has it.
    pub start_ns: u64,
    /// Its samples among those of the trial.
    pub samples: Range<usize>,
}

/// How a trial ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// Every arm was measured.
    #[default]
    Whole,
    /// A signal or a failed arm cut it off: everything that was not seen by then could be anything.
    CutOff,
}

impl TrialRecord {
    /// Begins the record of a block.
    pub fn begin(&mut self, block: Block) {
        self.clear();
        self.block = Some(block);
    }

    /// Nothing was seen yet.
    pub(crate) fn clear(&mut self) {
        self.measured.clear();
        self.samples.0.clear();
        (self.block, self.elapsed_ns, self.end, self.failure) = (None, 0, End::Whole, None);
    }

    /// What it takes where nothing cuts it off: as long as it took; of one that was cut off, as if its other arms took
    /// as long as those that came to their end. None where none did, and of what was read back, which has no times.
    pub(crate) fn whole_ns(&self) -> Option<f64> {
        if self.end == End::Whole {
            return (self.elapsed_ns > 0).then_some(self.elapsed_ns as f64);
        }
        let begun: Vec<u64> =
            self.measured.iter().map(|arm| arm.start_ns).take_while(|start_ns| *start_ns > 0).collect();
        let (first, last) = (begun.first()?, begun.last()?);
        let (all, ended) = (self.measured.len() as f64, (begun.len() - 1) as f64);
        (ended > 0.0).then(|| last.saturating_sub(*first) as f64 * all / ended)
    }

    /// Adds what was recorded of an arm's metric, arm after arm.
    pub(crate) fn add(&mut self, slot: usize, metric: usize, key: &str, value: Bounds) {
        let before = self.samples.0.len();
        let (value, status) = match value {
            Bounds::UNKNOWN => (f64::NAN, Status::Lost),
            Bounds { low, high } if low < high => (low, Status::Censored),
            Bounds { low, .. } => (low, Status::Ok),
        };
        self.samples.push_sample(Sample { metric, key: key.to_string().into(), offset_ns: 0, value, status });
        match self.measured.last_mut() {
            Some(arm) if arm.slot == slot => arm.samples.end += 1,
            _ => self.measured.push(MeasuredArm { slot, start_ns: 0, samples: before..before + 1 }),
        }
    }

    /// The record of a block that never came back: all that it was to see could be anything.
    pub fn lost(block: Block, metrics: &[Metric]) -> TrialRecord {
        let measured = |slot| MeasuredArm { slot, start_ns: 0, samples: 0..0 };
        let measured = block.arms.iter().map(measured).collect();
        let mut record = TrialRecord { block: Some(block), measured, end: End::CutOff, ..TrialRecord::default() };
        record.lose_the_rest(metrics);
        record
    }

    /// What the trial did not come to see could be anything, and so could the quantile of samples that are not all
    /// there.
    pub fn lose_the_rest(&mut self, metrics: &[Metric]) {
        let seen = std::mem::take(&mut self.samples.0);
        for arm in &mut self.measured {
            let seen = &seen[arm.samples.clone()];
            let before = self.samples.0.len();
            self.samples.0.extend_from_slice(seen);
            let has = |metric: usize| seen.iter().any(|sample| sample.metric == metric);
            if !(0..metrics.len()).all(has) {
                let is_lost = |metric: &usize| !has(*metric) || metrics[*metric].reduce != Reduce::Value;
                (0..metrics.len()).filter(is_lost).for_each(|metric| self.samples.push_sample(Sample::lost(metric)));
            }
            arm.samples = before..self.samples.0.len();
        }
    }
}

/// Measures blocks: here, or elsewhere.
pub trait Executor {
    /// Makes arms of a lane ready to be measured, and checks their answers. Gives what is a fact of each, or how it
    /// failed, by its place in the lane.
    ///
    /// # Errors
    /// When they can't be made ready, or a signal came meanwhile.
    fn open(&mut self, lane: usize, experiment: &str, arms: &[(usize, Arm)]) -> Result<Opened, TargetError>;

    /// Undoes what opening did.
    fn close(&mut self, lane: usize);

    /// Measures the block. The record may be of another that it was given before, or of none yet. Records are judged in
    /// the order in which their blocks were given out, so that what is slow to come, or never does, can't be left out
    /// of a verdict.
    fn run(&mut self, block: Block, record: &mut TrialRecord);

    /// Waits for another record of what it was given; false when none is on its way any more.
    fn collect(&mut self, _record: &mut TrialRecord) -> bool {
        false
    }
}

/// What is a fact of each arm that was opened, or how it failed, by its place in the lane.
pub type Opened = Vec<(usize, Result<Point, TargetError>)>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_cut_off_is_no_time_that_a_trial_takes() {
        let arm = |slot, start_ns| MeasuredArm { slot, start_ns, samples: 0..0 };
        let of = |end, starts: [u64; 3], elapsed_ns| {
            let measured = starts.iter().enumerate().map(|(slot, start_ns)| arm(slot, *start_ns)).collect();
            TrialRecord { measured, end, elapsed_ns, ..TrialRecord::default() }.whole_ns()
        };
        assert_eq!(of(End::Whole, [5, 35, 65], 91), Some(91.0));
        // After one arm of three, which took 30, and after two; in the first nothing is known.
        assert_eq!(of(End::CutOff, [5, 35, 0], 31), Some(90.0));
        assert_eq!(of(End::CutOff, [5, 35, 67], 63), Some(93.0));
        assert_eq!(of(End::CutOff, [5, 0, 0], 20), None);
        assert_eq!(of(End::Whole, [0, 0, 0], 0), None, "it was read back");
    }
}
