//! Markdown with tables in GitHub's syntax.

use ascertain_engine::claim::Judging;
use ascertain_engine::finding::Threat;
use ascertain_engine::outcome::Outcome;

use crate::counters;
use crate::finding;
use crate::grid::{self, Cell, ColumnKind, Grid};
use crate::options::TableLayout;
use crate::sentence::{left_out, marked, undiagnosed, undiagnosed_claims};
use crate::tails;
use crate::text::{escape_controls, marked_up, parted, quoted, with_names};

/// Returns the outcome of a run: the table of compared commands, or the table of claims and a table for each
/// experiment. Sentences about results that are not in the tables follow, then the warnings.
pub fn outcome(outcome: &Outcome, layout: &TableLayout) -> String {
    let mut parts = Vec::new();
    let (texts, shared) = marked::claims(&outcome.claims);
    let sentences = texts.into_iter().chain(shared).map(|text| paragraph(&text));
    let sentences = sentences.filter(|_| has_sentences(outcome));
    if compares(outcome) {
        parts.extend(grid::scan::best_levels(outcome, layout).iter().map(|text| paragraph(text)));
        parts.push(table(&grid::compared(outcome, layout)));
        parts.extend(sentences);
        parts.extend(tails::sentences(outcome).iter().map(|sentence| paragraph(sentence)));
        parts.push(table(&counters::grid(outcome, layout)));
        parts.extend(counters::notes(outcome).iter().map(|note| paragraph(note)));
    } else {
        parts.push(table(&grid::claims(outcome)));
        parts.extend(sentences);
        for (heading, grid) in grid::points(outcome).into_iter().chain(grid::by_key(outcome)) {
            parts.push(format!("**{}**\n\n{}", text(&heading), table(&grid)));
        }
    }
    let warnings = outcome.claims.iter().filter_map(|claim| Some((&claim.id, marked::warning(claim)?)));
    parts.extend(warnings.map(|(id, warning)| paragraph(&format!("{}: {warning}", quoted(id)))));
    let few = undiagnosed(&outcome.claims).into_iter().chain(undiagnosed_claims(&outcome.claims));
    parts.extend(few.map(|sentence| paragraph(&sentence)));
    parts.extend(left_out::unsaid(outcome).iter().map(|sentence| paragraph(sentence)));
    let careful = |threat: &Threat| paragraph(&with_names(&format!("Careful: {}", finding::threat_sentence(threat))));
    parts.extend(outcome.threats.iter().map(careful));
    parted(parts)
}

fn compares(outcome: &Outcome) -> bool {
    outcome.claims.iter().any(|claim| claim.asked.judging == Judging::Order)
}

/// Returns whether the output has a sentence for each claim. Comparisons have sentences, and so does a single claim.
pub(crate) fn has_sentences(outcome: &Outcome) -> bool {
    compares(outcome) || outcome.claims.len() == 1
}

/// Returns a sentence as a paragraph. Its names, which are marked as in [`quoted`], become code.
pub(crate) fn paragraph(sentence: &str) -> String {
    marked_up(sentence, code, text) + "\n"
}

pub(crate) fn table(grid: &Grid) -> String {
    if grid.is_empty() {
        return String::new();
    }
    let headings = grid.columns.iter().map(|column| text(&column.heading));
    let rules = grid.columns.iter().map(|column| match column.kind {
        ColumnKind::Number => "---:".to_string(),
        ColumnKind::Prose | ColumnKind::Id | ColumnKind::Word => ":---".to_string(),
    });
    let mut lines = row(headings) + &row(rules);
    for cells in &grid.rows {
        lines += &row(cells.iter().map(cell));
    }
    lines
}

/// Returns a table row of these cells, which must already be Markdown.
pub(crate) fn row(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

fn cell(cell: &Cell) -> String {
    match cell {
        Cell::Text(words) => text(words),
        Cell::Code(name) => code_cell(name),
    }
}

/// Escapes text so that GitHub displays it unchanged: markup of Markdown and HTML gets a backslash or becomes an
/// entity.
fn text(words: &str) -> String {
    let mut shown = String::new();
    for c in escape_controls(words).chars() {
        match c {
            '&' => shown.push_str("&amp;"),
            '<' => shown.push_str("&lt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' | '$' => shown.extend(['\\', c]),
            _ => shown.push(c),
        }
    }
    shown
}

/// Returns a code span that displays the name unchanged. Its fence is longer than each sequence of backticks in the
/// name.
fn code(name: &str) -> String {
    let name = escape_controls(name);
    if name.is_empty() {
        return String::new();
    }
    let longest = name.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let pad = if name.starts_with('`') || name.ends_with('`') { " " } else { "" };
    format!("{fence}{pad}{name}{pad}{fence}")
}

/// Returns a code span for a table cell. GitHub splits a row at vertical bars even inside code, so a bar needs a
/// backslash. If the name itself has a backslash before a bar, no code span can show both. Such a name is put into a
/// `<code>` element instead.
pub(crate) fn code_cell(name: &str) -> String {
    match escape_controls(name).contains("\\|") {
        true => format!("<code>{}</code>", text(name)),
        false => code(name).replace('|', "\\|"),
    }
}
