//! The labels of ticks.

use crate::Prefixes;
use crate::axis::prefix;

/// Returns the symbol of the smallest prefix of the unit, such as `ns` for times; empty for numbers without a unit.
pub(crate) fn symbol(unit: Prefixes) -> &'static str {
    unit.last().map_or("", |(_, symbol)| symbol)
}

/// Returns the labels of evenly spaced numbers. All have the given prefix (factor and symbol), and as many decimals as
/// their distance `step` needs: `0`, `20 ms`, `40 ms`.
pub(crate) fn common(values: &[f64], step: f64, (factor, symbol): (f64, &str)) -> Vec<String> {
    let largest = values.iter().fold(0.0, |most: f64, v| most.max(v.abs()));
    let write = |value: &f64| match value {
        value if value.abs() < step * 1e-6 => "0".to_string(),
        value => with_unit(&decimal(value / factor, step / factor, largest / factor), symbol),
    };
    values.iter().map(write).collect()
}

/// Returns the label of one number, with the prefix that fits its size: `1 µs`, `200 µs`, `10⁶`.
pub(crate) fn own(value: f64, unit: Prefixes) -> String {
    if value == 0.0 {
        return "0".to_string();
    }
    // Skips prefixes such as minutes: 100 s must not become 1.667 min.
    let is_power_of_ten = |factor: f64| factor == 10f64.powi(factor.log10().round() as i32);
    let first = unit.iter().position(|(factor, _)| is_power_of_ten(*factor)).unwrap_or(unit.len());
    let (factor, symbol) = prefix(&unit[first..], value);
    let number = value / factor;
    let step = 10f64.powf(number.abs().log10().floor());
    let is_whole = (number / step - (number / step).round()).abs() < 1e-6;
    let step = if is_whole { step } else { step / 10.0 };
    with_unit(&decimal(number, step, number), symbol)
}

/// Returns the label of a power of two, or of a multiple of a power of two: `64 KiB`. Without a unit, all digits are
/// written: `65536`.
pub(crate) fn binary(value: f64, unit: Prefixes) -> String {
    let prefixes = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];
    let rank = ((value.log2() / 10.0).floor().max(0.0) as usize).min(prefixes.len() - 1);
    let number = value / 1024f64.powi(rank as i32);
    match symbol(unit) {
        "" => value.to_string(),
        symbol => format!("{number} {}{symbol}", prefixes[rank]),
    }
}

/// Returns the label of a share as a quantile: `p50`, `p99.9`.
pub(crate) fn quantile(share: f64) -> String {
    format!("p{}", hundredths(share))
}

/// Returns the label of a share in percent: `50 %`, `99.9 %`.
pub(crate) fn percent(share: f64) -> String {
    format!("{} %", hundredths(share))
}

/// Returns a share in percent, without the sign `%`. The number has enough decimals to differ visibly from 0 and 100.
fn hundredths(share: f64) -> String {
    if share < 1e-8 {
        return own(share * 100.0, &[]);
    }
    let rest = share.min(1.0 - share) * 100.0;
    let decimals = (1.0 - rest.log10().floor()).clamp(0.0, 14.0) as usize;
    let text = format!("{:.decimals$}", share * 100.0);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
}

fn with_unit(number: &str, symbol: &str) -> String {
    if symbol.is_empty() { number.to_string() } else { format!("{number} {symbol}") }
}

/// Writes a number with as many digits as are needed to distinguish it from `value` ± `step`. `largest` is the largest
/// number of the axis. If `largest` is at least 10 million or below 0.0001, the number is written with a power of ten:
/// `3×10⁸`. The same applies if the number would need nine or more decimals.
fn decimal(value: f64, step: f64, largest: f64) -> String {
    let decimals = -(step.log10() + 1e-9).floor();
    if (1e-4..1e7).contains(&largest.abs()) && decimals < 9.0 {
        return grouped(&format!("{value:.*}", decimals.max(0.0) as usize));
    }
    let exponent = (largest.abs().log10() + 1e-9).floor();
    // Divides by the power of ten in two steps, because the whole power may overflow or underflow.
    let half = (exponent / 2.0).trunc();
    let mantissa = value / 10f64.powf(half) / 10f64.powf(exponent - half);
    let decimals = (decimals + exponent).clamp(0.0, 12.0) as usize;
    match format!("{mantissa:.decimals$}").as_str() {
        "1" => format!("10{}", raised(exponent as i32)),
        "-1" => format!("-10{}", raised(exponent as i32)),
        mantissa => format!("{mantissa}×10{}", raised(exponent as i32)),
    }
}

/// Inserts separators between groups of three digits if the number is at least 10,000.
fn grouped(number: &str) -> String {
    let whole = number.trim_start_matches('-').split('.').next().map_or(0, str::len);
    if whole < 5 {
        return number.to_string();
    }
    let (sign, rest) = number.split_at(number.len() - number.trim_start_matches('-').len());
    let mut text = sign.to_string();
    for (index, c) in rest.chars().enumerate() {
        if index > 0 && index < whole && (whole - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(c);
    }
    text
}

fn raised(exponent: i32) -> String {
    let raise = |c: char| match c.to_digit(10) {
        Some(digit) => ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'][digit as usize],
        None => '⁻',
    };
    exponent.to_string().chars().map(raise).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_say_how_many_decimals() {
        let one = (1.0, "");
        assert_eq!(common(&[0.0, 2e7, 4e7], 2e7, (1e6, "ms")), ["0", "20 ms", "40 ms"]);
        assert_eq!(common(&[9.5e8, 1e9, 1.05e9], 5e7, (1e9, "s")), ["0.95 s", "1.00 s", "1.05 s"]);
        assert_eq!(common(&[0.975, 0.98, 0.985], 0.005, (0.01, "%")), ["97.5 %", "98.0 %", "98.5 %"]);
        assert_eq!(common(&[-0.5, 0.0, 0.5], 0.5, one), ["-0.5", "0", "0.5"]);
        assert_eq!(common(&[20_000.0, 1_000_000.0], 2e4, one), ["20,000", "1,000,000"]);
        assert_eq!(common(&[2e-9, 1e-8], 2e-9, one), ["0.2×10⁻⁸", "1.0×10⁻⁸"]);
        assert_eq!(common(&[1e300, 2e300], 1e300, one), ["10³⁰⁰", "2×10³⁰⁰"]);
    }

    #[test]
    fn single_numbers_have_their_own_prefix() {
        const TIME: Prefixes = &[(60e9, "min"), (1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")];
        const RATE: Prefixes = &[(1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")];
        for (value, unit, label) in [
            (1e3, TIME, "1 µs"),
            (2e8, TIME, "200 ms"),
            (1e11, TIME, "100 s"),
            (0.5, TIME, "0.5 ns"),
            (1e7, &[], "10⁷"),
            (0.001, &[], "0.001"),
            (1e-300, &[], "10⁻³⁰⁰"),
            (0.0, TIME, "0"),
            (0.0, &[], "0"),
            (-2.0, &[], "-2"),
            (5e9, RATE, "5 GB/s"),
        ] {
            assert_eq!(own(value, unit), label);
        }
        assert_eq!(binary(65536.0, &[(1e3, "kB"), (1.0, "B")]), "64 KiB");
        assert_eq!(binary(1.0, &[]), "1");
        assert_eq!(binary(65536.0, &[]), "65536");
    }

    #[test]
    fn quantiles_have_as_many_nines_as_they_need() {
        for (share, label) in [(0.5, "p50"), (0.9, "p90"), (0.999, "p99.9"), (0.99999, "p99.999"), (0.01, "p1")] {
            assert_eq!(quantile(share), label);
        }
        assert_eq!(quantile(0.001), "p0.1");
        assert_eq!(quantile(0.65), "p65");
        assert_eq!(quantile(1e-12), "p10⁻¹⁰");
        assert_eq!([0.5, 0.9995].map(percent), ["50 %", "99.95 %"]);
    }
}
