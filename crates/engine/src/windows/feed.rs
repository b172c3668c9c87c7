//! Takes observations from the command, and passes them to the windows, the judge, the series and the recorder.

use std::time::Duration;

use ascertain_sys::interrupt;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::derived::LiveSeries;
use super::record::Recorder;
use super::state::{Measured, State};
use super::totals::counted;
use super::{Ended, WindowError, WindowPlan};
use crate::block::{Block, End, Executor, Slots, TrialRecord};
use crate::experiment::{Arm, Spec, TargetError};
use crate::measure::LocalExecutor;
use crate::now::Now;
use crate::observer::{Observer, Progress};
use crate::outcome::Verdict;
use crate::plan::{Plan, Registry};
use crate::time::Clock;
use crate::values::Bounds;

/// Minimum time between two progress reports, and between two writes of recorded rows, in nanoseconds.
const TICK_NS: u64 = 100_000_000;
/// Longest sleep in a pause between two observations, in nanoseconds.
const NAP_NS: u64 = 20_000_000;

/// Everything that observations are passed to.
pub(super) struct Feeder<'r, 'p> {
    pub plan: &'r Plan,
    pub windows: &'r WindowPlan,
    pub spec: &'r Spec,
    /// Index of the metric whose quantiles are reported.
    pub primary: usize,
    pub state: State<'p>,
    pub recorder: Recorder,
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
    /// The failure of a command that prints observations, which ended the run. The observations before it are valid.
    pub crash: Option<TargetError>,
    /// Time of the run at which the measurement ended; `None` while it goes on.
    pub ended_ns: Option<u64>,
    /// `true` if the command failed within a line, which is then not an observation.
    pub is_last_line_left_out: bool,
    /// `true` if the end of the run cut off the last observation, which then has no value.
    pub is_last_cut_off: bool,
    /// The process ID of a command that could not be ended.
    pub left_running: Option<u32>,
}

/// The surroundings of a long measurement: its plan, its observer, and its clock.
#[derive(Clone, Copy)]
pub(super) struct Surroundings<'r> {
    pub plan: &'r Plan,
    pub stop: &'r interrupt::Stop,
    pub clock: &'r dyn Clock,
}

impl<'r, 'p> Feeder<'r, 'p> {
    /// Makes a feeder before the first window.
    pub fn new(
        measured: Measured<'r>,
        surroundings: Surroundings<'r>,
        state: State<'p>,
        recorder: Recorder,
        observer: &'r mut dyn Observer,
        now: Now,
    ) -> Feeder<'r, 'p> {
        let Surroundings { plan, stop, clock } = surroundings;
        Feeder {
            plan,
            windows: measured.windows,
            spec: measured.spec,
            primary: measured.primary,
            state,
            recorder,
            is_judged: !plan.claims.is_empty(),
            observer,
            stop,
            clock,
            now,
            start_ns: clock.now_ns(),
            has_begun: false,
            next_tick_ns: 0,
            index: 0,
            is_unkept_reported: false,
            failure: None,
            crash: None,
            ended_ns: None,
            is_last_line_left_out: false,
            is_last_cut_off: false,
            left_running: None,
        }
    }
}

impl Feeder<'_, '_> {
    /// Returns the time since the start of the first window, in nanoseconds.
    pub fn elapsed_ns(&self) -> u64 {
        self.clock.now_ns().saturating_sub(self.start_ns)
    }

    pub(super) fn duration_ns(&self) -> u64 {
        self.windows.duration.as_nanos() as u64
    }

    /// Starts the first window.
    pub(super) fn begin(&mut self) {
        self.start_ns = self.clock.now_ns();
        self.has_begun = true;
    }

    /// Ends the measurement. Ending the command and its clean-up may take time that does not belong to it.
    pub(super) fn stop_clock(&mut self) {
        self.ended_ns = Some(self.elapsed_ns());
    }

    /// Ends the windows that are over, and reports progress if it is due. Returns the time since the start of the run.
    pub(super) fn tick(&mut self) -> u64 {
        let now_ns = self.elapsed_ns();
        self.recorder.now_ns = now_ns;
        if now_ns >= self.state.meter.window_ends_ns() {
            let before = self.state.meter.windows().len();
            let State { meter, series, judge, .. } = &mut self.state;
            meter.advance(now_ns, |summary, values| {
                self.recorder.end_window(summary, values, judge.broken_counts());
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
        let windows = self.state.meter.windows();
        for ended in before + 1..=windows.len() {
            self.observer.window(self.plan, &windows[..ended]);
        }
    }

    fn progress(&self, now_ns: u64) -> Progress {
        let verdict = self.state.judge.verdict().0;
        let is_decided = self.is_judged && matches!(verdict, Verdict::Holds | Verdict::Refuted);
        Progress {
            at_ns: self.clock.now_ns(),
            elapsed: Duration::from_nanos(now_ns),
            max_time: self.windows.duration,
            closed: Verdict::ALL.map(|known| usize::from(is_decided && known == verdict)),
            claims: self.plan.claims.len(),
            what: self.spec.id.clone(),
            standing: self.is_judged.then(|| self.state.judge.standing()),
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
        let now_ns = self.ended_ns.unwrap_or_else(|| self.elapsed_ns()).min(self.duration_ns());
        self.recorder.now_ns = now_ns;
        let before = self.state.meter.windows().len();
        let State { meter, series, judge, .. } = &mut self.state;
        meter.finish(now_ns, |summary, values| {
            self.recorder.end_window(summary, values, judge.broken_counts());
            series.iter_mut().for_each(LiveSeries::end_window);
        });
        self.report_windows(before);
        self.recorder.flush();
        self.report_unkept();
    }

    /// Runs the command again and again. An observation belongs to the window in which it began.
    ///
    /// # Errors
    /// If the command cannot be prepared.
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
        let mut run = |trial, record: &mut TrialRecord| {
            executor.run(Block { lane: 0, arms, trial, seed: config.seed }, record);
        };
        for _ in 0..config.warmup_trials {
            run(Block::WARM_UP, &mut record);
            if self.stop.is_requested() {
                return Ok(Ended::Interrupted);
            }
        }
        self.begin();
        let ended = self.repeat(&mut run, &mut record);
        self.stop_clock();
        Ok(ended)
    }

    /// Calls `run` again and again, with the number of the observation, until the time is up.
    fn repeat(&mut self, run: &mut impl FnMut(u64, &mut TrialRecord), record: &mut TrialRecord) -> Ended {
        let mut row = vec![Bounds::NONE; self.spec.metrics.len()];
        loop {
            let is_over = !self.pause() || self.tick() >= self.duration_ns();
            if self.stop.is_requested() {
                return Ended::Interrupted;
            }
            if is_over {
                return Ended::Time;
            }
            self.now.begin_trial(1, self.clock.now_ns());
            run(self.index, record);
            self.now.set_idle();
            if let Some((_, failure)) = record.failure.take() {
                let reason = failure.to_string();
                self.failure = Some(failure);
                return Ended::Error(reason);
            }
            self.observe(record, &mut row);
            if record.end == End::CutOff {
                return Ended::Interrupted;
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
    fn observe(&mut self, record: &TrialRecord, row: &mut [Bounds]) {
        row.fill(Bounds::NONE);
        let samples = &record.samples.0;
        samples.iter().for_each(|sample| row[sample.metric] = sample.bounds());
        let is_interrupted = row.contains(&Bounds::UNKNOWN);
        let State { meter, series, others, judge, .. } = &mut self.state;
        let (success, broken) = judge.test(row, is_interrupted);
        if self.is_judged {
            judge.count_outcome(success, broken, is_interrupted, record.elapsed_ns);
        }
        for (other, bounds) in others.iter_mut().zip(&*row) {
            other.add(*bounds, is_interrupted);
        }
        let unit = |metric: usize| self.spec.metrics[metric].unit;
        meter.add(counted(row[self.primary], unit(self.primary), is_interrupted), success);
        let start_ns = record.measured.first().map_or(0, |arm| arm.start_ns);
        self.is_last_cut_off = is_interrupted && row[self.primary].value().is_none();
        self.recorder.observe(self.index, start_ns, samples, success != Some(true));
        self.index += 1;
        if series.is_empty() {
            return;
        }
        for (metric, range) in row.iter_mut().enumerate() {
            *range = if *range == Bounds::UNKNOWN { Bounds::NONE } else { range.in_unit(unit(metric)) };
        }
        let values: Vec<[f64; 2]> = row.iter().map(|range| [range.low, range.high]).collect();
        let columns: Vec<[&[f64]; 2]> =
            values.iter().map(|[low, high]| [low, high].map(std::slice::from_ref)).collect();
        let times = [start_ns.saturating_sub(self.start_ns) as f64];
        series.iter_mut().for_each(|series| series.add(&columns, &times));
    }
}
