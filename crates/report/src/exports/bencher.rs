//! The Bencher Metric Format: a JSON object with an entry for each benchmark. A benchmark is an experiment, a variant
//! and a point. Its entry has a value for each of its measures: the median with its 95 % interval. The main time of an
//! arm becomes Bencher's measure `latency`, in nanoseconds. Operations per second become its measure `throughput`. Any
//! other metric is a measure of its own.

use ascertain_engine::outcome::PointSummary;
use ascertain_engine::unit::Unit;
use serde_json::{Map, Value, json};

use super::results::{Results, UniqueNames};

/// The length of the longest benchmark name that Bencher accepts, in characters.
const LONGEST_BENCHMARK: usize = 1024;
const LONGEST_MEASURE: usize = 64;
/// Number of characters that are kept free at the end of a shortened name. If two names become equal when they are
/// shortened, the second one gets a suffix there.
const ROOM: usize = 8;

/// Returns the content of the file for `--export-bencher`.
pub(super) fn write(results: &Results) -> String {
    let mut names = UniqueNames::default();
    let mut benchmarks = Map::new();
    for arm in results.arms() {
        let time = arm.time().map(|(point, _)| point.metric.as_str());
        // If two metrics have the same name in Bencher's spelling, the second one gets a suffix.
        let mut measures = UniqueNames::default();
        let known = arm.metrics.iter().filter_map(|(point, _)| {
            let name = if time == Some(&point.metric) { "latency".into() } else { measure(point) };
            let name = measures.distinct(name);
            Some((name, metric(point)?))
        });
        let measures: Map<String, Value> = known.collect();
        if !measures.is_empty() {
            let name = cut(&format!("{}/{}", arm.experiment, arm.arm), LONGEST_BENCHMARK - ROOM);
            benchmarks.insert(names.distinct(name), Value::Object(measures));
        }
    }
    crate::json::object(&benchmarks)
}

/// Returns the value of a metric with its interval. `None` if the median is unknown, because the format requires a
/// value.
fn metric(point: &PointSummary) -> Option<Value> {
    let mut metric = json!({ "value": point.median? });
    for (name, end) in [("lower_value", point.median_low), ("upper_value", point.median_high)] {
        if let Some(end) = end {
            metric[name] = end.into();
        }
    }
    Some(metric)
}

/// Returns the name of a metric as Bencher spells measures: in lower case, with hyphens (`memory-peak`).
fn measure(point: &PointSummary) -> String {
    let name = cut(&point.metric.to_lowercase().replace([' ', '_'], "-"), LONGEST_MEASURE - ROOM);
    match (name.as_str(), point.unit) {
        // The measures that Bencher itself defines are `latency` in nanoseconds and `throughput` in operations per
        // second.
        ("throughput", Unit::PerSecond) => name,
        ("throughput", _) => "bandwidth".into(),
        ("latency", _) => "other-latency".into(),
        _ => name,
    }
}

fn cut(text: &str, longest: usize) -> String {
    text.chars().take(longest).collect()
}
