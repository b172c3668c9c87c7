//! Failures that nobody wanted to stop for, and time limits that were met.

use super::{CommandSet, OnFailure, outcome};
use crate::observations::{ArmValues, Observations};
use crate::unit::Unit;
use crate::values::Bounds;

/// What a reader must know of commands whose failures were ignored, or that were stopped at their time limit: which
/// ones, how, and how often. Their times are figures like any other, but not of what the command was to do.
pub(crate) fn threats(sets: &[CommandSet], observations: &Observations) -> Vec<String> {
    let with_set = observations.arms().iter().filter_map(|values| {
        let set = sets.iter().find(|set| set.id == values.experiment)?;
        Some((values, set))
    });
    with_set.flat_map(|(values, set)| [ignored_failures(values, set), stopped(values, set)]).flatten().collect()
}

fn ignored_failures(values: &ArmValues, set: &CommandSet) -> Option<String> {
    let exits = values.by_metric.get(outcome::EXIT).filter(|_| set.on_failure == OnFailure::Ignore)?;
    // One that met its time limit has no exit code, and a time that says so.
    let failed: Vec<f64> = exits.iter().copied().filter(|exit| *exit != 0.0 && exit.is_finite()).collect();
    let first = failed.first()?;
    let code = match failed.iter().all(|exit| exit == first) {
        true => format!("exit code {first}"),
        false => "an exit code other than 0".into(),
    };
    let (command, often) = (&values.arm, of_trials(failed.len(), exits.len()));
    Some(format!("`{command}` ended with {code} in {often}: its times are those of a command that fails."))
}

fn stopped(values: &ArmValues, set: &CommandSet) -> Option<String> {
    let times = values.by_metric.get(outcome::WALL)?;
    let limit = set.time_limit?.as_nanos() as f64;
    let met_it = |index: &usize| times.bounds(*index) == Bounds::above(limit);
    let count = (0..times.len()).filter(met_it).count();
    let limit = Unit::Nanosecond.exact(limit);
    let (command, often) = (&values.arm, of_trials(count, times.len()));
    (count > 0).then(|| {
        format!("`{command}` was stopped at its time limit of {limit} in {often}: all that is known of those is that they take longer.")
    })
}

/// "2 of 6 trials".
fn of_trials(count: usize, all: usize) -> String {
    format!("{count} of {all} {}", if all == 1 { "trial" } else { "trials" })
}
