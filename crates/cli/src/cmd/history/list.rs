//! `ascertain history`.

use std::collections::BTreeMap;
use std::path::Path;

use ascertain::outcome::Verdict;
use ascertain_report::history::list::{self, ListedRun, RunList, RunState, SCHEMA};

use super::args::Shared;
use super::brief::{self, Brief, ClaimBrief};
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

fn listed(folder: &Path) -> ListedRun {
    let (id, bytes) = (runs::name(folder), brief::size_bytes(folder));
    match Brief::read(folder) {
        Ok((brief, state)) => ListedRun {
            id,
            state: state.into(),
            claims: answers(brief.outcome.as_ref().map_or(&[], |outcome| &outcome.claims)),
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

/// How many claims came to which answer.
fn answers(claims: &[ClaimBrief]) -> BTreeMap<String, u64> {
    let mut answers = BTreeMap::new();
    for claim in claims {
        let answer = match (claim.verdict, claim.decision) {
            (Verdict::Holds | Verdict::Refuted | Verdict::Undecided, Some(decision)) => decision.word(),
            (verdict, _) => verdict.word(),
        };
        *answers.entry(answer.to_string()).or_default() += 1;
    }
    answers
}
