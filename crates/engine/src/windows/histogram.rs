//! The file `windows.jsonl`: a line of JSON for each window, with its figures and its histogram.

#[cfg(any(feature = "commands", test))]
use std::io::{self, Write};

#[cfg(any(feature = "commands", test))]
use ascertain_streams::FlatTable;
use serde::{Deserialize, Serialize};

use super::WindowSummary;

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
    /// The histogram: pairs of a value and the number of observations near it, in ascending order. The relative distance
    /// of an observation from the value is at most [`ascertain_streams::RELATIVE_ERROR`]. Values below 2^−16 count as 0. A
    /// `null` stands for observations of 2^48 or more, and for those that reached the time limit.
    pub histogram: Vec<(Option<f64>, u64)>,
}

/// Writes the line of a window. Allocates nothing that depends on the window.
#[cfg(any(feature = "commands", test))]
pub(super) fn write_line(
    sink: &mut impl Write,
    summary: &WindowSummary,
    every: u64,
    table: &FlatTable,
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
    write!(sink, "\"every\":{every},\"histogram\":[")?;
    for (index, (value, count)) in table.histogram().enumerate() {
        sink.write_all(if index == 0 { b"[" } else { b",[" })?;
        number(sink, value)?;
        write!(sink, ",{count}]")?;
    }
    sink.write_all(b"]}\n")
}

#[cfg(any(feature = "commands", test))]
fn number(sink: &mut impl Write, value: f64) -> io::Result<()> {
    if value.is_finite() { write!(sink, "{value}") } else { sink.write_all(b"null") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_read_back_as_the_same_table() {
        let mut table = FlatTable::new(true, 4).unwrap();
        [-3.0, 0.0, 1e-9, 5.5, 5.5, 1e300].into_iter().for_each(|value| table.insert(value).unwrap());
        let summary = WindowSummary { window: 3, observations: 6, median: Some(5.5), ..WindowSummary::default() };
        let mut text = Vec::new();
        write_line(&mut text, &summary, 8, &table).unwrap();
        let line: WindowLine = serde_json::from_slice(&text).unwrap();
        assert_eq!((line.summary, line.every), (summary, 8));
        let mut again = FlatTable::new(true, 4).unwrap();
        for (value, count) in line.histogram {
            again.insert_times(value.unwrap_or(f64::INFINITY), count).unwrap();
        }
        assert!(again.histogram().eq(table.histogram()));
    }
}
