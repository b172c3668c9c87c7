//! Tables and sentences for a terminal.
//!
//! Functions return text; whether it may have colour, and how wide it is, the caller decides. Names of
//! commands and variants are shown harmlessly: nothing in them reaches the terminal as an escape.

mod claims;
#[cfg(feature = "html")]
mod prose;

use std::io::IsTerminal;

use ascertain_engine::outcome::{ClaimResult, Outcome, Verdict};
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, Table, TableStyle, Width};
use unicode_width::UnicodeWidthStr;

use crate::counters;
use crate::figure::Figure;
use crate::finding;
use crate::grid::{self, Column, ColumnKind, Grid};
use crate::judgement::Judgement;
use crate::layout::TableLayout;
use crate::sentence::{self, marked};
use crate::text::{NO_BREAK, counted, parted, plain, shortened, unbroken_quantities};
pub use crate::text::{escape_controls, escape_controls_in_lines};
pub use claims::{Shown, checked};
#[cfg(feature = "html")]
pub use prose::prose;

/// How to draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether words like `holds` and `refuted` have colours. They say the same without.
    pub color: bool,
    /// The width in columns.
    pub width: usize,
}

impl Default for Style {
    /// 80 columns without colour.
    fn default() -> Self {
        Style { color: false, width: 80 }
    }
}

/// Narrower than this, tables are as wide as this all the same.
const LEAST_WIDTH: usize = 40;

/// A line below the headings, two spaces between columns, nothing else.
const PLAIN: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─'));
/// The same with an empty line between rows, for rows of several lines.
const SPACED: TableStyle = PLAIN.row_separator(LineStyle::none().fill(' '));

impl Style {
    /// For standard output: as wide as the terminal or `COLUMNS` says, else 100 columns, and with colour as asked,
    /// else on a terminal unless `NO_COLOR` is set.
    pub fn of_stdout(color: Option<bool>) -> Style {
        let no_color = || std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let color = color.unwrap_or_else(|| std::io::stdout().is_terminal() && !no_color());
        let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        let of_terminal = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
        Style { color, width: columns.or_else(of_terminal).unwrap_or(100).clamp(LEAST_WIDTH, 160) }
    }

    fn columns(self) -> u16 {
        self.width.clamp(LEAST_WIDTH, 1000) as u16
    }

    /// The table, each line ended; below it, which columns it has no room for.
    pub(crate) fn table(self, grid: &Grid) -> String {
        if grid.is_empty() {
            return String::new();
        }
        let (sheet, left_out) = self.narrowed(Sheet::of(grid));
        let left_out = match left_out.as_slice() {
            [] => String::new(),
            columns => self.paragraph(&format!("No room for {}: see the report, or --format csv.", columns.join(", "))),
        };
        self.drawn(&sheet) + &left_out
    }

    /// A table of many rows without the last of the columns that it can do without, as many as it takes for the others
    /// to stand side by side, and the headings of those.
    fn narrowed(self, sheet: Sheet) -> (Sheet, Vec<String>) {
        let fits = |sheet: &Sheet| sheet.least_width(COMFORTABLE_PROSE, 0) <= usize::from(self.columns());
        let can_go = |column: &SheetColumn| column.is_extra;
        let (mut narrow, mut left_out) = (sheet.clone(), Vec::new());
        while sheet.rows > FEW_ROWS && !fits(&narrow) && narrow.columns.last().is_some_and(can_go) {
            left_out.extend(narrow.columns.pop().map(|column| column.lines[0].clone()));
        }
        left_out.reverse();
        if fits(&narrow) { (narrow, left_out) } else { (sheet, Vec::new()) }
    }

    fn drawn(self, sheet: &Sheet) -> String {
        let Some(mut table) = self.layout(sheet) else { return self.records(sheet) };
        let lines: Vec<String> = table.lines().collect();
        let heading = lines.iter().take_while(|line| !line.starts_with('─')).count();
        let wraps = lines.len() > heading + 1 + sheet.rows;
        let lines = if wraps { table.load_style(SPACED).lines().collect() } else { lines };
        let is_word = sheet.columns.last().is_some_and(|column| column.kind == ColumnKind::Word);
        let word_width = lines.first().and_then(|heading| last_cell_width(heading)).filter(|_| is_word);
        let draw = |line: &String| match word_width {
            Some(width) if self.color => painted_end(line, width),
            _ => line.trim_end().to_string(),
        };
        lines.iter().map(|line| draw(line) + "\n").collect()
    }

    /// The columns side by side where they fit, else stacked: where that helps, so that a long path stays whole. `None`
    /// where words or numbers would be broken even so.
    fn layout(self, flat: &Sheet) -> Option<Table> {
        let width = usize::from(self.columns());
        let sheets = [flat.clone(), flat.stacked(1), flat.stacked(2)];
        let first = |sheets: &[Sheet], prose: usize, word: usize| {
            let found = sheets.iter().find(|sheet| sheet.least_width(prose, word) <= width)?;
            Some(self.table_of(found))
        };
        first(&sheets, COMFORTABLE_PROSE, width / 2)
            .or_else(|| first(&sheets[..2], COMFORTABLE_PROSE, 0))
            .or_else(|| first(&sheets[2..], LEAST_PROSE, LONGEST_WORD))
    }

    /// Each row as a paragraph for its first cell, and a line or more for each of the others, after its heading.
    fn records(self, sheet: &Sheet) -> String {
        let Some((first, others)) = sheet.columns.split_first() else { return String::new() };
        let headings = others.iter().map(|column| column.lines[0].width()).max().unwrap_or(0);
        let indent = 2 + headings + GAP;
        let columns = usize::from(self.columns()).saturating_sub(indent).max(LEAST_PROSE) as u16;
        let cell = |column: &SheetColumn, row: usize| {
            let text = wrapped(&column.lines[row], columns);
            let text = if column.kind == ColumnKind::Word { self.word(text.trim_end()) } else { text };
            let heading = &column.lines[0];
            let gap = " ".repeat(headings - heading.width() + GAP);
            let lines = text.trim_end().replace('\n', &format!("\n{}", " ".repeat(indent)));
            format!("  {heading}{gap}{lines}\n")
        };
        let record = |row: usize| {
            let said = others.iter().filter(|column| !column.lines[row].is_empty());
            let cells: String = said.map(|column| cell(column, row)).collect();
            self.paragraph(&first.lines[row]) + &cells
        };
        (1..=sheet.rows).map(record).collect::<Vec<_>>().join("\n")
    }

    fn table_of(self, sheet: &Sheet) -> Table {
        let mut table = Table::new();
        table.load_style(PLAIN).set_content_arrangement(ContentArrangement::Dynamic).set_width(self.columns());
        table.set_header(sheet.columns.iter().map(|column| &column.lines[0]));
        table.add_rows((1..=sheet.rows).map(|row| sheet.columns.iter().map(move |column| &column.lines[row])));
        let last = sheet.columns.len() - 1;
        let columns = sheet.columns.iter().map(|column| (column.kind, column.whole));
        for (index, (column, (kind, whole))) in table.column_iter_mut().zip(columns).enumerate() {
            column.set_padding((0, if index == last { 0 } else { GAP as u16 }));
            if kind == ColumnKind::Number {
                column.set_cell_alignment(CellAlignment::Right);
            }
            let constraint = match kind {
                ColumnKind::Prose if whole == 0 => None,
                ColumnKind::Prose => Some(ColumnConstraint::LowerBoundary(Width::Fixed((whole + GAP) as u16))),
                _ => Some(ColumnConstraint::ContentWidth),
            };
            if let Some(constraint) = constraint {
                column.set_constraint(constraint);
            }
        }
        table
    }

    /// The text wrapped at spaces, each line ended. A word that is longer than the line stays whole.
    pub fn paragraph(self, text: &str) -> String {
        wrapped(text, self.columns())
    }

    /// The same as one of several: a little to the right, and what is wrapped a little more.
    pub fn item(self, text: &str) -> String {
        let lines = wrapped(text, self.columns() - 4);
        format!("  {}\n", lines.trim_end().replace('\n', "\n    "))
    }

    /// A word in the colour that it has, or plain.
    pub(crate) fn word(self, word: &str) -> String {
        match color_of(word).filter(|_| self.color) {
            Some(code) => format!("\x1b[{code}m{word}\x1b[0m"),
            None => word.to_string(),
        }
    }

    /// A paragraph whose first word, up to the colon, is a verdict.
    pub(crate) fn sentence(self, text: &str) -> String {
        let wrapped = self.paragraph(text);
        match wrapped.split_once(':') {
            Some((word, rest)) => format!("{}:{rest}", self.word(word)),
            None => wrapped,
        }
    }
}

/// The text in lines of at most so many columns. A word that is longer stays whole, since an id or a path that is
/// broken can't be copied; the terminal shows what is left of it on its next line.
fn wrapped(text: &str, columns: u16) -> String {
    let text = unbroken_quantities(&escape_controls(text));
    let mut lines = vec![String::new()];
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        match lines.last_mut().filter(|line| line.is_empty() || line.width() + 1 + word.width() <= usize::from(columns))
        {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) => *line += &format!(" {word}"),
            None => lines.push(word.to_string()),
        }
    }
    lines.iter().map(|line| line.replace(NO_BREAK, " ") + "\n").collect()
}

/// Space between columns.
const GAP: usize = 2;
/// Prose wrapped narrower than this calls for stacking.
const COMFORTABLE_PROSE: usize = 24;
/// And narrower than this for rows that are records.
const LEAST_PROSE: usize = 12;
/// Longer words than that are broken sooner.
const LONGEST_WORD: usize = 30;
/// In so few rows nothing is left out: where they don't fit side by side, each has lines of its own.
const FEW_ROWS: usize = 8;

/// A grid's text by column, ready to be drawn: the heading first, then each row.
#[derive(Clone)]
struct Sheet {
    columns: Vec<SheetColumn>,
    rows: usize,
}

#[derive(Clone)]
struct SheetColumn {
    lines: Vec<String>,
    kind: ColumnKind,
    stacks: usize,
    is_extra: bool,
    /// The width of the longest text that must not be broken, among others that may be.
    whole: usize,
}

impl Sheet {
    fn of(grid: &Grid) -> Sheet {
        let column = |(index, column): (usize, &Column)| {
            let cells = grid.rows.iter().map(|row| escape_controls(row[index].text()));
            let lines: Vec<String> = std::iter::once(escape_controls(&column.heading)).chain(cells).collect();
            let whole = if column.kind == ColumnKind::Id { lines.iter().map(|line| line.width()).max() } else { None };
            let Column { kind, stacks, is_extra, .. } = *column;
            SheetColumn { lines, kind, stacks, is_extra, whole: whole.unwrap_or(0) }
        };
        Sheet { columns: grid.columns.iter().enumerate().map(column).collect(), rows: grid.rows.len() }
    }

    /// The columns that stack, up to this level, put below the ones before them.
    fn stacked(&self, level: usize) -> Sheet {
        let mut columns: Vec<SheetColumn> = Vec::new();
        for column in &self.columns {
            match columns.last_mut().filter(|_| (1..=level).contains(&column.stacks)) {
                Some(above) => {
                    above.whole = above.whole.max(column.whole);
                    for (above, below) in above.lines.iter_mut().zip(&column.lines).filter(|(_, b)| !b.is_empty()) {
                        *above += &format!("\n{below}");
                    }
                }
                None => columns.push(column.clone()),
            }
        }
        Sheet { columns, rows: self.rows }
    }

    /// The width below which numbers or words up to that length would be broken, or prose be narrower than said.
    fn least_width(&self, prose: usize, word: usize) -> usize {
        let longest = |texts: &mut dyn Iterator<Item = &str>| texts.map(|text| text.chars().count()).max().unwrap_or(0);
        let needed = |column: &SheetColumn| {
            let content = longest(&mut column.lines.iter().flat_map(|cell| cell.lines()));
            let words = longest(&mut column.lines.iter().flat_map(|cell| cell.split_whitespace()));
            let most = if column.kind == ColumnKind::Prose { prose.max(words.min(word)) } else { usize::MAX };
            content.min(most).max(column.whole)
        };
        self.columns.iter().map(needed).sum::<usize>() + GAP * (self.columns.len() - 1)
    }
}

/// The last column's width in bytes: all of it is ASCII, from its heading to the end of each line.
fn last_cell_width(heading: &str) -> Option<usize> {
    let word = heading.trim_end().rsplit(' ').next()?;
    Some(heading.len() - heading.rfind(word)?)
}

/// The line with the word at its end, which is in the last column's cell, in its colour.
fn painted_end(line: &str, width: usize) -> String {
    let cell = line.len().checked_sub(width).and_then(|start| line.get(start..));
    match cell.map(str::trim_end).filter(|word| color_of(word).is_some()) {
        Some(word) => {
            let style = Style { color: true, ..Style::default() };
            format!("{}{}", &line[..line.len() - width], style.word(word))
        }
        None => line.trim_end().to_string(),
    }
}

/// Blue and orange would be told apart by everybody, but terminals have no orange: blue and red are.
fn color_of(word: &str) -> Option<&'static str> {
    match word.to_ascii_lowercase().as_str() {
        "holds" | "faster" | "less" | "fewer" => Some("1;34"),
        "refuted" | "slower" | "more" | "failed" => Some("1;31"),
        "undecided" => Some("33"),
        "unavailable" | "deferred" | "reference" => Some("2"),
        _ => None,
    }
}

/// The table that `check` ends with: what is claimed, by whom, the source's figure, the figure here with
/// its interval, the verdict; and under it how many claims came to which verdict.
pub fn check_table(outcome: &Outcome, style: &Style) -> String {
    let table = style.table(&grid::claims(outcome));
    if table.is_empty() {
        "No claims.\n".into()
    } else {
        format!("{table}\n{}", style.paragraph(&tally(&outcome.claims)))
    }
}

/// "3 claims: 2 hold, 1 refuted."
fn tally(claims: &[ClaimResult]) -> String {
    let said = Verdict::ALL.into_iter().filter_map(|verdict| {
        let count = claims.iter().filter(|claim| claim.verdict == verdict).count();
        (count > 0).then(|| format!("{count} {}", grid::of_several(verdict)))
    });
    format!("{}: {}.", counted(claims.len(), "claim"), said.collect::<Vec<_>>().join(", "))
}

/// The table of `compare`: for each command, or function, its median time with interval, least and greatest, user
/// and system time, peak memory or throughput, how many trials, how many times as fast as the reference it is, with
/// interval, and the answer.
pub fn compare_table(outcome: &Outcome, layout: &TableLayout, style: &Style) -> String {
    style.table(&grid::compared(outcome, layout, "Interval"))
}

/// What was counted of each command beside that, how it compares with the reference's, and what could not be counted;
/// empty where nothing was asked for.
pub fn counters_table(outcome: &Outcome, layout: &TableLayout, style: &Style) -> String {
    let notes: String = counters::notes(outcome).iter().map(|note| style.paragraph(&plain(note))).collect();
    parted([style.table(&counters::grid(outcome, layout)), notes])
}

/// The tables of `run`: for each experiment, what all of its arms share, and a row for each arm; then what was
/// asked for and not measured, by reason.
pub fn points_table(outcome: &Outcome, style: &Style) -> String {
    let tables = grid::points(outcome);
    let tables: Vec<String> =
        tables.iter().map(|(heading, grid)| format!("{}{}", style.paragraph(heading), style.table(grid))).collect();
    parted(tables.into_iter().chain([left_out(outcome, style)]))
}

/// What was asked for and not measured to the end, a paragraph a reason.
pub fn left_out(outcome: &Outcome, style: &Style) -> String {
    sentence::left_out(outcome).iter().map(|sentence| style.paragraph(sentence)).collect()
}

/// Each claim's verdict as a sentence, and what speaks against its trials being alike. With more than one claim each
/// has its name before it, unless it says itself which commands it is about.
pub fn sentences(outcome: &Outcome, style: &Style) -> String {
    let is_named = |claim: &ClaimResult| outcome.claims.len() > 1 && claim.decision.is_none();
    let paragraphs = outcome.claims.iter().map(|claim| {
        let name = if is_named(claim) { style.paragraph(&claim.id) } else { String::new() };
        let warning = sentence::warning(claim).map_or_else(String::new, |warning| style.paragraph(&warning));
        name + &brief(&marked::claim(claim), style) + &warning
    });
    paragraphs.collect::<Vec<_>>().join("\n")
}

/// What the answers rest on, a paragraph each; empty where there is none.
pub fn explained(outcome: &Outcome, style: &Style) -> String {
    let said = sentence::explained(outcome);
    let paragraphs: String = said.iter().map(|sentence| style.item(sentence)).collect();
    if said.is_empty() { paragraphs } else { format!("What this rests on:\n{paragraphs}") }
}

/// The sentence, with long names shortened where it takes more than two lines.
fn brief(sentence: &str, style: &Style) -> String {
    let whole = style.sentence(&plain(sentence));
    if whole.lines().count() > 2 { style.sentence(&plain(&shortened(sentence))) } else { whole }
}

/// What `slo` prints: the verdict as a sentence, and what was measured of the one command that there is.
pub fn slo(outcome: &Outcome, style: &Style) -> String {
    let tables = grid::points(outcome).into_iter().map(|(_, grid)| style.table(&grid));
    parted([sentences(outcome, style)].into_iter().chain(tables).chain([left_out(outcome, style)]))
}

/// What threatens a run's results, in a line or two; empty when nothing does. What follows from each, the report
/// says.
pub fn threats(outcome: &Outcome, style: &Style) -> String {
    let facts: Vec<String> = outcome.threats.iter().map(finding::threat_fact).collect();
    if facts.is_empty() { String::new() } else { style.paragraph(&format!("Careful: {}.", facts.join("; "))) }
}

/// What `judge` prints: the verdict as a sentence, and the intervals.
pub fn judgement(judgement: &Judgement, style: &Style) -> String {
    let Judgement { rate, rate_low, rate_high, credible_low, credible_high, rate_claimed, .. } = judgement;
    let share = Figure::of_share(*rate, *rate_low, *rate_high, *rate_claimed);
    let credible = Figure::of_share(*rate, *credible_low, *credible_high, *rate_claimed);
    let mut text = style.sentence(&judgement.sentence());
    if rate.is_some() {
        text += &style.paragraph(&format!("Rate: {share}, {}.", judgement.of_interval()));
    }
    if credible_low.is_some() || credible_high.is_some() {
        let note = "equal-tailed, outside of the error budget";
        text += &style.paragraph(&format!("Credible interval: {} ({note}).", credible.range));
    }
    text
}
