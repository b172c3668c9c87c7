//! Parses printed metrics as people write them, such as `throughput=([0-9.]+) MB/s`.

use regex_lite::Regex;

use super::json::JsonPath;
use super::{Pattern, PrintedMetric};
use crate::command::{counters, metrics};
use crate::experiment::Better;
use crate::names;
use crate::unit::Unit;

/// The error for a text that does not describe a printed metric.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PrintedMetricError(String);

impl PrintedMetricError {
    /// Returns the error for two printed metrics that have the same name, `name`.
    pub(crate) fn twice(name: &str) -> PrintedMetricError {
        PrintedMetricError(format!("the metric `{name}` is given twice; give each metric its own name"))
    }

    /// Returns the error for a text that has neither a name nor a path into JSON.
    fn nameless(text: &str) -> PrintedMetricError {
        PrintedMetricError(format!("`{text}` is not a printed metric; write NAME=REGEX, json:.PATH or NAME=json:.PATH"))
    }
}

impl PrintedMetric {
    /// Returns whether a text is meant as the description of a printed metric. Such a text contains `=`, a group of a
    /// regular expression, or a path into JSON. Any other text is the name of a metric.
    #[must_use]
    pub fn describes(text: &str) -> bool {
        text.contains(['=', '(', '[']) || text.starts_with(JSON) || text.starts_with('.')
    }

    /// Parses `NAME=REGEX`, `NAME=json:.PATH` or `json:.PATH`. In the last form, the name is the last key of the path.
    /// A known unit that follows the group of the regular expression is the figure's unit.
    ///
    /// # Errors
    /// If the name or the pattern is invalid.
    ///
    /// ```
    /// use ascertain_engine::command::PrintedMetric;
    /// use ascertain_engine::experiment::Better;
    /// use ascertain_engine::unit::Unit;
    ///
    /// let throughput = PrintedMetric::parse("throughput=([0-9.]+) MB/s").unwrap();
    /// assert_eq!((throughput.unit, throughput.scale), (Unit::BytePerSecond, 1e6));
    /// assert_eq!(throughput.better, Some(Better::Higher));
    ///
    /// let p99 = PrintedMetric::parse("json:.stats.p99").unwrap().in_unit("ms").unwrap();
    /// assert_eq!((p99.name.as_str(), p99.better), ("p99", Some(Better::Lower)));
    /// ```
    pub fn parse(text: &str) -> Result<PrintedMetric, PrintedMetricError> {
        let (name, pattern) = match text.split_once('=') {
            _ if text.starts_with(JSON) => (None, text),
            Some((name, pattern)) => (Some(name.trim()), pattern),
            None => return Err(PrintedMetricError::nameless(text)),
        };
        PrintedMetric::new(name, pattern)
    }

    /// Returns the printed metric with this name and pattern. If `name` is `None`, the pattern must be a path into JSON
    /// such as `json:.stats.p99`, and its last key becomes the name.
    ///
    /// # Errors
    /// If the name or the pattern is invalid, or if `name` is `None` and the pattern is not a path into JSON.
    pub fn new(name: Option<&str>, pattern: &str) -> Result<PrintedMetric, PrintedMetricError> {
        let (last_key, pattern, unit) = match pattern.strip_prefix(JSON) {
            Some(path) => (json_path(path)?.last_key(), Pattern::Json(path.to_string()), None),
            None => (None, Pattern::Regex(regex(pattern)?.to_string()), unit_behind_group(pattern)),
        };
        let name = match name {
            Some(name) => name.to_string(),
            None => last_key.ok_or_else(|| PrintedMetricError::nameless(&pattern.spelled()))?,
        };
        let is_usable = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
        if !is_usable {
            return Err(PrintedMetricError(format!(
                "`{name}` cannot be the name of a metric; use letters, digits, `_`, `-` and `.`, and begin with a letter"
            )));
        }
        if metrics().iter().chain(&counters()).any(|metric| metric.name == name) {
            let problem =
                format!("every command already has a metric `{name}`; choose another name for the printed metric");
            return Err(PrintedMetricError(problem));
        }
        let (unit, scale) = unit.unwrap_or((Unit::One, 1.0));
        Ok(PrintedMetric { name, pattern, unit, scale, better: implied(unit) })
    }

    /// Returns the metric with `unit` as the unit of the printed figure, for example `MB/s`.
    ///
    /// # Errors
    /// If the unit is unknown.
    pub fn in_unit(self, unit: &str) -> Result<PrintedMetric, PrintedMetricError> {
        let unknown = || PrintedMetricError(names::unknown("unit", unit, Unit::known()));
        let (unit, scale) = Unit::of_spelling(unit).ok_or_else(unknown)?;
        Ok(PrintedMetric { unit, scale, better: implied(unit).or(self.better), ..self })
    }

    /// Returns the metric with `better` as the direction that is better.
    #[must_use]
    pub fn with_better(self, better: Better) -> PrintedMetric {
        PrintedMetric { better: Some(better), ..self }
    }
}

/// The prefix that marks a pattern as a path into JSON.
const JSON: &str = "json:";

/// Returns the better direction that a unit implies: less time and memory, or more work per second. A plain number
/// implies none.
fn implied(unit: Unit) -> Option<Better> {
    match unit {
        Unit::Nanosecond | Unit::Byte => Some(Better::Lower),
        Unit::BytePerSecond | Unit::PerSecond => Some(Better::Higher),
        Unit::One => None,
    }
}

/// Compiles a regular expression, which must have one group.
pub(super) fn regex(pattern: &str) -> Result<Regex, PrintedMetricError> {
    let wrong = |reason| PrintedMetricError(format!("`{pattern}` is not a regular expression: {reason}"));
    let regex = Regex::new(pattern).map_err(wrong)?;
    match regex.captures_len() - 1 {
        1 => Ok(regex),
        groups => Err(PrintedMetricError(format!(
            "`{pattern}` has {groups} capture groups and needs exactly one; put parentheses around the figure, and \
             write any other group as (?:…)"
        ))),
    }
}

/// Parses a path into JSON.
pub(super) fn json_path(path: &str) -> Result<JsonPath, PrintedMetricError> {
    JsonPath::parse(path).ok_or_else(|| {
        PrintedMetricError(format!(
            "`{path}` is not a path into JSON; write .key, [0] and [\"key\"], such as .stats.p99 or .runs[0].time"
        ))
    })
}

/// Returns the known unit that follows the group of a regular expression, such as `MB/s` in `([0-9.]+) MB/s`. Also
/// returns its scale, the factor for converting figures.
fn unit_behind_group(pattern: &str) -> Option<(Unit, f64)> {
    let mut rest = &pattern[end_of_group(pattern)?..];
    while let Some(behind) = [r"\s*", r"\s+", r"\s", " *", " +", " ?", " "].iter().find_map(|s| rest.strip_prefix(s)) {
        rest = behind;
    }
    let rest = rest.replace(r"\/", "/");
    let end = rest.find(|c: char| !(c.is_alphanumeric() || "/%".contains(c))).unwrap_or(rest.len());
    // In `m?s` and `ms|s`, the output determines the unit, so the pattern alone does not give it.
    let is_open = rest[end..].starts_with(['?', '*', '+', '{', '|', '(', '[']);
    if is_open { None } else { Unit::of_spelling(&rest[..end]) }
}

/// Returns the offset at which the only capturing group of a regular expression ends.
fn end_of_group(pattern: &str) -> Option<usize> {
    let mut open = Vec::new();
    let mut characters = pattern.char_indices().peekable();
    let mut in_class = false;
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => _ = characters.next(),
            '[' if !in_class => {
                in_class = true;
                // A `]` at the beginning of a class is one of its characters.
                characters.next_if(|(_, next)| *next == '^');
                characters.next_if(|(_, next)| *next == ']');
            }
            ']' => in_class = false,
            '(' if !in_class => {
                let rest = &pattern[at + 1..];
                open.push(!rest.starts_with('?') || rest.starts_with("?P<") || rest.starts_with("?<"));
            }
            ')' if !in_class && open.pop() == Some(true) => return Some(at + 1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        PrintedMetric::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn the_unit_behind_the_group_is_taken() {
        for (pattern, unit) in [
            ("([0-9.]+) MB/s", Some((Unit::BytePerSecond, 1e6))),
            (r"rate: ([0-9.]+)\s*GiB/s$", Some((Unit::BytePerSecond, 1_073_741_824.0))),
            (r"(?:a|b) ([0-9.]+)ms, done", Some((Unit::Nanosecond, 1e6))),
            (r"([0-9.]+) MB\/s", Some((Unit::BytePerSecond, 1e6))),
            (r"[(] ([^)]+) % of", Some((Unit::One, 0.01))),
            (r"[]a(] ([0-9]+) kB", Some((Unit::Byte, 1e3))),
            (r"(?P<rate>\d+)/s", Some((Unit::PerSecond, 1.0))),
            (r"\(([0-9]+) s\)", Some((Unit::Nanosecond, 1e9))),
            (r"((?:[0-9]+[.])?[0-9]+) us", Some((Unit::Nanosecond, 1e3))),
            ("([0-9]+) ms/op", None),
            ("([0-9]+) widgets", None),
            ("MB/s: ([0-9]+)", None),
            ("([0-9.]+) m?s", None),
            ("([0-9.]+) (?:ms|s)", None),
            ("([0-9]+)", None),
        ] {
            assert_eq!(unit_behind_group(pattern), unit, "{pattern}");
        }
    }

    #[test]
    fn the_unit_implies_the_direction_until_one_is_given() {
        let better = |text: &str| PrintedMetric::parse(text).unwrap().better;
        assert_eq!(better("t=([0-9]+) ms"), Some(Better::Lower));
        assert_eq!(better("t=([0-9]+) MB"), Some(Better::Lower));
        assert_eq!(better("t=([0-9]+) /s"), Some(Better::Higher));
        assert_eq!(better("t=([0-9]+)"), None);
        assert_eq!(better("json:.t"), None);
        let memory = PrintedMetric::parse("cached=([0-9]+) MB").unwrap().with_better(Better::Higher);
        assert_eq!(memory.better, Some(Better::Higher));
        let share = PrintedMetric::parse("share=([0-9.]+)").unwrap().with_better(Better::Higher);
        assert_eq!(share.in_unit("%").unwrap().better, Some(Better::Higher), "a plain number implies none");
    }

    #[test]
    fn a_path_has_the_name_of_its_last_key() {
        let name = |text: &str| PrintedMetric::parse(text).unwrap().name;
        assert_eq!(name("json:.stats.p99"), "p99");
        assert_eq!(name("json:.runs[0]"), "runs");
        assert_eq!(name("latency=json:.a=b"), "latency");
        assert_eq!(name("json:.a[\"x=y\"].z"), "z");
        assert!(message("json:[0]").contains("NAME=json:.PATH"));
    }

    #[test]
    fn mistakes_are_named() {
        for no_name in ["throughput", "([0-9.]+) MB/s", ".stats.p99"] {
            assert!(message(no_name).contains("write NAME=REGEX, json:.PATH or NAME=json:.PATH"), "{no_name}");
            assert_eq!(PrintedMetric::describes(no_name), no_name != "throughput");
        }
        assert!(message("a b=(x)").contains("`a b` cannot be the name"));
        assert!(message("=(x)").contains("`` cannot be the name"));
        assert!(message("wall=(x)").contains("already has a metric `wall`"));
        assert!(message("cycles=(x)").contains("already has a metric `cycles`"));
        assert!(message("t=(x").contains("not a regular expression"));
        assert!(message("t=x").contains("has 0 capture groups"));
        assert!(message("t=(x)(y)").contains("has 2 capture groups"));
        assert!(message("t=json:stats").contains("`stats` is not a path into JSON"));
        let unit = PrintedMetric::parse("t=(x)").unwrap().in_unit("MBs").unwrap_err().to_string();
        assert!(unit.contains("unknown unit `MBs`") && unit.contains("did you mean `MB"), "{unit}");
    }
}
