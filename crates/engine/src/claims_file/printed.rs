//! Metrics whose values a claim's commands print. A claim lists them, as in `metrics = { throughput = "([0-9.]+) MB/s"
//! }`, or describes a single printed metric in `metric`.

use toml::de::DeValue;

use super::error::Notes;
use super::keys::{Entry, Fields, entries, shown};
use crate::command::{PrintedMetric, PrintedMetricError};
use crate::derived::is_expression;
use crate::experiment::Better;
use crate::names::unknown;

/// Reads the printed metrics of a claim about commands. If the key `metric` describes a printed metric, this metric
/// comes first.
pub(super) fn printed_metrics(fields: &Fields<'_>, notes: &mut Notes<'_>) -> Option<Vec<PrintedMetric>> {
    let described = fields.get("metric").and_then(|entry| Some((entry.at, entry.value.as_str()?)));
    let described = described.filter(|(_, text)| PrintedMetric::describes(text) && !is_expression(text));
    let described = described.map(|(at, text)| noted(PrintedMetric::parse(text), at, notes));
    let table = fields.get("metrics").and_then(|entry| entry.value.as_table());
    let named: Vec<_> = table.map_or_else(Vec::new, |table| entries(table));
    let named: Vec<_> = named.iter().map(|entry| read_metric(entry, notes)).collect();
    let metrics: Vec<PrintedMetric> = described.into_iter().chain(named).collect::<Option<_>>()?;
    if let [first, others @ ..] = metrics.as_slice()
        && others.iter().any(|other| other.name == first.name)
        && let Some(entry) = fields.get("metric")
    {
        notes.add(entry.at, PrintedMetricError::twice(&first.name).to_string());
    }
    Some(metrics)
}

fn read_metric(entry: &Entry<'_>, notes: &mut Notes<'_>) -> Option<PrintedMetric> {
    let table = match entry.value {
        DeValue::String(pattern) => return noted(PrintedMetric::new(Some(entry.key), pattern), entry.at, notes),
        DeValue::Table(table) => entries(table),
        other => {
            let expected = "a pattern such as \"([0-9.]+) MB/s\", or a table such as { pattern = …, unit = \"MB/s\" }";
            notes.add(entry.at, format!("`{}` must be {expected}, not {}", entry.key, shown(other)));
            return None;
        }
    };
    const KEYS: [&str; 3] = ["pattern", "unit", "better"];
    let count_before = notes.count();
    for inner in &table {
        match inner.value {
            _ if !KEYS.contains(&inner.key) => notes.add(inner.key_at, unknown("key", inner.key, KEYS)),
            DeValue::String(_) => {}
            other => notes.add(inner.at, format!("`{}` must be a string, not {}", inner.key, shown(other))),
        }
    }
    let text = |key: &str| {
        let inner = table.iter().find(|inner| inner.key == key)?;
        inner.value.as_str().map(|text| (inner.at, text))
    };
    let Some((at, pattern)) = text("pattern") else {
        if notes.count() == count_before {
            notes.add(entry.at, format!("`{}` has no `pattern`; add one", entry.key));
        }
        return None;
    };
    let mut metric = noted(PrintedMetric::new(Some(entry.key), pattern), at, notes)?;
    if let Some((at, unit)) = text("unit") {
        metric = noted(metric.in_unit(unit), at, notes)?;
    }
    match text("better") {
        Some((_, "higher")) => metric = metric.with_better(Better::Higher),
        Some((_, "lower")) => metric = metric.with_better(Better::Lower),
        Some((at, other)) => {
            notes.add(at, format!("`better` must be \"higher\" or \"lower\", not \"{other}\""));
            return None;
        }
        None => {}
    }
    (notes.count() == count_before).then_some(metric)
}

fn noted(read: Result<PrintedMetric, PrintedMetricError>, at: usize, notes: &mut Notes<'_>) -> Option<PrintedMetric> {
    read.map_err(|error| notes.add(at, error.to_string())).ok()
}
