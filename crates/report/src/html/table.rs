//! Tables on the HTML page: of numbers, and of the same claims in several runs.

use ascertain_engine::claim::Judging;
use ascertain_engine::outcome::ClaimResult;
use ascertain_engine::recorded::RecordedRun;

use super::claim::{anchors, heading};
use super::mark::SharedAxis;
use super::markup::Html;
use super::picture::prefix;
use crate::clause::Clause;
use crate::figure::{Estimate, exact_percent};
use crate::grid::{self, Cell, ColumnKind, Grid};
use crate::standing::standing;
use crate::text::{NO_BREAK, counted};

/// The data of a table that the HTML template uses.
pub(super) struct TableView {
    /// The title of the table, which only screen readers use.
    pub label: String,
    /// For each column, the heading and the `class` attribute of its cells. The class is `word` or `prose`. A column of
    /// numbers has no class, because most columns have numbers.
    pub columns: Vec<(Html, &'static str)>,
    pub rows: Vec<Vec<Html>>,
}

impl TableView {
    /// Returns the data of a table; `None` if the table has no rows.
    pub fn new(label: &str, grid: &Grid) -> Option<TableView> {
        let class = |kind: ColumnKind| match kind {
            ColumnKind::Number => "",
            ColumnKind::Word => " class=\"word\"",
            ColumnKind::Prose | ColumnKind::Id => " class=\"prose\"",
        };
        let columns = grid.columns.iter().map(|column| (Html::breakable(&column.heading), class(column.kind)));
        let rows = grid.rows.iter().map(|row| row.iter().zip(&grid.columns).map(cell).collect());
        let table = TableView { label: label.into(), columns: columns.collect(), rows: rows.collect() };
        (!grid.is_empty()).then_some(table)
    }

    /// Returns whether the columns have headings.
    pub fn has_head(&self) -> bool {
        self.columns.iter().any(|(heading, _)| !heading.0.is_empty())
    }

    /// Returns the cells of a row, each with the `class` attribute of its column.
    pub fn cells<'a>(&'a self, row: &'a [Html]) -> impl Iterator<Item = (&'a Html, &'static str)> {
        row.iter().zip(self.columns.iter().map(|(_, class)| *class))
    }
}

fn cell((cell, column): (&Cell, &grid::Column)) -> Html {
    match cell {
        Cell::Text(words) if column.kind == ColumnKind::Prose => Html::breakable(words),
        Cell::Text(words) if column.kind == ColumnKind::Number => numbers(words),
        Cell::Text(words) => Html::text(words),
        Cell::Code(name) => Html(format!("<code>{}</code>", Html::breakable(name))),
    }
}

/// Converts a number or an interval to HTML. Lines may be broken only before "to", not within a number or before its
/// unit.
fn numbers(words: &str) -> Html {
    let ends = words.replace(' ', NO_BREAK).replace(&format!("{NO_BREAK}to{NO_BREAK}"), &format!(" to{NO_BREAK}"));
    let has_exponent =
        |end: &str| end.match_indices("e-").any(|(at, _)| end[..at].ends_with(|c: char| c.is_ascii_digit()));
    let end = |end: &str| match has_exponent(end) {
        // The `span` keeps browsers from breaking the line after the hyphen.
        true => format!("<span class=\"number\">{}</span>", Html::text(end)),
        false => Html::text(end).0,
    };
    Html(ends.split(' ').map(end).collect::<Vec<_>>().join(" "))
}

/// A table of claims for several runs, with a row for each claim and a column for each run.
pub(super) struct RunsTable<'a> {
    /// A sentence about the number of claims whose answers differ between the runs.
    pub summary: String,
    pub rows: Vec<RunsRow<'a>>,
    /// The axis on which the results of all runs are drawn.
    pub axis: SharedAxis,
}

impl RunsTable<'_> {
    pub fn differs(&self) -> bool {
        self.rows.iter().any(RunsRow::differs)
    }
}

pub(super) struct RunsRow<'a> {
    pub heading: Html,
    /// The result of the claim in each run; `None` for a run without the claim.
    pub cells: Vec<Option<RunsCell<'a>>>,
}

impl RunsRow<'_> {
    /// Returns whether the runs differ in this claim. They differ if a run lacks the claim, if the answers differ, or
    /// if the intervals don't overlap.
    pub fn differs(&self) -> bool {
        !self.is_answered_alike() || self.is_apart()
    }

    fn is_answered_alike(&self) -> bool {
        let answer = |cell: &Option<RunsCell>| cell.as_ref().map(|cell| grid::answer(cell.claim));
        self.cells.windows(2).all(|pair| answer(&pair[0]) == answer(&pair[1]))
    }

    fn is_apart(&self) -> bool {
        let standings = self.cells.iter().flatten().filter_map(|cell| cell.standing);
        let highest_low = standings.clone().map(|standing| standing.low).fold(f64::NEG_INFINITY, f64::max);
        let lowest_high = standings.map(|standing| standing.high).fold(f64::INFINITY, f64::min);
        highest_low > lowest_high
    }
}

pub(super) struct RunsCell<'a> {
    /// The anchor of the claim in the section of its run.
    pub anchor: String,
    pub claim: &'a ClaimResult,
    standing: Option<Estimate>,
}

/// Returns the table of the claims of all runs. Claims of different runs share a row if they have the same name and the
/// same question.
pub(super) fn runs_table<'a>(runs: &'a [RecordedRun]) -> RunsTable<'a> {
    let mut claims: Vec<&ClaimResult> = Vec::new();
    for claim in runs.iter().flat_map(|run| &run.outcome.claims) {
        if !claims.iter().any(|known| is_same(known, claim)) {
            claims.push(claim);
        }
    }
    let of_its_claims = |(index, run): (usize, &RecordedRun)| anchors(&run.outcome.claims, &prefix(index, runs.len()));
    let anchors: Vec<Vec<String>> = runs.iter().enumerate().map(of_its_claims).collect();
    let axis = SharedAxis::new(runs.iter().flat_map(|run| &run.outcome.claims));
    let of_run = |(run, anchors): (&'a RecordedRun, &Vec<String>), claim: &ClaimResult| {
        let place = run.outcome.claims.iter().position(|other| is_same(other, claim))?;
        let found = &run.outcome.claims[place];
        // An exact value has no interval. If trials are not alike, the interval is invalid.
        let has_interval = found.asked.judging != Judging::Exact && found.unlike.is_empty();
        let standing = standing(found).filter(|_| has_interval && found.trials > 0);
        Some(RunsCell { anchor: anchors[place].clone(), claim: found, standing })
    };
    let has_namesake = |claim: &ClaimResult| {
        let is_namesake = |other: &&&ClaimResult| has_same_name(other, claim) && heading(other) == heading(claim);
        claims.iter().filter(is_namesake).count() > 1
    };
    let row = |claim: &ClaimResult| RunsRow {
        heading: if has_namesake(claim) { heading_with_terms(claim) } else { heading(claim) },
        cells: runs.iter().zip(&anchors).map(|run| of_run(run, claim)).collect(),
    };
    let rows: Vec<RunsRow> = claims.iter().map(|claim| row(claim)).collect();
    let count = |is: &dyn Fn(&RunsRow) -> bool| rows.iter().filter(|row| is(row)).count();
    let (other, apart) =
        (count(&|row| !row.is_answered_alike()), count(&|row| row.is_answered_alike() && row.is_apart()));
    let claims = counted(rows.len(), "claim");
    let summary = match (other, apart) {
        (0, 0) => format!("{claims}: all runs have the same answers."),
        (other, 0) => format!("{claims}: the answers differ on {other}."),
        (other, apart) => {
            format!("{claims}: the answers differ on {other}; on {apart} more, the intervals do not overlap.")
        }
    };
    RunsTable { summary, rows, axis }
}

fn is_same(one: &ClaimResult, other: &ClaimResult) -> bool {
    has_same_name(one, other) && one.asked == other.asked && one.rate_claimed == other.rate_claimed
}

fn has_same_name(one: &ClaimResult, other: &ClaimResult) -> bool {
    one.id == other.id && one.experiment == other.experiment
}

/// Returns a heading with the tested condition of a claim, its rate and its margin. These terms distinguish the claim
/// from another one with the same name and statement.
fn heading_with_terms(claim: &ClaimResult) -> Html {
    let margin = claim.asked.margin.map(exact_percent);
    let asks = match (claim.asked.judging, margin) {
        (Judging::Order, Some(margin)) => format!("the same within {margin}"),
        (Judging::Order, None) => "no margin".to_string(),
        (judging, margin) => {
            let Clause { subject, complement } = Clause::new(&claim.asked);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_broken_before_to_only() {
        assert_eq!(numbers("6.959 to 7.1").0, "6.959 to\u{a0}7.1");
        assert_eq!(numbers("open: time-outs").0, "open:\u{a0}time-outs");
        assert_eq!(numbers("1.9 to over 3 ms").0, "1.9 to\u{a0}over\u{a0}3\u{a0}ms");
        let [low, high] = ["4.852e-15", "to\u{a0}5.1e-15"].map(|end| format!("<span class=\"number\">{end}</span>"));
        assert_eq!(numbers("4.852e-15 to 5.1e-15").0, format!("{low} {high}"));
    }
}
