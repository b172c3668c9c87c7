//! Tables: of figures, and of the same claims in several runs.

use ascertain_engine::claim::Judging;
use ascertain_engine::outcome::ClaimResult;
use ascertain_engine::recorded::RecordedRun;

use super::claim::{anchors, heading, here};
use super::mark::SharedAxis;
use super::markup::Html;
use super::picture::prefix;
use crate::clause::Clause;
use crate::figure::exact_percent;
use crate::grid::{self, Cell, ColumnKind, Grid};
use crate::standing::Standing;
use crate::text::{NO_BREAK, counted};

/// A table as the template draws it.
pub(super) struct TableView {
    /// What it shows, for those who can't see where it stands.
    pub label: String,
    pub columns: Vec<ColumnView>,
    pub rows: Vec<Vec<Html>>,
}

pub(super) struct ColumnView {
    pub heading: Html,
    /// The attribute with the class of its cells, `word` or `prose`; numbers, of which most are, have none.
    pub class: &'static str,
}

impl TableView {
    /// `None` where there is nothing to show.
    pub fn of(label: &str, grid: &Grid) -> Option<TableView> {
        let columns = grid.columns.iter().map(|column| ColumnView {
            heading: Html::breakable(&column.heading),
            class: match column.kind {
                ColumnKind::Number => "",
                ColumnKind::Word => " class=\"word\"",
                ColumnKind::Prose | ColumnKind::Id => " class=\"prose\"",
            },
        });
        let rows = grid.rows.iter().map(|row| row.iter().zip(&grid.columns).map(cell).collect());
        let table = TableView { label: label.into(), columns: columns.collect(), rows: rows.collect() };
        (!grid.is_empty()).then_some(table)
    }

    /// Whether its columns have names.
    pub fn has_head(&self) -> bool {
        self.columns.iter().any(|column| !column.heading.0.is_empty())
    }

    /// A row's cells, each with its column's attribute.
    pub fn cells<'a>(&'a self, row: &'a [Html]) -> impl Iterator<Item = (&'a Html, &'static str)> {
        row.iter().zip(self.columns.iter().map(|column| column.class))
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

/// A number or an interval, which may be broken in two lines, before its "to": no number from its unit, nor within.
fn numbers(words: &str) -> Html {
    let ends = words.replace(' ', NO_BREAK).replace(&format!("{NO_BREAK}to{NO_BREAK}"), &format!(" to{NO_BREAK}"));
    let has_exponent =
        |end: &str| end.match_indices("e-").any(|(at, _)| end[..at].ends_with(|c: char| c.is_ascii_digit()));
    let end = |end: &str| match has_exponent(end) {
        // Browsers break lines behind the hyphen.
        true => format!("<span class=\"number\">{}</span>", Html::text(end)),
        false => Html::text(end).0,
    };
    Html(ends.split(' ').map(end).collect::<Vec<_>>().join(" "))
}

/// A row for each claim, a column for each run.
pub(super) struct Aligned {
    /// How many of them came to another verdict.
    pub summary: String,
    /// The runs' names.
    pub runs: Vec<String>,
    pub rows: Vec<AlignedRow>,
}

impl Aligned {
    pub fn differs(&self) -> bool {
        self.rows.iter().any(AlignedRow::differs)
    }
}

pub(super) struct AlignedRow {
    pub heading: Html,
    /// What came of it in each run; `None` where the run did not ask.
    pub cells: Vec<Option<AlignedCell>>,
}

impl AlignedRow {
    /// Whether the runs did not come to the same: another answer in one, none asked, or intervals that don't meet.
    pub fn differs(&self) -> bool {
        !self.is_answered_alike() || self.is_apart()
    }

    fn is_answered_alike(&self) -> bool {
        let answer = |cell: &Option<AlignedCell>| cell.as_ref().map(|cell| cell.answer);
        self.cells.windows(2).all(|pair| answer(&pair[0]) == answer(&pair[1]))
    }

    fn is_apart(&self) -> bool {
        let standings = self.cells.iter().flatten().filter_map(|cell| cell.standing);
        let highest_low = standings.clone().map(|standing| standing.low).fold(f64::NEG_INFINITY, f64::max);
        let lowest_high = standings.map(|standing| standing.high).fold(f64::INFINITY, f64::min);
        highest_low > lowest_high
    }
}

pub(super) struct AlignedCell {
    /// Where the claim is in its run's part of the page.
    pub anchor: String,
    pub verdict: &'static str,
    pub answer: &'static str,
    pub figure: String,
    /// Where it stands on the axis that all runs share.
    pub mark: Html,
    standing: Option<Standing>,
}

/// Claims are the same when they have the same name and ask the same.
pub(super) fn aligned(runs: &[RecordedRun]) -> Aligned {
    let mut claims: Vec<&ClaimResult> = Vec::new();
    for claim in runs.iter().flat_map(|run| &run.outcome.claims) {
        if !claims.iter().any(|known| is_same(known, claim)) {
            claims.push(claim);
        }
    }
    let of_its_claims = |(index, run): (usize, &RecordedRun)| anchors(&run.outcome.claims, &prefix(index, runs.len()));
    let anchors: Vec<Vec<String>> = runs.iter().enumerate().map(of_its_claims).collect();
    let axis = SharedAxis::of(runs.iter().flat_map(|run| &run.outcome.claims));
    let of_run = |(run, anchors): (&RecordedRun, &Vec<String>), claim: &ClaimResult| {
        let place = run.outcome.claims.iter().position(|other| is_same(other, claim))?;
        let found = &run.outcome.claims[place];
        let (figure, range) = here(found);
        let figure = if range.is_empty() { figure } else { format!("{figure} ({range})") };
        let (verdict, answer) = (grid::class(found), grid::answer(found));
        // What was checked once has no interval; lost intervals bound nothing.
        let has_interval = found.asked.judging != Judging::Exact && found.unlike.is_empty();
        let standing = Standing::of(found).filter(|_| has_interval && found.trials > 0);
        let anchor = anchors[place].clone();
        Some(AlignedCell { anchor, verdict, answer, figure, mark: axis.mark(found), standing })
    };
    let has_namesake = |claim: &ClaimResult| {
        let is_namesake = |other: &&&ClaimResult| has_same_name(other, claim) && heading(other) == heading(claim);
        claims.iter().filter(is_namesake).count() > 1
    };
    let row = |claim: &ClaimResult| AlignedRow {
        heading: if has_namesake(claim) { told_apart(claim) } else { heading(claim) },
        cells: runs.iter().zip(&anchors).map(|run| of_run(run, claim)).collect(),
    };
    let rows: Vec<AlignedRow> = claims.iter().map(|claim| row(claim)).collect();
    let count = |is: &dyn Fn(&AlignedRow) -> bool| rows.iter().filter(|row| is(row)).count();
    let (other, apart) =
        (count(&|row| !row.is_answered_alike()), count(&|row| row.is_answered_alike() && row.is_apart()));
    let claims = counted(rows.len(), "claim");
    let summary = match (other, apart) {
        (0, 0) => format!("{claims}: the runs came to the same on each."),
        (other, 0) => format!("{claims}: the answers are not the same on {other}."),
        (other, apart) => {
            format!("{claims}: the answers are not the same on {other}; on {apart} more the intervals don’t meet.")
        }
    };
    Aligned { summary, runs: runs.iter().map(|run| run.header.run_id.clone()).collect(), rows }
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
