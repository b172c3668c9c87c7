//! `trials.jsonl`: writes rows between trials, and reads them back line by line.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, ErrorKind, Read, Take, Write};
use std::path::{Path, PathBuf};

use ascertain_sys::files;
use serde::Serialize;

use super::error::Error;
use super::folder::LINES;
use super::row::{Row, RowReader};
use crate::experiment::{Arm, Sample, Spec, Status};

/// Size in bytes of the buffer for rows. It is allocated before the first trial. Rows are written at the latest when
/// half of the buffer is used, which is enough for about two thousand rows.
const CAPACITY: usize = 1 << 20;

/// Rows in the form of text, from the time they are observed until they are written to `trials.jsonl`.
pub(super) struct RowBuffer {
    bytes: Vec<u8>,
    arms: Vec<ArmText>,
    experiments: Vec<String>,
    /// The trial of the last row: the index of its experiment in `experiments`, and the index of the trial within this
    /// experiment.
    trial: Option<(usize, u64)>,
    run_id: String,
    /// The text from the time of a row to its end. It contains the name of the machine that measured the row.
    worker: Vec<u8>,
    /// Number to add to a reading of the clock, modulo 2^64. The sum is the time since the run started.
    clock_shift_ns: u64,
}

fn worker_text(name: &str) -> Vec<u8> {
    format!(",\"worker\":{}}}\n", json_text(name)).into_bytes()
}

/// The pieces of text that are the same in all rows of an arm.
struct ArmText {
    /// The text from the start of a row to the index of the trial.
    head: Vec<u8>,
    /// Index into [`RowBuffer::experiments`].
    experiment: usize,
    /// For each metric of the experiment, the pieces of text that are the same in all rows of the metric.
    metrics: Vec<MetricText>,
}

struct MetricText {
    /// The text between a row's position number and its key. It contains the metric's name.
    name: Vec<u8>,
    /// The text between a row's value and its status. It contains the metric's unit.
    unit: Vec<u8>,
}

impl RowBuffer {
    pub fn new(run_id: String, clock_shift_ns: u64) -> RowBuffer {
        // Filled once, so that its pages are already mapped when trials run.
        let mut bytes = vec![b' '; CAPACITY];
        bytes.clear();
        let worker = worker_text("");
        RowBuffer { bytes, arms: Vec::new(), experiments: Vec::new(), trial: None, run_id, worker, clock_shift_ns }
    }

    /// Sets the machine that measured the following rows; empty for the machine in `run.json`.
    pub fn set_worker(&mut self, name: &str) {
        self.worker = worker_text(name);
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
        let this_trial = Some((self.arms[arm].experiment, trial));
        if self.trial != this_trial && !samples.is_empty() {
            self.mark_end_of_trial();
            self.trial = this_trial;
        }
        let text = &self.arms[arm];
        let bytes = &mut self.bytes;
        // No measurement begins before its run, so a negative time comes from another clock. It becomes 0.
        let start_ns = start_ns.wrapping_add(self.clock_shift_ns).cast_signed().max(0).cast_unsigned();
        for sample in samples {
            let metric = &text.metrics[sample.metric];
            // An infinite value was not observed completely: it was cut off.
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
            bytes.extend_from_slice(status.word().as_bytes());
            bytes.extend_from_slice(b"\",\"start_ns\":");
            put(bytes, &start_ns);
            bytes.extend_from_slice(&self.worker);
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

    /// Writes all rows of the buffer to `sink`. Call it only between trials, because it marks the last row as the end
    /// of a trial. After an error, the unwritten rows stay in the buffer, and the next call continues with the first
    /// unwritten byte.
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

/// Writes all rows of `reader` to `sink` as JSON lines. They equal, byte for byte, the lines that [`RowBuffer`] wrote.
/// `path` is only used in errors.
pub(super) fn write_lines(reader: &mut dyn RowReader, path: &Path, sink: impl Write) -> Result<(), Error> {
    let mut sink = BufWriter::with_capacity(CAPACITY, sink);
    let mut trial: Option<(String, u64)> = None;
    while let Some(row) = reader.next_row()? {
        let end: &[u8] = match &trial {
            None => b"",
            Some((experiment, number)) if *experiment == row.experiment && *number == row.trial => b"\n",
            Some(_) => b" \n",
        };
        if end != b"\n" {
            trial = Some((row.experiment.to_string(), row.trial));
        }
        sink.write_all(end).map_err(Error::write(path))?;
        serde_json::to_writer(&mut sink, &row).map_err(Error::write(path))?;
    }
    if trial.is_some() {
        sink.write_all(b" \n").map_err(Error::write(path))?;
    }
    sink.flush().map_err(Error::write(path))
}

/// Writes a text or a number as JSON. Infinity and NaN become `null`.
fn put<T: Serialize + ?Sized>(bytes: &mut Vec<u8>, value: &T) {
    serde_json::to_writer(bytes, value).expect("strings and numbers can be written as JSON to a Vec");
}

fn json_text<T: Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).expect("strings and numbers can be written as JSON")
}

/// A reader of the complete lines of `trials.jsonl`.
pub(super) struct LineReader {
    path: PathBuf,
    input: BufReader<Take<File>>,
    line: Vec<u8>,
    number: u64,
    /// Offset, in bytes, at which the current line ends in the file.
    end: u64,
}

impl LineReader {
    pub fn open(run: &Path) -> Result<LineReader, Error> {
        let path = run.join(LINES);
        let open = || {
            let file = files::open_regular(&path)?;
            // Rows that are appended after this are not read.
            let length = file.metadata()?.len();
            Ok(file.take(length))
        };
        let input = BufReader::with_capacity(1 << 16, open().map_err(Error::read(&path, LINES))?);
        Ok(LineReader { path, input, line: Vec::with_capacity(512), number: 0, end: 0 })
    }

    /// Limits the reader to the file's first `bytes` bytes. Call it before the first line is read.
    pub fn up_to(mut self, bytes: u64) -> LineReader {
        let input = self.input.get_mut();
        input.set_limit(input.limit().min(bytes));
        self
    }

    /// Goes to the next line that is not blank. Returns `false` if no complete line is left.
    fn advance(&mut self) -> Result<bool, Error> {
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

    /// Returns an error if the file is now shorter than when it was opened. This happens when the run ends, because
    /// `trials.jsonl` is then emptied.
    fn check_length(&self) -> Result<(), Error> {
        if self.input.get_ref().limit() == 0 {
            return Ok(());
        }
        let reason =
            "the file became shorter while it was read: its run may have ended or been continued; read the run again";
        Err(Error::Read { path: self.path.clone(), reason: io::Error::new(ErrorKind::UnexpectedEof, reason) })
    }
}

impl RowReader for LineReader {
    fn next_row(&mut self) -> Result<Option<Row<'_>>, Error> {
        if !self.advance()? {
            return Ok(None);
        }
        let row = serde_json::from_slice(&self.line);
        let mut row: Row = row.map_err(|error| Error::malformed(&self.path, self.number, &error).in_rows())?;
        if row.status == Status::Censored && row.value.is_nan() {
            row.value = f64::INFINITY;
        }
        Ok(Some(row))
    }

    /// Returns whether the line is marked as the last of its trial.
    fn ends_trial(&self) -> bool {
        self.line.ends_with(b" ")
    }

    fn end_bytes(&self) -> u64 {
        self.end
    }

    fn malformed(&self, reason: String) -> Error {
        Error::Malformed { path: self.path.clone(), line: self.number, column: 1, reason }.in_rows()
    }
}
