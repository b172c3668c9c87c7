//! A row, and the line of `trials.jsonl` that it was.

use std::borrow::Cow;

use serde::Deserialize;

use super::trials::Names;
use crate::experiment::{Point, Status};
use crate::unit::Unit;

/// An observation as it was recorded. The columns' meaning is in the [module's docs](super).
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The experiment's id.
    pub experiment: String,
    /// Which of the run's lanes measured: arms that are measured together. `None` in runs of the first versions.
    pub lane: Option<u32>,
    /// The arm's variant.
    pub variant: String,
    /// The arm's point.
    pub point: Point,
    /// The trial's number within the experiment.
    pub trial: u64,
    /// The arm's place in the trial's random order, from 0.
    pub position: u32,
    /// The metric's name.
    pub metric: String,
    /// Which of several series; empty for a scalar.
    pub key: String,
    /// When, since the measurement began, in nanoseconds.
    pub offset_ns: u64,
    /// The value in `unit`. One that was cut off is what had been seen by then, or infinite where that was not noted; what
    /// is not a number, or negative infinity, or was lost is read as NaN.
    pub value: f64,
    /// The value's unit.
    pub unit: Unit,
    /// What became of the observation.
    pub status: Status,
    /// When the measurement began, since the run started, in nanoseconds.
    pub start_ns: u64,
    /// Who measured; empty for the machine in `run.json`.
    pub worker: String,
}

/// A line of `trials.jsonl`, borrowing its texts from the line where they have no escapes.
#[derive(Deserialize)]
pub(super) struct Line<'a> {
    #[serde(borrow)]
    pub run_id: Cow<'a, str>,
    #[serde(borrow)]
    pub experiment: Cow<'a, str>,
    #[serde(default)]
    pub lane: Option<u32>,
    #[serde(borrow)]
    pub variant: Cow<'a, str>,
    #[serde(borrow)]
    pub point: Cow<'a, str>,
    pub trial: u64,
    pub position: u32,
    #[serde(borrow)]
    pub metric: Cow<'a, str>,
    #[serde(borrow)]
    pub key: Cow<'a, str>,
    pub offset_ns: u64,
    value: Option<f64>,
    pub unit: Unit,
    pub status: Status,
    pub start_ns: u64,
    #[serde(borrow)]
    pub worker: Cow<'a, str>,
}

impl Line<'_> {
    pub fn value(&self) -> f64 {
        self.value.unwrap_or(match self.status {
            Status::Censored => f64::INFINITY,
            Status::Ok | Status::Failed | Status::Lost => f64::NAN,
        })
    }

    pub fn names(&self) -> Names<'_> {
        let texts = [&self.experiment, &self.variant, &self.point, &self.metric];
        let [experiment, variant, point, metric] = texts.map(|text| text.as_bytes());
        [experiment, variant, point, metric, self.unit.symbol().as_bytes(), self.key.as_bytes()]
    }

    /// # Errors
    /// When the point is not JSON.
    pub fn into_row(self) -> Result<Row, serde_json::Error> {
        Ok(Row {
            value: self.value(),
            point: serde_json::from_str(&self.point)?,
            experiment: self.experiment.into_owned(),
            lane: self.lane,
            variant: self.variant.into_owned(),
            trial: self.trial,
            position: self.position,
            metric: self.metric.into_owned(),
            key: self.key.into_owned(),
            offset_ns: self.offset_ns,
            unit: self.unit,
            status: self.status,
            start_ns: self.start_ns,
            worker: self.worker.into_owned(),
        })
    }
}

/// The status as the column has it.
pub(super) fn status_word(status: Status) -> &'static str {
    match status {
        Status::Ok => "ok",
        Status::Censored => "censored",
        Status::Lost => "lost",
        Status::Failed => "failed",
    }
}
