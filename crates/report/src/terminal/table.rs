//! Drawing tables. Columns are side by side if they fit. Otherwise some cells are stacked, or each row becomes a
//! paragraph.

use unicode_width::UnicodeWidthStr;

use super::{Style, escape_controls, wrapped};
use crate::grid::{Column, ColumnKind, Grid};
use crate::text::within;

impl Style {
    /// Returns the table as lines of text. A note below it lists the columns that were left out.
    pub(crate) fn table(self, grid: &Grid) -> String {
        if grid.is_empty() {
            return String::new();
        }
        let (sheet, left_out) = self.narrowed(Sheet::new(grid));
        let left_out = match left_out.as_slice() {
            [] => String::new(),
            columns => self.paragraph(&format!(
                "Left out, because the terminal is too narrow: {}. The report and --format csv have all columns.",
                columns.join(", ")
            )),
        };
        self.drawn(&sheet) + &left_out
    }

    /// Leaves out optional columns, from the right, until the others fit side by side. A table with few rows keeps all
    /// columns. Also returns the headings of the columns that were left out.
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

    /// Draws the table with a line below the headings and two spaces between columns. If a row has several lines, empty
    /// lines separate the rows.
    fn drawn(self, sheet: &Sheet) -> String {
        let Some(sheet) = self.layout(sheet) else { return self.records(sheet) };
        let widths = self.widths(&sheet);
        let mut rows: Vec<Vec<String>> = (0..=sheet.rows).map(|row| self.row(&sheet, row, &widths)).collect();
        let gap = if rows[1..].iter().any(|lines| lines.len() > 1) { "\n" } else { "" };
        rows[0].push("─".repeat(widths.iter().sum::<usize>() + GAP * (widths.len() - 1)));
        let rows: Vec<String> = rows.iter().map(|lines| lines.join("\n") + "\n").collect();
        rows[0].clone() + &rows[1..].join(gap)
    }

    /// Returns the lines of a row; row 0 has the headings.
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

    /// Returns the widths of the columns. Columns of prose share the width that other columns leave. Cells that are
    /// wider than their column are wrapped.
    fn widths(self, sheet: &Sheet) -> Vec<usize> {
        /// The smallest width, in terminal columns, that is taken from a column whose wrapped text does not need its
        /// whole share. Such a column is made as narrow as its text, which leaves more width to other columns.
        const LEAST_LEFT: usize = 3;
        let wrapped = |column: &SheetColumn, part: usize| {
            let lines: Vec<String> = column.lines.iter().flat_map(|cell| broken(cell, part)).collect();
            widest(lines.iter().map(String::as_str))
        };
        let is_prose = |column: &SheetColumn| column.kind == ColumnKind::Prose;
        let mut widths: Vec<_> = sheet.columns.iter().map(|c| (!is_prose(c)).then(|| c.width())).collect();
        // Returns the width that is left for the columns whose width is not decided, and the number of these columns.
        let left = |widths: &[Option<usize>]| {
            let taken = widths.iter().flatten().sum::<usize>() + GAP * (widths.len() - 1);
            (usize::from(self.columns()).saturating_sub(taken), widths.iter().filter(|width| width.is_none()).count())
        };
        /// A rule that decides the width of a column; `None` if the rule does not apply to the column. Columns whose
        /// width is not decided yet share the remaining width equally, and the second argument is this share.
        type WidthRule<'a> = &'a dyn Fn(&SheetColumn, usize) -> Option<usize>;
        let settle: [WidthRule<'_>; 3] = [
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

    /// Returns the first layout in which the table fits: columns side by side, then some cells stacked, then more cells
    /// stacked. Layouts that keep long paths whole are preferred. `None` if the table fits in no layout.
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

    /// Draws each row as a paragraph with its first cell, then a line with heading and text for each other cell. If the
    /// first cell is a number, it has its heading, too.
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

/// Breaks a text into lines of at most `columns` columns, at spaces. A word is broken only if it is longer than a line.
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
                    // A line has at least one character, even if the character is too wide.
                    let first = word.chars().next().map_or(0, char::len_utf8);
                    let (head, tail) = word.split_at(within(word.chars(), room).len().max(first));
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

/// Number of spaces between columns.
const GAP: usize = 2;
/// The smallest width of prose, in columns, for a layout that is easy to read. If prose would be narrower, cells are
/// stacked.
const COMFORTABLE_PROSE: usize = 24;
/// The smallest width of prose, in columns. If prose would be narrower, each row becomes a paragraph.
const LEAST_PROSE: usize = 12;
/// The width of the longest word that a column of prose must be able to hold unbroken, in columns.
const LONGEST_WORD: usize = 30;
/// The smallest width in which a word that must be broken may begin, in columns. If the line has less space left, the
/// word begins on the next line.
const LEAST_ROOM: usize = 2;
/// The largest number of rows in a table that keeps all columns at any width. If such a table is too wide, each row
/// becomes a paragraph.
const FEW_ROWS: usize = 8;

/// A table as text, stored by column. A column has its heading first, then its cell in each row.
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
    /// The width of the longest text in the column that must stay unbroken, in terminal columns.
    whole: usize,
}

impl SheetColumn {
    fn width(&self) -> usize {
        widest(self.lines.iter().flat_map(|cell| cell.lines()))
    }
}

/// Returns the width of the widest text.
fn widest<'a>(texts: impl Iterator<Item = &'a str>) -> usize {
    texts.map(UnicodeWidthStr::width).max().unwrap_or(0)
}

impl Sheet {
    fn new(grid: &Grid) -> Sheet {
        let column = |(index, column): (usize, &Column)| {
            let cells = grid.rows.iter().map(|row| escape_controls(row[index].text()));
            let lines: Vec<String> = std::iter::once(escape_controls(&column.heading)).chain(cells).collect();
            let whole = if column.kind == ColumnKind::Id { widest(lines.iter().map(String::as_str)) } else { 0 };
            let Column { kind, stacks, is_extra, .. } = *column;
            SheetColumn { lines, kind, stacks, is_extra, whole }
        };
        Sheet { columns: grid.columns.iter().enumerate().map(column).collect(), rows: grid.rows.len() }
    }

    /// Returns a narrower table, in which the cells of some columns are below the cells of the previous column. This
    /// function moves the columns whose `stacks` is from 1 to `level`.
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

    /// Returns the smallest width of the table, in terminal columns, in which words and numbers are not broken. Words
    /// of more than `word` terminal columns may be broken. Columns of prose have at least `prose` terminal columns.
    fn least_width(&self, prose: usize, word: usize) -> usize {
        let needed = |column: &SheetColumn| {
            let words = widest(column.lines.iter().flat_map(|cell| cell.split_whitespace()));
            let most = if column.kind == ColumnKind::Prose { prose.max(words.min(word)) } else { usize::MAX };
            column.width().min(most).max(column.whole)
        };
        self.columns.iter().map(needed).sum::<usize>() + GAP * (self.columns.len() - 1)
    }
}
