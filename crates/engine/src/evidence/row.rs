//! A row of evidence, and the interface for reading rows from `trials.parquet` or `trials.jsonl`.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize};

use super::error::Error;
use super::numbers::{NumberRow, RowKinds};
use crate::experiment::Status;
use crate::unit::Unit;

/// A recorded observation. The fields are the columns of the evidence files, in the same order; the [documentation of
/// the module](super) explains them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row<'a> {
    /// Id of the run in which the row was recorded.
    #[serde(borrow)]
    pub run_id: Cow<'a, str>,
    /// Id of the experiment that measured the arm.
    #[serde(borrow)]
    pub experiment: Cow<'a, str>,
    /// Index of the lane, the group of arms that were measured together in this trial.
    pub lane: u32,
    /// Variant of the arm that was measured.
    #[serde(borrow)]
    pub variant: Cow<'a, str>,
    /// Factors of the measured arm with their levels, as a JSON object.
    #[serde(borrow)]
    pub point: Cow<'a, str>,
    /// Index of the trial within the experiment, from 0.
    pub trial: u64,
    /// Position of the arm in the random order of the trial's arms, from 0.
    pub position: u32,
    /// Name of the metric, such as `wall`.
    #[serde(borrow)]
    pub metric: Cow<'a, str>,
    /// Key of the value's series; empty for a scalar, which is the only value of its metric in the trial.
    #[serde(borrow)]
    pub key: Cow<'a, str>,
    /// Time from the start of the measurement to the observation, in nanoseconds; 0 for a scalar.
    pub offset_ns: u64,
    /// The value in `unit`. For a censored value, this is the amount that was observed until it was cut off, or
    /// infinity if the amount is unknown. A value that was lost, is not a number or is negative infinity is read as
    /// NaN.
    #[serde(deserialize_with = "number_or_nan")]
    pub value: f64,
    /// Unit in which the value is recorded.
    pub unit: Unit,
    /// Status of the observation: observed, failed, cut off or lost.
    pub status: Status,
    /// Time from the start of the run to the start of the measurement, in nanoseconds.
    pub start_ns: u64,
    /// The machine that measured the value; empty for the machine in `run.json`.
    #[serde(borrow)]
    pub worker: Cow<'a, str>,
}

impl Row<'_> {
    /// Returns the row with copies of its texts, so that it borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> Row<'static> {
        let own = |text: Cow<str>| Cow::Owned(text.into_owned());
        Row {
            run_id: own(self.run_id),
            experiment: own(self.experiment),
            variant: own(self.variant),
            point: own(self.point),
            metric: own(self.metric),
            key: own(self.key),
            worker: own(self.worker),
            ..self
        }
    }
}

/// Reads a number. A `null` stands for infinity or NaN, and becomes NaN.
fn number_or_nan<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

/// A reader of the rows of a run, in the order in which they were observed.
pub(super) trait RowReader {
    /// Reads the next row; returns `None` after the last row.
    fn next_row(&mut self) -> Result<Option<Row<'_>>, Error>;

    /// Reads the number of the next row; returns `None` after the last row. Call either this function or
    /// [`next_row`](Self::next_row) for all rows of a reader.
    fn next_number(&mut self, kinds: &mut RowKinds) -> Result<Option<NumberRow>, Error> {
        Ok(self.next_row()?.map(|row| kinds.number(&row)))
    }

    /// Returns whether the latest row is known to be the last of its trial. Always `true` for a file that contains only
    /// complete trials.
    fn ends_trial(&self) -> bool;

    /// Returns the offset in bytes at which the latest row ends in its file. Returns 0 for a file that is never cut
    /// off.
    fn end_bytes(&self) -> u64;

    /// Returns the error that reports the latest row as invalid. `reason` describes the problem.
    fn malformed(&self, reason: String) -> Error;
}
