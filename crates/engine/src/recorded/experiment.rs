//! Experiments without their code.

use ascertain_sys::machine::Machine;

use crate::evidence::{Header, Trials};
use crate::experiment::{Arm, Experiment, Session, Setup, Spec, TargetError};
use crate::finding::{Reason, Unavailable};
use crate::outcome::LeftOut;

/// An experiment as a run has recorded it: its trials can be judged again, and it can't be measured.
pub(super) struct RecordedExperiment<'a> {
    spec: &'a Spec,
    unavailable: Vec<&'a LeftOut>,
}

impl<'a> RecordedExperiment<'a> {
    pub fn new(spec: &'a Spec, header: &'a Header, trials: &Trials) -> Self {
        // A run may have been continued where more can be measured.
        let measured = |left_out: &LeftOut| trials.arms.iter().any(|(id, arm)| left_out.is_of(id, arm));
        let of_spec = header.unavailable.iter().filter(|left_out| left_out.experiment == spec.id);
        RecordedExperiment { spec, unavailable: of_spec.filter(|left_out| !measured(left_out)).collect() }
    }
}

impl Experiment for RecordedExperiment<'_> {
    fn spec(&self) -> &Spec {
        self.spec
    }

    fn available(&self, arm: &Arm, _: &Machine) -> Result<(), Unavailable> {
        let left_out = self.unavailable.iter().find(|left_out| left_out.is_of(&self.spec.id, arm));
        match left_out.map(|left_out| left_out.reason.clone()) {
            None => Ok(()),
            Some(Reason::Unavailable { lack, .. }) => Err(lack),
            Some(Reason::Said { words }) => Err(Unavailable::other(words)),
            Some(reason) => Err(Unavailable::other(format!("{reason:?}"))),
        }
    }

    fn open(&self, _: &[Arm], _: &Setup) -> Result<Box<dyn Session>, TargetError> {
        Err(TargetError::Failed("what was recorded can't be measured".into()))
    }
}
