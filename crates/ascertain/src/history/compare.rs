//! Compares two recorded runs.

use std::path::Path;
use std::time::Duration;

use ascertain_engine::outcome::{ClaimResult, PointSummary};
use ascertain_engine::unit::Unit;
use ascertain_report::history::comparison::{ComparedRun, Difference, RunComparison};
use serde_json::{Value, json};

use crate::error::Error;
use crate::runs::Loaded;

/// Returns the medians and verdicts of two runs side by side, and the differences in machine, version and options. Does
/// not judge the difference of two medians, because trials are only paired within a run.
///
/// # Errors
/// If a run can't be read.
pub fn compare(folders: [&Path; 2]) -> Result<RunComparison, Error> {
    let [first, second] = folders.map(Loaded::read);
    let runs = [&first?, &second?];
    let points = runs.map(|run| run.outcome.with_keys());
    let (points, unmatched_points) = matched([&points[0], &points[1]], is_same_point, point_name);
    let claims = runs.map(|run| &run.outcome.claims[..]);
    let (claims, unmatched_claims) = matched(claims, is_same_claim, |claim| claim.id.clone());
    let mut differences = Vec::new();
    let [first, second] = runs.map(facts);
    add_differences("", [&first, &second], &mut differences);
    let runs = runs.map(|run| ComparedRun {
        id: run.id.clone(),
        started: run.header.started.clone(),
        state: run.state.word(),
        command_line: run.header.command_line.clone(),
        label: run.header.label.clone(),
        revision: run.header.revision.clone(),
    });
    Ok(RunComparison { runs, differences, points, unmatched_points, claims, unmatched_claims })
}

/// Matches the items of two lists by `is_same`. Returns the pairs of matching items, in the order of the first list.
/// Also returns the names of the items that only the first list has, and of those that only the second has.
fn matched<T: Clone>(
    [first, second]: [&[T]; 2],
    is_same: fn(&T, &T) -> bool,
    name: fn(&T) -> String,
) -> (Vec<[T; 2]>, [Vec<String>; 2]) {
    let pair = |item: &T| second.iter().find(|other| is_same(item, other)).map(|other| [item, other].map(T::clone));
    let alone = |items: &[T], others: &[T]| -> Vec<String> {
        items.iter().filter(|item| !others.iter().any(|other| is_same(item, other))).map(name).collect()
    };
    (first.iter().filter_map(pair).collect(), [alone(first, second), alone(second, first)])
}

fn is_same_point(one: &PointSummary, other: &PointSummary) -> bool {
    let PointSummary { experiment, arm, metric, unit, .. } = one;
    (experiment, arm, metric, unit) == (&other.experiment, &other.arm, &other.metric, &other.unit)
}

fn point_name(point: &PointSummary) -> String {
    let at = if point.arm.point.0.is_empty() { String::new() } else { format!(" ({})", point.arm.point) };
    format!("{}, {}{at}, {}", point.experiment, point.arm.variant, point.metric)
}

/// Returns whether two claims have the same id and the same tests. Equal ids are not enough: two runs of `compare` may
/// have had different references.
fn is_same_claim(one: &ClaimResult, other: &ClaimResult) -> bool {
    one.experiment == other.experiment && one.id == other.id && one.asked.tests == other.asked.tests
}

/// Returns the facts that may explain why two runs differ. Leaves out facts that cannot be the cause: the seed,
/// properties of the machine that each run measures anew, and settings that follow from other settings.
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

/// Appends the differences of two JSON values. `what` is the path of keys that leads to both values, for messages.
/// Compares objects key by key, and lists of equal length item by item.
fn add_differences(what: &str, both: [&Value; 2], differences: &mut Vec<Difference>) {
    let below = |name: &str| if what.is_empty() { name.to_string() } else { format!("{what}.{name}") };
    let values = match both {
        [first, second] if first == second => return,
        [Value::Object(first), Value::Object(second)] if both.iter().all(|value| time(value).is_none()) => {
            for name in first.keys().chain(second.keys().filter(|name| !first.contains_key(*name))) {
                let both = [first, second].map(|map| map.get(name).unwrap_or(&Value::Null));
                add_differences(&below(name), both, differences);
            }
            return;
        }
        [Value::Array(first), Value::Array(second)] if first.len() == second.len() => {
            for (index, (first, second)) in first.iter().zip(second).enumerate() {
                add_differences(&below(&index.to_string()), [first, second], differences);
            }
            return;
        }
        [Value::Array(first), Value::Array(second)] => [(first, second), (second, first)].map(|(these, others)| {
            let only = these.iter().filter(|value| !others.contains(value)).map(shown);
            only.collect::<Vec<_>>().join(", ")
        }),
        both => both.map(shown),
    };
    differences.push(Difference { what: what.into(), values });
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        value => time(value).unwrap_or_else(|| value.to_string()),
    }
}

/// If the value is a duration, formats it for people: `30 s`, or `no limit` for a duration that is practically
/// infinite. Returns `None` for any other value.
fn time(value: &Value) -> Option<String> {
    let map = value.as_object().filter(|map| map.len() == 2)?;
    let (secs, nanos) = (map.get("secs")?.as_u64()?, map.get("nanos")?.as_u64()?);
    let is_endless = secs > Duration::MAX.as_secs() / 2;
    Some(if is_endless { "no limit".into() } else { Unit::Nanosecond.exact(secs as f64 * 1e9 + nanos as f64) })
}
