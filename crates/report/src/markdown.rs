//! Markdown tables, as GitHub draws them.

use ascertain_engine::claim::Judging;
use ascertain_engine::finding::Threat;
use ascertain_engine::outcome::Outcome;

use crate::counters;
use crate::finding;
use crate::grid::{self, Cell, ColumnKind, Grid};
use crate::judgement::Judgement;
use crate::layout::TableLayout;
use crate::sentence::{left_out, marked, undiagnosed, undiagnosed_claims};
use crate::text::{NAME_END, NAME_START, escape_controls, parted, quoted, with_names};

/// A run: the commands that were compared, or else the claims and the points of each experiment; where it has no room
/// in a table, the sentence of each claim; then what to be careful about.
pub fn outcome(outcome: &Outcome, layout: &TableLayout) -> String {
    let mut parts = Vec::new();
    let (texts, shared) = marked::claims(&outcome.claims);
    let sentences = texts.into_iter().chain(shared).map(|text| paragraph(&text));
    let sentences = sentences.filter(|_| has_sentences(outcome));
    if compares(outcome) {
        parts.extend(grid::scan::best_levels(outcome, layout).iter().map(|text| paragraph(text)));
        parts.push(table(&grid::compared(outcome, layout, "Interval")));
        parts.extend(sentences);
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

/// Whether each claim has its sentence there: those of a comparison, and one that is alone.
pub(crate) fn has_sentences(outcome: &Outcome) -> bool {
    compares(outcome) || outcome.claims.len() == 1
}

/// What `ascertain judge --format markdown` prints.
pub fn judgement(judgement: &Judgement) -> String {
    paragraph(&judgement.sentence())
}

/// A sentence whose names are marked, the names as code.
pub(crate) fn paragraph(sentence: &str) -> String {
    let pieces = sentence.split(NAME_START).enumerate().map(|(index, piece)| match piece.split_once(NAME_END) {
        Some((name, rest)) if index > 0 => code(name) + &text(rest),
        _ => text(piece),
    });
    pieces.collect::<String>() + "\n"
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

/// A row of cells that are Markdown already.
pub(crate) fn row(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

fn cell(cell: &Cell) -> String {
    match cell {
        Cell::Text(words) => text(words),
        Cell::Code(name) => code_cell(name),
    }
}

/// Text that shows as it is: what Markdown or HTML would take for markup has a backslash or is an entity.
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

/// A code span that shows the name as it is: its fence is longer than any run of backticks in it.
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

/// The same in a table. Tables are cut at bars before code is looked for, so that a bar needs a backslash
/// even there; one that follows a backslash can't be had in a code span at all, only between tags.
pub(crate) fn code_cell(name: &str) -> String {
    match escape_controls(name).contains("\\|") {
        true => format!("<code>{}</code>", text(name)),
        false => code(name).replace('|', "\\|"),
    }
}
