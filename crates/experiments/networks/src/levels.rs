//! Helpers that read the levels of arms.

use std::time::Duration;

use ascertain_engine::experiment::{Accepts, Arm, Factor, Level, TargetError};

use crate::links::OURS;

/// Returns a factor whose level names something that the user provides, such as a server.
pub fn user_factor(name: &str, about: &str) -> Factor {
    Factor::new(name, about, OURS, Accepts::Anything)
}

/// Returns the level of a factor from [`user_factor`], or `None` if the user gave no level.
pub fn given(arm: &Arm, factor: &str) -> Option<String> {
    arm.point.get(factor).map(Level::to_string).filter(|level| level != OURS)
}

/// Returns the level of a factor if it is text, otherwise an empty string.
pub fn word<'a>(arm: &'a Arm, factor: &str) -> &'a str {
    match arm.point.get(factor) {
        Some(Level::Text(word)) => word,
        _ => "",
    }
}

/// Returns the arm's level of `factor`, which must be in milliseconds, as a duration.
///
/// # Errors
/// Returns the errors of [`Arm::integer`].
pub fn milliseconds(arm: &Arm, factor: &str) -> Result<Duration, TargetError> {
    arm.integer(factor).map(Duration::from_millis)
}
