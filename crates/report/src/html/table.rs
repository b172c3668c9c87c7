//! Tables.

use crate::grid::{self, Cell, Grid, Kind};

use super::markup::Html;
use crate::text::NO_BREAK;

/// A table as the template draws it.
pub(super) struct Table {
    /// What it shows, for those who can't see where it stands.
    pub label: String,
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Html>>,
}

pub(super) struct Column {
    pub heading: Html,
    /// The attribute with the class of its cells, `word` or `prose`; numbers, of which most are, have none.
    pub class: &'static str,
}

impl Table {
    /// `None` where there is nothing to show.
    pub fn of(label: &str, grid: &Grid) -> Option<Table> {
        let columns = grid.columns.iter().map(|column| Column {
            heading: Html::breakable(&column.heading),
            class: match column.kind {
                Kind::Number => "",
                Kind::Word => " class=\"word\"",
                Kind::Prose => " class=\"prose\"",
            },
        });
        let rows = grid.rows.iter().map(|row| row.iter().zip(&grid.columns).map(cell).collect());
        let table = Table { label: label.into(), columns: columns.collect(), rows: rows.collect() };
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
        Cell::Text(words) if column.kind == Kind::Prose => Html::breakable(words),
        Cell::Text(words) if column.kind == Kind::Number => numbers(words),
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
