//! The series of a recorded run, found by reading its rows once.

use std::path::Path;

use ascertain_streams::{Catalogue, Series, Unit, quoted_if_needed};

use super::rows::range_of;
use crate::evidence::{Error, NumberRow, RowCursor, RowKind};
use crate::experiment::Arm;
use crate::names::suggestion;
use crate::unit::Unit as EngineUnit;

/// All rows of a kind.
#[derive(Debug)]
pub(super) struct SeriesRows {
    kind: RowKind,
    arm: Arm,
    /// Index into [`RunCatalogue::clocks`].
    pub clock: usize,
    rows: u64,
    /// The first trial of the lane without a row of this kind, counted from 1.
    first_gap: Option<u64>,
    has_ranges: bool,
    can_be_negative: bool,
}

impl SeriesRows {
    /// Returns the unit of the values.
    pub fn unit(&self) -> EngineUnit {
        self.kind.unit
    }
}

/// A lane of an experiment: its trials are the clock of all series in it.
#[derive(Debug, Default)]
struct Clock {
    experiment: String,
    lane: u32,
    trials: u64,
    /// The number of the latest trial in the experiment.
    latest: Option<u64>,
    /// Times of the first and of the last trial, in nanoseconds.
    times_ns: Option<[u64; 2]>,
}

/// All series of a run.
#[derive(Debug, Default)]
pub struct RunCatalogue {
    /// For each kind of row, in the order of [`RowCursor::kinds`], its rows.
    pub(super) series: Vec<SeriesRows>,
    clocks: Vec<Clock>,
    /// Number of rows of complete trials. They come before all other rows.
    pub(super) whole_rows: u64,
    /// The trial that was cut off because the run was killed.
    cut_off: Option<CutOff>,
    /// Only trials whose number is a multiple of this one belong to the series.
    stride: u64,
}

/// A trial of which rows are missing.
#[derive(Debug)]
struct CutOff {
    experiment: String,
    lane: u32,
    /// Index of the trial in the experiment.
    trial: u64,
    /// Number of rows that were recorded.
    rows: u64,
}

/// The rows of a trial that is not known to be complete.
#[derive(Debug, Default)]
struct Pending {
    trial: u64,
    start_ns: u64,
    /// For each row, the index of its kind and the range of its value.
    rows: Vec<(usize, [f64; 2])>,
}

impl RunCatalogue {
    /// Reads all rows of a run. The series have only the trials whose number is a multiple of `stride`.
    pub(super) fn read(run: &Path, stride: u64) -> Result<RunCatalogue, Error> {
        let mut catalogue = RunCatalogue { stride: stride.max(1), ..RunCatalogue::default() };
        let mut cursor = RowCursor::open(run)?;
        let mut pending = Pending::default();
        while let Some(NumberRow { kind, trial, value, status, start_ns, .. }) = cursor.next_number()? {
            if kind == catalogue.series.len() {
                catalogue.add(cursor.kinds()[kind].clone());
            }
            let first = pending.rows.first().map(|(kind, _)| catalogue.series[*kind].clock);
            let is_next = first.is_some_and(|first| first != catalogue.series[kind].clock || pending.trial != trial);
            if is_next {
                catalogue.take_trial(&mut pending);
            }
            if pending.rows.is_empty() {
                (pending.trial, pending.start_ns) = (trial, start_ns);
            }
            pending.rows.push((kind, range_of(value, status, catalogue.series[kind].kind.unit)));
            if cursor.ends_trial() {
                catalogue.take_trial(&mut pending);
            }
        }
        catalogue.leave_out(&pending);
        for series in &mut catalogue.series {
            if series.rows < catalogue.clocks[series.clock].trials && series.first_gap.is_none() {
                series.first_gap = Some(series.rows + 1);
            }
        }
        Ok(catalogue)
    }

    /// Counts the rows of a complete trial. In a file that contains only complete trials, each call has a single row.
    fn take_trial(&mut self, pending: &mut Pending) {
        self.whole_rows += pending.rows.len() as u64;
        if !self.has_trial(pending.trial) {
            pending.rows.clear();
            return;
        }
        for (index, [low, high]) in pending.rows.drain(..) {
            let series = &mut self.series[index];
            let clock = &mut self.clocks[series.clock];
            if clock.latest != Some(pending.trial) {
                clock.latest = Some(pending.trial);
                clock.trials += 1;
                let [first_ns, last_ns] = clock.times_ns.unwrap_or([pending.start_ns; 2]);
                clock.times_ns = Some([first_ns, last_ns.max(pending.start_ns)]);
            }
            series.rows += 1;
            // Without gaps, the rows of a scalar are as many as the trials so far.
            if series.rows < clock.trials && series.first_gap.is_none() {
                series.first_gap = Some(series.rows);
            }
            series.has_ranges |= low < high;
            series.can_be_negative |= low < 0.0;
        }
    }

    /// Returns whether a trial belongs to the series.
    pub fn has_trial(&self, trial: u64) -> bool {
        trial.is_multiple_of(self.stride)
    }

    /// Returns the distance between the trials of the series.
    pub fn stride(&self) -> u64 {
        self.stride
    }

    /// Leaves out the rows of an incomplete last trial, and the kinds that occur only there.
    fn leave_out(&mut self, pending: &Pending) {
        let Some((first, _)) = pending.rows.first() else { return };
        let RowKind { experiment, lane, .. } = &self.series[*first].kind;
        let (experiment, lane, rows) = (experiment.clone(), *lane, pending.rows.len() as u64);
        self.cut_off = Some(CutOff { experiment, lane, trial: pending.trial, rows });
        while self.series.last().is_some_and(|series| series.rows == 0) {
            self.series.pop();
        }
    }

    /// Returns a sentence about the trial that was cut off, if there is one.
    #[must_use]
    pub fn cut_off(&self) -> Option<String> {
        let CutOff { experiment, lane, trial, rows } = self.cut_off.as_ref()?;
        let (s, are) = if *rows == 1 { ("", "is") } else { ("s", "are") };
        Some(format!(
            "the run was cut off in trial {trial} of `{experiment}` (lane {lane}): the {rows} row{s} of this incomplete \
             trial {are} left out"
        ))
    }

    fn add(&mut self, kind: RowKind) {
        let is_of_row = |clock: &Clock| clock.experiment == kind.experiment && clock.lane == kind.lane;
        let clock = self.clocks.iter().position(is_of_row).unwrap_or_else(|| {
            self.clocks.push(Clock { experiment: kind.experiment.clone(), lane: kind.lane, ..Clock::default() });
            self.clocks.len() - 1
        });
        let point = serde_json::from_str(&kind.point).unwrap_or_default();
        let arm = Arm { variant: kind.variant.clone(), point };
        let (has_ranges, can_be_negative) = (false, false);
        self.series.push(SeriesRows { kind, arm, clock, rows: 0, first_gap: None, has_ranges, can_be_negative });
    }

    /// Returns whether a value of a series was cut off.
    #[must_use]
    pub fn has_ranges(&self, index: usize) -> bool {
        self.series[index].has_ranges
    }

    /// Returns a clause about the gaps of a series, if it has any.
    fn gaps(&self, index: usize) -> Option<String> {
        let SeriesRows { kind, clock, rows, first_gap, .. } = &self.series[index];
        let trials = self.clocks[*clock].trials;
        let first = first_gap.as_ref()?;
        Some(format!(
            "lane {} of `{}` has gaps: `{}` has no value in {} of {trials} trials, first in trial {first} of the lane",
            kind.lane,
            kind.experiment,
            self.written(index),
            trials - rows.min(&trials),
        ))
    }

    /// Returns a series as it is written in an expression.
    fn written(&self, index: usize) -> String {
        let SeriesRows { arm, kind, .. } = &self.series[index];
        format!("{}.{}", quoted_if_needed(&arm.to_string()), quoted_if_needed(&kind.metric))
    }
}

impl Catalogue for RunCatalogue {
    fn find(&self, arm: Option<&str>, metric: &str) -> Result<(usize, Series), String> {
        let is_arm = |series: &SeriesRows, arm: &str| series.kind.variant == arm || series.arm.to_string() == arm;
        let of_metric = || self.series.iter().enumerate().filter(|(_, series)| series.kind.metric == metric);
        let fits = |(_, series): &(usize, &SeriesRows)| {
            series.kind.key.is_empty() && arm.is_none_or(|arm| is_arm(series, arm))
        };
        let found: Vec<usize> = of_metric().filter(fits).map(|(index, _)| index).collect();
        let list = |mut names: Vec<String>| {
            names.dedup();
            names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        };
        match found.as_slice() {
            [index] => {
                let SeriesRows { kind, clock, can_be_negative, .. } = &self.series[*index];
                let series = Series {
                    unit: Unit::of_symbol(kind.unit.symbol()).unwrap_or(Unit::ONE),
                    clock: *clock,
                    observations: Some(self.clocks[*clock].trials),
                    times_ns: self.clocks[*clock].times_ns,
                    is_signed: *can_be_negative,
                    gaps: self.gaps(*index),
                };
                Ok((*index, series))
            }
            [] if self.series.is_empty() => Err("the run has no rows, so it has no metrics".to_string()),
            [] if of_metric().next().is_none() => {
                let mut names: Vec<String> =
                    self.series.iter().map(|series| quoted_if_needed(&series.kind.metric)).collect();
                names.sort();
                let hint = suggestion(metric, names.iter().map(String::as_str)).unwrap_or_default();
                Err(format!("the run has no metric `{metric}`; its metrics are {}{hint}", list(names.clone())))
            }
            [] if of_metric().all(|(_, series)| !series.kind.key.is_empty()) => {
                Err(format!("`{metric}` has several values in each trial, one for each key; use a metric without keys"))
            }
            [] => {
                let mut names: Vec<String> = of_metric().map(|(_, series)| series.arm.to_string()).collect();
                names.sort();
                let hint = suggestion(arm.unwrap_or_default(), names.iter().map(String::as_str)).unwrap_or_default();
                let arm = arm.unwrap_or_default();
                Err(format!(
                    "`{metric}` was not measured for an arm `{arm}`; its arms are {}{hint}",
                    list(names.clone())
                ))
            }
            several => {
                let names: Vec<String> = several.iter().map(|index| self.written(*index)).collect();
                let mut distinct = names.clone();
                distinct.sort();
                distinct.dedup();
                match distinct.len() == names.len() {
                    true => Err(format!("several arms have `{metric}`; choose one of {}", list(distinct))),
                    false => {
                        let lanes: Vec<String> =
                            several.iter().map(|index| self.series[*index].kind.lane.to_string()).collect();
                        let lanes = lanes.join(", ");
                        Err(format!(
                            "{} was measured in the lanes {lanes}, which have different trials; measure it in a run \
                             with one lane",
                            list(distinct)
                        ))
                    }
                }
            }
        }
    }
}
