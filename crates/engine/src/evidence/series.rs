//! Rows column by column.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::claim::Scale;
use crate::experiment::{Arm, Better, Reduce};
use crate::unit::Unit;
use crate::values::{Bounds, Values};

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

    /// How many times better this arm's number is than a baseline's in each trial that has both, as far as it is known; and
    /// how many such trials have numbers of zero or below, of which there is no ratio.
    pub fn ratios_to(&self, baseline: &Series, reduce: Reduce, better: Better) -> (Values, usize) {
        let numbers = |series: &Series| {
            let (trials, values) = series.by_trial(reduce);
            let known = trials.iter().enumerate().map(|(index, &trial)| (trial, values.bounds(index)));
            known.filter(|(_, value)| !value.is_none()).collect::<BTreeMap<u64, Bounds>>()
        };
        let (candidates, baselines) = (numbers(self), numbers(baseline));
        let both = candidates.iter().filter_map(|(trial, candidate)| Some((*candidate, *baselines.get(trial)?)));
        let ratios = both.map(|(candidate, baseline)| Scale::Ratio.compare(better, candidate, baseline));
        let ratios: Vec<Option<Bounds>> = ratios.collect();
        let without = ratios.iter().filter(|ratio| ratio.is_none()).count();
        (ratios.into_iter().flatten().collect(), without)
    }
}
