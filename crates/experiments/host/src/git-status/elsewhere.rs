//! Stubs for systems other than Linux, on which the experiment is not available.

use ascertain_engine::experiment::{Arm, Session, Setup, TargetError, Unavailable};

const WHY: &str = "the experiment needs Linux";

pub fn is_available(_: &Arm) -> Result<(), Unavailable> {
    Err(Unavailable::other(WHY))
}

pub fn open(_: &[Arm], _: &Setup) -> Result<Box<dyn Session>, TargetError> {
    Err(TargetError::Failed(WHY.into()))
}
