//! Judges the records of trials. Determines the result of each claim and the values of each arm.

#[cfg(test)]
mod adversary;
mod bound;
mod claim;
mod derived;
mod diagnostics;
mod rule;
mod run;
mod tails;

pub(crate) use claim::{ClaimJudge, ClosedReason};
pub(crate) use run::{Lane, RunJudge};
pub(crate) use tails::hint as tail_hint;
