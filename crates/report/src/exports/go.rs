//! The Go benchmark format (golang.org/design/14313-benchmark-format), for benchstat. A file has configuration lines, a
//! line for each unit, and a line for each trial of each arm. The line for a unit states whether higher or lower values
//! are better. From the lines for trials, benchstat computes its own statistics. If there are more than 1,000 trials,
//! only 1,000 evenly spaced ones are written. A time that was stopped at its limit is left out; a comment gives the
//! number of such times.
//!
//! A name, such as `BenchmarkSum/kahan/elements=64-2`, consists of the experiment, the variant and the levels, followed
//! by the number of processors as in Go. The program benchstat compares only results that have the same configuration,
//! and prints a separate table for each configuration. The configuration therefore has only the machine and the
//! experiment. The id of the run, which differs between runs, is in a comment.

use std::collections::BTreeSet;

use ascertain_engine::experiment::Better;
use ascertain_engine::outcome::{Outcome, PointSummary};
use ascertain_engine::unit::Unit;

use super::results::{ArmResults, Results, UniqueNames, thinned};
use crate::text::escape_controls;

/// Returns the content of the file for `--export-go`.
pub(super) fn write(results: &Results) -> String {
    let Results { outcome, .. } = results;
    let is_final = if results.is_final { "" } else { ", not final" };
    let mut text = format!("# ascertain {}, seed {}{is_final}\n", word(&outcome.run_id), outcome.seed);
    text += &configuration(outcome);
    let arms = results.arms();
    let with_zeros = with_zeros(&arms);
    let mut known = BTreeSet::new();
    for arm in &arms {
        for (unit, (point, _)) in units(arm, &with_zeros).iter().zip(&arm.metrics) {
            if known.insert(unit.name.clone()) {
                let better = if point.better == Better::Lower { "lower" } else { "higher" };
                text += &format!("Unit {} better={better}\n", unit.name);
            }
        }
    }
    let mut names = UniqueNames::default();
    let mut experiment = None;
    for arm in &arms {
        if experiment.replace(arm.experiment) != Some(arm.experiment) {
            text += &format!("pkg: {}\n", word(arm.experiment));
        }
        let name = names.distinct(name(arm));
        text += &lines(&format!("{name}-{}", outcome.machine.cpus_allowed.max(1)), arm, &units(arm, &with_zeros));
    }
    text
}

fn configuration(outcome: &Outcome) -> String {
    let machine = &outcome.machine;
    let goarch = match machine.architecture.as_str() {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    // The kernel's description begins with its name, as in "Linux 6.18.0" or "Darwin 25.1.0".
    let goos = machine.kernel.split(' ').next().unwrap_or_default().to_lowercase();
    let (goos, cpu) = (word(&goos), escape_controls(&machine.cpu_model));
    format!("goos: {goos}\ngoarch: {goarch}\ncpu: {cpu}\n")
}

/// Returns a line of the file for each trial of an arm. A metric is missing in a line if its value was stopped at the
/// time limit. If it has fewer observations than other metrics, it is missing in the last lines.
fn lines(name: &str, arm: &ArmResults, units: &[GoUnit]) -> String {
    let trials = arm.metrics.iter().map(|(_, values)| values.len()).max().unwrap_or(0);
    let line = |trial: usize| {
        let known = units.iter().zip(&arm.metrics).filter_map(|(unit, (_, values))| {
            let value = values.get(trial).filter(|value| value.is_finite())?;
            Some(format!(" {} {}", value / unit.factor, unit.name))
        });
        let values: String = known.collect();
        if values.is_empty() { String::new() } else { format!("{name} 1{values}\n") }
    };
    let stopped = arm.time().filter(|(point, _)| point.censored > 0).map(|(point, _)| {
        let (stopped, all) = (point.censored, point.n);
        format!("# {name}: {stopped} of {all} trials reached their time limit and are left out\n")
    });
    stopped.into_iter().chain(thinned(trials).map(line)).collect()
}

/// Returns the names of the metrics that are 0 in a trial of any arm. If such a metric is a time, it is written in
/// seconds for all arms. The reason is that benchstat converts `ns` to `sec` but does not convert zeros. It would
/// therefore put the zeros in a separate table.
fn with_zeros<'a>(arms: &[ArmResults<'a>]) -> BTreeSet<&'a str> {
    let metrics = arms.iter().flat_map(|arm| &arm.metrics);
    metrics.filter(|(_, values)| values.contains(&0.0)).map(|(point, _)| point.metric.as_str()).collect()
}

/// A metric and its unit in Go's notation.
struct GoUnit {
    name: String,
    /// Go's unit divided by the unit of the metric: 10⁹ for seconds, if the metric is in nanoseconds.
    factor: f64,
}

/// Returns each metric of an arm with its unit in Go's notation. Times among the metrics `with_zeros` are in seconds,
/// because benchstat does not convert zeros.
fn units(arm: &ArmResults, with_zeros: &BTreeSet<&str>) -> Vec<GoUnit> {
    let time = arm.time().map(|(point, _)| &point.metric);
    let unit = |point: &PointSummary| {
        let (symbol, factor) = match point.unit {
            Unit::Nanosecond if with_zeros.contains(point.metric.as_str()) => ("sec/op", 1e9),
            Unit::Nanosecond => ("ns/op", 1.0),
            unit => (unit.symbol(), 1.0),
        };
        let metric = word(&point.metric);
        let name = match point.unit {
            Unit::Nanosecond if time == Some(&point.metric) => symbol.to_string(),
            Unit::One => metric,
            _ => format!("{metric}-{symbol}"),
        };
        GoUnit { name, factor }
    };
    arm.metrics.iter().map(|(point, _)| unit(point)).collect()
}

fn name(arm: &ArmResults) -> String {
    let mut experiment = word(arm.experiment);
    if let Some(first) = experiment.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    let levels: String = arm.arm.point.0.iter().map(|(factor, level)| format!("/{factor}={level}")).collect();
    format!("Benchmark{experiment}/{}{}", word(&arm.arm.variant), word(&levels))
}

/// Returns the text as a single word. Spaces become underscores, as in `go test`, and invisible characters are escaped.
fn word(text: &str) -> String {
    escape_controls(text).replace(char::is_whitespace, "_")
}
