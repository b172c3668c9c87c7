//! Rows column by column.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::experiment::{Arm, Reduce};
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
    /// One number a trial, as claims judge it, with the trials' numbers. One of which nothing is known is left out.
    pub fn by_trial(&self, reduce: Reduce) -> (Cow<'_, [u64]>, Cow<'_, Values>) {
        let is_known = |value: Bounds| !value.is_none() && value != Bounds::UNKNOWN;
        let is_scalar = self.trials.is_sorted_by(|a, b| a < b);
        if is_scalar && (0..self.values.len()).all(|index| is_known(self.values.bounds(index))) {
            return (Cow::Borrowed(&self.trials), Cow::Borrowed(&self.values));
        }
        let mut samples: BTreeMap<u64, Vec<Bounds>> = BTreeMap::new();
        for (index, &trial) in self.trials.iter().enumerate() {
            samples.entry(trial).or_default().push(self.values.bounds(index));
        }
        let mut scratch = Values::default();
        let number =
            |(trial, samples): (u64, Vec<Bounds>)| Some((trial, reduce.of(samples.into_iter(), &mut scratch)?));
        let (trials, values): (Vec<u64>, Values) =
            samples.into_iter().filter_map(number).filter(|(_, value)| is_known(*value)).unzip();
        (Cow::Owned(trials), Cow::Owned(values))
    }
}
