//! The same claims in several runs.

use ascertain_engine::claim::Judging;
use ascertain_engine::outcome::{ClaimResult, Verdict};
use ascertain_engine::recorded::RecordedRun;

use super::claim::heading;
use super::markup::Html;
use crate::clause::Clause;
use crate::figure::exact_percent;
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
    let has_namesake = |claim: &ClaimResult| {
        let is_namesake = |other: &&&ClaimResult| has_same_name(other, claim) && heading(other) == heading(claim);
        claims.iter().filter(is_namesake).count() > 1
    };
    let row = |claim: &ClaimResult| Row {
        heading: if has_namesake(claim) { told_apart(claim) } else { heading(claim) },
        cells: runs.iter().map(|run| of_run(run, claim)).collect(),
    };
    Aligned {
        runs: runs.iter().map(|run| run.header.run_id.clone()).collect(),
        rows: claims.iter().map(|claim| row(claim)).collect(),
    }
}

fn is_same(one: &ClaimResult, other: &ClaimResult) -> bool {
    has_same_name(one, other) && one.asked == other.asked && one.rate_claimed == other.rate_claimed
}

fn has_same_name(one: &ClaimResult, other: &ClaimResult) -> bool {
    one.id == other.id && one.experiment == other.experiment
}

/// The claim with all that it asks, where another that is called and put the same asks something else.
fn told_apart(claim: &ClaimResult) -> Html {
    let margin = claim.asked.margin.map(exact_percent);
    let asks = match (claim.asked.judging, margin) {
        (Judging::Order, Some(margin)) => format!("the same within {margin}"),
        (Judging::Order, None) => "no margin".to_string(),
        (judging, margin) => {
            let Clause { subject, complement } = Clause::of(&claim.asked);
            let often = match judging {
                Judging::Exact => String::new(),
                _ => format!(", at least {} of the time", exact_percent(claim.rate_claimed)),
            };
            let margin = margin.map_or_else(String::new, |margin| format!(", margin {margin}"));
            format!("{subject} is {complement}{often}{margin}")
        }
    };
    Html(format!("{} <small>({})</small>", heading(claim), Html::sentence(&asks)))
}
