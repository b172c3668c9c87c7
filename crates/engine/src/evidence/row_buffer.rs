//! Rows as they are recorded: formatted into memory, and written between trials.

use std::io::{self, Write};

use ascertain_numeric::decimal;
use serde::Serialize;

use super::row::status_word;
use crate::experiment::{Arm, Sample, Spec, Status};

/// Room that is there before the first trial. Half of it is some two thousand rows.
const CAPACITY: usize = 1 << 20;

/// Rows as text, from the moment they are observed until they are written.
pub(super) struct RowBuffer {
    bytes: Vec<u8>,
    arms: Vec<ArmText>,
    run_id: String,
    /// What makes a reading of the clock a time since the run started, modulo 2^64.
    clock_shift_ns: u64,
}

/// The parts of an arm's rows that never change.
struct ArmText {
    /// Up to the trial's number.
    head: Vec<u8>,
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
        RowBuffer { bytes, arms: Vec::new(), run_id, clock_shift_ns }
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
        self.arms.push(ArmText { head, metrics: metrics.collect() });
        self.arms.len() - 1
    }

    pub fn record(&mut self, arm: usize, trial: u64, position: u32, start_ns: u64, samples: &[Sample]) {
        let text = &self.arms[arm];
        let bytes = &mut self.bytes;
        let start_ns = start_ns.wrapping_add(self.clock_shift_ns);
        for sample in samples {
            let metric = &text.metrics[sample.metric];
            // An infinite value was not seen: it was cut off.
            let status = if sample.value == f64::INFINITY { Status::Censored } else { sample.status };
            bytes.extend_from_slice(&text.head);
            decimal::append(trial, bytes);
            bytes.extend_from_slice(b",\"position\":");
            decimal::append(position, bytes);
            bytes.extend_from_slice(&metric.name);
            put(bytes, &sample.key);
            bytes.extend_from_slice(b",\"offset_ns\":");
            decimal::append(sample.offset_ns, bytes);
            bytes.extend_from_slice(b",\"value\":");
            put(bytes, &sample.value);
            bytes.extend_from_slice(&metric.unit);
            bytes.extend_from_slice(status_word(status).as_bytes());
            bytes.extend_from_slice(b"\",\"start_ns\":");
            decimal::append(start_ns, bytes);
            bytes.extend_from_slice(b",\"worker\":\"\"}\n");
        }
    }

    pub fn is_half_full(&self) -> bool {
        self.bytes.len() >= CAPACITY / 2
    }

    /// Writes everything; call it between trials only, since it marks where it stops as a trial's end.
    /// On an error what is not written yet stays, so that a later call goes on exactly there.
    pub fn write_to(&mut self, sink: &mut impl Write) -> io::Result<()> {
        if self.bytes.ends_with(b"}\n") {
            self.bytes.pop();
            self.bytes.extend_from_slice(b" \n");
        }
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

/// Writes a text or a real number; one that is not finite as `null`.
fn put<T: Serialize + ?Sized>(bytes: &mut Vec<u8>, value: &T) {
    serde_json::to_writer(bytes, value).expect("a Vec takes every byte");
}

fn json_text<T: Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).expect("texts and numbers have a form in JSON")
}
