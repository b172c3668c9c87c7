//! Google Benchmark's JSON, as its `compare.py` and others read it: each trial of an arm is a repetition,
//! followed by the aggregates. Of more than 1,000 trials every so many stands; the aggregates are of all.
//! Arms without a time have no place there.
//!
//! Its readers want a `cpu_time` of everything: of commands it is user and system time; where processor
//! time was not measured it repeats `real_time`, and the context says so. A time that met its limit has an error
//! and no number: `compare.py` passes over such an entry.

use ascertain_engine::outcome::PointSummary;
use ascertain_engine::unit::Unit;
use ascertain_sys::machine::Cache;
use serde::Serialize;
use serde_json::{Value, json};

use super::results::{ArmResults, Results, UniqueNames, thinned};
use crate::hyperfine::{deviation, mean, median};

/// One entry of `benchmarks`: a repetition or an aggregate.
#[derive(Clone, Default, Serialize)]
struct Entry<'a> {
    name: String,
    family_index: usize,
    per_family_instance_index: usize,
    run_name: &'a str,
    run_type: &'static str,
    repetitions: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    repetition_index: Option<usize>,
    threads: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    aggregate_name: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    aggregate_unit: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_occurred: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_message: Option<&'static str>,
    iterations: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    real_time: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_time: Option<f64>,
    time_unit: &'static str,
}

/// `--export-google-benchmark`.
pub(super) fn write(results: &Results) -> String {
    let mut names = UniqueNames::default();
    let named =
        results.arms().into_iter().map(|arm| (names.distinct(format!("{}/{}", arm.experiment, arm.label())), arm));
    let benchmarks: Vec<Value> =
        named.enumerate().flat_map(|(family, (name, arm))| entries(&arm, &name, family)).collect();
    crate::json::object(&json!({ "context": context(results), "benchmarks": benchmarks }))
}

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
        "cpu_time": "of commands user and system time; of functions not measured, a copy of real_time",
    })
}

/// What a number of all repetitions is called, and how it is had.
type Aggregate = (&'static str, fn(&[f64]) -> Option<f64>);

/// The repetitions of an arm, and its aggregates.
fn entries(arm: &ArmResults, name: &str, family_index: usize) -> Vec<Value> {
    let Some((time, real_ns)) = arm.time() else { return Vec::new() };
    let cpu_ns = cpu_times(arm).unwrap_or_else(|| real_ns.to_vec());
    let repetitions = thinned(real_ns.len()).count();
    let blank = Entry { family_index, run_name: name, repetitions, threads: 1, time_unit: "ns", ..Entry::default() };
    let repetition = |(index, trial): (usize, usize)| {
        let is_cut_off = real_ns[trial].is_infinite();
        let entry = Entry {
            name: name.to_string(),
            run_type: "iteration",
            repetition_index: Some(index),
            error_occurred: is_cut_off.then_some(true),
            error_message: is_cut_off.then_some("met its time limit"),
            iterations: usize::from(!is_cut_off),
            real_time: (!is_cut_off).then_some(real_ns[trial]),
            cpu_time: (!is_cut_off).then_some(cpu_ns[trial]),
            ..blank.clone()
        };
        with_counters(&entry, arm, time, trial)
    };
    let aggregate = |(aggregate, of): Aggregate| {
        let (real_time, cpu_time) = (of(real_ns)?, of(&cpu_ns)?);
        let entry = Entry {
            name: format!("{name}_{aggregate}"),
            run_type: "aggregate",
            aggregate_name: Some(aggregate),
            aggregate_unit: Some("time"),
            iterations: real_ns.len(),
            real_time: Some(real_time),
            cpu_time: Some(cpu_time),
            ..blank.clone()
        };
        (real_time.is_finite() && cpu_time.is_finite()).then(|| json!(entry))
    };
    let aggregates: [Aggregate; 3] =
        [("mean", |values| Some(mean(values))), ("median", |values| Some(median(values))), ("stddev", deviation)];
    let repeated = thinned(real_ns.len()).enumerate().map(repetition);
    repeated.chain(aggregates.into_iter().filter_map(aggregate)).collect()
}

/// User and system time together, where both were measured of every trial.
fn cpu_times(arm: &ArmResults) -> Option<Vec<f64>> {
    let [(_, real), (_, user), (_, system)] = [arm.time()?, arm.metric("user")?, arm.metric("system")?];
    let is_whole = user.len() == real.len() && system.len() == real.len();
    is_whole.then(|| user.iter().zip(system).map(|(user, system)| user + system).collect())
}

/// The entry with the other metrics of the trial as user counters. No counter takes a field's place.
fn with_counters(entry: &Entry, arm: &ArmResults, time: &PointSummary, trial: usize) -> Value {
    let mut value = json!(entry);
    for (point, values) in arm.metrics.iter().filter(|(point, _)| point.metric != time.metric) {
        let key = match (point.metric.as_str(), point.unit) {
            ("throughput", Unit::BytePerSecond) => "bytes_per_second",
            ("throughput", Unit::PerSecond) => "items_per_second",
            (metric, _) => metric,
        };
        let observed = values.get(trial).filter(|value| value.is_finite());
        if let (Some(observed), true) = (observed, value.get(key).is_none()) {
            value[key] = (*observed).into();
        }
    }
    value
}
