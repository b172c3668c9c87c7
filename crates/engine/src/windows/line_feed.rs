//! Takes observations from the lines that a command prints.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use ascertain_sys::piped::{Piece, Piped, PipedEnd};

use super::derived::BLOCK;
use super::feed::Feeder;
use super::lines::{LineParser, shown};
use super::state::State;
use super::{Ended, MemoryReport, WindowError};
use crate::claim::Test;
use crate::command::{CommandSet, LineMetric, piped_command};
use crate::experiment::TargetError;
use crate::predicate::Condition;
use crate::values::Bounds;

/// Size of the buffer for the output of the command, in bytes. A line must fit into it.
const BUFFER_BYTES: usize = 1 << 18;

/// The output of the command that is not parsed yet, and a block of observations.
pub(super) struct LineBuffers {
    text: Box<[u8]>,
    /// Number of bytes in `text`.
    filled: usize,
    /// `true` if the rest of the present line is left out, because the line is too long.
    is_skipping: bool,
    block: LineBlock,
}

impl LineBuffers {
    pub fn new(metric: &LineMetric) -> LineBuffers {
        let text = vec![0; BUFFER_BYTES].into_boxed_slice();
        LineBuffers { text, filled: 0, is_skipping: false, block: LineBlock::new(metric) }
    }

    /// Adds the memory for reading lines to a report.
    pub fn announce(report: &mut MemoryReport) {
        report.add("output of the command", BUFFER_BYTES as u64 + LineParser::BYTES);
        report.add(format!("blocks of {BLOCK} observations"), 2 * (BLOCK * size_of::<f64>()) as u64);
    }

    /// Removes the first bytes.
    fn remove(&mut self, bytes: usize) {
        self.text.copy_within(bytes..self.filled, 0);
        self.filled -= bytes;
    }
}

/// The reason why no more lines are taken from the command.
enum Reading {
    /// The time was up.
    Time,
    /// A stop was requested.
    Interrupted,
    /// The command has closed its output.
    Closed,
    /// The command has failed, and other processes keep its output open.
    Failed,
}

impl Feeder<'_, '_> {
    /// Runs the command once and takes an observation from each line of its output. An observation belongs to the
    /// window in which it arrives. The time in which the command ends is not part of the measurement.
    ///
    /// # Errors
    /// If the command cannot be started, or prints nothing or a line that is not an observation.
    pub fn lines(&mut self, set: &CommandSet, metric: &LineMetric) -> Result<Ended, WindowError> {
        let target = |error: String| WindowError::Target(error);
        let command = piped_command(set).map_err(|error| target(error.to_string()))?;
        let mut buffers = self.state.lines.take().unwrap_or_else(|| LineBuffers::new(metric));
        let mut piped = Piped::start(&command).map_err(|error| target(error.to_string()))?;
        self.begin();
        let read = self.read(&mut piped, &mut buffers);
        self.stop_clock();
        let end = if matches!(read, Ok(Reading::Closed)) { piped.wait() } else { piped.end() };
        if let PipedEnd::Running(process) = end {
            self.left_running = Some(process);
        }
        let has_failed = matches!(end, PipedEnd::Exited(status) if !status.success());
        let ended = match read? {
            Reading::Interrupted => return Ok(Ended::Interrupted),
            Reading::Time if !has_failed => Ended::Time,
            Reading::Time | Reading::Closed | Reading::Failed => self.command_ended(end, &mut buffers)?,
        };
        if self.index > 0 {
            return Ok(ended);
        }
        let command = set.commands.first().map_or_else(String::new, |command| command.line.clone());
        let end = match ended {
            Ended::Command(how) => how,
            _ => format!("ran for {} s", self.windows.duration.as_secs_f64()),
        };
        Err(WindowError::NoLines { command, end })
    }

    /// Takes the lines of `text`, `times` times, without a command and without reports of progress. Then ends the
    /// windows. For tests of the memory.
    pub fn feed(&mut self, text: &[u8], times: u64) -> Result<(), WindowError> {
        let Some(mut buffers) = self.state.lines.take() else { return Ok(()) };
        self.next_tick_ns = u64::MAX;
        self.begin();
        for _ in 0..times {
            self.tick();
            buffers.text[buffers.filled..][..text.len()].copy_from_slice(text);
            buffers.filled += text.len();
            self.take_lines(&mut buffers)?;
        }
        self.finish();
        Ok(())
    }

    /// Takes the complete lines of the command until its time is up, it ends, or a stop is requested.
    fn read(&mut self, piped: &mut Piped, buffers: &mut LineBuffers) -> Result<Reading, WindowError> {
        loop {
            let now_ns = self.tick();
            if self.stop.is_requested() {
                return Ok(Reading::Interrupted);
            }
            if now_ns >= self.duration_ns() {
                return Ok(Reading::Time);
            }
            let until_ns = self.state.meter.window_ends_ns().min(self.next_tick_ns).max(now_ns + 1);
            // Checked before the pipe is read, so that everything that the command has printed is read.
            let has_failed = piped.has_failed();
            let free = &mut buffers.text[buffers.filled..];
            let read = piped.read(free, Duration::from_nanos(until_ns - now_ns), self.stop);
            match read.map_err(|error| WindowError::Read(error.to_string()))? {
                Piece::Nothing if has_failed && !self.stop.is_requested() => return Ok(Reading::Failed),
                Piece::Nothing => {}
                Piece::Bytes(bytes) => {
                    buffers.filled += bytes;
                    if self.tick() < self.duration_ns() {
                        self.take_lines(buffers)?;
                    }
                }
                Piece::End => return Ok(Reading::Closed),
            }
        }
    }

    /// Takes the last line if the command ended as it should. A command that failed may have been cut off within a
    /// line.
    fn command_ended(&mut self, end: PipedEnd, buffers: &mut LineBuffers) -> Result<Ended, WindowError> {
        let (how, has_failed) = match end {
            PipedEnd::Exited(status) => (how_ended(status), !status.success()),
            PipedEnd::Ended | PipedEnd::Running(_) => ("closed its output and had to be ended".into(), true),
        };
        if has_failed {
            self.crash = Some(TargetError::Failed(how.clone()));
        }
        if buffers.filled > 0 && !buffers.is_skipping {
            self.is_last_line_left_out = has_failed;
            if !has_failed {
                buffers.text[buffers.filled] = b'\n';
                buffers.filled += 1;
                self.take_lines(buffers)?;
            }
        }
        Ok(Ended::Command(how))
    }

    /// Takes the observations of all complete lines in the buffer.
    fn take_lines(&mut self, buffers: &mut LineBuffers) -> Result<(), WindowError> {
        if buffers.is_skipping {
            let newline = buffers.text[..buffers.filled].iter().position(|byte| *byte == b'\n');
            buffers.is_skipping = newline.is_none();
            buffers.remove(newline.map_or(buffers.filled, |newline| newline + 1));
        }
        let taken = self.take(&mut buffers.block, &buffers.text[..buffers.filled])?;
        buffers.remove(taken);
        if buffers.filled < buffers.text.len() {
            return Ok(());
        }
        if !buffers.block.counts_bad_lines {
            return Err(WindowError::LongLine { number: self.index + 1, most: BUFFER_BYTES });
        }
        (buffers.filled, buffers.is_skipping) = (0, true);
        buffers.block.push(f64::NAN);
        self.observe_block(&mut buffers.block, self.clock.now_ns());
        Ok(())
    }

    /// Takes the observations of all complete lines of a text. Returns the length of these lines.
    fn take(&mut self, block: &mut LineBlock, text: &[u8]) -> Result<usize, WindowError> {
        let start_ns = self.clock.now_ns();
        let mut at = 0;
        loop {
            match block.fill(&text[at..]) {
                Filled::Full(length) => at += length,
                Filled::Rest(length) => {
                    self.observe_block(block, start_ns);
                    return Ok(at + length);
                }
                Filled::Bad { start, length, reason } => {
                    let number = self.index + block.len as u64 + 1;
                    self.observe_block(block, start_ns);
                    let text = shown(&text[at + start..][..length]);
                    return Err(WindowError::Line { number, text, reason });
                }
            }
            self.observe_block(block, start_ns);
        }
    }

    /// Takes the observations of a block.
    fn observe_block(&mut self, block: &mut LineBlock, start_ns: u64) {
        let values = &block.values[..block.len];
        let conditions = match &self.windows.success {
            Test::Predicate { conditions, .. } => conditions.as_slice(),
            Test::Versus { .. } => &[],
        };
        let State { meter, series, judge, .. } = &mut self.state;
        let mut successes = 0;
        if self.is_judged {
            for value in values {
                let success = is_success(conditions, *value);
                let broken = if success { 0 } else { broken(conditions, *value) };
                successes += u64::from(success);
                judge.count_outcome(Some(success), broken, false, 0);
            }
        } else {
            successes = values.iter().filter(|value| is_success(conditions, **value)).count() as u64;
        }
        meter.add_all(values, successes);
        let failures = values.len() as u64 - successes;
        let is_failure = |value| !is_success(conditions, value);
        self.recorder.observe_values(self.index, start_ns, values, failures, is_failure);
        self.index += values.len() as u64;
        if !series.is_empty() {
            let times = &mut block.times[..block.len];
            times.fill(start_ns.saturating_sub(self.start_ns) as f64);
            let columns = [[values, values]];
            series.iter_mut().for_each(|series| series.add(&columns, times));
        }
        block.len = 0;
    }
}

/// Returns the way in which a command ended, for a message.
fn how_ended(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "ended".into(),
    }
}

/// Returns whether a value meets all conditions. A value that was not observed is NaN, and meets none.
fn is_success(conditions: &[Condition], value: f64) -> bool {
    !value.is_nan() && conditions.iter().all(|condition| condition.is_true(Bounds::exact(value)) == Some(true))
}

/// Returns which of the first 64 conditions a value does not meet, as bits. These conditions are counted one by one.
fn broken(conditions: &[Condition], value: f64) -> u64 {
    let bounds = if value.is_nan() { Bounds::NONE } else { Bounds::exact(value) };
    let mut broken = 0;
    for (bit, condition) in conditions.iter().enumerate().take(64) {
        broken |= u64::from(condition.is_true(bounds) != Some(true)) << bit;
    }
    broken
}

/// Observations from consecutive lines.
struct LineBlock {
    parser: LineParser,
    counts_bad_lines: bool,
    values: Box<[f64]>,
    times: Box<[f64]>,
    len: usize,
}

/// The result of reading lines into a block.
enum Filled {
    /// The block is full after this many bytes.
    Full(usize),
    /// The text has no complete line after this many bytes.
    Rest(usize),
    /// A line is not an observation.
    Bad { start: usize, length: usize, reason: &'static str },
}

impl LineBlock {
    fn new(metric: &LineMetric) -> LineBlock {
        LineBlock {
            parser: LineParser::new(metric),
            counts_bad_lines: metric.counts_bad_lines,
            values: vec![0.0; BLOCK].into(),
            times: vec![0.0; BLOCK].into(),
            len: 0,
        }
    }

    /// Adds an observation to a block that is not full.
    fn push(&mut self, value: f64) {
        self.values[self.len] = value;
        self.len += 1;
    }

    fn fill(&mut self, text: &[u8]) -> Filled {
        let mut at = 0;
        while self.len < BLOCK {
            let rest = &text[at..];
            if let Some((value, length)) = self.parser.plain(rest) {
                self.push(value);
                at += length;
                continue;
            }
            let Some(length) = rest.iter().position(|byte| *byte == b'\n') else { return Filled::Rest(at) };
            self.values[self.len] = match self.parser.parse(&rest[..length]) {
                Ok(value) => value,
                Err(_) if self.counts_bad_lines => f64::NAN,
                Err(reason) => return Filled::Bad { start: at, length, reason },
            };
            self.len += 1;
            at += length + 1;
        }
        Filled::Full(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Better, Metric};
    use crate::predicate::Predicate;
    use crate::unit::Unit;

    #[test]
    fn every_condition_counts_for_a_success() {
        let metrics = [Metric::new("value", "", Unit::Nanosecond, Better::Lower)];
        let text = vec!["value >= 0 ms"; 64].join(" and ") + " and value <= 5 ms";
        let conditions = Predicate::parse(&text, &metrics).unwrap().0;
        assert_eq!(conditions.len(), 65);
        assert!(is_success(&conditions, 4e6) && !is_success(&conditions, 6e6) && !is_success(&conditions, f64::NAN));
        assert_eq!((broken(&conditions, 6e6), broken(&conditions, -1.0)), (0, u64::MAX));
    }
}
