//! What a measurement saw.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::values::Bounds;

/// The value of one metric of one arm in one trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Index into the spec's metrics.
    pub metric: usize,
    /// Which of several series: a server, a pair of cores; empty for a scalar.
    pub key: Cow<'static, str>,
    /// When, since the measurement began, in nanoseconds; zero for a scalar.
    pub offset_ns: u64,
    /// The value in the metric's unit.
    pub value: f64,
    /// What became of it.
    pub status: Status,
}

/// What became of an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The value was observed.
    Ok,
    /// It was cut off: the true value is above the one that was seen until then. An infinite one says that this is not
    /// known either.
    Censored,
    /// Its trial was cut off before it was seen: it could be anything.
    Lost,
    /// The target failed; the value is what was seen until then.
    Failed,
}

impl Sample {
    /// What is not known of a metric, for its trial was cut off.
    pub(crate) fn lost(metric: usize) -> Sample {
        Sample { metric, key: Cow::Borrowed(""), offset_ns: 0, value: f64::NAN, status: Status::Lost }
    }

    /// What is known of the value.
    pub fn bounds(&self) -> Bounds {
        self.status.bounds(self.value)
    }
}

impl Status {
    /// What is known of a value with this status.
    pub fn bounds(self, value: f64) -> Bounds {
        match self {
            Status::Lost => Bounds::UNKNOWN,
            Status::Censored if value.is_finite() => Bounds::above(value),
            Status::Censored => Bounds::CUT_OFF,
            Status::Ok | Status::Failed if value == f64::INFINITY => Bounds::CUT_OFF,
            Status::Ok | Status::Failed => Bounds::exact(value),
        }
    }
}

/// Where a session puts what it saw; the engine empties it between measurements.
#[derive(Clone, Debug, Default)]
pub struct Samples(pub(crate) Vec<Sample>);

impl Samples {
    /// What was put there.
    pub fn iter(&self) -> std::slice::Iter<'_, Sample> {
        self.0.iter()
    }

    /// Adds a scalar that was observed.
    pub fn push(&mut self, metric: usize, value: f64) {
        self.push_with(metric, value, Status::Ok);
    }

    /// Adds a scalar with its status.
    pub fn push_with(&mut self, metric: usize, value: f64, status: Status) {
        self.push_sample(Sample { metric, key: Cow::Borrowed(""), offset_ns: 0, value, status });
    }

    /// Adds a sample of a series: a point of a curve, a cell of a matrix.
    pub fn push_sample(&mut self, sample: Sample) {
        self.0.push(sample);
    }
}
