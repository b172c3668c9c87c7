//! All rows of a run, read back: series by series, and trial by trial.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use super::error::Error;
use super::lines::{JsonLine, Lines};
use super::shape::Shapes;
use crate::claim::paired_ratios;
use crate::experiment::{Arm, Better, Reduce};
use crate::unit::Unit;
use crate::values::{Bounds, Values};

/// The rows of a run's whole trials, column by column. Keys are kept once, not with each row.
#[derive(Debug, Default)]
pub struct Trials {
    /// In the order in which they began.
    pub(crate) series: Vec<Series>,
    /// Each experiment's id and arm, in the order in which they were first measured.
    pub(crate) arms: Vec<(String, Arm)>,
    /// The arm of each series.
    arm_of: Vec<u32>,
    /// The series of each row, in the order in which they were observed.
    order: Vec<u32>,
    /// The lane of each trial, where its rows say.
    lanes: Vec<Option<u32>>,
}

/// A trial as it was recorded.
pub(crate) struct RecordedTrial<'a> {
    pub experiment: &'a str,
    /// Which lane measured it, where its rows say.
    pub lane: Option<usize>,
    /// The trial's number within the experiment.
    pub number: u64,
    /// What was observed, arm by arm in the order in which they were measured.
    pub observed: &'a [Observed],
}

/// A value of a trial.
#[derive(Clone, Copy)]
pub(crate) struct Observed {
    /// Index into the arms.
    pub arm: usize,
    /// Index into the series.
    pub series: usize,
    pub value: Bounds,
}

impl Trials {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.lanes.len()
    }

    /// Reads lines, and says where in the file the last trial ends that is known to be whole: it is
    /// marked, or another follows.
    pub(super) fn of_lines(mut lines: Lines) -> Result<(Trials, u64), Error> {
        let mut gathering = Gathering::default();
        let mut shapes = Shapes::default();
        let mut whole_end = 0;
        loop {
            let before = lines.end();
            if !lines.advance()? {
                return Ok((gathering.into_trials(), whole_end));
            }
            let row = match shapes.read(lines.text()) {
                Some(row) => row,
                None => {
                    let line: JsonLine = lines.parse()?;
                    let series = gathering.series(&line.names()).map_err(|reason| lines.wrong(reason))?;
                    shapes.learn(lines.text(), series, line.lane, line.status);
                    let value = line.status.bounds(line.value());
                    NumberedRow { series, lane: line.lane, trial: line.trial, offset_ns: line.offset_ns, value }
                }
            };
            // The Parquet file has no more, and another trial can follow.
            if row.trial > i64::MAX as u64 {
                return Err(lines.wrong(format!("there is no trial {}", row.trial)));
            }
            if gathering.push(&row) {
                whole_end = before;
            }
            if lines.ends_trial() {
                gathering.end_trial();
                whole_end = lines.end();
            }
        }
    }

    /// One more than the greatest number of a trial of the experiment.
    pub(super) fn next_number(&self, experiment: &str) -> u64 {
        let of_experiment = self.series.iter().filter(|series| series.experiment == experiment);
        of_experiment.flat_map(|series| &series.trials).max().map_or(0, |last| last + 1)
    }

    /// The lanes of the first versions' runs depend on the machine: what a continuation noted of them is not relied on.
    pub(super) fn forget_lanes(&mut self) {
        self.lanes.fill(None);
    }

    /// The lane of each trial, where its rows say.
    pub(super) fn lanes(&self) -> &[Option<u32>] {
        &self.lanes
    }

    /// How many rows there are.
    pub(crate) fn rows(&self) -> u64 {
        self.order.len() as u64
    }

    /// Each metric of each arm under each key, in the order in which they began.
    pub(crate) fn into_series(self) -> Vec<Series> {
        self.series
    }

    /// Tells of each trial, in the order in which they were measured.
    ///
    /// # Errors
    /// The first that `hear` gives.
    pub(crate) fn each<E>(&self, mut hear: impl FnMut(&RecordedTrial) -> Result<(), E>) -> Result<(), E> {
        let mut read = vec![0; self.series.len()];
        let mut observed: Vec<Observed> = Vec::new();
        let mut current: Option<(&str, u64)> = None;
        let mut lanes = self.lanes.iter().map(|lane| lane.map(|lane| lane as usize));
        for &series in &self.order {
            let series = series as usize;
            let arm = self.arm_of[series] as usize;
            let row = read[series];
            read[series] += 1;
            let trial = (self.arms[arm].0.as_str(), self.series[series].trials[row]);
            if let Some((experiment, number)) = current.filter(|current| *current != trial) {
                let lane = lanes.next().flatten();
                hear(&RecordedTrial { experiment, lane, number, observed: &observed })?;
                observed.clear();
            }
            current = Some(trial);
            observed.push(Observed { arm, series, value: self.series[series].values.bounds(row) });
        }
        match current {
            Some((experiment, number)) => {
                let lane = lanes.next().flatten();
                hear(&RecordedTrial { experiment, lane, number, observed: &observed })
            }
            None => Ok(()),
        }
    }
}

/// What a series is known by, as a row has it: experiment, variant, point, metric, unit and key.
pub(super) type SeriesKey<'a> = [&'a [u8]; 6];

/// A row whose names are a number.
pub(super) struct NumberedRow {
    pub series: u32,
    pub lane: Option<u32>,
    pub trial: u64,
    pub offset_ns: u64,
    pub value: Bounds,
}

/// Trials while they are read.
#[derive(Default)]
pub(super) struct Gathering {
    trials: Trials,
    known: HashMap<Vec<u8>, u32>,
    joined: Vec<u8>,
    /// Each series' names, and the series that came after it the last time: mostly it does again.
    names: Vec<([Vec<u8>; 6], u32)>,
    last: u32,
    /// The arms' experiments as numbers.
    experiments: Vec<u32>,
    /// The experiment and number of the last row's trial.
    trial: Option<(u32, u64)>,
    /// The rows of trials that are known to be whole.
    whole: usize,
}

impl Gathering {
    /// The number of the series with these names.
    ///
    /// # Errors
    /// When they are not what Ascertain writes.
    pub fn series(&mut self, names: &SeriesKey) -> Result<u32, String> {
        let next = self.names.get(self.last as usize).map(|(_, next)| *next);
        let series = match next.filter(|&next| self.names[next as usize].0 == *names) {
            Some(next) => next,
            None => self.look_up(names)?,
        };
        self.names[self.last as usize].1 = series;
        self.last = series;
        Ok(series)
    }

    fn look_up(&mut self, names: &SeriesKey) -> Result<u32, String> {
        self.joined.clear();
        for name in names {
            self.joined.extend_from_slice(&name.len().to_le_bytes());
            self.joined.extend_from_slice(name);
        }
        if let Some(&series) = self.known.get(&self.joined) {
            return Ok(series);
        }
        let series = self.add(names)?;
        self.known.insert(self.joined.clone(), series);
        self.names.push((names.map(<[u8]>::to_vec), series));
        Ok(series)
    }

    fn add(&mut self, names: &SeriesKey) -> Result<u32, String> {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|error| format!("a name: {error}"));
        let [experiment, variant, point, metric, unit, key] = *names;
        let point = serde_json::from_slice(point).map_err(|error| format!("the point: {error}"))?;
        let (experiment, arm) = (text(experiment)?, Arm { variant: text(variant)?, point });
        let (metric, unit, key) = (text(metric)?, text(unit)?, text(key)?);
        let unit = Unit::of_symbol(&unit).ok_or_else(|| format!("there is no unit `{unit}`"))?;
        let number = self.arm(&experiment, &arm);
        self.trials.arm_of.push(number);
        let (trials, offsets_ns, values) = (Vec::new(), Vec::new(), Values::default());
        self.trials.series.push(Series { experiment, arm, metric, unit, key, trials, offsets_ns, values });
        Ok((self.trials.series.len() - 1) as u32)
    }

    fn arm(&mut self, experiment: &str, arm: &Arm) -> u32 {
        let arms = &mut self.trials.arms;
        let known = arms.iter().position(|(id, known)| id == experiment && known == arm);
        known.unwrap_or_else(|| {
            let of_experiment = arms.iter().position(|(id, _)| id == experiment).unwrap_or(arms.len());
            self.experiments.push(of_experiment as u32);
            arms.push((experiment.to_string(), arm.clone()));
            arms.len() - 1
        }) as u32
    }

    /// Takes a row in. Whether a new trial begins with it.
    pub fn push(&mut self, row: &NumberedRow) -> bool {
        let trials = &mut self.trials;
        let arm = trials.arm_of[row.series as usize];
        let trial = Some((self.experiments[arm as usize], row.trial));
        let begins = self.trial != trial;
        if begins {
            self.trial = trial;
            self.whole = trials.order.len();
            trials.lanes.push(row.lane);
        }
        trials.order.push(row.series);
        let series = &mut trials.series[row.series as usize];
        if row.offset_ns != 0 && series.offsets_ns.is_empty() {
            series.offsets_ns.resize(series.trials.len(), 0);
        }
        if row.offset_ns != 0 || !series.offsets_ns.is_empty() {
            series.offsets_ns.push(row.offset_ns);
        }
        series.trials.push(row.trial);
        series.values.push(row.value);
        begins
    }

    /// The trial of the last row is whole.
    pub fn end_trial(&mut self) {
        self.whole = self.trials.order.len();
    }

    /// The trials that are whole.
    pub fn into_trials(self) -> Trials {
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
        // What began with the half trial comes after everything else.
        let begun = trials.series.iter().rposition(|series| !series.trials.is_empty()).map_or(0, |last| last + 1);
        trials.series.truncate(begun);
        trials.arm_of.truncate(begun);
        trials.arms.truncate(trials.arm_of.iter().max().map_or(0, |&last| last as usize + 1));
        trials
    }
}

/// The values of one metric of one arm under one key, in the order measured, column by column.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The experiment's id.
    pub experiment: String,
    /// The arm.
    pub arm: Arm,
    /// The metric's name.
    pub metric: String,
    /// The values' unit.
    pub unit: Unit,
    /// Which of several series: a server, a pair of cores; empty for a scalar.
    pub key: String,
    /// The trials' numbers.
    pub trials: Vec<u64>,
    /// When, since the measurement began, in nanoseconds; empty where all are zero.
    pub offsets_ns: Vec<u64>,
    /// The values in `unit`. One that is not a number was not observed.
    pub values: Values,
}

impl Series {
    /// One number a trial, as claims judge it, with the trials' numbers.
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
            |(trial, samples): (u64, Vec<Bounds>)| Some((trial, reduce.of(samples.into_iter(), &mut scratch)?));
        let (trials, values): (Vec<u64>, Values) = samples.into_iter().filter_map(number).unzip();
        (Cow::Owned(trials), Cow::Owned(values))
    }

    /// How many times better this arm's number is than a baseline's in each trial that has both, as far as it is known;
    /// and how many such trials have numbers of zero or below, of which there is no ratio.
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
