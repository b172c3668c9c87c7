//! The Bencher Metric Format: a JSON object by benchmark and measure. Benchmarks are experiment, variant
//! and point; a value is the median with the ends of its interval at 95 %. The time that an arm is about is
//! Bencher's own measure `latency`, in nanoseconds, and operations a second are its `throughput`; any other
//! metric is a measure of its own.

use ascertain_engine::outcome::PointSummary;
use ascertain_engine::unit::Unit;
use serde_json::{Map, Value, json};

use super::results::{Results, UniqueNames};

/// The longest names that Bencher takes, in characters.
const LONGEST_BENCHMARK: usize = 1024;
const LONGEST_MEASURE: usize = 64;
/// What is left of it for a number, should another name be cut to the same.
const ROOM: usize = 8;

/// `--export-bencher`.
pub(super) fn write(results: &Results) -> String {
    let mut names = UniqueNames::default();
    let mut benchmarks = Map::new();
    for arm in results.arms() {
        let time = arm.time().map(|(point, _)| point.metric.as_str());
        // Two metrics that Bencher spells alike are two measures all the same.
        let mut measures = UniqueNames::default();
        let known = arm.metrics.iter().filter_map(|(point, _)| {
            let name = if time == Some(&point.metric) { "latency".into() } else { measure(point) };
            let name = measures.distinct(name);
            Some((name, metric(point)?))
        });
        let measures: Map<String, Value> = known.collect();
        if !measures.is_empty() {
            let name = cut(&format!("{}/{}", arm.experiment, arm.label()), LONGEST_BENCHMARK - ROOM);
            benchmarks.insert(names.distinct(name), Value::Object(measures));
        }
    }
    crate::json::object(&benchmarks)
}

/// `None` where the median is not known, which Bencher can't be told.
fn metric(point: &PointSummary) -> Option<Value> {
    let mut metric = json!({ "value": point.median? });
    for (name, end) in [("lower_value", point.median_low), ("upper_value", point.median_high)] {
        if let Some(end) = end {
            metric[name] = end.into();
        }
    }
    Some(metric)
}

/// A metric's name as Bencher spells measures: `memory-peak`.
fn measure(point: &PointSummary) -> String {
    let name = cut(&point.metric.to_lowercase().replace([' ', '_'], "-"), LONGEST_MEASURE - ROOM);
    match (name.as_str(), point.unit) {
        // Bencher's own measures are in nanoseconds and in operations a second.
        ("throughput", Unit::PerSecond) => name,
        ("throughput", _) => "bandwidth".into(),
        ("latency", _) => "other-latency".into(),
        _ => name,
    }
}

fn cut(text: &str, longest: usize) -> String {
    text.chars().take(longest).collect()
}
