//! Google Benchmark's JSON, for its `compare.py` and other tools. Each trial of an arm is a repetition; statistics of
//! all trials (aggregates) follow. If there are more than 1,000 trials, only 1,000 evenly spaced ones are written as
//! repetitions. Arms without a time are left out.
//!
//! The format requires a `cpu_time` in every entry. For commands it is the sum of user and system time. For functions,
//! whose processor time is not measured, it is a copy of `real_time`, and a note in the context explains this. A time
//! that was stopped at its limit becomes an error without a number, because `compare.py` skips such entries.

use ascertain_engine::outcome::PointSummary;
use ascertain_engine::unit::Unit;
use ascertain_sys::machine::Cache;
use serde_json::{Value, json};

use super::results::{ArmResults, Results, UniqueNames, thinned};
use crate::hyperfine::Stats;

/// Returns the content of the file for `--export-google-benchmark`.
pub(super) fn write(results: &Results) -> String {
    let mut names = UniqueNames::default();
    let named = results.arms().into_iter().map(|arm| (names.distinct(format!("{}/{}", arm.experiment, arm.arm)), arm));
    let benchmarks: Vec<Value> =
        named.enumerate().flat_map(|(family, (name, arm))| entries(&arm, &name, family)).collect();
    crate::json::object(&json!({ "context": context(results), "benchmarks": benchmarks }))
}

/// A function that computes a statistic of all repetitions, for example the median; `None` if it is unknown.
type Aggregate = fn(Stats) -> Option<f64>;

fn context(results: &Results) -> Value {
    let machine = &results.outcome.machine;
    let cache = |cache: &Cache| {
        let (size, sharing) = (cache.size_bytes, cache.shared_by);
        json!({ "type": cache.kind, "level": cache.level, "size": size, "num_sharing": sharing })
    };
    json!({
        "executable": "ascertain",
        "num_cpus": machine.cpus_allowed,
        "cpu_model": machine.cpu_model,
        "cpu_scaling_enabled": machine.governor.as_deref().is_some_and(|governor| governor != "performance"),
        "caches": machine.caches.iter().map(cache).collect::<Vec<_>>(),
        "load_avg": [machine.load_1m],
        "run_id": results.outcome.run_id,
        "seed": results.outcome.seed,
        "final": results.is_final,
        "cpu_time": "user and system time of commands; for functions, which have none, a copy of real_time",
    })
}

/// Returns the entries of an arm: its repetitions, then its aggregates.
fn entries(arm: &ArmResults, name: &str, family: usize) -> Vec<Value> {
    let Some((time, real_ns)) = arm.time() else { return Vec::new() };
    let cpu_ns = cpu_times(arm).unwrap_or_else(|| real_ns.to_vec());
    let repetitions = thinned(real_ns.len()).count();
    let repetition = |(index, trial): (usize, usize)| {
        let entry = match real_ns[trial].is_infinite() {
            true => json!({
                "name": name, "family_index": family, "per_family_instance_index": 0, "run_name": name,
                "run_type": "iteration", "repetitions": repetitions, "repetition_index": index, "threads": 1,
                "error_occurred": true, "error_message": "stopped at its time limit", "iterations": 0, "time_unit": "ns",
            }),
            false => json!({
                "name": name, "family_index": family, "per_family_instance_index": 0, "run_name": name,
                "run_type": "iteration", "repetitions": repetitions, "repetition_index": index, "threads": 1,
                "iterations": 1, "real_time": real_ns[trial], "cpu_time": cpu_ns[trial], "time_unit": "ns",
            }),
        };
        with_counters(entry, arm, time, trial)
    };
    let (real, cpu) = (Stats::new(real_ns), Stats::new(&cpu_ns));
    let aggregates: [(&str, Aggregate); 3] =
        [("mean", |stats| Some(stats.mean)), ("median", |stats| Some(stats.median)), ("stddev", |stats| stats.stddev)];
    let aggregate = |(aggregate, number): (&str, Aggregate)| {
        let [real_time, cpu_time] = [real, cpu].map(|stats| number(stats).filter(|time| time.is_finite()));
        Some(json!({
            "name": format!("{name}_{aggregate}"), "family_index": family, "per_family_instance_index": 0,
            "run_name": name, "run_type": "aggregate", "repetitions": repetitions, "threads": 1,
            "aggregate_name": aggregate, "aggregate_unit": "time", "iterations": real_ns.len(),
            "real_time": real_time?, "cpu_time": cpu_time?, "time_unit": "ns",
        }))
    };
    let repeated = thinned(real_ns.len()).enumerate().map(repetition);
    repeated.chain(aggregates.into_iter().filter_map(aggregate)).collect()
}

/// Returns the sum of user and system time for each trial; `None` if one of the two was not measured in all trials.
fn cpu_times(arm: &ArmResults) -> Option<Vec<f64>> {
    let [(_, real), (_, user), (_, system)] = [arm.time()?, arm.metric("user")?, arm.metric("system")?];
    let is_whole = user.len() == real.len() && system.len() == real.len();
    is_whole.then(|| user.iter().zip(system).map(|(user, system)| user + system).collect())
}

/// Adds the other metrics of the trial to an entry, as user counters. `time` is left out, because the entry already has
/// it. A counter never replaces an existing field.
fn with_counters(mut entry: Value, arm: &ArmResults, time: &PointSummary, trial: usize) -> Value {
    for (point, values) in arm.metrics.iter().filter(|(point, _)| point.metric != time.metric) {
        let key = match (point.metric.as_str(), point.unit) {
            ("throughput", Unit::BytePerSecond) => "bytes_per_second",
            ("throughput", Unit::PerSecond) => "items_per_second",
            (metric, _) => metric,
        };
        let observed = values.get(trial).filter(|value| value.is_finite());
        if let (Some(observed), true) = (observed, entry.get(key).is_none()) {
            entry[key] = (*observed).into();
        }
    }
    entry
}
