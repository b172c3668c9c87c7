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
    summary: BTreeMap<&'static str, Summary>,
}

#[derive(Serialize)]
struct Summary {
    unit: &'static str,
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
        primary_metric: METRICS[0],
        results: commands.iter().map(entry).collect(),
    })
}

/// Its metrics that are known here, the first being what the others are about.
const METRICS: [&str; 5] = ["time_wall_clock", "time_cpu", "time_user", "time_system", "memory_peak_resident"];

fn entry(times: &CommandTimes) -> Entry<'_> {
    let CommandTimes { command, line, environment, parameters, wall_s, user_s, system_s, memory_bytes, exit_codes } =
        times;
    let cpu_s: Vec<f64> = user_s.iter().zip(system_s).map(|(user, system)| user + system).collect();
    let values: [&[f64]; 5] = [wall_s, &cpu_s, user_s, system_s, memory_bytes];
    let unit = |metric: &str| if metric.starts_with("time") { "second" } else { "byte" };
    let known = METRICS.into_iter().zip(values).filter(|(_, values)| !values.is_empty());
    let measurement = |run: usize| {
        let value = |(metric, values): (&'static str, &[f64])| {
            (metric.to_string(), json!({ "value": values.get(run), "unit": unit(metric) }))
        };
        let exit_code = ("exit_code".to_string(), json!(exit_codes.get(run).copied().flatten()));
        known.clone().map(value).chain([exit_code]).collect()
    };
    let summary = |(metric, values): (&'static str, &[f64])| {
        let summary = Summary {
            unit: unit(metric),
            count: values.len(),
            mean: mean(values),
            stddev: deviation(values),
            median: median(values),
            min: values.iter().copied().fold(f64::NAN, f64::min),
            max: values.iter().copied().fold(f64::NAN, f64::max),
        };
        (metric, summary)
    };
    let line = if line.is_empty() { command } else { line };
    Entry {
        command: line,
        name: (line != command).then_some(command),
        measurements: (0..wall_s.len()).map(measurement).collect(),
        parameters: parameters.iter().map(|(name, value)| (name.as_str(), json!({ "value": value }))).collect(),
        environment: environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect(),
        summary: known.clone().map(summary).collect(),
    }
}
