//! The runs there are.

use std::collections::BTreeMap;
use std::path::Path;

use ascertain_engine::outcome::{Decision, Verdict};
use ascertain_engine::recorded::{self, State};
use ascertain_report::history::list::{ListedRun, RunList, RunState, SCHEMA};

use crate::error::Error;
use crate::runs::{self, Brief};

/// The latest runs below a folder, at most so many, the latest first.
///
/// # Errors
/// When there are none, or they can't be listed.
pub fn list(below: &Path, most: usize) -> Result<RunList, Error> {
    let all = runs::listed(below)?;
    Ok(RunList {
        schema: SCHEMA.into(),
        folder: below.display().to_string(),
        count: all.len() as u64,
        runs: all.iter().rev().take(most).map(|folder| listed(folder)).collect(),
    })
}

/// The rows of larger runs are not read for a list.
const MOST_BYTES: u64 = 64_000_000;

fn listed(folder: &Path) -> ListedRun {
    let (id, bytes) = (runs::name(folder), runs::size_bytes(folder));
    match Brief::read(folder) {
        Ok((brief, state)) => ListedRun {
            id,
            state: state.into(),
            claims: claims(folder, &brief, state, bytes),
            started: Some(brief.started),
            command_line: brief.command_line,
            label: brief.label,
            revision: brief.revision,
            reason: None,
            bytes,
        },
        Err(reason) => ListedRun {
            id,
            started: None,
            command_line: Vec::new(),
            label: None,
            revision: None,
            state: RunState::Unreadable,
            reason: Some(reason),
            claims: BTreeMap::new(),
            bytes,
        },
    }
}

/// The answers that the run wrote; of one that was killed, those that its rows say.
fn claims(folder: &Path, brief: &Brief, state: State, bytes: u64) -> BTreeMap<String, u64> {
    if state == State::Killed
        && bytes <= MOST_BYTES
        && let Ok(run) = recorded::read(folder)
    {
        return answers(run.outcome.claims.iter().map(|claim| (claim.verdict, claim.decision)));
    }
    let written = brief.outcome.iter().flat_map(|outcome| &outcome.claims);
    answers(written.map(|claim| (claim.verdict, claim.decision)))
}

/// How many claims came to which answer.
fn answers(claims: impl Iterator<Item = (Verdict, Option<Decision>)>) -> BTreeMap<String, u64> {
    let mut answers = BTreeMap::new();
    for claim in claims {
        let answer = match claim {
            (Verdict::Holds | Verdict::Refuted | Verdict::Undecided, Some(decision)) => decision.word(),
            (verdict, _) => verdict.word(),
        };
        *answers.entry(answer.to_string()).or_default() += 1;
    }
    answers
}
