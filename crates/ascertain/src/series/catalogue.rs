//! The series of a recorded run, found by reading its rows once.

use std::path::Path;

use ascertain_engine::evidence::{Error as EvidenceError, Row, RowCursor};
use ascertain_engine::experiment::Arm;
use ascertain_engine::names::suggestion;
use ascertain_engine::unit::Unit as EngineUnit;
use ascertain_streams::{Catalogue, Series, Unit, quoted_if_needed};

use super::rows::range_of;

/// A kind of row: all rows of one metric of one arm in one lane, with one key.
#[derive(Debug)]
pub(super) struct RowKind {
    experiment: String,
    lane: u32,
    variant: String,
    point: String,
    metric: String,
    key: String,
    unit: EngineUnit,
    arm: Arm,
    /// Index into [`RunCatalogue::clocks`].
    pub clock: usize,
    rows: u64,
    /// The first trial of the lane without a row of this kind, counted from 1.
    first_gap: Option<u64>,
    has_ranges: bool,
    can_be_negative: bool,
}

/// A lane of an experiment: its trials are the clock of all series in it.
#[derive(Debug, Default)]
struct Clock {
    experiment: String,
    lane: u32,
    trials: u64,
    /// The number of the latest trial in the experiment.
    latest: Option<u64>,
}

/// All series of a run.
#[derive(Debug, Default)]
pub(super) struct RunCatalogue {
    pub kinds: Vec<RowKind>,
    clocks: Vec<Clock>,
    /// Number of rows of complete trials. They come before all other rows.
    pub whole_rows: u64,
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
    /// For each row, the index of its kind and the range of its value.
    rows: Vec<(usize, [f64; 2])>,
}

impl RowKind {
    /// Returns whether a row is of this kind.
    pub fn has(&self, row: &Row) -> bool {
        self.metric == row.metric
            && self.variant == row.variant
            && self.lane == row.lane
            && self.point == row.point
            && self.key == row.key
            && self.experiment == row.experiment
    }
}

/// Finds the kind of each row. Rows usually have the same order in every trial, so the kind that followed last time is
/// tried first.
#[derive(Debug, Default)]
pub(super) struct Matcher {
    /// For each kind, the kind that followed it last time.
    next: Vec<usize>,
    last: usize,
}

impl Matcher {
    pub fn find(&mut self, kinds: &[RowKind], row: &Row) -> Option<usize> {
        self.next.resize(kinds.len(), 0);
        let expected =
            self.next.get(self.last).copied().filter(|next| kinds.get(*next).is_some_and(|kind| kind.has(row)));
        let found = expected.or_else(|| kinds.iter().position(|kind| kind.has(row)))?;
        self.next[self.last] = found;
        self.last = found;
        Some(found)
    }
}

impl RunCatalogue {
    /// Reads all rows of a run. The series have only the trials whose number is a multiple of `stride`.
    pub fn read(run: &Path, stride: u64) -> Result<RunCatalogue, EvidenceError> {
        let mut catalogue = RunCatalogue { stride: stride.max(1), ..RunCatalogue::default() };
        let mut matcher = Matcher::default();
        let mut cursor = RowCursor::open(run)?;
        let mut pending = Pending::default();
        while let Some(row) = cursor.next_row()? {
            let index = match matcher.find(&catalogue.kinds, &row) {
                Some(index) => index,
                None => catalogue.add(&row),
            };
            let first = pending.rows.first().map(|(kind, _)| catalogue.kinds[*kind].clock);
            let is_next =
                first.is_some_and(|first| first != catalogue.kinds[index].clock || pending.trial != row.trial);
            if is_next {
                catalogue.take_trial(&mut pending);
            }
            pending.trial = row.trial;
            pending.rows.push((index, range_of(&row)));
            if cursor.ends_trial() {
                catalogue.take_trial(&mut pending);
            }
        }
        catalogue.leave_out(&pending);
        for kind in &mut catalogue.kinds {
            if kind.rows < catalogue.clocks[kind.clock].trials && kind.first_gap.is_none() {
                kind.first_gap = Some(kind.rows + 1);
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
            let kind = &mut self.kinds[index];
            let clock = &mut self.clocks[kind.clock];
            if clock.latest != Some(pending.trial) {
                clock.latest = Some(pending.trial);
                clock.trials += 1;
            }
            kind.rows += 1;
            // Without gaps, the rows of a scalar are as many as the trials so far.
            if kind.rows < clock.trials && kind.first_gap.is_none() {
                kind.first_gap = Some(kind.rows);
            }
            kind.has_ranges |= low < high;
            kind.can_be_negative |= low < 0.0;
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
        let RowKind { experiment, lane, .. } = &self.kinds[*first];
        let (experiment, lane, rows) = (experiment.clone(), *lane, pending.rows.len() as u64);
        self.cut_off = Some(CutOff { experiment, lane, trial: pending.trial, rows });
        while self.kinds.last().is_some_and(|kind| kind.rows == 0) {
            self.kinds.pop();
        }
    }

    /// Returns a sentence about the trial that was cut off, if there is one.
    pub fn cut_off(&self) -> Option<String> {
        let CutOff { experiment, lane, trial, rows } = self.cut_off.as_ref()?;
        let (s, are) = if *rows == 1 { ("", "is") } else { ("s", "are") };
        Some(format!(
            "the run was cut off in trial {trial} of `{experiment}` (lane {lane}): the {rows} row{s} of this incomplete \
             trial {are} left out"
        ))
    }

    fn add(&mut self, row: &Row) -> usize {
        let is_of_row = |clock: &Clock| clock.experiment == row.experiment && clock.lane == row.lane;
        let clock = self.clocks.iter().position(is_of_row).unwrap_or_else(|| {
            self.clocks.push(Clock { experiment: row.experiment.to_string(), lane: row.lane, ..Clock::default() });
            self.clocks.len() - 1
        });
        self.kinds.push(RowKind {
            experiment: row.experiment.to_string(),
            lane: row.lane,
            variant: row.variant.to_string(),
            point: row.point.to_string(),
            metric: row.metric.to_string(),
            key: row.key.to_string(),
            unit: row.unit,
            arm: Arm { variant: row.variant.to_string(), point: serde_json::from_str(&row.point).unwrap_or_default() },
            clock,
            rows: 0,
            first_gap: None,
            has_ranges: false,
            can_be_negative: false,
        });
        self.kinds.len() - 1
    }

    /// Returns whether a value of a series was cut off.
    pub fn has_ranges(&self, index: usize) -> bool {
        self.kinds[index].has_ranges
    }

    /// Returns a clause about the gaps of a series, if it has any.
    fn gaps(&self, index: usize) -> Option<String> {
        let kind = &self.kinds[index];
        let trials = self.clocks[kind.clock].trials;
        let first = kind.first_gap?;
        Some(format!(
            "lane {} of `{}` has gaps: `{}` has no value in {} of {trials} trials, first in trial {first} of the lane",
            kind.lane,
            kind.experiment,
            self.written(index),
            trials - kind.rows.min(trials),
        ))
    }

    /// Returns a series as it is written in an expression.
    fn written(&self, index: usize) -> String {
        let kind = &self.kinds[index];
        format!("{}.{}", quoted_if_needed(&kind.arm.to_string()), quoted_if_needed(&kind.metric))
    }
}

impl Catalogue for RunCatalogue {
    fn find(&self, arm: Option<&str>, metric: &str) -> Result<(usize, Series), String> {
        let is_arm = |kind: &RowKind, arm: &str| kind.variant == arm || kind.arm.to_string() == arm;
        let of_metric = || self.kinds.iter().enumerate().filter(|(_, kind)| kind.metric == metric);
        let fits = |(_, kind): &(usize, &RowKind)| kind.key.is_empty() && arm.is_none_or(|arm| is_arm(kind, arm));
        let found: Vec<usize> = of_metric().filter(fits).map(|(index, _)| index).collect();
        let list = |mut names: Vec<String>| {
            names.dedup();
            names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        };
        match found.as_slice() {
            [index] => {
                let kind = &self.kinds[*index];
                let series = Series {
                    unit: Unit::of_symbol(kind.unit.symbol()).unwrap_or(Unit::ONE),
                    clock: kind.clock,
                    observations: Some(self.clocks[kind.clock].trials),
                    is_signed: kind.can_be_negative,
                    gaps: self.gaps(*index),
                };
                Ok((*index, series))
            }
            [] if self.kinds.is_empty() => Err("the run has no rows, so it has no metrics".to_string()),
            [] if of_metric().next().is_none() => {
                let mut names: Vec<String> = self.kinds.iter().map(|kind| quoted_if_needed(&kind.metric)).collect();
                names.sort();
                let hint = suggestion(metric, names.iter().map(String::as_str)).unwrap_or_default();
                Err(format!("the run has no metric `{metric}`; its metrics are {}{hint}", list(names.clone())))
            }
            [] if of_metric().all(|(_, kind)| !kind.key.is_empty()) => {
                Err(format!("`{metric}` has several values in each trial, one for each key; use a metric without keys"))
            }
            [] => {
                let mut names: Vec<String> = of_metric().map(|(_, kind)| kind.arm.to_string()).collect();
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
                            several.iter().map(|index| self.kinds[*index].lane.to_string()).collect();
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
