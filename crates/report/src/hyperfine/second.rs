//! The JSON that hyperfine 2 writes: the values of each metric by run, and a summary of each metric.

use std::collections::BTreeMap;

use ascertain_sys::machine::Machine;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{CommandTimes, Stats};
use crate::json::object;

/// Returns the content of the file for `--export-json`. The name of this program replaces hyperfine's version.
pub fn json(commands: &[CommandTimes], machine: &Machine) -> String {
    object(&json!({
        "schema_version": 2,
        "metadata": {
            "hyperfine_version": "2, written by Ascertain",
            "platform": { "os": machine.kernel.split(' ').next(), "architecture": machine.architecture },
        },
        "primary_metric": "time_wall_clock",
        "results": commands.iter().map(entry).collect::<Vec<_>>(),
    }))
}

#[derive(Serialize)]
struct Summary {
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<&'static str>,
    #[serde(flatten)]
    stats: Stats,
}

/// A metric: hyperfine's name for it, its unit (`None` if it has none), and its values.
type Metric<'a> = (&'a str, Option<&'static str>, &'a [f64]);

fn entry(times: &CommandTimes) -> Value {
    let CommandTimes { command, line, environment, parameters, wall_s, user_s, system_s, memory_bytes, .. } = times;
    let cpu_s: Vec<f64> = user_s.iter().zip(system_s).map(|(user, system)| user + system).collect();
    let times_s = [("time_wall_clock", wall_s), ("time_cpu", &cpu_s), ("time_user", user_s), ("time_system", system_s)];
    let metrics = times_s.into_iter().map(|(name, values)| (name, Some("second"), &**values));
    // Counters that this machine does not support are left out.
    let counted = times.counts.iter().filter(|(_, values)| values.iter().any(|value| value.is_finite()));
    let counts = counted.map(|(name, values)| (*name, None, &**values));
    let metrics = metrics.chain([("memory_peak_resident", Some("byte"), &**memory_bytes)]).chain(counts);
    let printed = times.printed.iter().map(|(name, unit, values)| (name.as_str(), *unit, &**values));
    let metrics: Vec<Metric> = metrics.chain(printed).filter(|(.., values)| !values.is_empty()).collect();
    let measurement = |run: usize| {
        let value = |&(name, unit, values): &Metric| {
            let mut value = json!({ "value": values.get(run) });
            unit.into_iter().for_each(|unit| value["unit"] = unit.into());
            (name.to_string(), value)
        };
        let exit_code = json!(times.exit_codes.get(run).copied().flatten());
        metrics.iter().map(value).chain([("exit_code".to_string(), exit_code)]).collect::<Map<_, _>>()
    };
    let summary = |&(name, unit, values): &Metric| (name.to_string(), Summary { unit, stats: Stats::new(values) });
    let line = if line.is_empty() { command } else { line };
    let mut entry = json!({ "command": line });
    if line != command {
        entry["name"] = json!(command);
    }
    entry["measurements"] = (0..wall_s.len()).map(measurement).collect();
    if !parameters.is_empty() {
        entry["parameters"] =
            parameters.iter().map(|(name, value)| (name.clone(), json!({ "value": value }))).collect();
    }
    if !environment.is_empty() {
        entry["environment"] = environment.iter().cloned().collect();
    }
    entry["summary"] = json!(metrics.iter().map(summary).collect::<BTreeMap<_, _>>());
    entry
}
