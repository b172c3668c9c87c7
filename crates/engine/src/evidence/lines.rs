//! `trials.jsonl`: rows as they are written between trials, and as they are read back line by line.

use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Take, Write};
use std::path::{Path, PathBuf};

use ascertain_sys::files;
use serde::{Deserialize, Serialize};

use super::error::Error;
use super::folder::LINES;
use super::trials::SeriesKey;
use crate::experiment::{Arm, Point, Sample, Spec, Status};
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
    /// The value in `unit`. One that was cut off is what had been seen by then, or infinite where that was not noted;
    /// what is not a number, or negative infinity, or was lost is read as NaN.
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
pub(super) struct JsonLine<'a> {
    #[serde(borrow)]
    #[cfg_attr(not(feature = "parquet"), expect(dead_code, reason = "a line without it is none of ours"))]
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

impl JsonLine<'_> {
    pub fn value(&self) -> f64 {
        self.value.unwrap_or(match self.status {
            Status::Censored => f64::INFINITY,
            Status::Ok | Status::Failed | Status::Lost => f64::NAN,
        })
    }

    pub fn names(&self) -> SeriesKey<'_> {
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

/// Room that is there before the first trial. Half of it is some two thousand rows.
const CAPACITY: usize = 1 << 20;

/// Rows as text, from the moment they are observed until they are written.
pub(super) struct RowBuffer {
    bytes: Vec<u8>,
    arms: Vec<ArmText>,
    experiments: Vec<String>,
    /// The experiment and the number of the last row's trial.
    trial: Option<(usize, u64)>,
    run_id: String,
    /// What makes a reading of the clock a time since the run started, modulo 2^64.
    clock_shift_ns: u64,
}

/// The parts of an arm's rows that never change.
struct ArmText {
    /// Up to the trial's number.
    head: Vec<u8>,
    /// Index into the experiments.
    experiment: usize,
    /// By metric.
    metrics: Vec<MetricText>,
}

struct MetricText {
    /// From behind the position up to the key.
    name: Vec<u8>,
    /// From behind the value up to the status.
    unit: Vec<u8>,
}

impl RowBuffer {
    pub fn new(run_id: String, clock_shift_ns: u64) -> RowBuffer {
        // Written to once, so that no page of it has to be found while trials run.
        let mut bytes = vec![b' '; CAPACITY];
        bytes.clear();
        RowBuffer { bytes, arms: Vec::new(), experiments: Vec::new(), trial: None, run_id, clock_shift_ns }
    }

    pub fn add_arm(&mut self, spec: &Spec, lane: usize, arm: &Arm) -> usize {
        let [run_id, experiment, variant] = [&self.run_id, &spec.id, &arm.variant].map(json_text);
        let point = json_text(&json_text(&arm.point));
        let names = format!("\"run_id\":{run_id},\"experiment\":{experiment},\"lane\":{lane}");
        let head = format!("{{{names},\"variant\":{variant},\"point\":{point},\"trial\":").into_bytes();
        let metrics = spec.metrics.iter().map(|metric| MetricText {
            name: format!(",\"metric\":{},\"key\":", json_text(&metric.name)).into_bytes(),
            unit: format!(",\"unit\":{},\"status\":\"", json_text(&metric.unit)).into_bytes(),
        });
        let known = self.experiments.iter().position(|id| *id == spec.id);
        let experiment = known.unwrap_or_else(|| {
            self.experiments.push(spec.id.clone());
            self.experiments.len() - 1
        });
        self.arms.push(ArmText { head, experiment, metrics: metrics.collect() });
        self.arms.len() - 1
    }

    pub fn record(&mut self, arm: usize, trial: u64, position: u32, start_ns: u64, samples: &[Sample]) {
        let of_trial = Some((self.arms[arm].experiment, trial));
        if self.trial != of_trial && !samples.is_empty() {
            self.mark_end_of_trial();
            self.trial = of_trial;
        }
        let text = &self.arms[arm];
        let bytes = &mut self.bytes;
        // No measurement begins before its run: a negative time is one of another clock.
        let start_ns = start_ns.wrapping_add(self.clock_shift_ns).cast_signed().max(0).cast_unsigned();
        for sample in samples {
            let metric = &text.metrics[sample.metric];
            // An infinite value was not seen: it was cut off.
            let status = if sample.value == f64::INFINITY { Status::Censored } else { sample.status };
            bytes.extend_from_slice(&text.head);
            put(bytes, &trial);
            bytes.extend_from_slice(b",\"position\":");
            put(bytes, &position);
            bytes.extend_from_slice(&metric.name);
            put(bytes, &sample.key);
            bytes.extend_from_slice(b",\"offset_ns\":");
            put(bytes, &sample.offset_ns);
            bytes.extend_from_slice(b",\"value\":");
            put(bytes, &sample.value);
            bytes.extend_from_slice(&metric.unit);
            bytes.extend_from_slice(status_word(status).as_bytes());
            bytes.extend_from_slice(b"\",\"start_ns\":");
            put(bytes, &start_ns);
            bytes.extend_from_slice(b",\"worker\":\"\"}\n");
        }
    }

    /// Marks the last row as the last of its trial.
    fn mark_end_of_trial(&mut self) {
        if self.bytes.ends_with(b"}\n") {
            self.bytes.pop();
            self.bytes.extend_from_slice(b" \n");
        }
    }

    pub fn is_half_full(&self) -> bool {
        self.bytes.len() >= CAPACITY / 2
    }

    /// Writes everything; call it between trials only, since it marks where it stops as a trial's end.
    /// On an error what is not written yet stays, so that a later call goes on exactly there.
    pub fn write_to(&mut self, sink: &mut impl Write) -> io::Result<()> {
        self.mark_end_of_trial();
        let mut written = 0;
        let result = loop {
            if written == self.bytes.len() {
                break Ok(());
            }
            match sink.write(&self.bytes[written..]) {
                Ok(0) => break Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
        };
        self.bytes.drain(..written);
        result
    }
}

/// A row as `trials.parquet` has it: its texts, and its numbers.
#[cfg(feature = "parquet")]
pub(super) struct StoredRow<'a> {
    pub run_id: &'a str,
    pub experiment: &'a str,
    pub lane: Option<u32>,
    pub variant: &'a str,
    pub point: &'a str,
    pub trial: i64,
    pub position: i64,
    pub metric: &'a str,
    pub key: &'a str,
    pub offset_ns: i64,
    pub value: f64,
    pub unit: &'a str,
    pub status: &'a str,
    pub start_ns: i64,
    pub worker: &'a str,
}

/// Writes stored rows as the lines that [`RowBuffer`] made of them, byte by byte.
#[cfg(feature = "parquet")]
pub(super) struct LineWriter<W> {
    bytes: Vec<u8>,
    /// The experiment and the number of the last row's trial.
    trial: Option<(String, i64)>,
    sink: W,
}

#[cfg(feature = "parquet")]
impl<W: Write> LineWriter<W> {
    pub fn new(sink: W) -> LineWriter<W> {
        LineWriter { bytes: Vec::new(), trial: None, sink }
    }

    pub fn write(&mut self, row: &StoredRow) -> io::Result<()> {
        match &self.trial {
            Some((experiment, trial)) if (experiment.as_str(), *trial) == (row.experiment, row.trial) => {
                self.bytes.push(b'\n');
            }
            last => {
                if last.is_some() {
                    self.bytes.extend_from_slice(b" \n");
                }
                self.trial = Some((row.experiment.to_string(), row.trial));
            }
        }
        if self.bytes.len() >= CAPACITY {
            self.sink.write_all(&self.bytes)?;
            self.bytes.clear();
        }
        let bytes = &mut self.bytes;
        for (name, text) in [("{\"run_id\":", row.run_id), (",\"experiment\":", row.experiment)] {
            bytes.extend_from_slice(name.as_bytes());
            put(bytes, text);
        }
        if let Some(lane) = row.lane {
            bytes.extend_from_slice(b",\"lane\":");
            put(bytes, &lane);
        }
        for (name, text) in [(",\"variant\":", row.variant), (",\"point\":", row.point)] {
            bytes.extend_from_slice(name.as_bytes());
            put(bytes, text);
        }
        bytes.extend_from_slice(b",\"trial\":");
        put(bytes, &row.trial);
        bytes.extend_from_slice(b",\"position\":");
        put(bytes, &row.position);
        for (name, text) in [(",\"metric\":", row.metric), (",\"key\":", row.key)] {
            bytes.extend_from_slice(name.as_bytes());
            put(bytes, text);
        }
        bytes.extend_from_slice(b",\"offset_ns\":");
        put(bytes, &row.offset_ns);
        bytes.extend_from_slice(b",\"value\":");
        put(bytes, &row.value);
        for (name, text) in [(",\"unit\":", row.unit), (",\"status\":", row.status)] {
            bytes.extend_from_slice(name.as_bytes());
            put(bytes, text);
        }
        bytes.extend_from_slice(b",\"start_ns\":");
        put(bytes, &row.start_ns);
        bytes.extend_from_slice(b",\"worker\":");
        put(bytes, row.worker);
        bytes.push(b'}');
        Ok(())
    }

    /// Ends the last line and writes what is left.
    pub fn finish(mut self) -> io::Result<()> {
        if self.trial.is_some() {
            self.bytes.extend_from_slice(b" \n");
        }
        self.sink.write_all(&self.bytes)?;
        self.sink.flush()
    }
}

/// Writes a text or a real number; one that is not finite as `null`.
fn put<T: Serialize + ?Sized>(bytes: &mut Vec<u8>, value: &T) {
    serde_json::to_writer(bytes, value).expect("a Vec takes every byte");
}

fn json_text<T: Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).expect("texts and numbers have a form in JSON")
}

/// The whole lines of `trials.jsonl`.
pub(super) struct Lines {
    path: PathBuf,
    input: BufReader<Take<Box<dyn Read>>>,
    line: Vec<u8>,
    number: u64,
    /// Where the line ends in the file.
    end: u64,
}

impl Lines {
    pub fn open(run: &Path) -> Result<Lines, Error> {
        let path = run.join(LINES);
        let open = || {
            let file = files::open_regular(&path)?;
            // What is appended from now on is not read.
            let length = file.metadata()?.len();
            Ok((Box::new(file) as Box<dyn Read>, length))
        };
        let (file, length) = open().map_err(Error::read(&path, LINES))?;
        Ok(Lines::of(path, file, length))
    }

    /// The lines in a text of so many bytes; `path` is for errors.
    pub fn of(path: PathBuf, text: Box<dyn Read>, bytes: u64) -> Lines {
        let input = BufReader::with_capacity(1 << 16, text.take(bytes));
        Lines { path, input, line: Vec::with_capacity(512), number: 0, end: 0 }
    }

    /// The lines within the file's first `bytes`, before any is read.
    pub fn up_to(mut self, bytes: u64) -> Lines {
        let input = self.input.get_mut();
        input.set_limit(input.limit().min(bytes));
        self
    }

    /// Goes to the next line that is not blank. False when there is none, or it is cut off.
    pub fn advance(&mut self) -> Result<bool, Error> {
        loop {
            self.line.clear();
            let length = self.input.read_until(b'\n', &mut self.line).map_err(Error::read(&self.path, LINES))?;
            if self.line.pop() != Some(b'\n') {
                return self.check_length().map(|()| false);
            }
            self.number += 1;
            self.end += length as u64;
            if !self.line.trim_ascii().is_empty() {
                return Ok(true);
            }
        }
    }

    /// Returns an error if the file is now shorter than when it was opened. The end of a run empties it.
    fn check_length(&self) -> Result<(), Error> {
        if self.input.get_ref().limit() == 0 {
            return Ok(());
        }
        let reason =
            "it became shorter while it was read, as at the end or the continuation of its run; read the run again";
        Err(Error::Read { path: self.path.clone(), reason: io::Error::new(ErrorKind::UnexpectedEof, reason) })
    }

    pub fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T, Error> {
        serde_json::from_slice(&self.line).map_err(|error| self.malformed(&error))
    }

    pub fn row(&self) -> Result<Row, Error> {
        self.parse::<JsonLine>()?.into_row().map_err(|error| self.malformed(&error))
    }

    fn malformed(&self, error: &serde_json::Error) -> Error {
        Error::malformed(&self.path, self.number, error).in_rows()
    }

    /// What is wrong with the line, although it is JSON.
    pub fn wrong(&self, reason: String) -> Error {
        Error::Malformed { path: self.path.clone(), line: self.number, column: 1, reason }.in_rows()
    }

    /// The line, without its end.
    pub fn text(&self) -> &[u8] {
        &self.line
    }

    /// Whether the line is marked as the last of a trial.
    pub fn ends_trial(&self) -> bool {
        self.line.ends_with(b" ")
    }

    /// Where the line ends in the file.
    pub fn end(&self) -> u64 {
        self.end
    }
}
