//! Parsers for option values, which the `ascertain` command and benches share.

use std::time::Duration;

use ascertain_engine::unit::{Unit, parse_quantity};

/// Parses a duration such as `30s`, `1.5 min` or `200ms`.
///
/// # Errors
/// If the text is not a duration, or the duration is shorter than a nanosecond.
pub fn duration(text: &str) -> Result<Duration, String> {
    let nanoseconds = parse_quantity(text, Unit::Nanosecond).map_err(|error| error.to_string())?;
    match nanoseconds {
        ns if (1.0..1e18).contains(&ns) => Ok(Duration::from_nanos(ns as u64)),
        _ => Err(format!("`{text}` is not a valid duration; give one such as 30s")),
    }
}

/// Parses a count of at least one.
///
/// # Errors
/// If the text is not a whole number, or is 0.
pub fn count(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(format!("`{text}` is not a count; give a whole number from 1, such as 20")),
    }
}

/// Parses the label of a run: one line of text, other than `latest`.
///
/// # Errors
/// If the text is empty, is `latest`, is longer than 100 characters, or contains a control character.
pub fn label(text: &str) -> Result<String, String> {
    const LONGEST: usize = 100;
    match text.trim() {
        "" => Err("a label needs at least one character".into()),
        "latest" => Err(format!("`{text}` stands for the latest run; choose another label")),
        label if label.contains(char::is_control) => Err("a label can't have line breaks or control characters".into()),
        label if label.chars().count() > LONGEST => Err(format!("a label can have at most {LONGEST} characters")),
        label => Ok(label.to_string()),
    }
}

/// Parses a share between 0 and 1, both excluded: `0.99`, `99%`, `1e-6`.
///
/// # Errors
/// If the text is not such a share. The message suggests a correction if the percent sign seems to be missing.
pub fn share(text: &str) -> Result<f64, String> {
    let value = parse_quantity(text, Unit::One).map_err(|error| error.to_string())?;
    match value {
        v if v > 0.0 && v < 1.0 => Ok(v),
        v if v > 1.0 && v < 100.0 && !text.contains('%') => {
            Err(format!("`{text}` is not strictly between 0 and 1; did you mean `{text}%`?"))
        }
        v if !(0.0..=1.0).contains(&v) => Err(format!("`{text}` is not a rate; give a rate between 0 and 100 %")),
        _ => Err(format!(
            "`{text}` is not strictly between 0 and 1; no number of trials can show a rate of exactly 0 or 1"
        )),
    }
}

/// Parses a difference as a share above 0 and below 1: `5%`, `0.01`.
///
/// # Errors
/// If the text is not such a share. The message suggests a correction if the percent sign seems to be missing.
pub fn positive_share(text: &str) -> Result<f64, String> {
    match margin(text)? {
        0.0 => Err(format!("`{text}` is not above 0; give a share such as 5%")),
        value if value < 1.0 => Ok(value),
        _ => Err(format!("`{text}` is not below 100 %; give a share such as 5%")),
    }
}

/// Parses a margin, the difference below which a candidate counts as the same as the reference. It is a share: `1%` or
/// `0.01`; 0 means no margin. A margin of 100 % or more needs a percent sign, because `2` more likely means `2%`.
pub fn margin(text: &str) -> Result<f64, String> {
    let value = parse_quantity(text, Unit::One).map_err(|error| error.to_string())?;
    match value {
        v if v >= 1.0 && !text.contains('%') => {
            Err(format!("`{text}` is a margin of 100 % or more; did you mean `{text}%`?"))
        }
        v if v >= 0.0 && v.is_finite() => Ok(v),
        _ => Err(format!("`{text}` is below 0; give a share such as 5%")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_margin_may_exceed_100_percent_and_a_share_may_not() {
        assert_eq!((margin("3%"), margin("400%")), (Ok(0.03), Ok(4.0)));
        assert_eq!(margin("0"), Ok(0.0));
        assert!(positive_share("0").is_err() && margin("-1%").is_err() && margin("inf").is_err());
        assert!(margin("2").unwrap_err().contains("did you mean `2%`?"));
        assert_eq!(positive_share("99%"), Ok(0.99));
        assert!(positive_share("100%").is_err() && positive_share("2").unwrap_err().contains("did you mean `2%`?"));
    }

    /// A time limit of zero would stop every command, so the shortest accepted duration is a nanosecond.
    #[test]
    fn a_time_is_a_nanosecond_at_least() {
        assert_eq!(duration("1 ns"), Ok(Duration::from_nanos(1)));
        for text in ["0", "0.5 ns", "-1 s", "1e12 h"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
