//! The values that a run observes for each arm and metric, with the indices of their trials.

use std::collections::BTreeMap;
use std::ops::Range;

use ascertain_stats::quantile_ranks;

use crate::claim::paired_ratios;
use crate::experiment::{Arm, Better, Point, Sample, Spec};
use crate::finding::Reason;
use crate::outcome::{Absence, LeftOut};
use crate::values::{Bounds, Sorted, Values, relative_half_width};

/// The values of one arm, for each metric, in the order in which they were measured.
#[derive(Clone, Debug, PartialEq)]
pub struct ArmValues {
    /// Id of the experiment to which the arm belongs.
    pub experiment: String,
    /// The arm that was measured.
    pub arm: Arm,
    /// For each metric, its values. Empty for a metric whose values are summarised separately for each key.
    pub by_metric: Vec<Values>,
    /// The values by key, for each metric whose values are summarised separately for each key. A key is, for instance,
    /// a server. `None` for all other metrics.
    pub(crate) by_key: Vec<Option<BTreeMap<String, KeyValues>>>,
    /// Facts about the arm: properties that the user did not choose, and that are the same in each trial.
    pub facts: Point,
    /// For each metric, the trials in which it has values, as ranges of trial indices.
    trials: Vec<Vec<Range<u64>>>,
    left_out: Option<Reason>,
}

impl ArmValues {
    /// Returns the values of each metric that has no keys. Their summaries are in
    /// [`Outcome::points`](crate::outcome::Outcome::points), in the same order.
    pub fn of_points(&self) -> impl Iterator<Item = &Values> {
        self.by_metric.iter().zip(&self.by_key).filter(|(_, by_key)| by_key.is_none()).map(|(values, _)| values)
    }

    /// Returns the values of a metric, each with the index of its trial.
    ///
    /// # Panics
    /// If there is no metric with this index.
    pub fn by_trial(&self, metric: usize) -> impl Iterator<Item = (u64, Bounds)> {
        let values = &self.by_metric[metric];
        self.trials[metric].iter().cloned().flatten().zip((0..values.len()).map(|index| values.bounds(index)))
    }

    /// Returns the values of each key of a metric, in the order of the keys. Empty for a metric without keys.
    ///
    /// # Panics
    /// If there is no metric with this index.
    pub fn of_keys(&self, metric: usize) -> impl Iterator<Item = (&str, &KeyValues)> {
        self.by_key[metric].iter().flatten().map(|(key, values)| (key.as_str(), values))
    }

    /// Returns the factors by which this arm is better than the baseline, one range for each trial with values of both
    /// arms. Trials with a value that is zero or negative are left out.
    ///
    /// # Panics
    /// If there is no metric with this index.
    pub fn ratios_to(&self, baseline: &ArmValues, metric: usize, better: Better) -> Values {
        let ratios = paired_ratios(better, self.by_trial(metric), baseline.by_trial(metric));
        ratios.into_iter().flatten().collect()
    }
}

/// The values of one key of a metric, such as a server or a workload.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeyValues {
    /// The values, in the order in which they were measured.
    pub values: Values,
    /// For each value, the index of its trial.
    pub trials: Vec<u64>,
}

impl KeyValues {
    /// Returns the values, each with the index of its trial.
    pub fn by_trial(&self) -> impl Iterator<Item = (u64, Bounds)> {
        self.trials.iter().copied().zip((0..self.values.len()).map(|index| self.values.bounds(index)))
    }
}

/// Error probability of the confidence interval of each median. It is not part of the run's error probability.
const ERROR: f64 = 0.05;

/// Returns the 95 % confidence interval of the median. A bound is infinite if there are too few values for
/// it.
pub(crate) fn median_interval(sorted: &Sorted) -> (f64, f64) {
    quantile_ranks(sorted.as_slice().len() as u64, 0.5, ERROR / 2.0, ERROR / 2.0)
        .map_or((f64::NEG_INFINITY, f64::INFINITY), |ranks| sorted.between(ranks))
}

/// All observations of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observations {
    arms: Vec<ArmValues>,
    /// For each experiment, the index of its next trial.
    next_trials: Vec<(String, u64)>,
}

impl Observations {
    /// Returns the values of all arms, in the order in which the plan names the arms.
    pub fn arms(&self) -> &[ArmValues] {
        &self.arms
    }

    /// Returns the relative precision of the median of an arm's first metric: half of the width of its confidence
    /// interval, divided by the middle of the interval. Returns `None` while the interval is infinite.
    pub(crate) fn median_precision(&self, arm: usize) -> Option<f64> {
        relative_half_width(median_interval(&self.arms[arm].by_metric.first()?.sorted()))
    }

    /// Returns the number of values, not counting the values of metrics with keys.
    pub(crate) fn count(&self) -> usize {
        self.arms.iter().flat_map(|values| &values.by_metric).map(|values| values.len()).sum()
    }

    /// Returns the index of an arm. Adds the arm if it is new.
    pub(crate) fn arm(&mut self, spec: &Spec, arm: &Arm) -> usize {
        let known = self.arms.iter().position(|known| known.experiment == spec.id && known.arm == *arm);
        known.unwrap_or_else(|| {
            self.arms.push(ArmValues {
                experiment: spec.id.clone(),
                arm: arm.clone(),
                by_metric: vec![Values::default(); spec.metrics.len()],
                by_key: spec.metrics.iter().map(|metric| metric.is_by_key.then(BTreeMap::new)).collect(),
                facts: Point::default(),
                trials: vec![Vec::new(); spec.metrics.len()],
                left_out: None,
            });
            self.arms.len() - 1
        })
    }

    pub(crate) fn note(&mut self, arm: usize, facts: Point) {
        self.arms[arm].facts = facts;
    }

    pub(crate) fn leave_out(&mut self, arm: usize, why: Reason) {
        self.arms[arm].left_out.get_or_insert(why);
    }

    /// Removes all values of the arm with this index, because they turned out to be invalid.
    pub(crate) fn forget(&mut self, arm: usize) {
        let values = &mut self.arms[arm];
        values.by_metric.iter_mut().for_each(Values::clear);
        values.by_key.iter_mut().flatten().for_each(BTreeMap::clear);
        values.trials.iter_mut().for_each(Vec::clear);
    }

    /// Removes all values of an arm, and notes `reason` as the reason why they are missing. Does nothing if the arm has
    /// no values.
    pub(crate) fn take_back(&mut self, experiment: &str, arm: &Arm, reason: &Reason) {
        let of_arm = |known: &ArmValues| known.experiment == experiment && known.arm == *arm;
        let has_values = |known: &ArmValues| known.by_metric.iter().any(|values| !values.is_empty());
        if let Some(arm) = self.arms.iter().position(|known| of_arm(known) && has_values(known)) {
            self.forget(arm);
            self.arms[arm].left_out = Some(reason.clone());
        }
    }

    /// Returns whether an arm failed or gave a wrong answer.
    pub(crate) fn any_failed(&self) -> bool {
        self.arms.iter().any(|values| matches!(values.left_out, Some(Reason::Failed { .. })))
    }

    /// Returns each requested arm that was not measured, or only incompletely, with the reason.
    pub(crate) fn left_out(&self) -> Vec<LeftOut> {
        let left_out = self.arms.iter().filter_map(|values| {
            let reason = values.left_out.clone()?;
            let absence = match reason {
                Reason::Unavailable { .. } => Absence::Unavailable,
                Reason::TimeUp { .. } | Reason::TooLong { .. } => Absence::Deferred,
                _ => Absence::Failed,
            };
            // If the time was too short in one lane (group of arms), but another lane measured the arm, it is not left
            // out.
            if absence == Absence::Deferred && values.by_metric.iter().any(|values| !values.is_empty()) {
                return None;
            }
            Some(LeftOut { experiment: values.experiment.clone(), arm: values.arm.clone(), absence, reason })
        });
        left_out.collect()
    }

    /// Adds the values of an arm in one trial. `row` has one value for each metric.
    pub(crate) fn push(&mut self, arm: usize, trial: u64, row: &[Bounds]) {
        let ArmValues { by_metric, by_key, trials, .. } = &mut self.arms[arm];
        for (((values, by_key), trials), &value) in by_metric.iter_mut().zip(by_key).zip(trials).zip(row) {
            if value.is_none() || by_key.is_some() {
                continue;
            }
            values.push(value);
            match trials.last_mut() {
                Some(last) if last.end == trial => last.end += 1,
                _ => trials.push(trial..trial + 1),
            }
        }
    }

    /// Adds the values of an arm in one trial, for metrics whose values are summarised separately for each key. A key
    /// is, for instance, the name of a server.
    pub(crate) fn push_by_key(&mut self, arm: usize, trial: u64, samples: &[Sample]) {
        let by_key = &mut self.arms[arm].by_key;
        for sample in samples {
            // In a trial that was cut off, the samples that stand for unobserved values have no key.
            let says_something = !sample.key.is_empty() && !sample.bounds().is_none();
            if let Some(values) = by_key[sample.metric].as_mut().filter(|_| says_something) {
                let of_key = values.entry(sample.key.to_string()).or_default();
                of_key.values.push(sample.bounds());
                of_key.trials.push(trial);
            }
        }
    }

    /// Returns a new trial index for the experiment, which is one higher than the last index.
    pub(crate) fn next_trial(&mut self, experiment: &str) -> u64 {
        let next = self.next_mut(experiment);
        *next += 1;
        *next - 1
    }

    /// Marks the index of a recorded trial as used, so that new trials have higher indices.
    pub(crate) fn skip_to(&mut self, experiment: &str, number: u64) {
        let next = self.next_mut(experiment);
        *next = (*next).max(number.saturating_add(1));
    }

    fn next_mut(&mut self, experiment: &str) -> &mut u64 {
        let known = self.next_trials.iter().position(|(known, _)| known == experiment);
        let index = known.unwrap_or_else(|| {
            self.next_trials.push((experiment.to_string(), 0));
            self.next_trials.len() - 1
        });
        &mut self.next_trials[index].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Metric, Point, Status};

    /// Each ratio must come from two values of the same trial, even if an arm has no value in an earlier trial.
    #[test]
    fn ratios_are_of_values_of_the_same_trial() {
        let metrics = vec![Metric::time("time", "")];
        let spec = Spec { metrics, ..Spec::default() };
        let mut observations = Observations::default();
        let arm = |variant: &str| Arm { variant: variant.into(), point: Point::default() };
        let [a, b] = ["a", "b"].map(|variant| observations.arm(&spec, &arm(variant)));
        let rows = [
            (0, Bounds::exact(2.0), Bounds::exact(1.0)),
            (1, Bounds::NONE, Bounds::exact(7.0)),
            (2, Bounds::exact(6.0), Bounds::NONE),
            (5, Bounds::exact(9.0), Bounds::exact(3.0)),
            (6, Bounds::above(8.0), Bounds::exact(2.0)),
            (7, Bounds::above(8.0), Bounds::above(8.0)),
        ];
        for (trial, of_a, of_b) in rows {
            observations.push(a, trial, &[of_a]);
            observations.push(b, trial, &[of_b]);
        }
        let [a, b] = observations.arms() else { panic!("two arms") };
        let ratios = b.ratios_to(a, 0, Better::Lower);
        let log_ratios: Vec<_> = (0..ratios.len()).map(|index| ratios.bounds(index).log_ratio()).collect();
        assert_eq!(log_ratios, [Some(2f64.ln()), Some(3f64.ln()), Some(f64::INFINITY), None]);
        let opposite = a.ratios_to(b, 0, Better::Lower);
        assert_eq!(opposite.bounds(2).log_ratio(), Some(f64::NEG_INFINITY));
    }

    #[test]
    fn a_key_has_no_value_that_nobody_looked_for() {
        let spec = Spec { metrics: vec![Metric::time("server", "").by_key()], ..Spec::default() };
        let mut observations = Observations::default();
        let arm = observations.arm(&spec, &Arm { variant: "a".into(), point: Point::default() });
        let of_key = |value| Sample { key: "ns1".into(), value, status: Status::Ok, ..Sample::lost(0) };
        observations.push_by_key(arm, 0, &[of_key(f64::NAN), of_key(1.0), Sample { key: "".into(), ..of_key(2.0) }]);
        let by_key = observations.arms()[arm].by_key[0].as_ref().unwrap();
        assert_eq!(by_key.values().map(|of_key| &*of_key.values).collect::<Vec<_>>(), [[1.0]]);
    }
}
