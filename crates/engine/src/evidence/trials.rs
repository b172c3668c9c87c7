//! All rows of a run in memory, with access to the values of one arm and metric, or to the values of one trial.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use super::error::Error;
use super::row::{Row, RowReader};
use crate::claim::paired_ratios;
use crate::experiment::{Arm, Better, Reduce};
use crate::unit::Unit;
use crate::values::{Bounds, Values};

/// The rows of a run's complete trials. They are stored column by column in series, one for each arm, metric and key.
#[derive(Debug, Default)]
pub struct Trials {
    /// The series, one for each arm, metric and key, in the order of their first rows.
    pub(crate) series: Vec<Series>,
    /// The arms, each with the id of its experiment, in the order in which they were first measured.
    pub(crate) arms: Vec<(String, Arm)>,
    /// Index of the arm of each series.
    arm_of: Vec<u32>,
    /// Index of each row's series. The rows are in the order in which they were observed.
    order: Vec<u32>,
    /// Index of the lane (group of arms) in which each trial was measured.
    lanes: Vec<u32>,
}

/// A recorded trial, with its values.
pub(crate) struct RecordedTrial<'a> {
    pub experiment: &'a str,
    /// Index of the lane, the group of arms that were measured together in this trial.
    pub lane: usize,
    /// Index of the trial within the experiment.
    pub number: u64,
    /// The observations, arm by arm in the order in which they were measured.
    pub observations: &'a [Observation],
}

/// A recorded value of a trial.
#[derive(Clone, Copy)]
pub(crate) struct Observation {
    /// Index into [`Trials::arms`].
    pub arm: usize,
    /// Index into [`Trials::series`].
    pub series: usize,
    pub value: Bounds,
}

impl Trials {
    /// Returns the number of complete trials.
    pub fn count(&self) -> usize {
        self.lanes.len()
    }

    /// Reads the rows of complete trials. Also returns the offset, in bytes, at which the last trial that is known to
    /// be complete ends. A trial is complete if its last row is marked as such, or if another trial follows.
    pub(super) fn read(reader: &mut dyn RowReader) -> Result<(Trials, u64), Error> {
        let mut builder = TrialsBuilder::default();
        let (mut end, mut whole_end) = (0, 0);
        while let Some(row) = reader.next_row()? {
            if builder.push(&row).map_err(|reason| reader.malformed(reason))? {
                whole_end = end;
            }
            end = reader.end_bytes();
            if reader.ends_trial() {
                builder.end_trial();
                whole_end = end;
            }
        }
        Ok((builder.build(), whole_end))
    }

    /// Returns the index for the experiment's next trial: one more than the largest index so far, or 0.
    pub(super) fn next_number(&self, experiment: &str) -> u64 {
        let of_experiment = self.series.iter().filter(|series| series.experiment == experiment);
        of_experiment.flat_map(|series| &series.trials).max().map_or(0, |last| last + 1)
    }

    /// Returns, for each trial, the index of the lane (group of arms) in which it was measured.
    pub(super) fn lanes(&self) -> &[u32] {
        &self.lanes
    }

    /// Returns the number of rows.
    pub(crate) fn rows(&self) -> u64 {
        self.order.len() as u64
    }

    /// Returns the series, one for each arm, metric and key, in the order of their first rows.
    pub(crate) fn into_series(self) -> Vec<Series> {
        self.series
    }

    /// Calls `observe` with each trial, in the order in which the trials were measured.
    ///
    /// # Errors
    /// The first error that `observe` returns, which ends the calls.
    pub(crate) fn for_each<E>(&self, mut observe: impl FnMut(&RecordedTrial) -> Result<(), E>) -> Result<(), E> {
        let mut read = vec![0; self.series.len()];
        let mut observations: Vec<Observation> = Vec::new();
        let mut rows = self.order.iter().map(|&series| series as usize).peekable();
        for &lane in &self.lanes {
            observations.clear();
            let mut trial: Option<(&str, u64)> = None;
            while let Some(&series) = rows.peek() {
                let (arm, row) = (self.arm_of[series] as usize, read[series]);
                let of_row = (self.arms[arm].0.as_str(), self.series[series].trials[row]);
                if *trial.get_or_insert(of_row) != of_row {
                    break;
                }
                rows.next();
                read[series] += 1;
                observations.push(Observation { arm, series, value: self.series[series].values.bounds(row) });
            }
            if let Some((experiment, number)) = trial {
                observe(&RecordedTrial { experiment, lane: lane as usize, number, observations: &observations })?;
            }
        }
        Ok(())
    }
}

/// Collects the trials while their rows are read.
#[derive(Default)]
struct TrialsBuilder {
    trials: Trials,
    /// Indices of the known series. A series is identified by experiment, arm, metric and key, which are written into
    /// one byte string.
    known: HashMap<Vec<u8>, u32>,
    name: Vec<u8>,
    /// For each series, the levels of its arm as text, and the index of the series that is expected next. This is the
    /// series whose row came next in the previous trial, because rows usually have the same order in every trial.
    points: Vec<(String, u32)>,
    last: u32,
    /// For each arm, the index of the first arm of the same experiment. This index identifies the experiment.
    experiments: Vec<u32>,
    /// The trial of the last row, as two numbers: the number that identifies the experiment (see `experiments`), and
    /// the index of the trial.
    trial: Option<(u32, u64)>,
    /// Number of rows of trials that are known to be complete.
    whole: usize,
}

impl TrialsBuilder {
    /// Returns the index of the row's series.
    ///
    /// # Errors
    /// If the names in the row are not valid.
    fn series(&mut self, row: &Row) -> Result<u32, String> {
        let next = self.points.get(self.last as usize).map(|(_, next)| *next);
        let series = match next.filter(|&next| self.has(next as usize, row)) {
            Some(next) => next,
            None => self.find(row)?,
        };
        self.points[self.last as usize].1 = series;
        self.last = series;
        Ok(series)
    }

    /// Returns whether the row belongs to the series with this index.
    fn has(&self, series: usize, row: &Row) -> bool {
        let Series { experiment, arm, metric, unit, key, .. } = &self.trials.series[series];
        *metric == row.metric
            && *key == row.key
            && arm.variant == row.variant
            && self.points[series].0 == row.point
            && *experiment == row.experiment
            && *unit == row.unit
    }

    fn find(&mut self, row: &Row) -> Result<u32, String> {
        self.name.clear();
        for text in [&row.experiment, &row.variant, &row.point, &row.metric, row.unit.symbol(), &row.key] {
            self.name.extend_from_slice(&text.len().to_le_bytes());
            self.name.extend_from_slice(text.as_bytes());
        }
        if let Some(&series) = self.known.get(&self.name) {
            return Ok(series);
        }
        let point = serde_json::from_str(&row.point)
            .map_err(|error| format!("the column `point` is not a JSON object of factors and levels: {error}"))?;
        let (experiment, arm) = (row.experiment.to_string(), Arm { variant: row.variant.to_string(), point });
        let number = self.arm(&experiment, &arm);
        self.trials.arm_of.push(number);
        let (metric, unit, key) = (row.metric.to_string(), row.unit, row.key.to_string());
        let (trials, offsets_ns, values) = (Vec::new(), Vec::new(), Values::default());
        self.trials.series.push(Series { experiment, arm, metric, unit, key, trials, offsets_ns, values });
        let series = (self.trials.series.len() - 1) as u32;
        self.known.insert(self.name.clone(), series);
        self.points.push((row.point.to_string(), series));
        Ok(series)
    }

    fn arm(&mut self, experiment: &str, arm: &Arm) -> u32 {
        let arms = &mut self.trials.arms;
        let known = arms.iter().position(|(id, known)| id == experiment && known == arm);
        known.unwrap_or_else(|| {
            let first_arm = arms.iter().position(|(id, _)| id == experiment).unwrap_or(arms.len());
            self.experiments.push(first_arm as u32);
            arms.push((experiment.to_string(), arm.clone()));
            arms.len() - 1
        }) as u32
    }

    /// Adds a row. Returns whether the row begins a new trial.
    ///
    /// # Errors
    /// If the row is not valid.
    fn push(&mut self, row: &Row) -> Result<bool, String> {
        // Indices of trials are signed in `trials.parquet`, and one more trial must be able to follow.
        if row.trial > i64::MAX as u64 {
            return Err(format!("the trial number {} is too large", row.trial));
        }
        let series = self.series(row)?;
        let trials = &mut self.trials;
        let arm = trials.arm_of[series as usize];
        let trial = Some((self.experiments[arm as usize], row.trial));
        let begins = self.trial != trial;
        if begins {
            self.trial = trial;
            self.whole = trials.order.len();
            trials.lanes.push(row.lane);
        }
        trials.order.push(series);
        let series = &mut trials.series[series as usize];
        if row.offset_ns != 0 && series.offsets_ns.is_empty() {
            series.offsets_ns.resize(series.trials.len(), 0);
        }
        if row.offset_ns != 0 || !series.offsets_ns.is_empty() {
            series.offsets_ns.push(row.offset_ns);
        }
        series.trials.push(row.trial);
        series.values.push(row.status.bounds(row.value));
        Ok(begins)
    }

    /// Notes that the trial of the last row is complete.
    fn end_trial(&mut self) {
        self.whole = self.trials.order.len();
    }

    /// Returns the complete trials, without the rows of an incomplete last one.
    fn build(self) -> Trials {
        let mut trials = self.trials;
        if self.whole < trials.order.len() {
            trials.lanes.pop();
        }
        for series in trials.order.drain(self.whole..) {
            let series = &mut trials.series[series as usize];
            series.trials.pop();
            series.values.truncate(series.trials.len());
            series.offsets_ns.truncate(series.trials.len());
            if series.offsets_ns.iter().all(|&offset_ns| offset_ns == 0) {
                series.offsets_ns.clear();
            }
        }
        // Series that began in the incomplete trial come after all others.
        let kept = trials.series.iter().rposition(|series| !series.trials.is_empty()).map_or(0, |last| last + 1);
        trials.series.truncate(kept);
        trials.arm_of.truncate(kept);
        trials.arms.truncate(trials.arm_of.iter().max().map_or(0, |&last| last as usize + 1));
        trials
    }
}

/// The values of one metric of one arm under one key, in the order in which they were measured. They are stored column
/// by column.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Id of the experiment that the arm belongs to.
    pub experiment: String,
    /// The arm that was measured.
    pub arm: Arm,
    /// Name of the metric, such as `wall`.
    pub metric: String,
    /// Unit in which the values are recorded.
    pub unit: Unit,
    /// Key of the series, such as a server or a pair of cores; empty for a scalar.
    pub key: String,
    /// For each value, the index of the trial that it is from.
    pub trials: Vec<u64>,
    /// For each value, the time from the start of its measurement, in nanoseconds; empty if all are zero.
    pub offsets_ns: Vec<u64>,
    /// The values in `unit`. A value that was not observed is NaN.
    pub values: Values,
}

impl Series {
    /// Keeps only the values of trials whose index is a multiple of `every`.
    pub(crate) fn keep_every(&mut self, every: u64) {
        let is_kept = |index: &usize| self.trials[*index].is_multiple_of(every.max(1));
        let kept: Vec<usize> = (0..self.trials.len()).filter(is_kept).collect();
        let mut values = Values::default();
        kept.iter().for_each(|index| values.push(self.values.bounds(*index)));
        self.values = values;
        if !self.offsets_ns.is_empty() {
            self.offsets_ns = kept.iter().map(|index| self.offsets_ns[*index]).collect();
        }
        self.trials = kept.into_iter().map(|index| self.trials[index]).collect();
    }

    /// Returns one value per trial, as claims use it: the indices of the trials, and their values in the same order.
    /// `reduce` combines several values of the same trial into one.
    pub fn by_trial(&self, reduce: Reduce) -> (Cow<'_, [u64]>, Cow<'_, Values>) {
        if self.trials.is_sorted_by(|a, b| a < b) {
            return (Cow::Borrowed(&self.trials), Cow::Borrowed(&self.values));
        }
        let mut samples: BTreeMap<u64, Vec<Bounds>> = BTreeMap::new();
        for (index, &trial) in self.trials.iter().enumerate() {
            samples.entry(trial).or_default().push(self.values.bounds(index));
        }
        let mut scratch = Values::default();
        let number =
            |(trial, samples): (u64, Vec<Bounds>)| Some((trial, reduce.apply(samples.into_iter(), &mut scratch)?));
        let (trials, values): (Vec<u64>, Values) = samples.into_iter().filter_map(number).unzip();
        (Cow::Owned(trials), Cow::Owned(values))
    }

    /// Returns the ratio for each trial that has values of both arms. The ratio is a range if a value was cut off. It
    /// is the factor by which this arm is better than the baseline. Also returns the number of trials that have no
    /// ratio because a value is zero or negative.
    pub fn ratios_to(&self, baseline: &Series, reduce: Reduce, better: Better) -> (Values, usize) {
        let numbers = |series: &Series| {
            let (trials, values) = series.by_trial(reduce);
            let known = trials.iter().enumerate().map(|(index, &trial)| (trial, values.bounds(index)));
            known.filter(|(_, value)| !value.is_none()).collect::<Vec<_>>()
        };
        let ratios = paired_ratios(better, numbers(self).into_iter(), numbers(baseline).into_iter());
        let without = ratios.iter().filter(|ratio| ratio.is_none()).count();
        (ratios.into_iter().flatten().collect(), without)
    }
}
