//! Units of the values in an expression, and the factors that appear when quantities are multiplied or divided.

use std::fmt;

/// The unit of a series or a number: a product of powers of bytes and of time, or the truth of a condition.
///
/// Values are in nanoseconds if the unit is a plain time. In every other unit, time is in seconds: B/s, 1/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unit {
    /// A quantity: bytes to the first power, time to the second power.
    Quantity(i8, i8),
    /// The result of a comparison: 1 for true and 0 for false.
    Condition,
}

impl Unit {
    /// A number without a dimension.
    pub const ONE: Unit = Unit::Quantity(0, 0);
    /// Time, in nanoseconds.
    pub const TIME: Unit = Unit::Quantity(0, 1);
    /// Size, in bytes.
    pub const BYTES: Unit = Unit::Quantity(1, 0);
    /// Bytes per second.
    pub const BYTES_PER_SECOND: Unit = Unit::Quantity(1, -1);
    /// Events per second.
    pub const PER_SECOND: Unit = Unit::Quantity(0, -1);

    /// Returns the unit with this symbol in recorded evidence: `ns`, `B`, `B/s`, `1/s` or `1`.
    #[must_use]
    pub fn of_symbol(symbol: &str) -> Option<Unit> {
        SYMBOLS.iter().find(|(known, _)| *known == symbol).map(|(_, unit)| *unit)
    }

    /// Returns the symbol of the unit in recorded evidence. Returns `None` for other products, such as ns/B, and for
    /// conditions.
    #[must_use]
    pub fn symbol(self) -> Option<&'static str> {
        SYMBOLS.iter().find(|(_, unit)| *unit == self).map(|(symbol, _)| *symbol)
    }

    /// Returns the size of the unit in SI units.
    fn scale(self) -> f64 {
        if self == Unit::TIME { 1e-9 } else { 1.0 }
    }

    /// Returns the unit of a product, and the factor by which the product of the numbers is multiplied. Returns `None`
    /// if an exponent is too large or a factor is a condition.
    pub(crate) fn times(self, other: Unit) -> Option<(Unit, f64)> {
        let (Unit::Quantity(bytes, time), Unit::Quantity(other_bytes, other_time)) = (self, other) else { return None };
        let unit = Unit::Quantity(bytes.checked_add(other_bytes)?, time.checked_add(other_time)?);
        Some((unit, factor(self.scale() * other.scale(), unit.scale())))
    }

    /// Returns the unit of a quotient, and the factor by which the quotient of the numbers is multiplied. Returns
    /// `None` if an exponent is too large or one of the two is a condition.
    pub(crate) fn over(self, other: Unit) -> Option<(Unit, f64)> {
        let (Unit::Quantity(bytes, time), Unit::Quantity(other_bytes, other_time)) = (self, other) else { return None };
        let unit = Unit::Quantity(bytes.checked_sub(other_bytes)?, time.checked_sub(other_time)?);
        Some((unit, factor(self.scale(), other.scale() * unit.scale())))
    }
}

/// Returns `above / below`, without the rounding error of a quotient of powers of ten.
fn factor(above: f64, below: f64) -> f64 {
    if above == below { 1.0 } else { nearest_power(above / below) }
}

/// Returns the power of ten that is nearest to `value`.
fn nearest_power(value: f64) -> f64 {
    10_f64.powi(value.log10().round() as i32)
}

const SYMBOLS: [(&str, Unit); 5] = [
    ("ns", Unit::TIME),
    ("B", Unit::BYTES),
    ("B/s", Unit::BYTES_PER_SECOND),
    ("1/s", Unit::PER_SECOND),
    ("1", Unit::ONE),
];

/// The spellings of units in an expression, each with its unit and the factor that converts to it.
const SPELLINGS: &[(&str, Unit, f64)] = &[
    ("ns", Unit::TIME, 1.0),
    ("us", Unit::TIME, 1e3),
    ("µs", Unit::TIME, 1e3),
    ("ms", Unit::TIME, 1e6),
    ("s", Unit::TIME, 1e9),
    ("min", Unit::TIME, 60e9),
    ("m", Unit::TIME, 60e9),
    ("h", Unit::TIME, 3600e9),
    ("B", Unit::BYTES, 1.0),
    ("kB", Unit::BYTES, 1e3),
    ("MB", Unit::BYTES, 1e6),
    ("GB", Unit::BYTES, 1e9),
    ("KiB", Unit::BYTES, 1024.0),
    ("MiB", Unit::BYTES, 1_048_576.0),
    ("GiB", Unit::BYTES, 1_073_741_824.0),
    ("B/s", Unit::BYTES_PER_SECOND, 1.0),
    ("kB/s", Unit::BYTES_PER_SECOND, 1e3),
    ("MB/s", Unit::BYTES_PER_SECOND, 1e6),
    ("GB/s", Unit::BYTES_PER_SECOND, 1e9),
    ("/s", Unit::PER_SECOND, 1.0),
];

/// Returns the unit and the factor for a spelling such as `ms` or `MB/s`.
pub(crate) fn of_spelling(spelling: &str) -> Option<(Unit, f64)> {
    SPELLINGS.iter().find(|(known, ..)| *known == spelling).map(|(_, unit, factor)| (*unit, *factor))
}

/// Returns the accepted spellings of units.
pub(crate) fn spellings() -> impl Iterator<Item = &'static str> {
    SPELLINGS.iter().map(|(spelling, ..)| *spelling)
}

/// The spellings in which plans print numbers. In each unit, a greater one comes after a smaller one.
const PRINTED: [&str; 13] = ["ns", "µs", "ms", "s", "B", "kB", "MB", "GB", "B/s", "kB/s", "MB/s", "GB/s", "/s"];

impl Unit {
    /// Returns the SI spelling of the unit in an expression. Returns `None` if numbers cannot have the unit.
    pub(crate) fn spelling(self) -> Option<&'static str> {
        if self == Unit::TIME {
            return Some("s");
        }
        SPELLINGS.iter().find(|(_, unit, _)| *unit == self).map(|(spelling, ..)| *spelling)
    }

    /// Writes a number with its unit: `5 ms`, `1.5 MB/s`, `7`. Digits after the twelfth come from unit conversion and
    /// are dropped.
    pub(crate) fn written(self, value: f64) -> String {
        let mut of_unit = SPELLINGS.iter().filter(|(spelling, unit, _)| *unit == self && PRINTED.contains(spelling));
        let fits = of_unit.clone().rev().find(|(.., factor)| *factor <= value.abs());
        let (spelling, factor) = match fits.or_else(|| of_unit.next()) {
            _ if self == Unit::ONE => (String::new(), 1.0),
            _ if value == 0.0 && self == Unit::TIME => (" s".into(), 1.0),
            Some((spelling, _, factor)) => (format!(" {spelling}"), *factor),
            None => (format!(" {self}"), 1.0),
        };
        let number: f64 = format!("{:.11e}", value / factor).parse().unwrap_or(value);
        let is_long = number != 0.0 && !(1e-6..1e15).contains(&number.abs());
        if is_long { format!("{number:e}{spelling}") } else { format!("{number}{spelling}") }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unit::Quantity(bytes, time) = *self else { return f.write_str("a condition") };
        if let Some(symbol) = self.symbol() {
            return f.write_str(symbol);
        }
        let power = |symbol: &str, exponent: i8| match exponent.unsigned_abs() {
            0 => None,
            1 => Some(symbol.to_string()),
            exponent => Some(format!("{symbol}^{exponent}")),
        };
        let parts = [("B", bytes), ("s", time)];
        let join = |is_above: bool| -> Vec<String> {
            let side = parts.iter().filter(|(_, exponent)| (*exponent > 0) == is_above);
            side.filter_map(|(symbol, exponent)| power(symbol, *exponent)).collect()
        };
        let (above, below) = (join(true).join("·"), join(false).join("/"));
        match (above.is_empty(), below.is_empty()) {
            (_, true) => f.write_str(&above),
            (true, false) => write!(f, "1/{below}"),
            (false, false) => write!(f, "{above}/{below}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_have_the_unit_and_factor_of_the_evidence() {
        assert_eq!(Unit::BYTES.over(Unit::TIME), Some((Unit::BYTES_PER_SECOND, 1e9)));
        assert_eq!(Unit::BYTES_PER_SECOND.times(Unit::TIME), Some((Unit::BYTES, 1e-9)));
        assert_eq!(Unit::ONE.over(Unit::TIME), Some((Unit::PER_SECOND, 1e9)));
        assert_eq!(Unit::ONE.over(Unit::PER_SECOND), Some((Unit::TIME, 1e9)));
        assert_eq!(Unit::TIME.over(Unit::TIME), Some((Unit::ONE, 1.0)));
        assert_eq!(Unit::TIME.times(Unit::ONE), Some((Unit::TIME, 1.0)));
        assert_eq!(Unit::Quantity(127, 0).times(Unit::BYTES), None);
        assert_eq!(Unit::Condition.times(Unit::ONE), None);
    }

    #[test]
    fn numbers_are_written_with_their_units() {
        for (unit, value, written) in [
            (Unit::TIME, 5e6, "5 ms"),
            (Unit::TIME, 1.1 * 1e6, "1.1 ms"),
            (Unit::TIME, -90e9, "-90 s"),
            (Unit::TIME, 0.0, "0 s"),
            (Unit::TIME, 0.25, "0.25 ns"),
            (Unit::BYTES, 1_048_576.0, "1.048576 MB"),
            (Unit::BYTES_PER_SECOND, 2e3, "2 kB/s"),
            (Unit::PER_SECOND, 1e9, "1000000000 /s"),
            (Unit::ONE, 1e300, "1e300"),
            (Unit::ONE, 0.01, "0.01"),
            (Unit::ONE, 1e-9, "1e-9"),
            (Unit::Quantity(0, 2), 3.0, "3 s^2"),
        ] {
            assert_eq!(unit.written(value), written);
        }
    }

    #[test]
    fn units_without_a_symbol_are_printed_as_products() {
        assert_eq!(Unit::Quantity(-1, 1).to_string(), "s/B");
        assert_eq!(Unit::Quantity(0, 2).to_string(), "s^2");
        assert_eq!(Unit::Quantity(-2, 0).to_string(), "1/B^2");
        assert_eq!(Unit::PER_SECOND.to_string(), "1/s");
    }
}
