//! The numbers of rows, without their texts.

use crate::experiment::Status;
use crate::unit::Unit;

use super::row::Row;

/// The number of a row, and the index of its kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NumberRow {
    /// Index of the kind, in the order in which the kinds first occur.
    pub kind: usize,
    /// Index of the trial within the experiment, from 0.
    pub trial: u64,
    /// Time from the start of the run to the start of the measurement, in nanoseconds.
    pub start_ns: u64,
    /// The value, as in [`Row::value`].
    pub value: f64,
    /// Status of the observation.
    pub status: Status,
}

/// A kind of row: all rows of one metric of one arm in one lane, with one key. The fields are those of [`Row`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowKind {
    /// Id of the experiment that measured the arm.
    pub experiment: String,
    /// Index of the lane.
    pub lane: u32,
    /// Variant of the arm.
    pub variant: String,
    /// Factors of the arm with their levels, as a JSON object.
    pub point: String,
    /// Name of the metric.
    pub metric: String,
    /// Key of the series; empty for a scalar.
    pub key: String,
    /// Unit of the values.
    pub unit: Unit,
}

/// The kinds of rows so far. Rows usually have the same order in every trial, so the kind that followed last time is
/// tried first.
#[derive(Debug, Default)]
pub(super) struct RowKinds {
    kinds: Vec<RowKind>,
    follower: Follower,
}

/// For each of several things, remembers the thing that came after it last time.
#[derive(Debug, Default)]
pub(super) struct Follower {
    next: Vec<usize>,
    last: usize,
}

impl Follower {
    /// Returns the index of the thing that fits. There are `count` things.
    pub fn find(&mut self, count: usize, fits: impl Fn(usize) -> bool) -> Option<usize> {
        self.next.resize(count, 0);
        let expected = self.next.get(self.last).copied().filter(|next| fits(*next));
        let found = expected.or_else(|| (0..count).find(|index| fits(*index)))?;
        self.next[self.last] = found;
        self.last = found;
        Some(found)
    }
}

impl RowKinds {
    pub fn kinds(&self) -> &[RowKind] {
        &self.kinds
    }

    /// Returns the number of a row. Adds its kind if it is new.
    pub fn number(&mut self, row: &Row) -> NumberRow {
        let kinds = &self.kinds;
        let kind = self.follower.find(kinds.len(), |index| kinds[index].has(row)).unwrap_or_else(|| {
            self.kinds.push(RowKind {
                experiment: row.experiment.to_string(),
                lane: row.lane,
                variant: row.variant.to_string(),
                point: row.point.to_string(),
                metric: row.metric.to_string(),
                key: row.key.to_string(),
                unit: row.unit,
            });
            self.kinds.len() - 1
        });
        let Row { trial, start_ns, value, status, .. } = *row;
        NumberRow { kind, trial, start_ns, value, status }
    }
}

impl RowKind {
    fn has(&self, row: &Row) -> bool {
        self.metric == row.metric
            && self.variant == row.variant
            && self.lane == row.lane
            && self.point == row.point
            && self.key == row.key
            && self.experiment == row.experiment
            && self.unit == row.unit
    }
}
