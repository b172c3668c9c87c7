//! Records a part of the observations of a long measurement: every n-th, all around a failure, and a histogram of each
//! window.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use super::histogram::write_line;
use super::values::WindowValues;
use super::{Around, HISTOGRAMS, MemoryReport, RecordedReport, WindowPlan, WindowSummary};
use crate::evidence::{Error, RowsFile, Writer};
use crate::experiment::{Arm, Sample, Samples, Spec, Status};

/// Name of the file with the observations around failures.
const AROUND: &str = "around.jsonl";

/// The choice of every n-th observation.
#[derive(Clone, Copy, Debug)]
struct Stride {
    every: u64,
    /// Index of the next observation to record.
    next: u64,
    /// Number of observations that are recorded before the distance doubles; `None` if it does not.
    before_doubling: Option<u64>,
    left: u64,
    recorded: u64,
}

impl Stride {
    fn new(every: Option<u64>, metrics: u64) -> Stride {
        let before_doubling = (WindowPlan::ROWS_PER_STRIDE / metrics.max(1)).max(1);
        Stride {
            every: every.unwrap_or(1),
            next: 0,
            before_doubling: every.is_none().then_some(before_doubling),
            left: before_doubling,
            recorded: 0,
        }
    }

    /// Moves on to the next observation to record.
    fn advance(&mut self) {
        self.recorded += 1;
        self.left = self.left.saturating_sub(1);
        if let (0, Some(before_doubling)) = (self.left, self.before_doubling) {
            self.every *= 2;
            self.left = before_doubling;
        }
        // After a doubling, the next multiple of the new distance may be nearer than that distance.
        self.next = (self.next / self.every + 1) * self.every;
    }
}

/// A value that was observed, with its status; `None` for a metric without a value.
type Observed = Option<(f64, Status)>;

/// The latest observations, which are recorded if a failure follows.
struct Ring {
    metrics: usize,
    /// Index and start of each observation.
    places: Box<[(u64, u64)]>,
    values: Box<[Observed]>,
    /// Number of observations that were added so far.
    added: u64,
}

impl Ring {
    fn new(observations: u64, metrics: usize) -> Ring {
        let observations = observations as usize;
        Ring {
            metrics,
            places: vec![(0, 0); observations].into(),
            values: vec![None; observations * metrics].into(),
            added: 0,
        }
    }

    fn bytes(observations: u64, metrics: usize) -> u64 {
        observations * (size_of::<(u64, u64)>() + metrics * size_of::<Observed>()) as u64
    }

    /// Adds an observation with a single metric.
    fn push_value(&mut self, index: u64, start_ns: u64, value: f64) {
        if self.places.is_empty() {
            return;
        }
        let at = (self.added % self.places.len() as u64) as usize;
        self.places[at] = (index, start_ns);
        self.values[at] = (!value.is_nan()).then_some((value, Status::Ok));
        self.added += 1;
    }

    fn push(&mut self, index: u64, start_ns: u64, samples: &[Sample]) {
        if self.places.is_empty() {
            return;
        }
        let at = (self.added % self.places.len() as u64) as usize;
        self.places[at] = (index, start_ns);
        let values = &mut self.values[at * self.metrics..][..self.metrics];
        values.fill(None);
        samples.iter().for_each(|sample| values[sample.metric] = Some((sample.value, sample.status)));
        self.added += 1;
    }

    /// Removes the oldest observation and writes its samples to `samples`. Returns its index and start.
    fn pop(&mut self, samples: &mut Samples, kept: u64) -> (u64, u64) {
        let at = ((self.added - kept) % self.places.len() as u64) as usize;
        samples.0.clear();
        for (metric, observed) in self.values[at * self.metrics..][..self.metrics].iter().enumerate() {
            if let Some((value, status)) = *observed {
                samples.push_with(metric, value, status);
            }
        }
        self.places[at]
    }

    /// Returns the number of observations in the ring.
    fn kept(&self) -> u64 {
        self.added.min(self.places.len() as u64)
    }

    fn clear(&mut self) {
        self.added = 0;
    }
}

/// The files of a long measurement.
struct Files {
    writer: Writer,
    arm: usize,
    around: RowsFile,
    histograms: BufWriter<File>,
    histograms_path: PathBuf,
}

/// Records a part of the observations.
pub(super) struct Recorder {
    /// The files; `None` if nothing is recorded, or after an error.
    files: Option<Files>,
    /// The error that ended the recording.
    pub unkept: Option<Error>,
    /// The present time, in nanoseconds since the start of the run.
    pub now_ns: u64,
    stride: Stride,
    around: Around,
    ring: Ring,
    /// Number of observations after the last failure that are still to be recorded.
    after: u64,
    report: RecordedReport,
    samples: Samples,
}

/// Capacity of the buffer for `windows.jsonl`, in bytes.
const BUFFER_BYTES: usize = 1 << 16;
/// Size of the buffers for rows, in bytes: one for every n-th observation, and one for those around failures.
const ROWS_BYTES: u64 = 2 << 20;

impl Recorder {
    /// Opens the files. `writer` is `None` if nothing is recorded.
    ///
    /// # Errors
    /// If a file cannot be created.
    pub fn new(plan: &WindowPlan, spec: &Spec, arm: &Arm, writer: Option<Writer>) -> (Recorder, Option<Error>) {
        let metrics = spec.metrics.len();
        let files = writer.map(|writer| Files::create(writer, spec, arm)).transpose();
        let (files, error) = match files {
            Ok(files) => (files, None),
            Err(error) => (None, Some(error)),
        };
        let mut samples = Samples::default();
        samples.0.reserve_exact(if files.is_some() { metrics } else { 0 });
        let around = if files.is_some() { plan.around } else { Around { observations: 0, most: 0 } };
        let recorder = Recorder {
            files,
            unkept: None,
            now_ns: 0,
            stride: Stride::new(plan.record_every, metrics as u64),
            ring: Ring::new(around.observations, metrics),
            around,
            after: 0,
            report: RecordedReport {
                is_growing: plan.record_every.is_none(),
                around: around.observations,
                ..RecordedReport::default()
            },
            samples,
        };
        (recorder, error)
    }

    /// Adds the memory of a recorder to a report.
    pub fn announce(plan: &WindowPlan, metrics: usize, report: &mut MemoryReport) {
        report.add("buffers of rows and histograms", ROWS_BYTES + BUFFER_BYTES as u64);
        let sample = (metrics * size_of::<Sample>()) as u64;
        report.add("latest observations, for failures", Ring::bytes(plan.around.observations, metrics) + sample);
    }

    /// Records the samples of an observation, if it is an n-th one or near a failure.
    pub fn observe(&mut self, index: u64, start_ns: u64, samples: &[Sample], is_failure: bool) {
        self.report.failures += u64::from(is_failure);
        if self.files.is_none() {
            return;
        }
        if index == self.stride.next {
            self.stride.advance();
            self.attempt(|files| {
                files.writer.record(files.arm, index, 0, start_ns, samples);
                // Slow trials are written at once, and fast ones ten times a second, by `flush`.
                files.writer.end_trial(0.0)
            });
        }
        if is_failure {
            self.begin_failure();
        }
        if self.after > 0 {
            self.after -= 1;
            self.record_around(index, start_ns, samples);
        } else {
            self.ring.push(index, start_ns, samples);
        }
    }

    /// Records values of the only metric. They have consecutive indices from `first` on. A value that was not observed
    /// is NaN. `is_failure` returns whether a value is a failure.
    pub fn observe_values(
        &mut self,
        first: u64,
        start_ns: u64,
        values: &[f64],
        failures: u64,
        is_failure: impl Fn(f64) -> bool,
    ) {
        if self.files.is_none() {
            self.report.failures += failures;
            return;
        }
        let end = first + values.len() as u64;
        let is_full = self.report.around_observations >= self.around.most;
        if self.after == 0 && (failures == 0 || is_full) {
            self.report.failures += failures;
            self.report.failures_left_out += failures;
            while self.stride.next < end {
                let index = self.stride.next;
                self.stride.advance();
                self.record_value(index, start_ns, values[(index - first) as usize]);
            }
            let kept = self.ring.places.len().min(values.len());
            for (index, value) in (end - kept as u64..).zip(&values[values.len() - kept..]) {
                self.ring.push_value(index, start_ns, *value);
            }
            return;
        }
        for (index, value) in (first..).zip(values) {
            let status = if value.is_nan() { Status::Failed } else { Status::Ok };
            let sample = Sample { value: *value, status, ..Sample::lost(0) };
            self.observe(index, start_ns, &[sample], is_failure(*value));
        }
    }

    fn record_value(&mut self, index: u64, start_ns: u64, value: f64) {
        let mut samples = std::mem::take(&mut self.samples);
        samples.0.clear();
        samples.push_with(0, value, if value.is_nan() { Status::Failed } else { Status::Ok });
        self.attempt(|files| {
            files.writer.record(files.arm, index, 0, start_ns, &samples.0);
            files.writer.end_trial(0.0)
        });
        self.samples = samples;
    }

    /// Records the observations before a failure, and prepares for those after it.
    fn begin_failure(&mut self) {
        let left = self.around.most.saturating_sub(self.report.around_observations);
        if left == 0 {
            self.report.failures_left_out += u64::from(self.after == 0);
            return;
        }
        let mut samples = std::mem::take(&mut self.samples);
        let kept = if self.after > 0 { 0 } else { self.ring.kept().min(left - 1) };
        for earlier in (1..=kept).rev() {
            let (index, start_ns) = self.ring.pop(&mut samples, earlier);
            self.record_around(index, start_ns, &samples.0);
        }
        self.samples = samples;
        self.ring.clear();
        let left = self.around.most.saturating_sub(self.report.around_observations);
        // The failure itself is one of them.
        self.after = (self.around.observations + 1).min(left);
    }

    /// Records an observation around a failure. After an error, it is neither recorded nor counted.
    fn record_around(&mut self, index: u64, start_ns: u64, samples: &[Sample]) {
        self.attempt(|files| files.around.record(index, start_ns, samples));
        self.report.around_observations += u64::from(self.files.is_some());
    }

    /// Writes the histogram of a window that has ended. `broken` has the number of observations so far that did not
    /// meet each condition.
    pub fn end_window(&mut self, summary: &WindowSummary, values: &WindowValues, broken: &[u64]) {
        let every = self.stride.every;
        self.attempt(|files| {
            let written = write_line(&mut files.histograms, summary, every, values, broken);
            written.and_then(|()| files.histograms.flush()).map_err(Error::write(&files.histograms_path))
        });
    }

    /// Writes everything that is still in a buffer.
    pub fn flush(&mut self) {
        self.attempt(|files| files.writer.flush().and_then(|()| files.around.flush()));
    }

    fn attempt(&mut self, write: impl FnOnce(&mut Files) -> Result<(), Error>) {
        if let Some(Err(error)) = self.files.as_mut().map(write) {
            // The rows so far stay readable.
            self.files = None;
            self.unkept = Some(error);
            self.report.every = self.stride.every;
            self.report.ended_ns = Some(self.now_ns);
            // Rows that were still in a buffer are lost, so it is not known how many there are.
            self.report.around_observations = 0;
        }
    }

    /// Returns the observations that were recorded.
    pub fn report(&self) -> RecordedReport {
        match &self.files {
            Some(_) => RecordedReport { every: self.stride.every, observations: self.stride.recorded, ..self.report },
            None => self.report,
        }
    }

    /// Ends the recording, and returns the writer of the run.
    pub fn finish(mut self) -> (Option<Writer>, Option<Error>) {
        self.flush();
        (self.files.map(|files| files.writer), self.unkept)
    }
}

impl Files {
    fn create(mut writer: Writer, spec: &Spec, arm: &Arm) -> Result<Files, Error> {
        let row = writer.add_arm(spec, 0, arm);
        let around = writer.rows_file(AROUND, spec, arm)?;
        let histograms_path = writer.folder().join(HISTOGRAMS);
        let file = File::options().append(true).create_new(true).open(&histograms_path);
        let file = file.map_err(Error::write(&histograms_path))?;
        let histograms = BufWriter::with_capacity(BUFFER_BYTES, file);
        Ok(Files { writer, arm: row, around, histograms, histograms_path })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_doubles_and_stays_a_multiple() {
        let mut stride = Stride { before_doubling: Some(3), left: 3, ..Stride::new(None, 1) };
        let mut indices = Vec::new();
        for _ in 0..12 {
            indices.push(stride.next);
            stride.advance();
        }
        assert_eq!(indices, [0, 1, 2, 4, 6, 8, 12, 16, 20, 24, 32, 40]);
        let mut fixed = Stride::new(Some(7), 1);
        (0..5).for_each(|_| fixed.advance());
        assert_eq!((fixed.next, fixed.every, fixed.recorded), (35, 7, 5));
    }

    #[test]
    fn a_long_run_records_less_than_a_million_rows() {
        for metrics in [1, 5, 13] {
            let mut stride = Stride::new(None, metrics);
            while stride.next < 1_000_000_000 {
                stride.advance();
            }
            assert!(stride.recorded * metrics < 1_000_000, "{}", stride.recorded * metrics);
        }
    }
}
