//! A short cut through `trials.jsonl`: the lines of a series differ in nothing but five numbers, so that
//! most lines need not be parsed as JSON, which takes six times as long.

use std::collections::HashMap;

use super::trials::NumberedRow;
use crate::experiment::Status;

/// What stands before each number of a line, in their order.
const BEFORE: [&[u8]; 5] = [b"\"trial\":", b"\"position\":", b"\"offset_ns\":", b"\"value\":", b"\"start_ns\":"];
/// As many as a lane has arms: the next line is of the same arm's next metric, or of another arm.
const MOST_NEXT: usize = 16;

/// The lines seen so far, without their numbers.
#[derive(Default)]
pub(super) struct Shapes {
    shapes: Vec<Shape>,
    known: HashMap<(u32, Option<u32>, Status), usize>,
    /// The last line's shape.
    last: Option<usize>,
}

struct Shape {
    /// What stands before, between and behind the numbers.
    pieces: [Vec<u8>; 6],
    series: u32,
    lane: Option<u32>,
    status: Status,
    /// The shapes that have come after it.
    next: Vec<usize>,
}

impl Shapes {
    /// Reads a line that has the shape of another that came at such a place.
    pub fn read(&mut self, line: &[u8]) -> Option<NumberedRow> {
        let next = &self.shapes[self.last?].next;
        let (index, row) = next.iter().find_map(|&index| Some((index, self.shapes[index].read(line)?)))?;
        self.last = Some(index);
        Some(row)
    }

    /// Takes note of a line that was parsed.
    pub fn learn(&mut self, line: &[u8], series: u32, lane: Option<u32>, status: Status) {
        let known = self.known.get(&(series, lane, status)).copied();
        let index = known.or_else(|| {
            self.shapes.push(Shape { pieces: cut(line)?, series, lane, status, next: Vec::new() });
            self.known.insert((series, lane, status), self.shapes.len() - 1);
            Some(self.shapes.len() - 1)
        });
        if let (Some(last), Some(index)) = (self.last, index) {
            let next = &mut self.shapes[last].next;
            if !next.contains(&index) {
                next.insert(0, index);
                next.truncate(MOST_NEXT);
            }
        }
        self.last = index;
    }
}

impl Shape {
    /// None where the line is another than this with other numbers.
    fn read(&self, line: &[u8]) -> Option<NumberedRow> {
        let [head, position, offset, value, start, tail] = &self.pieces;
        let (trial, rest) = integer(line.strip_prefix(head.as_slice())?)?;
        let (_, rest) = integer(rest.strip_prefix(position.as_slice())?)?;
        let (offset_ns, rest) = integer(rest.strip_prefix(offset.as_slice())?)?;
        let (value, rest) = real(rest.strip_prefix(value.as_slice())?)?;
        let (_, rest) = integer(rest.strip_prefix(start.as_slice())?)?;
        let row =
            NumberedRow { series: self.series, lane: self.lane, trial, offset_ns, value: self.status.bounds(value) };
        (unmarked(rest) == tail.as_slice()).then_some(row)
    }
}

/// Cuts the numbers out of a line. None where they are not in their order.
fn cut(line: &[u8]) -> Option<[Vec<u8>; 6]> {
    let mut pieces: [Vec<u8>; 6] = Default::default();
    let mut rest = unmarked(line);
    for (piece, before) in pieces.iter_mut().zip(BEFORE) {
        // A name may have these words in it too, but with its quotes escaped.
        let end = rest.windows(before.len()).position(|window| window == before)? + before.len();
        *piece = rest[..end].to_vec();
        rest = &rest[end..];
        rest = &rest[rest.iter().position(|byte| b",}".contains(byte))?..];
    }
    pieces[5] = rest.to_vec();
    Some(pieces)
}

/// The line without the mark of a trial's end.
fn unmarked(line: &[u8]) -> &[u8] {
    line.strip_suffix(b" ").unwrap_or(line)
}

/// The digits at the start, and what comes after them. None where there are so many that they may not fit.
fn integer(text: &[u8]) -> Option<(u64, &[u8])> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = text[..digits]
        .iter()
        .fold(0, |number: u64, digit| number.wrapping_mul(10).wrapping_add(u64::from(digit - b'0')));
    let is_json = digits == 1 || (digits > 1 && text[0] != b'0');
    (is_json && digits <= 19).then_some((number, &text[digits..]))
}

/// The number at the start, and what comes after it; not a number where it is null.
fn real(text: &[u8]) -> Option<(f64, &[u8])> {
    if let Some(rest) = text.strip_prefix(b"null") {
        return Some((f64::NAN, rest));
    }
    let length = text.iter().take_while(|byte| byte.is_ascii_digit() || b"+-.eE".contains(byte)).count();
    let (number, rest) = text.split_at(length);
    // What JSON does not allow, and Rust does: `051`, `+5`, `.5`, `5.`, and what no double holds.
    let digits = number.strip_prefix(b"-").unwrap_or(number);
    let whole = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let is_whole = whole == 1 || (whole > 1 && digits[0] != b'0');
    let ends_in_point = digits.get(whole) == Some(&b'.') && !digits.get(whole + 1).is_some_and(u8::is_ascii_digit);
    let number: f64 = str::from_utf8(number).ok()?.parse().ok()?;
    (is_whole && !ends_in_point && number.is_finite()).then_some((number, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = concat!(
        r#"{"run_id":"r","experiment":"e","variant":"\"trial\":7,","point":"{}","trial":12,"position":1,"#,
        r#""metric":"m","key":"","offset_ns":5,"value":-1.5e-3,"unit":"1","status":"ok","start_ns":9,"worker":""}"#,
    );

    fn known() -> Shapes {
        let mut shapes = Shapes::default();
        shapes.learn(LINE.as_bytes(), 3, None, Status::Ok);
        shapes.learn(LINE.as_bytes(), 3, None, Status::Ok);
        shapes
    }

    #[test]
    fn lines_that_differ_in_numbers_are_read() {
        let read = |line: &str| {
            let row = known().read(line.as_bytes())?;
            Some((row.series, row.trial, row.offset_ns, row.value.low))
        };
        assert_eq!(read(LINE), Some((3, 12, 5, -1.5e-3)));
        assert_eq!(read(&format!("{LINE} ")), Some((3, 12, 5, -1.5e-3)), "the mark of a trial's end");
        let other = LINE.replace(":12,", ":9223372036854775807,").replace("-1.5e-3", "0.1").replace(":9,", ":10,");
        assert_eq!(read(&other), Some((3, i64::MAX as u64, 5, 0.1)));
        assert!(read(&LINE.replace("-1.5e-3", "null")).is_some_and(|row| row.3.is_nan()));
    }

    /// All others are left to be parsed.
    #[test]
    fn lines_that_differ_in_more_are_not() {
        let changes = [
            ("\"r\"", "\"s\""),
            ("\"m\"", "\"mm\""),
            ("\"ok\"", "\"failed\""),
            (":12,", ":-12,"),
            (":12,", ":,"),
            (":12,", ":18446744073709551616,"),
            (":12,", ":012,"),
            ("-1.5e-3", "051"),
            ("-1.5e-3", "-01.5"),
            ("-1.5e-3", "+5"),
            ("-1.5e-3", "-.5"),
            ("-1.5e-3", "5."),
            ("-1.5e-3", "5.e3"),
            ("-1.5e-3", "1e400"),
            ("-1.5e-3", "1.5.3"),
            ("-1.5e-3", "\"1\""),
            ("-1.5e-3", "NaN"),
            ("\"\"}", "\"\"} x"),
            ("\"\"}", "\"\""),
        ];
        for (from, to) in changes {
            let line = LINE.replacen(from, to, 1);
            assert!(line != LINE && known().read(line.as_bytes()).is_none(), "{line}");
        }
    }
}
