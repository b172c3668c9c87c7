//! `ascertain history`.

use std::collections::BTreeMap;
use std::path::Path;

use ascertain_engine::outcome::{Decision, Verdict};
use ascertain_engine::recorded::{self, State};
use ascertain_report::history::list::{self, ListedRun, RunList, RunState, SCHEMA};

use super::args::Shared;
use super::brief::{self, Brief};
use crate::exit::Code;
use crate::options::count;
use crate::{output, runs};

/// The group has a name of its own, as that of the subcommands' options is taken.
#[derive(clap::Args)]
#[group(id = "list")]
pub struct Args {
    /// So many runs, the latest
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20, value_parser = count)]
    runs: u64,
    #[command(flatten)]
    shared: Shared,
}

pub fn execute(args: &Args) -> anyhow::Result<Code> {
    let below = args.shared.folder();
    let all = match brief::all(&below) {
        Ok(all) => all,
        Err(code) => return Ok(code),
    };
    let latest = all.iter().rev().take(usize::try_from(args.runs).unwrap_or(usize::MAX));
    let list = RunList {
        schema: SCHEMA.into(),
        folder: below.display().to_string(),
        count: all.len() as u64,
        runs: latest.map(|folder| listed(folder)).collect(),
    };
    output::formatted(&list, &args.shared.display, [list::json, list::csv, list::markdown], list::table)?;
    Ok(Code::Done)
}

/// The rows of larger runs are not read for a list.
const MOST_BYTES: u64 = 64_000_000;

fn listed(folder: &Path) -> ListedRun {
    let (id, bytes) = (runs::name(folder), brief::size_bytes(folder));
    match Brief::read(folder) {
        Ok((brief, state)) => ListedRun {
            id,
            state: state.into(),
            claims: claims(folder, &brief, state, bytes),
            started: Some(brief.started),
            command_line: brief.command_line,
            reason: None,
            bytes,
        },
        Err(reason) => ListedRun {
            id,
            started: None,
            command_line: Vec::new(),
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
