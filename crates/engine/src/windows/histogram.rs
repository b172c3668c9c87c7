//! The file `windows.jsonl`: a line of JSON for each window, with its figures and its histogram.

#[cfg(any(feature = "commands", test))]
use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use super::WindowSummary;
#[cfg(any(feature = "commands", test))]
use super::values::WindowValues;

/// Name of the file with the histograms, in the folder of a run.
pub const HISTOGRAMS: &str = "windows.jsonl";

/// A line of `windows.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WindowLine {
    /// The figures of the window.
    #[serde(flatten)]
    pub summary: WindowSummary,
    /// Every n-th observation was recorded at the end of the window. 0 if nothing is recorded.
    pub every: u64,
    /// The histogram: pairs of a value and the number of observations near it, in ascending order. The relative
    /// distance of an observation from the value is at most [`ascertain_streams::RELATIVE_ERROR`]. Values below 2^−16
    /// count as 0. A `null` stands for observations of 2^48 or more, and for those that were cut off. The least finite
    /// number stands for observations of −2^48 or less.
    pub histogram: Vec<(Option<f64>, u64)>,
    /// The histogram with the lower bounds of observations that were cut off; `None` if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lower_bounds: Option<Vec<(Option<f64>, u64)>>,
    /// `true` if values below 2^−16 are not zero.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_near_zero: bool,
    /// For each condition of a success, the number of observations since the start of the run that did not meet it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub broken: Vec<u64>,
}

/// Writes the line of a window. Allocates nothing that depends on the window.
#[cfg(any(feature = "commands", test))]
pub(super) fn write_line(
    sink: &mut impl Write,
    summary: &WindowSummary,
    every: u64,
    values: &WindowValues,
    broken: &[u64],
) -> io::Result<()> {
    let WindowSummary {
        window,
        windows,
        start_ns,
        end_ns,
        observations,
        successes,
        unknown,
        without_value,
        stopped,
        ..
    } = *summary;
    write!(sink, "{{\"window\":{window},\"windows\":{windows},\"start_ns\":{start_ns},\"end_ns\":{end_ns},")?;
    write!(sink, "\"observations\":{observations},\"successes\":{successes},\"unknown\":{unknown},")?;
    write!(sink, "\"without_value\":{without_value},\"stopped\":{stopped},")?;
    let figures = [
        ("least", summary.least),
        ("median", summary.median),
        ("p90", summary.p90),
        ("p99", summary.p99),
        ("p999", summary.p999),
        ("most", summary.most),
    ];
    for (name, figure) in figures {
        write!(sink, "\"{name}\":")?;
        number(sink, figure.unwrap_or(f64::INFINITY))?;
        sink.write_all(b",")?;
    }
    if let Some(ranges) = &summary.ranges {
        sink.write_all(b"\"ranges\":")?;
        serde_json::to_writer(&mut *sink, ranges)?;
        sink.write_all(b",")?;
    }
    write!(sink, "\"every\":{every}")?;
    for (name, table) in ["histogram", "lower_bounds"].into_iter().zip(values.tables()) {
        let Some(table) = table else { continue };
        write!(sink, ",\"{name}\":")?;
        list(sink, b"[", table.histogram(), |sink, (value, count)| {
            number(sink, value)?;
            write!(sink, ",{count}]")
        })?;
    }
    if values.has_near_zero() {
        sink.write_all(b",\"has_near_zero\":true")?;
    }
    if !broken.is_empty() {
        sink.write_all(b",\"broken\":")?;
        list(sink, b"", broken.iter(), |sink, count| write!(sink, "{count}"))?;
    }
    sink.write_all(b"}\n")
}

/// Writes a list. Each element begins with `start`.
#[cfg(any(feature = "commands", test))]
fn list<S: Write, T>(
    sink: &mut S,
    start: &[u8],
    elements: impl Iterator<Item = T>,
    write: impl Fn(&mut S, T) -> io::Result<()>,
) -> io::Result<()> {
    sink.write_all(b"[")?;
    for (index, element) in elements.enumerate() {
        sink.write_all(if index == 0 { b"" } else { b"," })?;
        sink.write_all(start)?;
        write(sink, element)?;
    }
    sink.write_all(b"]")
}

#[cfg(any(feature = "commands", test))]
fn number(sink: &mut impl Write, value: f64) -> io::Result<()> {
    match value {
        value if value.is_finite() => write!(sink, "{value}"),
        f64::NEG_INFINITY => write!(sink, "{:e}", f64::MIN),
        _ => sink.write_all(b"null"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::Bounds;

    #[test]
    fn lines_read_back_as_the_same_values() {
        let mut values = WindowValues::new(true, true, 4).unwrap();
        let exact = [-1e300, -3.0, 0.0, 1e-9, 5.5, 5.5, 1e300].map(Bounds::exact);
        exact.into_iter().chain([Bounds::above(7.0), Bounds::UNKNOWN]).for_each(|value| values.insert(value));
        let counts = WindowSummary { window: 3, observations: 9, stopped: 2, ..WindowSummary::default() };
        let summary = values.summary(counts);
        assert!(summary.median.is_none() && summary.ranges.is_some());
        let mut text = Vec::new();
        write_line(&mut text, &summary, 8, &values, &[2, 0]).unwrap();
        let line: WindowLine = serde_json::from_slice(&text).unwrap();
        assert_eq!((line.summary, line.every, &line.broken), (summary, 8, &vec![2, 0]));
        #[cfg(feature = "recorded")]
        {
            let mut again = WindowValues::new(true, true, 4).unwrap();
            again.insert_recorded(&line);
            for (again, table) in again.tables().into_iter().zip(values.tables()) {
                assert!(again.unwrap().histogram().eq(table.unwrap().histogram()));
            }
            assert_eq!(again.summary(counts), summary);
        }
    }
}
