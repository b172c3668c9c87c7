//! Lists recorded runs.

use std::collections::BTreeMap;
use std::path::Path;

use ascertain_engine::outcome::{Decision, Verdict};
use ascertain_engine::recorded::{self, State};
use ascertain_report::history::list::{ListedRun, RunList};

use crate::error::Error;
use crate::runs::{self, Brief};

/// Returns at most `most` runs of the folder `below`, the latest first.
///
/// # Errors
/// If there are no runs, or the folder can't be read.
pub fn list(below: &Path, most: usize) -> Result<RunList, Error> {
    let all = runs::listed(below)?;
    Ok(RunList {
        folder: below.display().to_string(),
        count: all.len() as u64,
        runs: all.iter().rev().take(most).map(|folder| listed(folder)).collect(),
    })
}

/// Size of a killed run's folder, in bytes, up to which its claims are judged again from the recorded rows. For a
/// larger folder, this would take too long.
const MOST_BYTES: u64 = 64_000_000;

fn listed(folder: &Path) -> ListedRun {
    let (id, bytes) = (runs::name(folder), runs::size_bytes(folder));
    match Brief::read(folder) {
        Ok((brief, state)) => ListedRun {
            id,
            state: state.word(),
            claims: answers(folder, &brief, state, bytes),
            started: Some(brief.started),
            command_line: brief.command_line,
            label: brief.label,
            revision: brief.revision,
            reason: None,
            bytes,
        },
        Err(reason) => ListedRun { id, state: "unreadable", reason: Some(reason), bytes, ..ListedRun::default() },
    }
}

/// Counts the claims of a run by their answers, such as `holds` or `faster`. The answers come from the recorded
/// outcome, except for killed runs. A killed run has no outcome, or an outdated one from before its continuation. If
/// the folder of such a run has at most [`MOST_BYTES`], its rows are judged again to get the answers.
fn answers(folder: &Path, brief: &Brief, state: State, bytes: u64) -> BTreeMap<String, u64> {
    let is_read = state == State::Killed && bytes <= MOST_BYTES;
    let claims: Vec<(Verdict, Option<Decision>)> = match is_read.then(|| recorded::read(folder)) {
        Some(Ok(run)) => run.outcome.claims.iter().map(|claim| (claim.verdict, claim.decision)).collect(),
        _ => {
            let written = brief.outcome.iter().flat_map(|outcome| &outcome.claims);
            written.map(|claim| (claim.verdict, claim.decision)).collect()
        }
    };
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
