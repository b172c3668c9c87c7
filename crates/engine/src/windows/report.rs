//! The result of a long measurement, as plain data.

use ascertain_streams::RELATIVE_ERROR;
use serde::{Deserialize, Serialize};

use super::{Drift, WindowPlan};
use crate::claim::Test;
use crate::experiment::Metric;
use crate::unit::Unit;
use crate::values::Bounds;

/// The result of a long measurement: figures of each window, of groups of windows, and of all observations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WindowReport {
    /// The metric whose quantiles are reported.
    pub metric: String,
    /// The unit of the metric.
    pub unit: Unit,
    /// The condition of a success, as text.
    pub condition: String,
    /// Planned duration of the run, in nanoseconds.
    pub duration_ns: u64,
    /// Length of a window, in nanoseconds.
    pub window_ns: u64,
    /// Time from the start of the first window to the end of the run, in nanoseconds.
    pub elapsed_ns: u64,
    /// The way in which the run ended.
    pub ended: Ended,
    /// `true` if the command failed within a line, which is then not an observation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_last_line_left_out: bool,
    /// `true` if the end of the run cut off the last observation. It has no value, and its true value may be above the
    /// maximum.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_last_cut_off: bool,
    /// Largest relative error of the quantiles. The least and the greatest value are exact, unless values were cut off.
    pub relative_error: f64,
    /// Time limit of an observation, in the unit of the metric. Values that reached it are above all others.
    pub limit: Option<f64>,
    /// Figures of all observations.
    pub total: WindowSummary,
    /// Figures of at most twenty groups of neighbouring windows, for a short table.
    pub groups: Vec<WindowSummary>,
    /// Figures of each window, in order. Windows that had not begun when the run ended are missing.
    pub windows: Vec<WindowSummary>,
    /// Figures about changes in the course of the run; `None` if fewer than two windows have values.
    pub drift: Option<Drift>,
    /// The derived series.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<SeriesReport>,
    /// The observations that the run recorded.
    pub recorded: RecordedReport,
    /// The memory that was announced before the run.
    pub memory: MemoryReport,
}

impl WindowReport {
    /// Returns the report of a run without observations.
    pub(super) fn empty(plan: &WindowPlan, metric: &Metric) -> WindowReport {
        let condition = match &plan.success {
            Test::Predicate { predicate, .. } => predicate.clone(),
            Test::Versus { .. } => String::new(),
        };
        WindowReport {
            metric: metric.name.clone(),
            unit: metric.unit,
            condition,
            duration_ns: plan.duration.as_nanos() as u64,
            window_ns: plan.window.as_nanos() as u64,
            elapsed_ns: 0,
            ended: Ended::Open,
            is_last_line_left_out: false,
            is_last_cut_off: false,
            relative_error: RELATIVE_ERROR,
            limit: None,
            total: WindowSummary::default(),
            groups: Vec::new(),
            windows: Vec::new(),
            drift: None,
            series: Vec::new(),
            recorded: RecordedReport::default(),
            memory: MemoryReport::default(),
        }
    }
}

/// The way in which a long measurement ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// The time was up.
    Time,
    /// The command that prints observations ended before the time was up. The text is the way in which it ended.
    Command(String),
    /// A signal ended the run.
    Interrupted,
    /// An error ended the run, such as a line that is not an observation. The text is the error.
    Error(String),
    /// The process was killed, or is still running.
    Open,
}

/// The figures of a window, or of neighbouring windows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WindowSummary {
    /// Index of the first window, from 0.
    pub window: u64,
    /// Number of windows.
    pub windows: u64,
    /// Start of the first window, in nanoseconds since the start of the run.
    pub start_ns: u64,
    /// End of the last window, in nanoseconds since the start of the run.
    pub end_ns: u64,
    /// Number of observations.
    pub observations: u64,
    /// Number of observations that met every condition of a success.
    pub successes: u64,
    /// Number of observations of which it is unknown whether they met every condition, because they were cut off.
    pub unknown: u64,
    /// Number of observations without a value of the metric. They are not part of the quantiles.
    pub without_value: u64,
    /// Number of observations that were cut off, for example at the time limit. Of their values only a range is known.
    pub stopped: u64,
    /// The least value; `None` if there are no values, or if it is known only as a range. The same is true of all other
    /// figures.
    pub least: Option<f64>,
    /// The 50th percentile.
    pub median: Option<f64>,
    /// The 90th percentile.
    pub p90: Option<f64>,
    /// The 99th percentile.
    pub p99: Option<f64>,
    /// The 99.9th percentile.
    pub p999: Option<f64>,
    /// The greatest value.
    pub most: Option<f64>,
    /// The ranges of all figures, if any of them is known only as a range. The reason is that values were cut off, or
    /// that they are below 2^−16 or above 2^48.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranges: Option<Ranges>,
}

/// The ranges of the figures of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ranges {
    /// The range of the least value.
    pub least: Range,
    /// The range of the median.
    pub median: Range,
    /// The range of the 90th percentile.
    pub p90: Range,
    /// The range of the 99th percentile.
    pub p99: Range,
    /// The range of the 99.9th percentile.
    pub p999: Range,
    /// The range of the greatest value.
    pub most: Range,
}

/// The range in which a figure lies. If both bounds are equal, the figure is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Range {
    /// The lower bound; `None` if there is none.
    pub low: Option<f64>,
    /// The upper bound; `None` if there is none.
    pub high: Option<f64>,
}

impl Range {
    /// Returns the range of a figure that is known.
    #[must_use]
    pub fn exact(value: f64) -> Range {
        Range::of(Bounds::exact(value))
    }

    /// Returns a range with these bounds. An infinite bound becomes `None`.
    #[must_use]
    pub fn of(bounds: Bounds) -> Range {
        let finite = |bound: f64| bound.is_finite().then_some(bound);
        Range { low: finite(bounds.low), high: finite(bounds.high) }
    }

    /// Returns the bounds as numbers.
    #[must_use]
    pub fn bounds(self) -> Bounds {
        Bounds { low: self.low.unwrap_or(f64::NEG_INFINITY), high: self.high.unwrap_or(f64::INFINITY) }
    }

    /// Returns the figure if it is known.
    #[must_use]
    pub fn value(self) -> Option<f64> {
        self.bounds().value()
    }
}

impl WindowSummary {
    /// Returns the share of successes; `None` without observations.
    #[must_use]
    pub fn share(&self) -> Option<f64> {
        (self.observations > 0).then(|| self.successes as f64 / self.observations as f64)
    }

    /// Returns the share of observations with an unknown outcome; `None` without observations.
    #[must_use]
    pub fn unknown_share(&self) -> Option<f64> {
        (self.observations > 0).then(|| self.unknown as f64 / self.observations as f64)
    }

    /// Returns the ranges of the least value, of the median, of the 90th, 99th and 99.9th percentile, and of the
    /// greatest value. Without values, they are [`Bounds::NONE`].
    #[must_use]
    pub fn figures(&self) -> [Bounds; 6] {
        if let Some(Ranges { least, median, p90, p99, p999, most }) = self.ranges {
            return [least, median, p90, p99, p999, most].map(Range::bounds);
        }
        let figures = [self.least, self.median, self.p90, self.p99, self.p999, self.most];
        figures.map(|figure| figure.map_or(Bounds::NONE, Bounds::exact))
    }

    /// Returns the range of the median.
    #[must_use]
    pub fn median_range(&self) -> Bounds {
        self.figures()[1]
    }

    /// Returns the range of the 99th percentile.
    #[must_use]
    pub fn p99_range(&self) -> Bounds {
        self.figures()[3]
    }

    /// Returns the number of values in the quantiles.
    #[must_use]
    pub fn values(&self) -> u64 {
        self.observations - self.without_value
    }
}

/// A derived series over the windows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeriesReport {
    /// The expression of the series.
    pub expression: String,
    /// The unit of the results.
    pub unit: Unit,
    /// The results in each window.
    pub windows: Vec<SeriesWindow>,
    /// The error that ended the series before the end of the run, such as a full buffer. `windows` then ends with the
    /// window of the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The results of a derived series in one window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SeriesWindow {
    /// Number of results, including nulls.
    pub results: u64,
    /// Number of results that are null.
    pub nulls: u64,
    /// Number of results with an infinite bound, for example because an observation was cut off.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unbounded: u64,
    /// The least result; `None` if there is none, or if a result has no lower bound.
    pub least: Option<f64>,
    /// Mean of the results. If `unbounded` is above 0, it is the mean of the finite lower bounds, and therefore a lower
    /// bound. `None` as for `least`.
    pub mean: Option<f64>,
    /// The greatest result; `None` if there is none, or if a result has no upper bound.
    pub most: Option<f64>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The observations that a long measurement recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedReport {
    /// Every n-th observation is recorded: the n at the end of the recording. 0 if nothing is recorded.
    pub every: u64,
    /// Time at which an error ended the recording, in nanoseconds since the start of the run; `None` if none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ns: Option<u64>,
    /// `true` if n was 1 at first and doubled during the run.
    pub is_growing: bool,
    /// Number of observations in `trials.parquet` or `trials.jsonl`; 0 if it is not known, because an error ended the
    /// recording or the run was killed.
    pub observations: u64,
    /// Number of observations before and after each failure that are recorded. In all these fields, an observation of
    /// which it is unknown whether it was a success counts as a failure.
    pub around: u64,
    /// Number of observations in `around.jsonl`; 0 if it is not known.
    pub around_observations: u64,
    /// Number of failures. A failure is an observation that was not a success.
    pub failures: u64,
    /// Number of failures that are not recorded, because the limit of observations around failures was reached.
    pub failures_left_out: u64,
}

/// The memory of a long measurement, by its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryReport {
    /// The parts, in the order of the announcement.
    pub parts: Vec<MemoryPart>,
}

/// A part of the memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryPart {
    /// The purpose of the memory: "3 quantile tables".
    pub name: String,
    /// The size in bytes.
    pub bytes: u64,
}

impl MemoryReport {
    /// Returns the size of all parts in bytes.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes).fold(0, u64::saturating_add)
    }

    #[cfg(feature = "commands")]
    pub(super) fn add(&mut self, name: impl Into<String>, bytes: u64) {
        self.parts.push(MemoryPart { name: name.into(), bytes });
    }
}
