//! Stubs for systems without emulated links. On these systems, experiments that need such links use this file as their
//! module.

use ascertain_engine::experiment::{Arm, Session, Setup, TargetError, Unavailable};

const WHY: &str = "emulated links need Linux";

/// Returns the reason why no arm is available.
///
/// # Errors
/// Always returns the reason.
pub fn is_available(_: &Arm) -> Result<(), Unavailable> {
    Err(Unavailable::other(WHY))
}

/// Fails because this system has no emulated links.
///
/// # Errors
/// Always returns the reason.
pub fn open(_: &[Arm], _: &Setup) -> Result<Box<dyn Session>, TargetError> {
    Err(TargetError::Failed(WHY.into()))
}
