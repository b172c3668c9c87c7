//! Reads a column of numbers from a text file.

use std::io::{self, Read};

use csv_core::{ReadFieldResult, Reader, ReaderBuilder};

use super::error::{Error, shown};
use crate::names::suggestion;

/// A column that was read from a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The heading of the column; `None` if the first line contains no headings.
    pub heading: Option<String>,
    /// The numbers in the column, in the order of the file; all are finite.
    pub values: Vec<f64>,
}

/// Reads a column of numbers from CSV with quotes according to RFC 4180, or from one number per line.
///
/// Fields are separated by commas or, if the first line has none, by semicolons or tabs. `column` is a heading, or a
/// column number from 1; it may be omitted if there is only one column. The first line contains headings if none of its
/// fields is a number, or if one of its fields is `column` and not a number. Blank lines are ignored. `file` is the
/// file's name for errors.
///
/// The file is read once, in pieces. Only the numbers are kept in memory, 8 bytes each. More than `most` numbers are an
/// error, because a pipe may never end. For the same reason, more than `most` bytes of consecutive blank lines are an
/// error.
///
/// # Errors
/// The message names the line if a single line is wrong. It names the line and the column if a single field is wrong.
/// There are these errors:
/// - The file cannot be read, is not text, or contains no numbers.
/// - It has more than `most` numbers, or more than fit in memory.
/// - It has several columns, but `column` is `None`; or several columns have the name `column`.
/// - It has more than 65,536 columns.
/// - A line has more or fewer fields than the first.
/// - A quote is not closed.
/// - A field of the column is empty, not a number, or not finite.
///
/// ```
/// use ascertain_engine::samples::read_column;
/// let text = "name,wall\nfirst,1.5\n\"second, quoted\",2.5\n";
/// let column = read_column(text.as_bytes(), "a.csv", Some("wall"), 1000)?;
/// assert_eq!((column.heading.as_deref(), column.values), (Some("wall"), vec![1.5, 2.5]));
/// let error = read_column("1\n2\nthree\n".as_bytes(), "b.txt", None, 1000).unwrap_err();
/// assert!(error.to_string().starts_with("b.txt:3:1: `three` is not a number"));
/// # Ok::<(), ascertain_engine::samples::Error>(())
/// ```
pub fn read_column(input: impl Read, file: &str, column: Option<&str>, most: usize) -> Result<Column, Error> {
    let file = &shown(file);
    let mut fields = Fields::open(input, file, most)?;
    let empty = || Error::File(format!("{file} contains no numbers"));
    let mut first = Vec::new();
    while let Some(field) = fields.next()? {
        first.push((field, fields.text().to_vec()));
        if field.is_last {
            break;
        }
        if first.len() == MOST_COLUMNS {
            return Err(Error::File(format!(
                "{file}:1: more than {MOST_COLUMNS} fields in a line; put one number into each line, or fewer columns \
                 into the file"
            )));
        }
    }
    if first.is_empty() {
        return Err(empty());
    }
    let names: Vec<_> = first.iter().map(|(_, text)| String::from_utf8_lossy(text.trim_ascii())).collect();
    // A field that the caller names is a heading, whatever the other fields are.
    let is_asked_for = |name: &str| !is_number(name) && column == Some(name);
    let has_heading = !names.iter().any(|name| is_number(name)) || names.iter().any(|name| is_asked_for(name));
    let wanted = choose(&names, has_heading, &fields, column)?;
    let mut numbers: Vec<f64> = Vec::new();
    if !has_heading {
        let (field, text) = &first[wanted];
        numbers.push(number(text).map_err(|problem| fields.wrong(*field, wanted, problem))?);
    }
    let mut index = 0;
    while let Some(field) = fields.next()? {
        if index == wanted {
            if numbers.len() == most {
                return Err(Error::TooLong(format!(
                    "{file} has more than {most} numbers; use a random part of them (shuf -n {most}), or, for \
                     up to 17 bytes of memory per number, raise the limit"
                )));
            }
            if numbers.try_reserve(1).is_err() {
                let (count, part) = (numbers.len(), numbers.len() / 4);
                return Err(Error::File(format!(
                    "{file}: there is no memory for more than {count} numbers; use a random part of them (shuf -n \
                     {part})"
                )));
            }
            numbers.push(number(fields.text()).map_err(|problem| fields.wrong(field, wanted, problem))?);
        }
        index += 1;
        if field.is_last || index > MOST_COLUMNS {
            let (found, expected) = (std::mem::take(&mut index), first.len());
            if found != expected {
                return Err(fields.ragged(field.line, found, expected));
            }
        }
    }
    if numbers.is_empty() {
        return Err(empty());
    }
    Ok(Column { heading: has_heading.then(|| names[wanted].to_string()), values: numbers })
}

/// Returns whether the text is a number, which includes infinity and NaN.
fn is_number(text: &str) -> bool {
    text.parse::<f64>().is_ok()
}

/// Parses a field as a finite number. On failure, returns the reason as a clause for a message.
fn number(field: &[u8]) -> Result<f64, String> {
    let field = field.trim_ascii();
    let number: Option<f64> = std::str::from_utf8(field).ok().and_then(|text| text.parse().ok());
    let begun = || String::from_utf8_lossy(&field[..field.len().min(SHOWN_BYTES)]);
    match number {
        Some(number) if number.is_finite() => Ok(number),
        Some(_) => Err(format!("`{}` is not a finite number", shown(&begun()))),
        None if field.is_empty() => Err("the field is empty".into()),
        None if is_number(&begun().replacen(',', ".", 1)) => {
            Err(format!("`{}` is not a number: {DECIMAL_COMMA}", shown(&begun())))
        }
        None => Err(format!("`{}` is not a number", shown(&begun()))),
    }
}

/// Returns the index of the column with the given heading or number. If `column` is `None`, returns the index of the
/// only column.
fn choose<R>(
    names: &[impl AsRef<str>],
    has_heading: bool,
    fields: &Fields<R>,
    column: Option<&str>,
) -> Result<usize, Error> {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    let (file, count) = (&fields.file, names.len());
    let listed = || {
        let listed = names.iter().take(LISTED_COLUMNS);
        let quoted: Vec<String> = listed.map(|name| format!("`{}`", shown(name))).collect();
        let more = match count.saturating_sub(LISTED_COLUMNS) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        if has_heading { format!("one of {}{more}", quoted.join(", ")) } else { format!("a number from 1 to {count}") }
    };
    let Some(column) = column else {
        let hint = match count {
            1 => return Ok(0),
            2 if !has_heading && fields.delimiter == b',' => format!("; if that is one number, {DECIMAL_COMMA}"),
            _ => String::new(),
        };
        return Err(Error::Column(format!("{file} has {count} columns; choose {}{hint}", listed())));
    };
    let of_name: Vec<usize> = (0..count).filter(|&index| has_heading && names[index] == column).collect();
    if of_name.len() > 1 {
        let numbers: Vec<String> = of_name.iter().take(LISTED_COLUMNS).map(|index| (index + 1).to_string()).collect();
        let (column, count, numbers) = (shown(column), of_name.len(), numbers.join(", "));
        let problem =
            format!("{file} has {count} columns with the name `{column}`; choose one by its number: {numbers}");
        return Err(Error::Column(problem));
    }
    let by_number =
        || column.parse::<usize>().ok().and_then(|number| number.checked_sub(1)).filter(|index| *index < count);
    of_name.first().copied().or_else(by_number).ok_or_else(|| {
        let hint = suggestion(column, names.iter().copied().filter(|_| has_heading)).unwrap_or_default();
        let (column, hint) = (shown(column), shown(&hint));
        Error::File(format!("{file} has no column `{column}`; choose {}{hint}", listed()))
    })
}

/// A reader that returns the fields of a file, one after the other.
pub(super) struct Fields<R> {
    input: R,
    file: String,
    /// Maximum number of bytes of consecutive blank lines.
    most_blank: usize,
    delimiter: u8,
    parser: Reader,
    buffer: Vec<u8>,
    /// The range of `buffer` that is not parsed yet.
    unparsed: std::ops::Range<usize>,
    /// A buffer that begins with the text of the last field, without its quotes. If the text does not fit into the
    /// buffer, only its beginning is kept, and it does not count as a number.
    text: Vec<u8>,
    length: usize,
}

/// The position of a field in the file: the lines in which it begins and ends. A quoted field may span several lines.
#[derive(Clone, Copy)]
pub(super) struct Field {
    begins: u64,
    pub(super) line: u64,
    pub(super) is_last: bool,
}

/// The state of parsing one field.
struct FieldScan {
    /// The line in which the field begins.
    line: u64,
    /// `true` if the field is quoted; `None` before its first byte.
    is_quoted: Option<bool>,
    bytes: usize,
    quotes: usize,
}

impl FieldScan {
    fn parse(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
        if self.is_quoted.is_none() {
            // Blank lines come first, and the `\n` of the previous line if it ends in `\r\n`.
            let blank = bytes.iter().take_while(|byte| b"\r\n".contains(byte)).count();
            self.line += bytes[..blank].iter().filter(|byte| **byte == b'\n').count() as u64;
            self.is_quoted = bytes.get(blank).map(|first| *first == b'"');
            if self.is_quoted.is_some() {
                self.bytes = bytes.len() - blank;
            }
        }
        if self.is_quoted == Some(true) {
            self.quotes += bytes.iter().filter(|byte| **byte == b'"').count();
        }
    }
}

/// Advice for a number that is written with a decimal comma, as in many spreadsheets.
const DECIMAL_COMMA: &str = "write a point instead of a decimal comma";
const BUFFER_BYTES: usize = 1 << 17;
/// Size of the buffer for the text of a field, in bytes. No number is nearly as long.
const FIELD_BYTES: usize = 1 << 12;
/// Number of bytes of a field that an error message shows.
const SHOWN_BYTES: usize = 60;
/// Maximum size of a field, in bytes. A longer field means that a quote is not closed, or that the file is not text.
const MOST_FIELD_BYTES: usize = 1 << 24;
/// Maximum number of columns, which is more than any spreadsheet has. It limits the memory for the first line, whose
/// fields are all kept.
const MOST_COLUMNS: usize = 1 << 16;
/// Maximum number of headings that error messages list.
const LISTED_COLUMNS: usize = 20;

impl<R: Read> Fields<R> {
    pub(super) fn open(input: R, file: &str, most_blank: usize) -> Result<Fields<R>, Error> {
        let mut fields = Fields {
            input,
            file: file.into(),
            most_blank,
            delimiter: b',',
            parser: Reader::new(),
            buffer: vec![0; BUFFER_BYTES],
            unparsed: 0..0,
            text: vec![0; FIELD_BYTES],
            length: 0,
        };
        // Read as much as fits, so that the first line is probably complete.
        while fields.unparsed.end < BUFFER_BYTES && fields.read_more()? > 0 {}
        let begun = &fields.buffer[..fields.unparsed.end];
        if let Some(nul) = begun.iter().position(|byte| *byte == 0) {
            let line = 1 + begun[..nul].iter().filter(|byte| **byte == b'\n').count() as u64;
            return Err(fields.endless(line, false));
        }
        fields.delimiter = delimiter(begun);
        fields.parser = ReaderBuilder::new().delimiter(fields.delimiter).build();
        if begun.starts_with(b"\xef\xbb\xbf") {
            fields.unparsed.start = 3;
        }
        Ok(fields)
    }

    /// Appends input to the buffer. Returns the number of bytes; 0 at the end of the input.
    fn read_more(&mut self) -> Result<usize, Error> {
        loop {
            match self.input.read(&mut self.buffer[self.unparsed.end..]) {
                Ok(count) => {
                    self.unparsed.end += count;
                    return Ok(count);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(reason) => return Err(Error::File(format!("{} could not be read: {reason}", self.file))),
            }
        }
    }

    /// Goes to the next field. Returns `None` at the end of the file.
    pub(super) fn next(&mut self) -> Result<Option<Field>, Error> {
        self.length = 0;
        let mut scan = FieldScan { line: self.parser.line(), is_quoted: None, bytes: 0, quotes: 0 };
        loop {
            if self.unparsed.is_empty() {
                self.unparsed = 0..0;
                self.read_more()?;
            }
            let unparsed = &self.buffer[self.unparsed.clone()];
            let (result, parsed, written) = self.parser.read_field(unparsed, &mut self.text[self.length..]);
            let is_over = unparsed.is_empty();
            scan.parse(&unparsed[..parsed]);
            let ended_line = parsed.checked_sub(1).is_some_and(|last| unparsed[last] == b'\n');
            self.unparsed.start += parsed;
            self.length += written;
            match result {
                ReadFieldResult::InputEmpty if scan.is_quoted.is_none() && scan.bytes > self.most_blank => {
                    let (file, line, most) = (&self.file, scan.line, self.most_blank);
                    return Err(Error::TooLong(format!(
                        "{file}:{line}: more than {most} bytes of blank lines; choose another file, or raise the limit"
                    )));
                }
                ReadFieldResult::InputEmpty => {}
                _ if scan.bytes > MOST_FIELD_BYTES => {
                    return Err(self.endless(scan.line, scan.is_quoted == Some(true)));
                }
                ReadFieldResult::OutputFull => {
                    // Keep the beginning of the field for messages. The NUL makes sure that it is not a number.
                    self.text[SHOWN_BYTES] = 0;
                    self.length = SHOWN_BYTES + 1;
                }
                ReadFieldResult::Field { .. } if is_over && scan.quotes % 2 == 1 => {
                    return Err(self.endless(scan.line, true));
                }
                ReadFieldResult::Field { record_end: is_last } => {
                    let line = self.parser.line() - u64::from(is_last && ended_line);
                    return Ok(Some(Field { begins: scan.line, line, is_last }));
                }
                ReadFieldResult::End => return Ok(None),
            }
        }
    }

    pub(super) fn text(&self) -> &[u8] {
        &self.text[..self.length]
    }

    /// Returns the error for a field that is too long or never ends. If `is_quoted`, its quote is not closed; otherwise
    /// the file is not text.
    fn endless(&self, line: u64, is_quoted: bool) -> Error {
        let problem = if is_quoted {
            "the quote that is opened here is not closed; close it, or double a quote that is part of the text"
        } else {
            "this is not UTF-8 text with a number in each line or field; export it as CSV, or choose another file"
        };
        Error::File(format!("{}:{line}: {problem}", self.file))
    }

    /// Returns the error for a line with `found` fields, if the first line has `expected` fields.
    pub(super) fn ragged(&self, line: u64, found: usize, expected: usize) -> Error {
        let plural = if found == 1 { "" } else { "s" };
        let hint = match (expected, found) {
            (1, 2) => format!(": {DECIMAL_COMMA}, and put text with commas in quotes"),
            _ => String::new(),
        };
        Error::File(format!("{}:{line}: {found} field{plural} where the first line has {expected}{hint}", self.file))
    }

    fn wrong(&self, field: Field, column: usize, mut problem: String) -> Error {
        if field.begins < field.line {
            problem += &format!(" (its quote was opened in line {})", field.begins);
        }
        let (file, line, column) = (&self.file, field.line, column + 1);
        Error::Column(format!(
            "{file}:{line}:{column}: {problem}; remove or correct the line, or choose another column"
        ))
    }
}

/// Returns the character that separates fields: a comma, semicolon or tab. It is taken from the first line of `text`,
/// in which characters within quotes do not count.
fn delimiter(text: &[u8]) -> u8 {
    let mut is_quoted = false;
    let first = text.iter().copied().take_while(|byte| *byte != b'\n').filter(|byte| {
        is_quoted ^= *byte == b'"';
        !is_quoted
    });
    let first: Vec<u8> = first.collect();
    [b',', b';', b'\t'].into_iter().find(|delimiter| first.contains(delimiter)).unwrap_or(b',')
}
