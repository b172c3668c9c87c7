//! Every value of every metric of every arm, and the run's trial numbers.

use std::collections::HashMap;

use crate::experiment::{Arm, Spec};
use crate::outcome::LeftOut;

/// One arm's values, by metric, in the order measured.
#[derive(Clone, Debug)]
pub struct ArmValues {
    /// The experiment's id.
    pub experiment: String,
    /// The arm.
    pub arm: Arm,
    /// The values, by metric.
    pub by_metric: Vec<Vec<f64>>,
    evidence_id: usize,
    left_out: Option<String>,
}

/// What a run has seen.
#[derive(Clone, Debug, Default)]
pub struct Observations {
    arms: Vec<ArmValues>,
    trials: HashMap<String, u64>,
}

impl Observations {
    /// The arms in the order in which they were named.
    pub fn arms(&self) -> &[ArmValues] {
        &self.arms
    }

    /// The arm's number, added when it is new.
    pub(crate) fn arm(&mut self, spec: &Spec, arm: &Arm) -> usize {
        let known = self.arms.iter().position(|known| known.experiment == spec.id && known.arm == *arm);
        known.unwrap_or_else(|| {
            self.arms.push(ArmValues {
                experiment: spec.id.clone(),
                arm: arm.clone(),
                by_metric: vec![Vec::new(); spec.metrics.len()],
                evidence_id: 0,
                left_out: None,
            });
            self.arms.len() - 1
        })
    }

    pub(crate) fn set_evidence_id(&mut self, arm: usize, id: usize) {
        self.arms[arm].evidence_id = id;
    }

    pub(crate) fn evidence_id(&self, arm: usize) -> usize {
        self.arms[arm].evidence_id
    }

    pub(crate) fn leave_out(&mut self, arm: usize, reason: String) {
        self.arms[arm].left_out.get_or_insert(reason);
    }

    /// The arms that were asked for and not measured to the end.
    pub(crate) fn left_out(&self) -> Vec<LeftOut> {
        let left_out = self.arms.iter().filter_map(|values| {
            let reason = values.left_out.clone()?;
            let (variant, at) = (values.arm.variant.clone(), values.arm.point.clone());
            Some(LeftOut { experiment: values.experiment.clone(), variant, at, reason })
        });
        left_out.collect()
    }

    pub(crate) fn push(&mut self, arm: usize, row: &[f64]) {
        for (values, &value) in self.arms[arm].by_metric.iter_mut().zip(row) {
            if !value.is_nan() {
                values.push(value);
            }
        }
    }

    /// The number of the experiment's next trial.
    pub(crate) fn next_trial(&mut self, spec: &Spec) -> u64 {
        let next = self.next_mut(&spec.id);
        *next += 1;
        *next - 1
    }

    /// A recorded trial's number is not given out again.
    pub(crate) fn skip_to(&mut self, experiment: &str, number: u64) {
        let next = self.next_mut(experiment);
        *next = (*next).max(number + 1);
    }

    fn next_mut(&mut self, experiment: &str) -> &mut u64 {
        if !self.trials.contains_key(experiment) {
            self.trials.insert(experiment.to_string(), 0);
        }
        self.trials.get_mut(experiment).expect("inserted above")
    }
}
