//! Units of measurement, and how to parse and print quantities.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::names::suggestion;

/// The unit in which a metric's values are recorded. Each dimension has a single unit: times are always nanoseconds,
/// sizes always bytes. So readers of evidence need not convert any column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Unit {
    /// Time in nanoseconds.
    #[serde(rename = "ns")]
    Nanosecond,
    /// Size in bytes.
    #[serde(rename = "B")]
    Byte,
    /// Bytes per second.
    #[serde(rename = "B/s")]
    BytePerSecond,
    /// Events, elements or operations per second.
    #[serde(rename = "1/s")]
    PerSecond,
    /// A number without a dimension: a count, a share, an exit code.
    #[serde(rename = "1")]
    One,
}

/// The accepted spellings of units: the text, the unit in which values are recorded, and the conversion factor.
const SPELLINGS: &[(&str, Unit, f64)] = &[
    ("ns", Unit::Nanosecond, 1.0),
    ("us", Unit::Nanosecond, 1e3),
    ("µs", Unit::Nanosecond, 1e3),
    ("ms", Unit::Nanosecond, 1e6),
    ("s", Unit::Nanosecond, 1e9),
    ("min", Unit::Nanosecond, 60e9),
    ("m", Unit::Nanosecond, 60e9),
    ("h", Unit::Nanosecond, 3600e9),
    ("B", Unit::Byte, 1.0),
    ("kB", Unit::Byte, 1e3),
    ("MB", Unit::Byte, 1e6),
    ("GB", Unit::Byte, 1e9),
    ("KiB", Unit::Byte, 1024.0),
    ("MiB", Unit::Byte, 1_048_576.0),
    ("GiB", Unit::Byte, 1_073_741_824.0),
    ("B/s", Unit::BytePerSecond, 1.0),
    ("kB/s", Unit::BytePerSecond, 1e3),
    ("MB/s", Unit::BytePerSecond, 1e6),
    ("GB/s", Unit::BytePerSecond, 1e9),
    ("KiB/s", Unit::BytePerSecond, 1024.0),
    ("MiB/s", Unit::BytePerSecond, 1_048_576.0),
    ("GiB/s", Unit::BytePerSecond, 1_073_741_824.0),
    ("Mbit/s", Unit::BytePerSecond, 1e6 / 8.0),
    ("Gbit/s", Unit::BytePerSecond, 1e9 / 8.0),
    ("/s", Unit::PerSecond, 1.0),
    ("1/s", Unit::PerSecond, 1.0),
    ("k/s", Unit::PerSecond, 1e3),
    ("M/s", Unit::PerSecond, 1e6),
    ("G/s", Unit::PerSecond, 1e9),
    ("", Unit::One, 1.0),
    ("%", Unit::One, 0.01),
];

impl Unit {
    /// Returns the unit's symbol in evidence and exports: `ns`, `B`, `B/s`, `1/s` or `1`.
    pub fn symbol(self) -> &'static str {
        match self {
            Unit::Nanosecond => "ns",
            Unit::Byte => "B",
            Unit::BytePerSecond => "B/s",
            Unit::PerSecond => "1/s",
            Unit::One => "1",
        }
    }

    /// Returns the unit for a spelling, and the factor that converts a number to that unit: `MB/s` is 1e6 `B/s`.
    pub fn of_spelling(spelling: &str) -> Option<(Unit, f64)> {
        let known = SPELLINGS.iter().find(|(known, ..)| *known == spelling && !spelling.is_empty());
        known.map(|(_, unit, scale)| (*unit, *scale))
    }

    /// Returns every accepted spelling, of all units.
    pub(crate) fn known() -> Vec<&'static str> {
        SPELLINGS.iter().map(|(spelling, ..)| *spelling).filter(|spelling| !spelling.is_empty()).collect()
    }

    /// Returns the accepted spellings of this unit, for error messages.
    pub fn spellings(self) -> Vec<&'static str> {
        let of_unit = SPELLINGS.iter().filter(|(_, unit, _)| *unit == self);
        of_unit.map(|(text, ..)| *text).filter(|text| !text.is_empty()).collect()
    }

    /// Returns the units for printing values, each as a factor and a symbol with its prefix, such as `(1e9, "GB")`. The
    /// largest factor comes first. The symbol of a number without a dimension is empty.
    pub fn prefixes(self) -> &'static [(f64, &'static str)] {
        match self {
            Unit::Nanosecond => &[(60e9, "min"), (1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")],
            Unit::Byte => &[(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")],
            Unit::BytePerSecond => &[(1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")],
            Unit::PerSecond => &[(1e9, "G/s"), (1e6, "M/s"), (1e3, "k/s"), (1.0, "/s")],
            Unit::One => &[(1.0, "")],
        }
    }

    /// Returns the factor and the symbol that fit a value: `(1e6, "ms")` for 23.4e6 ns.
    pub fn prefix(self, value: f64) -> (f64, &'static str) {
        let ladder = self.prefixes();
        let step = ladder.iter().find(|(factor, _)| value.abs() >= *factor);
        *step.unwrap_or(&ladder[ladder.len() - 1])
    }

    /// Formats a value of this unit as text for the user, with four significant digits and a suitable prefix. Counts
    /// are printed as whole numbers. Examples: `23.41 ms`, `1.500 GB/s`, `0.9876`, `5`.
    pub fn human(self, value: f64) -> String {
        if !value.is_finite() {
            return significant(value);
        }
        let (factor, symbol) = self.prefix(value);
        let number = if self.is_count(value) { value.to_string() } else { significant(value / factor) };
        format!("{number} {symbol}").trim_end().to_string()
    }

    /// Returns whether this unit's `value` is printed as a whole number, such as `5` or `128 B`. Times and rates never
    /// are.
    pub fn is_count(self, value: f64) -> bool {
        matches!(self, Unit::One | Unit::Byte)
            && value.fract() == 0.0
            && value.abs() < 1e10
            && self.prefix(value).0 == 1.0
    }

    /// Formats a quantity that the user wrote, such as a bound, with the user's own digits: `50 ms`, `0.975`. Digits
    /// after the twelfth come from unit conversion and are dropped.
    pub fn exact(self, value: f64) -> String {
        let (number, symbol) = self.exact_apart(value);
        format!("{number} {symbol}").trim_end().to_string()
    }

    /// Returns the number and the unit of [`exact`](Self::exact) as separate texts.
    pub fn exact_apart(self, value: f64) -> (String, &'static str) {
        if !value.is_finite() {
            return (significant(value), "");
        }
        let (factor, symbol) = self.prefix(value);
        let rounded = format!("{:.11e}", value / factor);
        let rounded: f64 = rounded.parse().unwrap_or(value / factor);
        // Very large and very small numbers are easier to read with an exponent.
        let number = match rounded.abs() {
            0.0 | 1e-5..1e12 => rounded.to_string(),
            _ => format!("{rounded:e}"),
        };
        (number, symbol)
    }
}

/// Converts a unit to its factors and symbols. Code that prints numbers with prefixes, such as the axes of a plot, uses
/// this conversion.
impl From<Unit> for &'static [(f64, &'static str)] {
    fn from(unit: Unit) -> Self {
        unit.prefixes()
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.symbol())
    }
}

/// Formats a number with four significant digits. Only very small and very large numbers get an exponent.
pub fn significant(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return match value {
            v if v.is_nan() => "-".into(),
            0.0 => "0".into(),
            v if v > 0.0 => "∞".into(),
            _ => "-∞".into(),
        };
    }
    let magnitude = value.abs().log10().floor() as i32;
    if !(-5..=9).contains(&magnitude) {
        let text = format!("{value:.3e}");
        let (number, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{number}×10{}", exponent.chars().map(raised).collect::<String>());
    }
    let decimals = (3 - magnitude).max(0) as usize;
    let text = format!("{value:.decimals$}");
    // Rounding may add a digit (9.9996 becomes 10.000); then print one decimal fewer.
    let carried = text.chars().filter(char::is_ascii_digit).collect::<String>();
    if decimals > 0 && carried.trim_start_matches('0').len() > 4 {
        return format!("{value:.*}", decimals - 1);
    }
    text
}

/// Returns the superscript form of a sign or digit of an exponent: `⁻`, `⁷`.
pub fn raised(c: char) -> char {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    c.to_digit(10).map_or('⁻', |digit| DIGITS[digit as usize])
}

/// The error for a text that is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct QuantityError(String);

impl Unit {
    fn spelled(self) -> String {
        match self {
            Unit::One => "plain numbers or %".into(),
            unit => unit.spellings().join(", "),
        }
    }
}

/// Parses a quantity such as `50 ms`, `200ms`, `1.5 GB/s`, `99%` or `0`, and converts it to the expected unit.
///
/// # Errors
/// If the text has no number, or a number that an `f64` cannot hold; if the unit is unknown, missing or of another
/// dimension. Zero needs no unit.
///
/// ```
/// use ascertain_engine::unit::{Unit, parse_quantity};
/// assert_eq!(parse_quantity("50 ms", Unit::Nanosecond), Ok(50e6));
/// assert_eq!(parse_quantity("99%", Unit::One), Ok(0.99));
/// assert!(parse_quantity("50", Unit::Nanosecond).is_err());
/// ```
pub fn parse_quantity(text: &str, expected: Unit) -> Result<f64, QuantityError> {
    let trimmed = text.trim();
    let number_end = trimmed
        .char_indices()
        .find(|&(at, c)| !(c.is_ascii_digit() || "._+-".contains(c) || is_exponent(trimmed, at)))
        .map_or(trimmed.len(), |(at, _)| at);
    let (number, unit_text) = trimmed.split_at(number_end);
    let wrong = |problem: &str| QuantityError(format!("`{trimmed}`{problem}"));
    let number: f64 = number.replace('_', "").parse().map_err(|_| wrong(" does not begin with a number"))?;
    let unit_text = unit_text.trim();
    if unit_text.is_empty() && number == 0.0 {
        return Ok(0.0);
    }
    let known = SPELLINGS.iter().find(|(spelling, ..)| *spelling == unit_text);
    let (_, unit, scale) = known.ok_or_else(|| {
        let near = suggestion(unit_text, expected.spellings()).unwrap_or_default();
        wrong(&format!(": unknown unit `{unit_text}`; write it in {}{near}", expected.spelled()))
    })?;
    if unit_text.is_empty() && expected != Unit::One {
        return Err(wrong(&format!(" needs a unit; write it in {}", expected.spelled())));
    }
    if *unit != expected {
        return Err(wrong(&format!(" is not in a suitable unit; write it in {}", expected.spelled())));
    }
    // 99.9 % must become the `f64` 0.999. Neither 99.9 * 0.01 nor 99.9 / 100 does, so move the decimal point.
    let value = if unit_text == "%" { format!("{number}e-2").parse().unwrap_or(number) } else { number * scale };
    // JSON has no infinity, so a plan that contains it could not be read back.
    if value.is_finite() { Ok(value) } else { Err(wrong(" is too large")) }
}

/// Returns whether the `e` at the byte `at` begins an exponent, as in `1e6`. Otherwise it belongs to a unit.
fn is_exponent(text: &str, at: usize) -> bool {
    let mut rest = text[at..].chars();
    let mut next = || rest.next().unwrap_or(' ');
    let e = next();
    let after = next();
    at > 0 && "eE".contains(e) && (after.is_ascii_digit() || "+-".contains(after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_in_their_unit() {
        for (text, unit, value) in [
            ("50 ms", Unit::Nanosecond, 50e6),
            ("1.5s", Unit::Nanosecond, 1.5e9),
            ("10min", Unit::Nanosecond, 600e9),
            ("1e3 us", Unit::Nanosecond, 1e6),
            ("0", Unit::Nanosecond, 0.0),
            ("64KiB", Unit::Byte, 65536.0),
            ("99.9%", Unit::One, 0.999),
            ("99%", Unit::One, 0.99),
            ("1_000", Unit::One, 1000.0),
            ("-2", Unit::One, -2.0),
            ("25 Gbit/s", Unit::BytePerSecond, 25e9 / 8.0),
        ] {
            assert_eq!(parse_quantity(text, unit), Ok(value), "{text}");
        }
    }

    #[test]
    fn wrong_quantities_say_what_is_wrong() {
        let message = |text, unit| parse_quantity(text, unit).unwrap_err().to_string();
        assert!(message("fast", Unit::One).contains("begin with a number"));
        let times = "write it in ns, us, µs, ms, s, min, m, h";
        let parsecs = message("5 parsecs", Unit::Nanosecond);
        assert_eq!(parsecs, format!("`5 parsecs`: unknown unit `parsecs`; {times}"));
        assert!(message("5 msec", Unit::Nanosecond).ends_with(&format!("{times}; did you mean `ms`?")));
        assert!(message("5 msec", Unit::Byte).ends_with("KiB, MiB, GiB"), "only units of the same kind are named");
        assert_eq!(message("5 MB", Unit::Nanosecond), format!("`5 MB` is not in a suitable unit; {times}"));
        assert_eq!(message("5", Unit::Nanosecond), format!("`5` needs a unit; {times}"));
        assert!(message("", Unit::One).contains("begin with a number"));
        assert!(message("1e999 s", Unit::Nanosecond).contains("too large"));
        assert!(message("5 ms", Unit::One).contains("plain numbers or %"));
    }

    #[test]
    fn people_read_four_digits() {
        assert_eq!(Unit::Nanosecond.human(23_412_345.0), "23.41 ms");
        assert_eq!([512.0, 512.5, 5120.0].map(|bytes| Unit::Byte.human(bytes)), ["512 B", "512.5 B", "5.120 kB"]);
        assert_eq!([5.0, 0.0, -3.0, 1e11].map(|one| Unit::One.human(one)), ["5", "0", "-3", "1.000×10¹¹"]);
        assert_eq!(Unit::Nanosecond.human(125.0), "125.0 ns", "not a count");
        assert_eq!(Unit::One.human(0.987_654), "0.9877");
        assert_eq!(significant(9.9999), "10.00");
        assert_eq!(significant(0.0), "0");
        assert_eq!(significant(123_456.0), "123456");
        assert_eq!(Unit::Nanosecond.human(f64::INFINITY), "∞");
    }

    #[test]
    fn bounds_keep_the_digits_they_were_given() {
        assert_eq!(Unit::Nanosecond.exact(50e6), "50 ms");
        assert_eq!(Unit::Nanosecond.exact(16.7 * 1e6), "16.7 ms");
        assert_eq!(Unit::One.exact(0.975), "0.975");
        assert_eq!(Unit::One.exact(1e-16), "1e-16");
        assert_eq!(Unit::One.exact(-2.5e-7), "-2.5e-7");
        assert_eq!(Unit::Byte.exact(0.0), "0 B");
        assert_eq!(Unit::BytePerSecond.exact(f64::INFINITY), "∞");
    }
}
