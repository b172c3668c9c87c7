//! Takes observations from the command, and passes them to the windows, the judge, the series and the recorder.

use std::time::Duration;

use ascertain_stats::{Moments, quantile_ranks};
use ascertain_streams::{FlatTable, RunError};
use ascertain_sys::interrupt;
use ascertain_sys::piped::{Piece, Piped};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::derived::{BLOCK, LiveSeries};
use super::lines::{LineParser, shown};
use super::meter::{self, Meter};
use super::record::Recorder;
use super::{Ended, MemoryReport, WindowError, WindowPlan};
use crate::block::{Block, End, Executor, Slots, TrialRecord};
use crate::claim::Test;
use crate::command::{CommandSet, LineMetric, piped_command};
use crate::experiment::{Arm, Metric, Spec, TargetError};
use crate::judging::ClaimJudge;
use crate::measure::LocalExecutor;
use crate::now::Now;
use crate::observer::{Observer, Progress};
use crate::outcome::{PointSummary, Verdict};
use crate::plan::{Plan, Registry};
use crate::predicate::Condition;
use crate::time::Clock;
use crate::unit::Unit;
use crate::values::Bounds;

/// Size of the buffer for the output of the command, in bytes. A line must fit into it.
const BUFFER_BYTES: usize = 1 << 18;
/// Minimum time between two progress reports, and between two writes of recorded rows, in nanoseconds.
const TICK_NS: u64 = 100_000_000;
/// Longest sleep in a pause between two observations, in nanoseconds.
const NAP_NS: u64 = 20_000_000;
/// Error of the interval of the median in tables.
const ERROR: f64 = 0.05;

/// Everything that observations are passed to.
pub(super) struct Feeder<'r, 'p> {
    pub plan: &'r Plan,
    pub windows: &'r WindowPlan,
    pub spec: &'r Spec,
    /// Index of the metric whose quantiles are reported.
    pub primary: usize,
    pub meter: Meter,
    pub series: Vec<LiveSeries<'p>>,
    /// The totals of all metrics. That of the reported metric stays empty.
    pub others: Vec<MetricTotal>,
    pub recorder: Recorder,
    pub judge: ClaimJudge,
    /// `true` if the plan has a claim.
    pub is_judged: bool,
    pub observer: &'r mut dyn Observer,
    pub stop: &'r interrupt::Stop,
    pub clock: &'r dyn Clock,
    pub now: Now,
    /// Start of the first window, as a reading of the clock.
    pub start_ns: u64,
    /// `true` as soon as the first window has started.
    pub has_begun: bool,
    pub next_tick_ns: u64,
    /// Index of the next observation.
    pub index: u64,
    /// `true` if the observer knows that the recording has ended.
    pub is_unkept_reported: bool,
    /// The failure of a hook, which ended the run.
    pub failure: Option<TargetError>,
}

impl Feeder<'_, '_> {
    /// Adds the memory for reading lines to a report.
    pub fn announce_lines(report: &mut MemoryReport) {
        report.add("output of the command", BUFFER_BYTES as u64);
        report.add(format!("blocks of {BLOCK} observations"), 2 * (BLOCK * size_of::<f64>()) as u64);
    }

    /// Returns the time since the start of the first window, in nanoseconds.
    pub fn elapsed_ns(&self) -> u64 {
        self.clock.now_ns().saturating_sub(self.start_ns)
    }

    fn duration_ns(&self) -> u64 {
        self.windows.duration.as_nanos() as u64
    }

    /// Starts the first window.
    fn begin(&mut self) {
        self.start_ns = self.clock.now_ns();
        self.has_begun = true;
    }

    /// Ends the windows that are over, and reports progress if it is due. Returns the time since the start of the run.
    fn tick(&mut self) -> u64 {
        let now_ns = self.elapsed_ns();
        if now_ns >= self.meter.window_ends_ns() {
            let before = self.meter.windows().len();
            let (recorder, series) = (&mut self.recorder, &mut self.series);
            self.meter.advance(now_ns, |summary, table| {
                recorder.end_window(summary, table);
                series.iter_mut().for_each(LiveSeries::end_window);
            });
            self.report_windows(before);
        }
        if now_ns >= self.next_tick_ns {
            self.next_tick_ns = now_ns + TICK_NS;
            self.recorder.flush();
            self.report_unkept();
            let progress = self.progress(now_ns);
            self.observer.progress(&progress);
        }
        now_ns
    }

    /// Reports the error that ended the recording, once.
    fn report_unkept(&mut self) {
        if let Some(error) = self.recorder.unkept.as_ref().filter(|_| !self.is_unkept_reported) {
            self.observer.unkept(error);
            self.is_unkept_reported = true;
        }
    }

    fn report_windows(&mut self, before: usize) {
        let windows = self.meter.windows();
        for ended in before + 1..=windows.len() {
            self.observer.window(self.plan, &windows[..ended]);
        }
    }

    fn progress(&self, now_ns: u64) -> Progress {
        let verdict = self.judge.verdict().0;
        let is_decided = self.is_judged && matches!(verdict, Verdict::Holds | Verdict::Refuted);
        Progress {
            at_ns: self.clock.now_ns(),
            elapsed: Duration::from_nanos(now_ns),
            max_time: self.windows.duration,
            closed: Verdict::ALL.map(|known| usize::from(is_decided && known == verdict)),
            claims: self.plan.claims.len(),
            what: self.spec.id.clone(),
            standing: self.is_judged.then(|| self.judge.standing()),
            is_comparison: false,
            trials: self.index,
            most_trials: None,
            least: None,
            trial_ns: (self.index > 0).then(|| now_ns as f64 / self.index as f64),
            now: self.now.clone(),
        }
    }

    /// Ends all windows.
    pub fn finish(&mut self) {
        if !self.has_begun {
            return;
        }
        let now_ns = self.elapsed_ns().min(self.duration_ns());
        let before = self.meter.windows().len();
        let (recorder, series) = (&mut self.recorder, &mut self.series);
        self.meter.finish(now_ns, |summary, table| {
            recorder.end_window(summary, table);
            series.iter_mut().for_each(LiveSeries::end_window);
        });
        self.report_windows(before);
        self.recorder.flush();
        self.report_unkept();
    }

    /// Runs the command again and again. An observation belongs to the window in which it began.
    ///
    /// # Errors
    /// If the command cannot be prepared, or if a series cannot go on.
    pub fn commands(&mut self, registry: &Registry, arm: &Arm) -> Result<Ended, WindowError> {
        let plan = self.plan;
        let config = &plan.config;
        let mut executor = LocalExecutor::new(registry, config.seed, self.stop.clone(), self.now.clone(), self.clock);
        let arms = Slots::default().with(0);
        self.now.set_opening();
        let opened = executor.open(0, &self.spec.id, &[(0, arm.clone())]);
        self.now.set_idle();
        match opened {
            Ok(_) => {}
            Err(TargetError::Interrupted) => return Ok(Ended::Interrupted),
            Err(error) => return Err(WindowError::Target(error.to_string())),
        }
        let mut record = TrialRecord::default();
        let block = |trial| Block { lane: 0, arms, trial, seed: config.seed };
        for _ in 0..config.warmup_trials {
            executor.run(block(Block::WARM_UP), &mut record);
            if self.stop.is_requested() {
                return Ok(Ended::Interrupted);
            }
        }
        let mut row = vec![Bounds::NONE; self.spec.metrics.len()];
        self.begin();
        loop {
            let is_over = !self.pause() || self.tick() >= self.duration_ns();
            if self.stop.is_requested() {
                return Ok(Ended::Interrupted);
            }
            if is_over {
                return Ok(Ended::Time);
            }
            self.now.begin_trial(1, self.clock.now_ns());
            executor.run(block(self.index), &mut record);
            self.now.set_idle();
            if let Some((_, failure)) = record.failure.take() {
                self.failure = Some(failure);
                return Ok(Ended::Time);
            }
            self.observe(&record, &mut row)?;
            if record.end == End::CutOff {
                return Ok(Ended::Interrupted);
            }
        }
    }

    /// Waits for a random time if the plan has a gap between observations. Returns `false` if the run ends meanwhile.
    fn pause(&mut self) -> bool {
        let Some(gap) = self.plan.config.gap.filter(|_| self.index > 0) else { return true };
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(self.plan.config.seed ^ self.index.rotate_left(32));
        let wait_ns = (gap.as_nanos() as f64 * 2.0 * rng.random::<f64>()) as u64;
        let until_ns = self.elapsed_ns().saturating_add(wait_ns).min(self.duration_ns());
        loop {
            let now_ns = self.tick();
            if now_ns >= until_ns || self.stop.is_requested() {
                return now_ns < self.duration_ns();
            }
            self.clock.sleep(Duration::from_nanos((until_ns - now_ns).min(NAP_NS)));
        }
    }

    /// Takes the observation of one execution of the command.
    fn observe(&mut self, record: &TrialRecord, row: &mut [Bounds]) -> Result<(), WindowError> {
        row.fill(Bounds::NONE);
        let samples = &record.samples.0;
        samples.iter().for_each(|sample| row[sample.metric] = sample.bounds());
        let is_interrupted = row.contains(&Bounds::UNKNOWN);
        let (success, broken) = self.judge.test(row, is_interrupted);
        if self.is_judged {
            self.judge.count_outcome(success, broken, is_interrupted, record.elapsed_ns);
        }
        for (other, bounds) in self.others.iter_mut().zip(&*row) {
            other.add(*bounds, is_interrupted);
        }
        self.meter.add(counted(row[self.primary], is_interrupted), success);
        let start_ns = record.measured.first().map_or(0, |arm| arm.start_ns);
        self.recorder.observe(self.index, start_ns, samples, success == Some(false));
        self.index += 1;
        if self.series.is_empty() {
            return Ok(());
        }
        let bound = |bounds: &Bounds, value: f64| if *bounds == Bounds::UNKNOWN { f64::NAN } else { value };
        let values: Vec<[f64; 2]> =
            row.iter().map(|range| [bound(range, range.low), bound(range, range.high)]).collect();
        let columns: Vec<[&[f64]; 2]> =
            values.iter().map(|[low, high]| [low, high].map(std::slice::from_ref)).collect();
        let times = [start_ns.saturating_sub(self.start_ns) as f64];
        self.series.iter_mut().try_for_each(|series| series.add(&columns, &times))
    }

    /// Runs the command once and takes an observation from each line of its output. An observation belongs to the window
    /// in which it arrives.
    ///
    /// # Errors
    /// If the command cannot be started, prints nothing or a line that is not an observation, or if a series cannot go on.
    pub fn lines(&mut self, set: &CommandSet, metric: &LineMetric) -> Result<Ended, WindowError> {
        let target = |error: String| WindowError::Target(error);
        let command = piped_command(set).map_err(|error| target(error.to_string()))?;
        let mut text = vec![0; BUFFER_BYTES].into_boxed_slice();
        let windows = self.windows;
        let mut block = LineBlock::new(metric, &windows.success);
        let mut piped = Piped::start(&command).map_err(|error| target(error.to_string()))?;
        let mut filled = 0;
        self.begin();
        let ended = loop {
            let now_ns = self.tick();
            if self.stop.is_requested() {
                piped.end();
                return Ok(Ended::Interrupted);
            }
            if now_ns >= self.duration_ns() {
                piped.end();
                break Ended::Time;
            }
            let until_ns = self.meter.window_ends_ns().min(self.next_tick_ns).max(now_ns + 1);
            let read = piped.read(&mut text[filled..], Duration::from_nanos(until_ns - now_ns), self.stop);
            match read.map_err(|error| WindowError::Read(error.to_string()))? {
                Piece::Nothing => {}
                Piece::Bytes(bytes) => {
                    filled += bytes;
                    if self.tick() < self.duration_ns() {
                        let taken = self.take(&mut block, &text[..filled])?;
                        text.copy_within(taken..filled, 0);
                        filled -= taken;
                        if filled == text.len() {
                            return Err(WindowError::LongLine { number: self.index + 1, most: BUFFER_BYTES });
                        }
                    }
                }
                Piece::End => {
                    if filled > 0 && filled < text.len() {
                        text[filled] = b'\n';
                        self.take(&mut block, &text[..=filled])?;
                    }
                    let how = piped.wait().map_or_else(|| "closed its output".into(), how_ended);
                    break Ended::Command(how);
                }
            }
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

    /// Takes the observations of all complete lines of a text. Returns the length of these lines.
    fn take(&mut self, block: &mut LineBlock, text: &[u8]) -> Result<usize, WindowError> {
        let start_ns = self.clock.now_ns();
        let mut at = 0;
        loop {
            match block.fill(&text[at..]) {
                Filled::Full(length) => at += length,
                Filled::Rest(length) => {
                    self.observe_block(block, start_ns)?;
                    return Ok(at + length);
                }
                Filled::Bad { start, length, reason } => {
                    let number = self.index + block.len as u64 + 1;
                    self.observe_block(block, start_ns)?;
                    let text = shown(&text[at + start..][..length]);
                    return Err(WindowError::Line { number, text, reason });
                }
            }
            self.observe_block(block, start_ns)?;
        }
    }

    /// Takes the observations of a block.
    fn observe_block(&mut self, block: &mut LineBlock, start_ns: u64) -> Result<(), WindowError> {
        let values = &block.values[..block.len];
        let conditions = &block.conditions;
        let is_success = |value: f64| broken(conditions, value) == 0 && !value.is_nan();
        let mut successes = 0;
        if self.is_judged {
            for value in values {
                let broken = broken(conditions, *value);
                let success = broken == 0 && !value.is_nan();
                successes += u64::from(success);
                self.judge.count_outcome(Some(success), broken, false, 0);
            }
        } else {
            successes = values.iter().filter(|value| is_success(**value)).count() as u64;
        }
        self.meter.add_all(values, successes);
        let failures = values.len() as u64 - successes;
        self.recorder.observe_values(self.index, start_ns, values, failures, |value| !is_success(value));
        self.index += values.len() as u64;
        if !self.series.is_empty() {
            let times = &mut block.times[..block.len];
            times.fill(start_ns.saturating_sub(self.start_ns) as f64);
            let columns = [[values, values]];
            self.series.iter_mut().try_for_each(|series| series.add(&columns, times))?;
        }
        block.len = 0;
        Ok(())
    }
}

/// Returns the way in which a command ended, for a message.
fn how_ended(status: std::process::ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "ended".into(),
    }
}

/// Returns the conditions that a value does not meet, as bits. A value that was not observed is NaN, and meets none.
fn broken(conditions: &[Condition], value: f64) -> u64 {
    let bounds = if value.is_nan() { Bounds::NONE } else { Bounds::exact(value) };
    let mut broken = 0;
    for (bit, condition) in conditions.iter().enumerate().take(64) {
        broken |= u64::from(condition.is_true(bounds) != Some(true)) << bit;
    }
    broken
}

/// Observations from consecutive lines.
struct LineBlock<'c> {
    parser: LineParser,
    counts_bad_lines: bool,
    conditions: &'c [Condition],
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

impl<'c> LineBlock<'c> {
    fn new(metric: &LineMetric, success: &'c Test) -> LineBlock<'c> {
        let conditions = match success {
            Test::Predicate { conditions, .. } => conditions.as_slice(),
            Test::Versus { .. } => &[],
        };
        LineBlock {
            parser: LineParser::new(metric),
            counts_bad_lines: metric.counts_bad_lines,
            conditions,
            values: vec![0.0; BLOCK].into(),
            times: vec![0.0; BLOCK].into(),
            len: 0,
        }
    }

    fn fill(&mut self, text: &[u8]) -> Filled {
        let mut at = 0;
        while self.len < BLOCK {
            let rest = &text[at..];
            if let Some((value, length)) = self.parser.plain(rest) {
                self.values[self.len] = value;
                self.len += 1;
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

/// Returns a value for a table: infinity if it was cut off at its time limit, and NaN if it was not observed.
fn counted(bounds: Bounds, is_interrupted: bool) -> f64 {
    match bounds {
        _ if is_interrupted && bounds.value().is_none() => f64::NAN,
        Bounds { low, high } if low < high => f64::INFINITY,
        Bounds { low, .. } => low,
    }
}

/// The values of a metric over the whole run.
pub(super) struct MetricTotal {
    metric: Metric,
    /// The table; `None` for the metric whose quantiles are reported by window.
    table: Option<FlatTable>,
    moments: Moments,
    censored: u64,
    limit: Option<f64>,
    seen: Option<f64>,
}

impl MetricTotal {
    pub fn new(metric: &Metric, is_primary: bool) -> Result<MetricTotal, RunError> {
        let table = if is_primary { None } else { Some(meter::table(metric.unit == Unit::One)?) };
        let moments = Moments::new();
        Ok(MetricTotal { metric: metric.clone(), table, moments, censored: 0, limit: None, seen: None })
    }

    /// Adds the memory of the totals of all metrics but one to a report.
    pub fn announce(spec: &Spec, primary: usize, report: &mut MemoryReport) {
        let others = spec.metrics.iter().enumerate().filter(|(index, _)| *index != primary);
        let bytes = others.map(|(_, metric)| meter::table_bytes(metric.unit == Unit::One)).sum();
        if bytes > 0 {
            report.add("quantile tables of the other metrics", bytes);
        }
    }

    fn add(&mut self, bounds: Bounds, is_interrupted: bool) {
        let value = counted(bounds, is_interrupted);
        if value.is_nan() {
            return;
        }
        if value == f64::INFINITY {
            self.censored += 1;
            let limit = Some(bounds.low).filter(|low| low.is_finite() && *low != f64::MIN);
            self.limit = limit.map(|limit| self.limit.map_or(limit, |known| known.min(limit)));
        } else if self.table.is_some() {
            self.moments.push(value);
        }
        let seen = Some(bounds.low).filter(|low| low.is_finite() && *low != f64::MIN);
        self.seen = seen.map_or(self.seen, |seen| Some(self.seen.map_or(seen, |known| known.max(seen))));
        if let Some(table) = &mut self.table {
            let _ = table.insert(value);
        }
    }

    /// Returns the summary of the metric.
    pub fn summary(&mut self, spec: &Spec, arm: &Arm) -> PointSummary {
        let Some(mut table) = self.table.take() else { return self.empty(spec, arm) };
        let moments = self.moments;
        self.summary_of(spec, arm, &mut table, &moments, self.censored)
    }

    fn empty(&self, spec: &Spec, arm: &Arm) -> PointSummary {
        PointSummary {
            experiment: spec.id.clone(),
            arm: arm.clone(),
            metric: self.metric.name.clone(),
            key: String::new(),
            unit: self.metric.unit,
            better: self.metric.better,
            is_share: self.metric.is_share,
            n: 0,
            median: None,
            median_low: None,
            median_high: None,
            p90: None,
            p99: None,
            mean: None,
            std: None,
            min: None,
            max: None,
            censored: self.censored,
            limit: self.limit,
            seen: self.seen,
        }
    }

    /// Returns the summary of a metric from the table of its values, and from the moments of those that were observed
    /// completely.
    pub fn summary_of(
        &mut self,
        spec: &Spec,
        arm: &Arm,
        table: &mut FlatTable,
        moments: &Moments,
        stopped: u64,
    ) -> PointSummary {
        let n = table.values();
        let (least, most) = (moments.min(), moments.max());
        let mut quantile = |level: f64| {
            let value = table.quantile(level).filter(|value| value.is_finite())?;
            Some(value.clamp(least.unwrap_or(value), most.unwrap_or(value)))
        };
        let ranks = quantile_ranks(n, 0.5, ERROR / 2.0, ERROR / 2.0).ok();
        let mut at_rank = |rank: Option<u64>| quantile(rank? as f64 / (n - 1).max(1) as f64);
        let [low, high] = [ranks.and_then(|ranks| ranks.low), ranks.and_then(|ranks| ranks.high)].map(&mut at_rank);
        let [median, p90, p99] = [0.5, 0.9, 0.99].map(&mut quantile);
        let is_whole = stopped == 0;
        PointSummary {
            n,
            median,
            median_low: low,
            median_high: high,
            p90,
            p99,
            mean: moments.mean().filter(|_| is_whole),
            std: moments.standard_deviation().filter(|_| is_whole),
            min: least,
            max: most.filter(|_| is_whole),
            censored: stopped,
            seen: self.seen.or(most),
            ..self.empty(spec, arm)
        }
    }
}
