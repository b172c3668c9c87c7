//! Every value of every metric of every arm, and the run's trial numbers.

use std::collections::BTreeMap;
use std::ops::Range;

use ascertain_stats::quantile_ranks;

use crate::claim::paired_ratios;
use crate::experiment::{Arm, Better, Point, Sample, Spec};
use crate::finding::Reason;
use crate::outcome::{Absence, LeftOut};
use crate::values::{Bounds, Sorted, Values};

/// One arm's values, by metric, in the order measured.
#[derive(Clone, Debug)]
pub struct ArmValues {
    /// The experiment's id.
    pub experiment: String,
    /// The arm.
    pub arm: Arm,
    /// The values, by metric.
    pub by_metric: Vec<Values>,
    /// The values of metrics that are told by key, which `by_metric` does not have; none of the others.
    pub(crate) by_key: Vec<Option<BTreeMap<String, Values>>>,
    /// What nobody chose and is the same in each trial.
    pub facts: Point,
    /// The numbers of the trials that the values are of, by metric: what follows one another as a range.
    trials: Vec<Vec<Range<u64>>>,
    left_out: Option<Reason>,
}

impl ArmValues {
    /// The values that the outcome has points of, in their order: those of metrics that are not told by key.
    pub fn of_points(&self) -> impl Iterator<Item = &Values> {
        self.by_metric.iter().zip(&self.by_key).filter(|(_, by_key)| by_key.is_none()).map(|(values, _)| values)
    }

    /// A metric's values with the numbers of their trials.
    ///
    /// # Panics
    /// Where there is no such metric.
    pub fn by_trial(&self, metric: usize) -> impl Iterator<Item = (u64, Bounds)> {
        let values = &self.by_metric[metric];
        self.trials[metric].iter().cloned().flatten().zip((0..values.len()).map(|index| values.bounds(index)))
    }

    /// How many times better this arm's value is than a baseline's in each trial that has both, as far as it is known;
    /// nothing of values of zero or below.
    ///
    /// # Panics
    /// Where there is no such metric.
    pub fn ratios_to(&self, baseline: &ArmValues, metric: usize, better: Better) -> Values {
        let ratios = paired_ratios(better, self.by_trial(metric), baseline.by_trial(metric));
        ratios.into_iter().flatten().collect()
    }
}

/// The error of the interval around each median: they are at 95 % each, outside of the run's budget.
const ERROR: f64 = 0.05;

/// The interval around the median of values; an end that nothing bounds is infinite.
pub(crate) fn median_interval(sorted: &Sorted) -> (f64, f64) {
    quantile_ranks(sorted.as_slice().len() as u64, 0.5, ERROR / 2.0, ERROR / 2.0)
        .map_or((f64::NEG_INFINITY, f64::INFINITY), |ranks| sorted.between(ranks))
}

/// What a run has seen.
#[derive(Clone, Debug, Default)]
pub struct Observations {
    arms: Vec<ArmValues>,
    /// The number of each experiment's next trial.
    next_trials: Vec<(String, u64)>,
}

impl Observations {
    /// The arms in the order in which they were named.
    pub fn arms(&self) -> &[ArmValues] {
        &self.arms
    }

    /// Half of the width of the interval around the arm's median, by its middle, of the experiment's first metric;
    /// `None` as long as the interval has an open end.
    pub(crate) fn median_precision(&self, arm: usize) -> Option<f64> {
        let (low, high) = median_interval(&self.arms[arm].by_metric.first()?.sorted());
        let half_width = (high - low) / 2.0;
        half_width.is_finite().then(|| half_width / ((high + low) / 2.0).abs())
    }

    /// How many values there are.
    pub(crate) fn count(&self) -> usize {
        self.arms.iter().flat_map(|values| &values.by_metric).map(|values| values.len()).sum()
    }

    /// The arm's number, added when it is new.
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

    /// The arm's values turned out to be worth nothing.
    pub(crate) fn forget(&mut self, arm: usize) {
        let values = &mut self.arms[arm];
        values.by_metric.iter_mut().for_each(Values::clear);
        values.by_key.iter_mut().flatten().for_each(BTreeMap::clear);
        values.trials.iter_mut().for_each(Vec::clear);
    }

    /// As [`forget`](Self::forget), where the arm has values.
    pub(crate) fn take_back(&mut self, experiment: &str, arm: &Arm, reason: &Reason) {
        let of_arm = |known: &ArmValues| known.experiment == experiment && known.arm == *arm;
        let has_values = |known: &ArmValues| known.by_metric.iter().any(|values| !values.is_empty());
        if let Some(arm) = self.arms.iter().position(|known| of_arm(known) && has_values(known)) {
            self.forget(arm);
            self.arms[arm].left_out = Some(reason.clone());
        }
    }

    /// Whether an arm failed or gave a wrong answer.
    pub(crate) fn any_failed(&self) -> bool {
        self.arms.iter().any(|values| matches!(values.left_out, Some(Reason::Failed { .. })))
    }

    /// The arms that were asked for and not measured, or not to the end.
    pub(crate) fn left_out(&self) -> Vec<LeftOut> {
        let left_out = self.arms.iter().filter_map(|values| {
            let reason = values.left_out.clone()?;
            let absence = match reason {
                Reason::Unavailable { .. } => Absence::Unavailable,
                Reason::TimeUp { .. } | Reason::TooLong { .. } => Absence::Deferred,
                _ => Absence::Failed,
            };
            // Another lane had time for it.
            if absence == Absence::Deferred && values.by_metric.iter().any(|values| !values.is_empty()) {
                return None;
            }
            let (variant, at) = (values.arm.variant.clone(), values.arm.point.clone());
            Some(LeftOut { experiment: values.experiment.clone(), variant, at, absence, reason })
        });
        left_out.collect()
    }

    /// Adds a trial's values of an arm.
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

    /// Adds the values of a trial that are told by key.
    pub(crate) fn push_by_key(&mut self, arm: usize, samples: &[Sample]) {
        let by_key = &mut self.arms[arm].by_key;
        for sample in samples {
            // What was cut off before it was seen has no key.
            let says_something = !sample.key.is_empty() && !sample.bounds().is_none();
            if let Some(values) = by_key[sample.metric].as_mut().filter(|_| says_something) {
                values.entry(sample.key.to_string()).or_default().push(sample.bounds());
            }
        }
    }

    /// The number of the experiment's next trial, which is not given out again.
    pub(crate) fn next_trial(&mut self, experiment: &str) -> u64 {
        let next = self.next_mut(experiment);
        *next += 1;
        *next - 1
    }

    /// A recorded trial's number is not given out again.
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

    /// A trial of which an arm has no number must not shift those that follow.
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
        observations.push_by_key(arm, &[of_key(f64::NAN), of_key(1.0), Sample { key: "".into(), ..of_key(2.0) }]);
        let by_key = observations.arms()[arm].by_key[0].as_ref().unwrap();
        assert_eq!(by_key.values().map(|values| &**values).collect::<Vec<_>>(), [[1.0]]);
    }
}
