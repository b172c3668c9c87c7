//! Ascertain puts performance claims on trial: it measures in randomised, paired trials, decides as
//! soon as the evidence suffices, and is wrong at most a stated fraction of the time.

pub mod claim;
pub mod command;
pub mod experiment;
pub mod nearest;
pub mod outcome;
pub mod plan;
pub mod predicate;
pub mod unit;
