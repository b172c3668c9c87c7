//! A column of numbers in a text file.

use std::io::{self, Read};

use csv_core::{ReadFieldResult, Reader, ReaderBuilder};

use super::error::{Error, shown};
use crate::names::suggestion;

/// A column as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// What stands above the numbers, where the first line is a heading.
    pub heading: Option<String>,
    /// The numbers.
    pub values: Vec<f64>,
}

/// Reads a column of numbers: CSV with quotes as RFC 4180 has them, or one number a line.
///
/// Fields are separated by commas or, where the first line has none, by semicolons or tabs. The first line is a heading
/// if none of its fields is a number, or if `column` is a field of it that is none. `column` is a heading, or a
/// column's number from 1; it may be left out where there is one column. Blank lines say nothing. `file` is the file's
/// name for errors.
///
/// The file is read once, in pieces; memory is needed for the numbers alone, 8 bytes each. More than `most` of them are
/// an error, since a pipe may have no end, and so are as many bytes of blank lines in a row.
///
/// # Errors
/// When the file can't be read, is no text, has no numbers, more than `most` or more than memory holds, has several
/// columns of which none is named, or several of the name, or more than 65,536, has lines with more or fewer fields
/// than the first, a quote that is not closed, or a field of the column that is empty, no number or not finite: with
/// the line and the column.
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
    let mut first = Vec::new();
    while let Some(field) = fields.next()? {
        first.push((field, fields.text().to_vec()));
        if field.is_last {
            break;
        }
        if first.len() == MOST_COLUMNS {
            return Err(Error::TooManyColumns { file: file.into(), most: MOST_COLUMNS });
        }
    }
    if first.is_empty() {
        return Err(Error::Empty { file: file.into() });
    }
    let names: Vec<_> = first.iter().map(|(_, text)| String::from_utf8_lossy(text.trim_ascii())).collect();
    // One that is asked for by its name is a heading, whatever stands beside it.
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
                return Err(Error::TooLong { file: file.into(), most });
            }
            let room = numbers.try_reserve(1);
            room.map_err(|_| Error::NoMemory { file: file.into(), count: numbers.len() })?;
            numbers.push(number(fields.text()).map_err(|problem| fields.wrong(field, wanted, problem))?);
        }
        index += 1;
        if field.is_last || index > MOST_COLUMNS {
            let (found, expected) = (std::mem::take(&mut index), first.len());
            if found != expected {
                return Err(Error::Ragged { file: file.into(), line: field.line, found, expected });
            }
        }
    }
    if numbers.is_empty() {
        return Err(Error::Empty { file: file.into() });
    }
    Ok(Column { heading: has_heading.then(|| names[wanted].to_string()), values: numbers })
}

/// Whether it is a number of any kind, also one that can't be compared.
fn is_number(text: &str) -> bool {
    text.parse::<f64>().is_ok()
}

/// The finite number that the field is.
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

/// The index of the column that is meant.
fn choose<R>(
    names: &[impl AsRef<str>],
    has_heading: bool,
    fields: &Fields<R>,
    column: Option<&str>,
) -> Result<usize, Error> {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    let (file, count) = (fields.file.clone(), names.len());
    let listed = || {
        let listed = names.iter().take(LISTED_COLUMNS);
        let quoted: Vec<String> = listed.map(|name| format!("`{}`", shown(name))).collect();
        let more = match count.saturating_sub(LISTED_COLUMNS) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        if has_heading { quoted.join(", ") + &more } else { format!("a number from 1 to {count}") }
    };
    let Some(column) = column else {
        return match count {
            1 => Ok(0),
            2 if !has_heading && fields.delimiter == b',' => {
                let columns = format!("{}; if that is one number, {DECIMAL_COMMA}", listed());
                Err(Error::SeveralColumns { file, count, columns })
            }
            _ => Err(Error::SeveralColumns { file, count, columns: listed() }),
        };
    };
    let of_name: Vec<usize> = (0..count).filter(|&index| has_heading && names[index] == column).collect();
    if of_name.len() > 1 {
        let numbers: Vec<String> = of_name.iter().take(LISTED_COLUMNS).map(|index| (index + 1).to_string()).collect();
        let (column, count, numbers) = (shown(column), of_name.len(), numbers.join(", "));
        return Err(Error::SameName { file, column, count, numbers });
    }
    let by_number =
        || column.parse::<usize>().ok().and_then(|number| number.checked_sub(1)).filter(|index| *index < count);
    of_name.first().copied().or_else(by_number).ok_or_else(|| {
        let hint = suggestion(column, names.iter().copied().filter(|_| has_heading)).unwrap_or_default();
        Error::NoColumn { file, column: shown(column), known: format!("there is {}{}", listed(), shown(&hint)) }
    })
}

/// The fields of a file, one after the other.
struct Fields<R> {
    input: R,
    file: String,
    /// So many bytes of blank lines in a row, at most.
    most_blank: usize,
    delimiter: u8,
    parser: Reader,
    buffer: Vec<u8>,
    /// What is in the buffer and not parsed yet.
    unparsed: std::ops::Range<usize>,
    /// The text of the last field, without its quotes, and how much of it there is. What does not fit is no number.
    text: Vec<u8>,
    length: usize,
}

/// Where a field was: a quoted one may go over several lines.
#[derive(Clone, Copy)]
struct Field {
    begins: u64,
    line: u64,
    is_last: bool,
}

/// The bytes of a field, as they are parsed.
struct Begun {
    /// The line of its first byte.
    line: u64,
    /// None before its first byte.
    is_quoted: Option<bool>,
    bytes: usize,
    quotes: usize,
}

impl Begun {
    fn parse(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
        if self.is_quoted.is_none() {
            // Blank lines, and what is left of the last line's end, come first.
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

/// What many spreadsheets write.
const DECIMAL_COMMA: &str = "a decimal comma is to be a point";
const BUFFER_BYTES: usize = 1 << 17;
/// Far more than any number has.
const FIELD_BYTES: usize = 1 << 12;
/// What errors show of a field.
const SHOWN_BYTES: usize = 60;
/// Longer fields are a quote that is not closed, or no text.
const MOST_FIELD_BYTES: usize = 1 << 24;
/// More than any spreadsheet has. Of the first line all are kept.
const MOST_COLUMNS: usize = 1 << 16;
/// What errors show of a heading.
const LISTED_COLUMNS: usize = 20;

impl<R: Read> Fields<R> {
    fn open(input: R, file: &str, most_blank: usize) -> Result<Fields<R>, Error> {
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
        // As much as fits, so that the first line is most likely whole.
        while fields.unparsed.end < BUFFER_BYTES && fields.read_more()? > 0 {}
        let begun = &fields.buffer[..fields.unparsed.end];
        if let Some(nul) = begun.iter().position(|byte| *byte == 0) {
            let line = 1 + begun[..nul].iter().filter(|byte| **byte == b'\n').count() as u64;
            return Err(Error::NotText { file: file.into(), line });
        }
        fields.delimiter = delimiter(begun);
        fields.parser = ReaderBuilder::new().delimiter(fields.delimiter).build();
        if begun.starts_with(b"\xef\xbb\xbf") {
            fields.unparsed.start = 3;
        }
        Ok(fields)
    }

    /// Appends to the buffer what the input has at once; 0 bytes at its end.
    fn read_more(&mut self) -> Result<usize, Error> {
        loop {
            match self.input.read(&mut self.buffer[self.unparsed.end..]) {
                Ok(count) => {
                    self.unparsed.end += count;
                    return Ok(count);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(reason) => return Err(Error::Read { file: self.file.clone(), reason }),
            }
        }
    }

    /// Goes to the next field. None at the end.
    fn next(&mut self) -> Result<Option<Field>, Error> {
        self.length = 0;
        let mut begun = Begun { line: self.parser.line(), is_quoted: None, bytes: 0, quotes: 0 };
        loop {
            if self.unparsed.is_empty() {
                self.unparsed = 0..0;
                self.read_more()?;
            }
            let unparsed = &self.buffer[self.unparsed.clone()];
            let (result, parsed, written) = self.parser.read_field(unparsed, &mut self.text[self.length..]);
            let is_over = unparsed.is_empty();
            begun.parse(&unparsed[..parsed]);
            let ended_line = parsed.checked_sub(1).is_some_and(|last| unparsed[last] == b'\n');
            self.unparsed.start += parsed;
            self.length += written;
            match result {
                ReadFieldResult::InputEmpty if begun.is_quoted.is_none() && begun.bytes > self.most_blank => {
                    return Err(Error::Blank { file: self.file.clone(), line: begun.line, most: self.most_blank });
                }
                ReadFieldResult::InputEmpty => {}
                _ if begun.bytes > MOST_FIELD_BYTES => return Err(self.endless(&begun)),
                ReadFieldResult::OutputFull => {
                    // Its beginning is kept to be shown, and the NUL makes it no number, however it ends.
                    self.text[SHOWN_BYTES] = 0;
                    self.length = SHOWN_BYTES + 1;
                }
                ReadFieldResult::Field { .. } if is_over && begun.quotes % 2 == 1 => {
                    return Err(Error::OpenQuote { file: self.file.clone(), line: begun.line });
                }
                ReadFieldResult::Field { record_end: is_last } => {
                    let line = self.parser.line() - u64::from(is_last && ended_line);
                    return Ok(Some(Field { begins: begun.line, line, is_last }));
                }
                ReadFieldResult::End => return Ok(None),
            }
        }
    }

    fn text(&self) -> &[u8] {
        &self.text[..self.length]
    }

    /// A field that does not end where one should.
    fn endless(&self, begun: &Begun) -> Error {
        let (file, line) = (self.file.clone(), begun.line);
        match begun.is_quoted {
            Some(true) => Error::OpenQuote { file, line },
            _ => Error::NotText { file, line },
        }
    }

    fn wrong(&self, field: Field, column: usize, mut problem: String) -> Error {
        if field.begins < field.line {
            problem += &format!(" (its quote was opened in line {})", field.begins);
        }
        Error::Field { file: self.file.clone(), line: field.line, column: column + 1, problem }
    }
}

/// What separates the fields of the first line, outside of quotes.
fn delimiter(text: &[u8]) -> u8 {
    let mut is_quoted = false;
    let first = text.iter().copied().take_while(|byte| *byte != b'\n').filter(|byte| {
        is_quoted ^= *byte == b'"';
        !is_quoted
    });
    let first: Vec<u8> = first.collect();
    [b',', b';', b'\t'].into_iter().find(|delimiter| first.contains(delimiter)).unwrap_or(b',')
}
