//! Reads all columns of a small table, with the line of every row.

use std::io::Read;

use super::column::Fields;
use super::error::{Error, shown};

/// A table that was read from a file: headings, and rows of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The headings in the first line, without spaces around them.
    pub headings: Vec<String>,
    /// The rows below the headings, in the order of the file.
    pub rows: Vec<TableRow>,
}

/// A row of a [`Table`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableRow {
    /// Number of the line in which the row ends, from 1.
    pub line: u64,
    /// The fields, one for each heading, without spaces around them.
    pub fields: Vec<String>,
}

impl Table {
    /// Returns the index of the first column whose heading is one of `names`, whatever their case.
    #[must_use]
    pub fn column(&self, names: &[&str]) -> Option<usize> {
        let is_named = |heading: &String| names.iter().any(|name| heading.eq_ignore_ascii_case(name));
        self.headings.iter().position(is_named)
    }
}

/// Reads a table from CSV with quotes according to RFC 4180. Fields are separated by commas or, if the first line has
/// none, by semicolons or tabs. The first line has the headings. Blank lines are ignored. `file` is the file's name for
/// errors.
///
/// # Errors
/// The message names the line if a single line is wrong. There are these errors:
/// - The file cannot be read, is not text, or is empty.
/// - It has more than `most` rows, or more than that many bytes of consecutive blank lines.
/// - A line has more or fewer fields than the first, or a field of more than 4,000 bytes.
/// - A quote is not closed.
///
/// ```
/// use ascertain_engine::samples::read_table;
/// let table = read_table("type,price\na,1\n\n\"b, c\",2\n".as_bytes(), "prices.csv", 1000)?;
/// assert_eq!(table.headings, ["type", "price"]);
/// assert_eq!((table.rows[1].line, table.rows[1].fields[0].as_str()), (4, "b, c"));
/// # Ok::<(), ascertain_engine::samples::Error>(())
/// ```
pub fn read_table(input: impl Read, file: &str, most: usize) -> Result<Table, Error> {
    let file = &shown(file);
    let mut fields = Fields::open(input, file, most)?;
    let mut table = Table { headings: Vec::new(), rows: Vec::new() };
    let mut row = Vec::new();
    while let Some(field) = fields.next()? {
        let text = std::str::from_utf8(fields.text()).ok().filter(|text| !text.contains('\0'));
        let text = text.ok_or_else(|| {
            let problem = "a field is not UTF-8 text, or has more than 4000 bytes; correct or shorten it";
            Error::File(format!("{file}:{}: {problem}", field.line))
        })?;
        row.push(text.trim().to_string());
        if !field.is_last && row.len() <= MOST_COLUMNS {
            continue;
        }
        let (line, found) = (field.line, std::mem::take(&mut row));
        if found.len() > MOST_COLUMNS {
            return Err(Error::File(format!(
                "{file}:{line}: more than {MOST_COLUMNS} fields in a line; put fewer columns into the file"
            )));
        }
        if table.headings.is_empty() {
            table.headings = found;
        } else if found.len() != table.headings.len() {
            return Err(fields.ragged(line, found.len(), table.headings.len()));
        } else if table.rows.len() == most {
            return Err(Error::TooLong(format!(
                "{file} has more than {most} rows; remove the rows that are not needed"
            )));
        } else {
            table.rows.push(TableRow { line, fields: found });
        }
    }
    if table.headings.is_empty() {
        return Err(Error::File(format!("{file} is empty; it needs a line of headings and a row")));
    }
    Ok(table)
}

/// Maximum number of columns, which is more than any such table needs.
const MOST_COLUMNS: usize = 1000;
