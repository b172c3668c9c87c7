//! Judges the records of trials. Determines the result of each claim and the values of each arm.

#[cfg(test)]
mod adversary;
mod bound;
mod claim;
mod derived;
mod diagnostics;
mod rule;
mod run;

pub(crate) use claim::{ClaimJudge, ClosedReason};
pub(crate) use run::{Lane, RunJudge};
