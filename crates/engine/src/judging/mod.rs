//! Judging: records of trials in, what became of each claim and each arm out.

#[cfg(test)]
mod adversary;
mod bound;
mod claim;
mod diagnostics;
mod rule;
mod run;

pub(crate) use claim::{ClaimJudge, Closed, JudgeTerms};
pub(crate) use run::{Lane, RunJudge};
