//! Failures that nobody wanted to stop for.

use super::{CommandSet, OnFailure, outcome};
use crate::observations::{ArmValues, Observations};

/// What a reader must know of commands whose failures were ignored: which ones failed, how, and how often. Their times
/// are figures like any other, but not of what the command was to do.
pub(crate) fn ignored_failures(sets: &[CommandSet], observations: &Observations) -> Vec<String> {
    let ignores = |id: &str| sets.iter().any(|set| set.id == id && set.on_failure == OnFailure::Ignore);
    observations.arms().iter().filter(|values| ignores(&values.experiment)).filter_map(failures).collect()
}

fn failures(values: &ArmValues) -> Option<String> {
    let exits = values.by_metric.get(outcome::EXIT)?;
    // One that met its time limit has no exit code, and an infinite time that says so.
    let failed: Vec<f64> = exits.iter().copied().filter(|exit| *exit != 0.0 && exit.is_finite()).collect();
    let first = failed.first()?;
    let code = match failed.iter().all(|exit| exit == first) {
        true => format!("exit code {first}"),
        false => "an exit code other than 0".into(),
    };
    let (command, count, all) = (&values.arm, failed.len(), exits.len());
    let trials = if all == 1 { "trial" } else { "trials" };
    Some(format!(
        "`{command}` ended with {code} in {count} of {all} {trials}: its times are those of a command that fails."
    ))
}
