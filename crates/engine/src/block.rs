//! Trials as plain data: a [`Block`] is a trial to measure, a [`TrialRecord`] has the observations of a measured trial,
//! and an [`Executor`] measures blocks.
//!
//! Code that measures knows nothing of claims, and code that judges claims knows nothing of how arms are measured. The
//! two only exchange blocks and records, which may also come from another process.

use std::ops::Range;

use crate::experiment::{Arm, Metric, Point, Reduce, Sample, Samples, Status, TargetError};
use crate::values::Bounds;

/// Maximum number of arms in a lane. [`Slots`] has one bit for each. A lane is a group of arms that are measured
/// together.
pub(crate) const MAX_ARMS: usize = 16;

/// A set of arms of one lane. A lane is a group of arms that are measured together. Each arm is given by its slot: its
/// index in the lane, which is less than [`MAX_ARMS`].
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

    /// Returns the set as a bit mask: bit `n` is set if slot `n` is in the set.
    pub fn bits(self) -> u16 {
        self.0
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the slots in ascending order.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..MAX_ARMS).filter(move |&slot| self.0 >> slot & 1 == 1)
    }
}

impl FromIterator<usize> for Slots {
    fn from_iter<I: IntoIterator<Item = usize>>(slots: I) -> Slots {
        slots.into_iter().fold(Slots::default(), Slots::with)
    }
}

/// A trial that is still to be measured. Each of its arms is measured once, in an order that is drawn from the seed.
///
/// A block is identified by its lane, its trial and its seed. If two records of the same block arrive, only one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Index of the block's lane in the run. A lane is a group of arms that are measured together.
    pub lane: usize,
    /// The arms to measure, each given by its slot (its index in the lane).
    pub arms: Slots,
    /// Index of the trial among the trials of the experiment, from 0, or [`WARM_UP`](Self::WARM_UP) for a trial that
    /// does not count.
    pub trial: u64,
    /// Seed of the run.
    pub seed: u64,
}

impl Block {
    /// The trial index of warm-up trials, whose values are discarded.
    pub const WARM_UP: u64 = u64::MAX;
}

/// The observations of one measured block.
#[derive(Clone, Debug, Default)]
pub struct TrialRecord {
    /// The block that was measured; `None` in an empty record.
    pub block: Option<Block>,
    /// The arms that were measured, in the order in which they were measured.
    pub measured: Vec<MeasuredArm>,
    /// Samples of all measured arms, arm by arm.
    pub samples: Samples,
    /// Time that the trial took, in nanoseconds.
    pub elapsed_ns: u64,
    /// State in which the trial ended: complete or cut off.
    pub end: End,
    /// The arm that failed or gave a wrong answer: its slot (its index in the lane) and the error. `None` if no arm
    /// failed.
    pub failure: Option<(usize, TargetError)>,
}

/// One arm of a measured trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasuredArm {
    /// The arm's slot: its index in the lane.
    pub slot: usize,
    /// Clock reading when the measurement of the arm began, in nanoseconds; 0 if it is not known.
    pub start_ns: u64,
    /// Indices of the arm's samples in [`TrialRecord::samples`].
    pub samples: Range<usize>,
}

/// The state in which a trial ended: complete or cut off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// Every arm was measured.
    #[default]
    Whole,
    /// The trial ended early, because of a signal or because an arm failed. The values of arms that were not measured
    /// completely are unknown.
    CutOff,
}

impl TrialRecord {
    /// Empties the record, and prepares it for the observations of this block.
    pub fn begin(&mut self, block: Block) {
        self.clear();
        self.block = Some(block);
    }

    pub(crate) fn clear(&mut self) {
        self.measured.clear();
        self.samples.0.clear();
        (self.block, self.elapsed_ns, self.end, self.failure) = (None, 0, End::Whole, None);
    }

    /// Returns the duration of a complete trial, in nanoseconds. For a trial that was cut off, returns an estimate: the
    /// remaining arms are assumed to take as long, on average, as the arms that were measured completely.
    ///
    /// Returns `None` if no arm was measured completely. Also returns `None` for a record that was read from evidence,
    /// because evidence does not contain the durations of trials.
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

    /// Adds a value that was read from evidence, the record of a run on disk. `slot` is the arm's index in the lane,
    /// and `metric` is the metric's index. `key` is empty if the metric has only one value per trial. All values of an
    /// arm must be added before the values of the next arm.
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

    /// Returns a record in which every value is unknown. It replaces the record of a block that the executor never
    /// returned.
    pub fn lost(block: Block, metrics: &[Metric]) -> TrialRecord {
        let measured = |slot| MeasuredArm { slot, start_ns: 0, samples: 0..0 };
        let measured = block.arms.iter().map(measured).collect();
        let mut record = TrialRecord { block: Some(block), measured, end: End::CutOff, ..TrialRecord::default() };
        record.lose_the_rest(metrics);
        record
    }

    /// Completes the record of a trial that was cut off. If at least one metric of an arm has no sample, the arm's
    /// measurement may have been cut off. Each metric without a sample then gets one with an unknown value. A metric
    /// that combines several samples also gets such a sample, because some of its samples may be missing.
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

/// A worker that measures blocks, in this process or in another process.
pub trait Executor {
    /// Prepares some arms of a lane for measuring, and verifies the results that they compute. `arms` has each arm with
    /// its slot (its index in the lane).
    ///
    /// # Errors
    /// If the arms cannot be prepared, or if a signal arrives in the meantime.
    fn open(&mut self, lane: usize, experiment: &str, arms: &[(usize, Arm)]) -> Result<FactsBySlot, TargetError>;

    /// Closes the lane: releases everything that `open` prepared.
    fn close(&mut self, lane: usize);

    /// Starts measuring the block. Also stores the next complete record, of this block or of an earlier block, in
    /// `record`. If no record is complete yet, `record` stays empty. Records are judged in the order of the calls of
    /// `run`, so a slow or lost record cannot be left out of a verdict.
    fn run(&mut self, block: Block, record: &mut TrialRecord);

    /// Waits for the next record of a block that was passed to `run`, and stores it in `_record`. Returns `false` if
    /// there is no block whose record is still missing.
    fn collect(&mut self, _record: &mut TrialRecord) -> bool {
        false
    }
}

/// The result of opening a lane: the slot (index in the lane) of each arm, with facts about the arm or its error.
pub type FactsBySlot = Vec<(usize, Result<Point, TargetError>)>;

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
        // The first trial is cut off after one of three arms, which took 30; the second after two arms. In the third
        // trial, no arm is complete.
        assert_eq!(of(End::CutOff, [5, 35, 0], 31), Some(90.0));
        assert_eq!(of(End::CutOff, [5, 35, 67], 63), Some(93.0));
        assert_eq!(of(End::CutOff, [5, 0, 0], 20), None);
        assert_eq!(of(End::Whole, [0, 0, 0], 0), None, "it was read back");
    }
}
