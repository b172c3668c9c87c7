//! Two runs side by side.

use std::path::Path;
use std::time::Duration;

use ascertain_engine::outcome::{ClaimResult, PointSummary};
use ascertain_engine::unit::Unit;
use ascertain_report::history::comparison::{
    ClaimSide, ComparedClaim, ComparedPoint, ComparedRun, Difference, Estimate, RunComparison, SCHEMA,
};
use serde_json::{Map, Value, json};

use crate::error::Error;
use crate::runs::Loaded;

/// The medians and verdicts of two runs' folders side by side, and what differs in machine, version and options.
/// Nothing is concluded of a difference: trials are paired within a run, not between runs.
///
/// # Errors
/// When one of them can't be read.
pub fn compare(folders: [&Path; 2]) -> Result<RunComparison, Error> {
    let [first, second] = folders.map(Loaded::read);
    Ok(compared([&first?, &second?]))
}

fn compared(runs: [&Loaded; 2]) -> RunComparison {
    let [first, second] = runs;
    let points = runs.map(|run| run.outcome.with_keys());
    let (points, unmatched_points) = matched([&points[0], &points[1]], is_same_point, point_name);
    let (claims, unmatched_claims) = matched(runs.map(|run| &run.outcome.claims[..]), is_same_claim, claim_name);
    let mut differences = Vec::new();
    differ("", &facts(first), &facts(second), &mut differences);
    RunComparison {
        schema: SCHEMA.into(),
        runs: runs.map(|run| ComparedRun {
            id: run.id.clone(),
            started: run.header.started.clone(),
            state: run.state,
            command_line: run.header.command_line.clone(),
            label: run.header.label.clone(),
            revision: run.header.revision.clone(),
        }),
        differences,
        points: points.into_iter().map(compared_point).collect(),
        unmatched_points,
        claims: claims.into_iter().map(compared_claim).collect(),
        unmatched_claims,
    }
}

/// The items that both have, in the first one's order, and the names of those that only one has.
fn matched<T>(
    [first, second]: [&[T]; 2],
    is_same: fn(&T, &T) -> bool,
    name: fn(&T) -> String,
) -> (Vec<[&T; 2]>, [Vec<String>; 2]) {
    let pair = |item| second.iter().find(|other| is_same(item, other)).map(|other| [item, other]);
    let alone = |items: &[T], others: &[T]| -> Vec<String> {
        items.iter().filter(|item| !others.iter().any(|other| is_same(item, other))).map(name).collect()
    };
    (first.iter().filter_map(pair).collect(), [alone(first, second), alone(second, first)])
}

fn is_same_point(one: &PointSummary, other: &PointSummary) -> bool {
    let key =
        |point: &PointSummary| (point.experiment.clone(), point.variant.clone(), point.metric.clone(), point.unit);
    key(one) == key(other) && one.at == other.at
}

fn point_name(point: &PointSummary) -> String {
    let at = if point.at.0.is_empty() { String::new() } else { format!(" ({})", point.at) };
    format!("{}, {}{at}, {}", point.experiment, point.variant, point.metric)
}

/// A claim of the same name that asks something else is another claim: `compare` with another reference.
fn is_same_claim(one: &ClaimResult, other: &ClaimResult) -> bool {
    one.experiment == other.experiment && one.id == other.id && one.asked.tests == other.asked.tests
}

fn claim_name(claim: &ClaimResult) -> String {
    claim.id.clone()
}

fn compared_point(both: [&PointSummary; 2]) -> ComparedPoint {
    let [first, second] = both;
    let ratio = second.median.zip(first.median).map(|(second, first)| second / first);
    ComparedPoint {
        experiment: first.experiment.clone(),
        variant: first.variant.clone(),
        at: first.at.clone(),
        metric: first.metric.clone(),
        unit: first.unit,
        better: first.better,
        estimates: both.map(Estimate::of),
        ratio: ratio.filter(|ratio| ratio.is_finite()),
    }
}

fn compared_claim(both: [&ClaimResult; 2]) -> ComparedClaim {
    let [first, _] = both;
    ComparedClaim {
        experiment: first.experiment.clone(),
        id: first.id.clone(),
        says: first.says.clone(),
        sides: both.map(ClaimSide::of),
    }
}

/// What may explain why two runs differ. The seed differs between any two, and what is measured of a machine may; how
/// long a run goes on beyond what was asked for follows from that.
fn facts(run: &Loaded) -> Value {
    let mut facts = json!({
        "ascertain_version": run.header.ascertain_version,
        "machine": run.outcome.machine,
        "config": run.header.plan.config,
        "commands": run.header.plan.commands,
    });
    for (part, changing) in [
        ("machine", "load_1m"),
        ("machine", "clock_step_ns"),
        ("config", "seed"),
        ("config", "table_trials"),
        ("config", "longest_time"),
        ("config", "precision_time"),
    ] {
        facts[part].as_object_mut().map(|part| part.remove(changing));
    }
    facts
}

/// Lists where two values of JSON differ. Lists of unequal length differ as a whole, but for what both have.
fn differ(what: &str, first: &Value, second: &Value, differences: &mut Vec<Difference>) {
    let below = |name: &str| if what.is_empty() { name.to_string() } else { format!("{what}.{name}") };
    match (first, second) {
        _ if first == second => {}
        _ if time(first).is_some() || time(second).is_some() => {
            differences.push(Difference { what: what.into(), values: [shown(first), shown(second)] });
        }
        (Value::Object(first), Value::Object(second)) => {
            let get = |map: &Map<String, Value>, name: &str| map.get(name).cloned().unwrap_or_default();
            let names = first.keys().chain(second.keys().filter(|name| !first.contains_key(*name)));
            for name in names {
                differ(&below(name), &get(first, name), &get(second, name), differences);
            }
        }
        (Value::Array(first), Value::Array(second)) if first.len() == second.len() => {
            for (index, (first, second)) in first.iter().zip(second).enumerate() {
                differ(&below(&index.to_string()), first, second, differences);
            }
        }
        (Value::Array(first), Value::Array(second)) => {
            let only = |these: &[Value], others: &[Value]| -> String {
                let only = these.iter().filter(|value| !others.contains(value)).map(shown);
                only.collect::<Vec<_>>().join(", ")
            };
            differences.push(Difference { what: what.into(), values: [only(first, second), only(second, first)] });
        }
        _ => differences.push(Difference { what: what.into(), values: [shown(first), shown(second)] }),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        value => time(value).unwrap_or_else(|| value.to_string()),
    }
}

/// `30 s`, or `no limit`, where the value is a duration.
fn time(value: &Value) -> Option<String> {
    let map = value.as_object().filter(|map| map.len() == 2)?;
    let (secs, nanos) = (map.get("secs")?.as_u64()?, map.get("nanos")?.as_u64()?);
    let is_endless = secs > Duration::MAX.as_secs() / 2;
    Some(if is_endless { "no limit".into() } else { Unit::Nanosecond.exact(secs as f64 * 1e9 + nanos as f64) })
}
