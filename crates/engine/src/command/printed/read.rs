//! Reads figures from the output of a command that has ended.

use ascertain_sys::process::KEPT_BYTES;
use regex_lite::Regex;
use serde_json::Value;

use super::json::{JsonPath, last_value};
use super::parse::{PrintedMetricError, json_path, regex};
use super::{Pattern, PrintedMetric};
use crate::unit::parse_quantity;

/// A printed metric with its compiled pattern.
pub(in crate::command) struct FigureReader {
    metric: PrintedMetric,
    finder: CompiledPattern,
}

enum CompiledPattern {
    Regex(Regex),
    Json(JsonPath),
}

impl FigureReader {
    /// Returns the readers of these metrics, with compiled patterns.
    ///
    /// # Errors
    /// If a pattern is invalid, or if two metrics have the same name.
    pub fn all(metrics: &[PrintedMetric]) -> Result<Vec<FigureReader>, PrintedMetricError> {
        let compiled = metrics.iter().enumerate().map(|(index, metric)| {
            if metrics[..index].iter().any(|other| other.name == metric.name) {
                return Err(PrintedMetricError::twice(&metric.name));
            }
            let finder = match &metric.pattern {
                Pattern::Regex(pattern) => CompiledPattern::Regex(regex(pattern)?),
                Pattern::Json(path) => CompiledPattern::Json(json_path(path)?),
            };
            Ok(FigureReader { metric: metric.clone(), finder })
        });
        compiled.collect()
    }

    /// Reads the figure from the output of a command, and converts it to the metric's unit.
    ///
    /// # Errors
    /// If the figure is missing or is not a finite number. The message is a clause to append to the command's name.
    pub fn read(&self, output: &[u8]) -> Result<f64, String> {
        // The first line may be cut off, so it is not read.
        let is_cut = output.len() as u64 >= KEPT_BYTES;
        let whole_lines = match output.iter().position(|byte| *byte == b'\n').filter(|_| is_cut) {
            Some(end) => &output[end + 1..],
            None => output,
        };
        let text = String::from_utf8_lossy(whole_lines);
        let PrintedMetric { name, pattern, .. } = &self.metric;
        let found = match &self.finder {
            CompiledPattern::Regex(regex) => text.split(['\n', '\r']).rev().find_map(|line| {
                let last = regex.captures_iter(line).last()?;
                last.get(1).map(|group| group.as_str().to_string())
            }),
            CompiledPattern::Json(path) => last_value(&text).and_then(|value| Some(scalar(path.find(&value)?))),
        };
        let Some(found) = found else {
            let place = if is_cut { "the last MiB of its output, which is all that is kept" } else { "its output" };
            let pattern = pattern.spelled();
            let reason = match self.finder {
                CompiledPattern::Regex(_) => format!("`{pattern}` matches no line of {place}"),
                CompiledPattern::Json(_) if last_value(&text).is_none() => {
                    format!("no line of {place} begins with a JSON object or list")
                }
                CompiledPattern::Json(_) => format!("`{pattern}` matches nothing in the last JSON value of {place}"),
            };
            return Err(format!("printed no `{name}`: {reason}"));
        };
        let value = self.value(found.trim());
        value.ok_or_else(|| format!("printed `{found}` as `{name}`, which is not a finite number"))
    }

    /// Parses a number, or a quantity with its own unit: both `1.2 GB/s` and `980 MB/s` are valid.
    fn value(&self, text: &str) -> Option<f64> {
        let PrintedMetric { unit, scale, .. } = self.metric;
        let number = text.parse::<f64>().ok().map(|number| number * scale);
        number.or_else(|| parse_quantity(text, unit).ok()).filter(|value| value.is_finite())
    }
}

/// Returns a string without its quotes, and any other value as JSON.
fn scalar(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(metric: &str, output: &str) -> Result<f64, String> {
        FigureReader::all(&[PrintedMetric::parse(metric).unwrap()]).unwrap()[0].read(output.as_bytes())
    }

    #[test]
    fn the_last_match_counts_in_the_unit_of_the_metric() {
        let output = "10 MB/s\n 20 MB/s, 30 MB/s\nbye\n";
        assert_eq!(read("t=([0-9.]+) MB/s", output), Ok(30e6));
        assert_eq!(read("t=^([0-9.]+) MB/s", output), Ok(10e6), "each line has a beginning");
        assert_eq!(read("t=([0-9.]+) MB/s$", "1 MB/s\r2 MB/s\r\n"), Ok(2e6), "a line of progress is written over");
        assert_eq!(read("t=([0-9.e-]+)", "1.5e-3"), Ok(1.5e-3));
        assert_eq!(read("t=(-?[0-9]+) ms", "\u{fffd}-5 ms"), Ok(-5e6));
    }

    #[test]
    fn a_group_may_have_the_unit_in_it() {
        let dd = PrintedMetric::parse("rate=([0-9.]+ [kMG]?B/s)").unwrap().in_unit("MB/s").unwrap();
        let reader = &FigureReader::all(&[dd]).unwrap()[0];
        assert_eq!(reader.read(b"copied, 1.5 GB/s"), Ok(1.5e9));
        assert_eq!(reader.read(b"copied, 980 MB/s"), Ok(980e6));
        assert!(reader.read(b"copied, 980 ms").is_err());
    }

    #[test]
    fn json_has_numbers_and_strings() {
        assert_eq!(read("json:.p99", "{\"p99\": 12.5}"), Ok(12.5));
        assert_eq!(read("json:.p99", "{\"p99\": \"12.5\"}"), Ok(12.5));
        let error = read("json:.p99", "{\"p99\": null}").unwrap_err();
        assert_eq!(error, "printed `null` as `p99`, which is not a finite number");
        let error = read("json:.p99", "{\"p\": 1}").unwrap_err();
        assert_eq!(error, "printed no `p99`: `json:.p99` matches nothing in the last JSON value of its output");
        let error = read("json:.p99", "p99: {\"p99\": 1}").unwrap_err();
        assert_eq!(error, "printed no `p99`: no line of its output begins with a JSON object or list");
    }

    #[test]
    fn missing_and_wrong_figures_are_named() {
        let error = read("t=([0-9.]+) MB/s", "hello\n").unwrap_err();
        assert_eq!(error, "printed no `t`: `([0-9.]+) MB/s` matches no line of its output");
        for figure in ["nan", "inf", "-inf", "abc", "1,5", "1e999", ""] {
            let error = read("t=is (.*)", &format!("is {figure}")).unwrap_err();
            assert_eq!(error, format!("printed `{figure}` as `t`, which is not a finite number"));
        }
    }

    #[test]
    fn a_line_that_was_cut_is_not_read() {
        let mut output = "123 MB/s\n".repeat(KEPT_BYTES as usize);
        output.truncate(KEPT_BYTES as usize);
        assert_eq!(read("t=([0-9.]+) MB/s", &output), Ok(123e6));
        let cut = format!("9 MB/s{}", "\n".repeat(KEPT_BYTES as usize - 6));
        let error = read("t=([0-9.]+) MB/s", &cut).unwrap_err();
        assert!(error.ends_with("no line of the last MiB of its output, which is all that is kept"), "{error}");
    }
}
