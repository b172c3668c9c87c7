//! Tables: columns side by side where they fit, else stacked, else a paragraph a row.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::{Style, escape_controls, wrapped};
use crate::grid::{Column, ColumnKind, Grid};

impl Style {
    /// The table, each line ended; below it, the columns that the terminal has no room for.
    pub(crate) fn table(self, grid: &Grid) -> String {
        if grid.is_empty() {
            return String::new();
        }
        let (sheet, left_out) = self.narrowed(Sheet::of(grid));
        let left_out = match left_out.as_slice() {
            [] => String::new(),
            columns => self.paragraph(&format!(
                "Left out, because the terminal is too narrow: {}. The report and --format csv have all columns.",
                columns.join(", ")
            )),
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

    /// A line below the headings, two spaces between columns, and an empty line between rows of several.
    fn drawn(self, sheet: &Sheet) -> String {
        let Some(sheet) = self.layout(sheet) else { return self.records(sheet) };
        let widths = self.widths(&sheet);
        let mut rows: Vec<Vec<String>> = (0..=sheet.rows).map(|row| self.row(&sheet, row, &widths)).collect();
        let gap = if rows[1..].iter().any(|lines| lines.len() > 1) { "\n" } else { "" };
        rows[0].push("─".repeat(widths.iter().sum::<usize>() + GAP * (widths.len() - 1)));
        let rows: Vec<String> = rows.iter().map(|lines| lines.join("\n") + "\n").collect();
        rows[0].clone() + &rows[1..].join(gap)
    }

    /// The lines of a row, of which the first is that of the headings.
    fn row(self, sheet: &Sheet, row: usize, widths: &[usize]) -> Vec<String> {
        let broken = |(column, width): (&SheetColumn, &usize)| broken(&column.lines[row], *width);
        let cells: Vec<Vec<String>> = sheet.columns.iter().zip(widths).map(broken).collect();
        let line = |index: usize| {
            let mut line = String::new();
            for ((column, width), cell) in sheet.columns.iter().zip(widths).zip(&cells) {
                let text = cell.get(index).map_or("", String::as_str);
                let room = " ".repeat(width.saturating_sub(text.width()));
                line += &match column.kind {
                    ColumnKind::Number => room + text,
                    ColumnKind::Word => self.word(text) + &room,
                    ColumnKind::Prose | ColumnKind::Id => text.to_owned() + &room,
                };
                line += &" ".repeat(GAP);
            }
            line.trim_end().to_owned()
        };
        (0..cells.iter().map(Vec::len).max().unwrap_or(0)).map(line).collect()
    }

    /// The columns' widths. Prose that needs more than its part of what the others leave is wrapped there.
    fn widths(self, sheet: &Sheet) -> Vec<usize> {
        /// So little less than its part leaves nothing to the others.
        const LEAST_LEFT: usize = 3;
        let wrapped = |column: &SheetColumn, part: usize| {
            let lines: Vec<String> = column.lines.iter().flat_map(|cell| broken(cell, part)).collect();
            widest(lines.iter().map(String::as_str))
        };
        let is_prose = |column: &SheetColumn| column.kind == ColumnKind::Prose;
        let mut widths: Vec<_> = sheet.columns.iter().map(|c| (!is_prose(c)).then(|| c.width())).collect();
        // What is left for those that have no width yet, and how many these are.
        let left = |widths: &[Option<usize>]| {
            let taken = widths.iter().flatten().sum::<usize>() + GAP * (widths.len() - 1);
            (usize::from(self.columns()).saturating_sub(taken), widths.iter().filter(|width| width.is_none()).count())
        };
        /// The width that a column needs of what would be its part, if that settles it.
        type Settled<'a> = &'a dyn Fn(&SheetColumn, usize) -> Option<usize>;
        let settle: [Settled<'_>; 3] = [
            &|column, part| (column.whole > 0 && column.whole + GAP > part).then_some(column.whole),
            &|column, part| Some(column.width()).filter(|width| *width <= part),
            &|column, part| Some(wrapped(column, part)).filter(|width| width + LEAST_LEFT <= part),
        ];
        for settle in settle {
            while let (room, open @ 1..) = left(&widths)
                && let Some((index, width)) = sheet.columns.iter().enumerate().find_map(|(index, column)| {
                    let width = settle(column, room / open).filter(|_| widths[index].is_none())?;
                    Some((index, width))
                })
            {
                widths[index] = Some(width);
            }
        }
        let (room, open) = left(&widths);
        let mut parts = (0..open).map(|index| (room.max(open) + open - 1 - index) / open);
        widths.into_iter().map(|width| width.or_else(|| parts.next()).unwrap_or(0)).collect()
    }

    /// The columns side by side where they fit, else stacked: where that helps, so that a long path stays whole. `None`
    /// where words or numbers would be broken even so.
    fn layout(self, flat: &Sheet) -> Option<Sheet> {
        let width = usize::from(self.columns());
        let sheets = [flat.clone(), flat.stacked(1), flat.stacked(2)];
        let first = |sheets: &[Sheet], prose: usize, word: usize| {
            sheets.iter().find(|sheet| sheet.least_width(prose, word) <= width).cloned()
        };
        first(&sheets, COMFORTABLE_PROSE, width / 2)
            .or_else(|| first(&sheets[..2], COMFORTABLE_PROSE, 0))
            .or_else(|| first(&sheets[2..], LEAST_PROSE, LONGEST_WORD))
    }

    /// Each row as a paragraph for its first cell, and a line or more for each of the others, after its heading. A number
    /// names nothing by itself.
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
            let heading = if first.kind == ColumnKind::Number { first.lines[0].clone() + " " } else { String::new() };
            self.paragraph(&(heading + &first.lines[row])) + &cells
        };
        (1..=sheet.rows).map(record).collect::<Vec<_>>().join("\n")
    }
}

/// The lines of a cell in so many columns: broken at spaces, and in a word that is longer than all of them.
fn broken(cell: &str, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for text in cell.split('\n') {
        let mut line = String::new();
        let words = if text.width() <= columns { vec![text] } else { text.split(' ').collect() };
        for mut word in words {
            loop {
                let space = if line.is_empty() { "" } else { " " };
                let taken = line.width() + space.len();
                if taken + word.width() <= columns {
                    line += space;
                    line += word;
                    break;
                }
                let room = columns.saturating_sub(taken);
                if word.width() > columns && (line.is_empty() || room > LEAST_ROOM) {
                    let (head, tail) = word.split_at(end_of(word, room));
                    line += space;
                    line += head;
                    word = tail;
                }
                lines.push(std::mem::take(&mut line));
            }
        }
        lines.push(line);
    }
    lines
}

/// Where the part of the text ends that has room in so many columns: behind one character at the least.
fn end_of(text: &str, columns: usize) -> usize {
    let mut width = 0;
    let mut beyond = text.char_indices().filter(|(_, character)| {
        width += character.width().unwrap_or(0);
        width > columns
    });
    beyond.find(|(index, _)| *index > 0).map_or(text.len(), |(index, _)| index)
}

/// Space between columns.
const GAP: usize = 2;
/// Prose wrapped narrower than this calls for stacking.
const COMFORTABLE_PROSE: usize = 24;
/// And narrower than this for rows that are records.
const LEAST_PROSE: usize = 12;
/// Longer words than that are broken sooner.
const LONGEST_WORD: usize = 30;
/// With less room than that, a word that has to be broken begins a line of its own.
const LEAST_ROOM: usize = 2;
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

impl SheetColumn {
    fn width(&self) -> usize {
        widest(self.lines.iter().flat_map(|cell| cell.lines()))
    }
}

/// How many columns the widest of these takes.
fn widest<'a>(texts: impl Iterator<Item = &'a str>) -> usize {
    texts.map(UnicodeWidthStr::width).max().unwrap_or(0)
}

impl Sheet {
    fn of(grid: &Grid) -> Sheet {
        let column = |(index, column): (usize, &Column)| {
            let cells = grid.rows.iter().map(|row| escape_controls(row[index].text()));
            let lines: Vec<String> = std::iter::once(escape_controls(&column.heading)).chain(cells).collect();
            let whole = if column.kind == ColumnKind::Id { widest(lines.iter().map(String::as_str)) } else { 0 };
            let Column { kind, stacks, is_extra, .. } = *column;
            SheetColumn { lines, kind, stacks, is_extra, whole }
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
        let needed = |column: &SheetColumn| {
            let words = widest(column.lines.iter().flat_map(|cell| cell.split_whitespace()));
            let most = if column.kind == ColumnKind::Prose { prose.max(words.min(word)) } else { usize::MAX };
            column.width().min(most).max(column.whole)
        };
        self.columns.iter().map(needed).sum::<usize>() + GAP * (self.columns.len() - 1)
    }
}
