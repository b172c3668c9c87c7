//! The same claims in several runs.

use ascertain::outcome::{ClaimResult, Verdict};
use ascertain::recorded::RecordedRun;

use super::claim::heading;
use super::markup::Html;
use crate::grids;

/// A row for each claim, a column for each run.
pub(super) struct Aligned {
    /// The runs' names.
    pub runs: Vec<String>,
    pub rows: Vec<Row>,
}

pub(super) struct Row {
    pub heading: Html,
    /// What came of it in each run; `None` where the run did not ask.
    pub cells: Vec<Option<Cell>>,
}

pub(super) struct Cell {
    pub verdict: &'static str,
    pub answer: &'static str,
    pub figure: String,
}

/// Claims are the same when they have the same name and ask the same.
pub(super) fn aligned(runs: &[RecordedRun]) -> Aligned {
    let mut claims: Vec<&ClaimResult> = Vec::new();
    for claim in runs.iter().flat_map(|run| &run.outcome.claims) {
        if !claims.iter().any(|known| is_same(known, claim)) {
            claims.push(claim);
        }
    }
    let of_run = |run: &RecordedRun, claim: &ClaimResult| {
        let found = run.outcome.claims.iter().find(|other| is_same(other, claim))?;
        let is_judged = matches!(found.verdict, Verdict::Holds | Verdict::Refuted | Verdict::Undecided);
        let figure = Some(grids::here(found)).filter(|figure| is_judged && figure != "-").unwrap_or_default();
        Some(Cell { verdict: found.verdict.word(), answer: grids::answer(found), figure })
    };
    let row = |claim: &ClaimResult| Row {
        heading: heading(claim),
        cells: runs.iter().map(|run| of_run(run, claim)).collect(),
    };
    Aligned {
        runs: runs.iter().map(|run| run.header.run_id.clone()).collect(),
        rows: claims.into_iter().map(row).collect(),
    }
}

fn is_same(one: &ClaimResult, other: &ClaimResult) -> bool {
    one.id == other.id && one.experiment == other.experiment && one.asked.tests == other.asked.tests
}
