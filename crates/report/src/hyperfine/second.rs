//! The JSON of hyperfine 2: what was measured of each run, metric by metric, and a summary of each metric.

use std::collections::BTreeMap;

use ascertain_sys::machine::Machine;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{CommandTimes, deviation, mean, median};
use crate::json::object;

/// The form's version.
const SCHEMA_VERSION: u32 = 2;

#[derive(Serialize)]
struct Export<'a> {
    schema_version: u32,
    metadata: Value,
    primary_metric: &'static str,
    results: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct Entry<'a> {
    command: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    measurements: Vec<Map<String, Value>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    parameters: BTreeMap<&'a str, Value>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    environment: BTreeMap<&'a str, &'a str>,
    summary: BTreeMap<&'a str, Summary>,
}

#[derive(Serialize)]
struct Summary {
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<&'static str>,
    count: usize,
    mean: f64,
    stddev: Option<f64>,
    median: f64,
    min: f64,
    max: f64,
}

/// `--export-json`. Who wrote it stands where hyperfine has its version.
pub fn json(commands: &[CommandTimes], machine: &Machine) -> String {
    let os = machine.kernel.split(' ').next();
    object(&Export {
        schema_version: SCHEMA_VERSION,
        metadata: json!({
            "hyperfine_version": "2, written by Ascertain",
            "platform": { "os": os, "architecture": machine.architecture },
        }),
        primary_metric: "time_wall_clock",
        results: commands.iter().map(entry).collect(),
    })
}

/// A metric by hyperfine's name, with its unit where it has one.
type Metric<'n, 'v> = (&'n str, Option<&'static str>, &'v [f64]);

fn entry<'n>(times: &'n CommandTimes) -> Entry<'n> {
    let CommandTimes { command, line, environment, parameters, wall_s, user_s, system_s, memory_bytes, .. } = times;
    let cpu_s: Vec<f64> = user_s.iter().zip(system_s).map(|(user, system)| user + system).collect();
    let times_s = [("time_wall_clock", wall_s), ("time_cpu", &cpu_s), ("time_user", user_s), ("time_system", system_s)];
    let metrics = times_s.into_iter().map(|(name, values)| (name, Some("second"), &**values));
    // What this machine can't count is left out there.
    let counted = times.counts.iter().filter(|(_, values)| values.iter().any(|value| value.is_finite()));
    let counts = counted.map(|(name, values)| (*name, None, &**values));
    let metrics = metrics.chain([("memory_peak_resident", Some("byte"), &**memory_bytes)]).chain(counts);
    let printed = times.printed.iter().map(|(name, unit, values)| (name.as_str(), *unit, &**values));
    let metrics: Vec<Metric> = metrics.chain(printed).filter(|(.., values)| !values.is_empty()).collect();
    let measurement = |run: usize| {
        let value = |&(name, unit, values): &Metric| {
            let value = values.get(run);
            (
                name.to_string(),
                unit.map_or_else(|| json!({ "value": value }), |unit| json!({ "value": value, "unit": unit })),
            )
        };
        let exit_code = ("exit_code".to_string(), json!(times.exit_codes.get(run).copied().flatten()));
        metrics.iter().map(value).chain([exit_code]).collect()
    };
    let summary = |&(name, unit, values): &Metric<'n, '_>| {
        let (min, max) =
            (values.iter().copied().fold(f64::NAN, f64::min), values.iter().copied().fold(f64::NAN, f64::max));
        let (mean, stddev, median) = (mean(values), deviation(values), median(values));
        (name, Summary { unit, count: values.len(), mean, stddev, median, min, max })
    };
    let line = if line.is_empty() { command } else { line };
    Entry {
        command: line,
        name: (line != command).then_some(command),
        measurements: (0..wall_s.len()).map(measurement).collect(),
        parameters: parameters.iter().map(|(name, value)| (name.as_str(), json!({ "value": value }))).collect(),
        environment: environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect(),
        summary: metrics.iter().map(summary).collect(),
    }
}
