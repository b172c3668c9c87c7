//! Reads observations from lines of text: a number, and optionally a unit. Nothing is allocated for a line.

use crate::command::LineMetric;
use crate::unit::Unit;

/// Length of the text of a line in messages, in bytes.
const SHOWN_BYTES: usize = 60;

/// Parses lines of one metric.
#[derive(Debug)]
pub(super) struct LineParser {
    unit: Unit,
    /// Factor of a number without a unit; `None` if each line needs a unit.
    plain: Option<f64>,
    /// The last unit that a line had, and its factor.
    last: Vec<u8>,
    last_factor: f64,
}

/// Largest length of the spelling of a unit, in bytes.
const MOST_SPELLING: usize = 16;

impl LineParser {
    /// Size of the memory of a parser, in bytes.
    pub const BYTES: u64 = MOST_SPELLING as u64;

    pub fn new(metric: &LineMetric) -> LineParser {
        LineParser {
            unit: metric.unit,
            plain: metric.factor,
            last: Vec::with_capacity(MOST_SPELLING),
            last_factor: 1.0,
        }
    }

    /// Returns the value of the line at the start of a text, and the length of the line with its newline. Returns
    /// `None` if the line is anything but a plain number, or incomplete.
    #[inline]
    pub fn plain(&self, text: &[u8]) -> Option<(f64, usize)> {
        let (number, length) = number(text)?;
        let value = number * self.plain?;
        let is_valid = text.get(length) == Some(&b'\n') && value < f64::INFINITY;
        (is_valid && (value >= 0.0 || self.unit == Unit::One && value > f64::NEG_INFINITY))
            .then_some((value, length + 1))
    }

    /// Returns the value of a line, without its newline, in the unit of the metric.
    ///
    /// # Errors
    /// The reason why the line is not an observation.
    pub fn parse(&mut self, line: &[u8]) -> Result<f64, &'static str> {
        let line = line.trim_ascii();
        let (number, length) = number(line).ok_or(if line.is_empty() {
            "the line is empty"
        } else {
            "it does not begin with a number"
        })?;
        let spelling = line[length..].trim_ascii_start();
        let factor = if spelling.is_empty() {
            self.plain.ok_or("a number without a unit; add a unit to each line, or give the unit of all lines")?
        } else if spelling == self.last {
            self.last_factor
        } else {
            self.factor(spelling)?
        };
        let value = number * factor;
        if !value.is_finite() {
            return Err("the number is too large");
        }
        if value < 0.0 && self.unit != Unit::One {
            return Err("the value is negative");
        }
        Ok(value)
    }

    fn factor(&mut self, spelling: &[u8]) -> Result<f64, &'static str> {
        let text = std::str::from_utf8(spelling).map_err(|_| "the text after the number is not a unit")?;
        let (unit, factor) = Unit::of_spelling(text).ok_or("the text after the number is not a unit")?;
        if unit != self.unit {
            return Err("the unit is not one of the expected kind");
        }
        if spelling.len() <= MOST_SPELLING {
            self.last.clear();
            self.last.extend_from_slice(spelling);
            self.last_factor = factor;
        }
        Ok(factor)
    }
}

/// Returns the beginning of a line for a message.
pub(super) fn shown(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(&line[..line.len().min(SHOWN_BYTES)]);
    let text = text.trim();
    if line.len() > SHOWN_BYTES { format!("{text}…") } else { text.to_string() }
}

/// The powers of ten that a double holds exactly.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];

/// Returns the number at the start of a text, correctly rounded, and its length in bytes.
fn number(text: &[u8]) -> Option<(f64, usize)> {
    let is_negative = text.first() == Some(&b'-');
    let start = usize::from(is_negative || text.first() == Some(&b'+'));
    let (mut at, mut digits, mut decimals, mut mantissa) = (start, 0_u32, 0_usize, 0_u64);
    let mut has_point = false;
    while let Some(byte) = text.get(at) {
        let digit = byte.wrapping_sub(b'0');
        if digit < 10 {
            mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(digit));
            digits += 1;
            decimals += usize::from(has_point);
        } else if *byte == b'.' && !has_point {
            has_point = true;
        } else {
            break;
        }
        at += 1;
    }
    if digits == 0 {
        return None;
    }
    let end = exponent_end(text, at);
    // With at most 15 digits and a small exponent, the quotient of two exact doubles is correctly rounded.
    if digits <= 15 && end == at {
        let value = mantissa as f64 / POWERS[decimals];
        return Some((if is_negative { -value } else { value }, at));
    }
    let value = std::str::from_utf8(&text[..end]).ok()?.parse().ok()?;
    Some((value, end))
}

/// Returns the end of an exponent that begins at `at`, or `at` if there is none.
fn exponent_end(text: &[u8], at: usize) -> usize {
    if !matches!(text.get(at), Some(b'e' | b'E')) {
        return at;
    }
    let digits = at + 1 + usize::from(matches!(text.get(at + 1), Some(b'+' | b'-')));
    let count = text[digits.min(text.len())..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    if count == 0 { at } else { digits + count }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parser(unit: Unit, factor: Option<f64>) -> LineParser {
        LineParser::new(&LineMetric { unit, factor, counts_bad_lines: false })
    }

    #[test]
    fn lines_are_numbers_with_units() {
        let mut times = parser(Unit::Nanosecond, None);
        for (line, value) in
            [("12.5 ms", 12.5e6), (" 3us\r", 3e3), ("+0 ns", 0.0), ("1e3 ms", 1e9), ("2E-1s", 0.2e9), ("7. s", 7e9)]
        {
            assert_eq!(times.parse(line.as_bytes()), Ok(value), "{line}");
        }
        let mut plain = parser(Unit::Nanosecond, Some(1e6));
        assert_eq!(plain.parse(b"12.5"), Ok(12.5e6));
        assert_eq!(plain.parse(b"12.5 us"), Ok(12_500.0));
        assert_eq!(parser(Unit::One, Some(1.0)).parse(b"-4"), Ok(-4.0));
    }

    #[test]
    fn other_lines_are_refused_with_a_reason() {
        let mut times = parser(Unit::Nanosecond, None);
        for (line, reason) in [
            ("", "empty"),
            ("   ", "empty"),
            ("ms", "does not begin with a number"),
            ("-", "does not begin with a number"),
            (".", "does not begin with a number"),
            ("nan ms", "does not begin with a number"),
            ("12", "without a unit"),
            ("12 parsecs", "not a unit"),
            ("12 MB", "expected kind"),
            ("12 ms 13 ms", "not a unit"),
            ("-1 ms", "negative"),
            ("1e999 ms", "too large"),
            ("1e308 s", "too large"),
            ("5 \u{fffd}", "not a unit"),
        ] {
            let error = times.parse(line.as_bytes()).unwrap_err();
            assert!(error.contains(reason), "{line}: {error}");
        }
        assert!(times.parse(b"5 \xff").is_err());
        assert_eq!(shown(&[b'x'; 100]), format!("{}…", "x".repeat(60)));
    }

    #[test]
    fn plain_numbers_need_a_newline() {
        let plain = parser(Unit::Nanosecond, Some(1e6));
        assert_eq!(plain.plain(b"12.5\n13\n"), Some((12.5e6, 5)));
        for text in [&b"12.5"[..], b"12.5 ms\n", b"-1\n", b"\n", b"1e999\n", b""] {
            assert_eq!(plain.plain(text), None, "{}", shown(text));
        }
        assert_eq!(parser(Unit::Nanosecond, None).plain(b"1\n"), None);
        assert_eq!(parser(Unit::One, Some(1.0)).plain(b"-1\n"), Some((-1.0, 3)));
    }

    proptest! {
        #[test]
        fn numbers_are_read_as_the_standard_library_reads_them(
            text in "[-+]?([0-9]{1,25}(\\.[0-9]{0,25})?|\\.[0-9]{1,20})([eE][-+]?[0-9]{1,3})?"
        ) {
            let expected: f64 = text.parse().unwrap();
            prop_assert_eq!(number(text.as_bytes()), Some((expected, text.len())));
        }

        #[test]
        fn no_line_makes_the_parser_panic(line in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = parser(Unit::One, Some(1.0)).parse(&line);
            let _ = parser(Unit::Nanosecond, None).parse(&line);
        }
    }
}
