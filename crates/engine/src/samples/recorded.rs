//! A sample from the evidence of a run.

use std::path::Path;

use super::error::{Error, shown};
use crate::evidence::{Series, read_header, read_trials};
use crate::experiment::{Arm, Reduce};
use crate::names::suggestion;
use crate::unit::Unit;

/// The values of one metric of one arm of a run, one a trial, in the order in which they were measured.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedSample {
    /// The run's id.
    pub run_id: String,
    /// The experiment's id.
    pub experiment: String,
    /// The arm.
    pub arm: Arm,
    /// The values' unit.
    pub unit: Unit,
    /// The values, all finite.
    pub values: Vec<f64>,
    /// What is wrong with the run's files, although all rows are there, in plain words.
    pub faults: Vec<String>,
}

/// Reads the values of a metric of an arm from a run's folder. `arm` is an arm as tables show it, or its variant where
/// no other arm has it; it may be left out where the run has one arm with this metric. Values with keys (curves,
/// matrices) are left aside.
///
/// # Errors
/// When the run can't be read or rows of it are missing, has no such metric or arm or several such arms, or an
/// observation has no finite value: one that was cut off, or failed.
pub fn read_recorded(run: &Path, arm: Option<&str>, metric: &str) -> Result<RecordedSample, Error> {
    let wrong = |problem: String| Error::Run { run: run.display().to_string(), problem };
    let header = read_header(run)?;
    let read = read_trials(run, &header)?;
    if let Some(lost) = read.lost {
        return Err(lost.into());
    }
    let scalars = read.trials.into_series().into_iter().filter(|series| series.key.is_empty());
    let (found, others): (Vec<Series>, Vec<Series>) = scalars.partition(|series| series.metric == metric);
    if found.is_empty() {
        let mut metrics: Vec<String> = Vec::new();
        for Series { metric, .. } in others {
            if !metrics.contains(&metric) {
                metrics.push(metric);
            }
        }
        let hint = suggestion(metric, metrics.iter().map(String::as_str)).unwrap_or_default();
        return Err(wrong(format!("no values of `{metric}`; there is {}{hint}", quoted(metrics.iter()))));
    }
    let sample = |series: Series| {
        let spec = header.experiments.iter().find(|spec| spec.id == series.experiment);
        let known = spec.and_then(|spec| Some(spec.metrics[spec.metric(metric)?].reduce));
        let values = series.by_trial(known.unwrap_or(Reduce::Value)).1.to_vec();
        let Series { experiment, arm, unit, .. } = series;
        RecordedSample { run_id: header.run_id.clone(), experiment, arm, unit, values, faults: read.faults.clone() }
    };
    let found = found.into_iter().map(sample).collect();
    let sample = select(found, arm).map_err(&wrong)?;
    match sample.values.iter().position(|value| !value.is_finite()) {
        Some(index) => Err(wrong(format!(
            "observation {} of `{}` has no finite `{metric}`: it was cut off, or failed; a statistic of the others \
             alone would mislead, so ask `ascertain slo` or `compare` instead",
            index + 1,
            sample.arm
        ))),
        None => Ok(sample),
    }
}

/// The one arm that is meant.
fn select(mut found: Vec<RecordedSample>, arm: Option<&str>) -> Result<RecordedSample, String> {
    // Rows have the arms in the random order of the first trial.
    found.sort_by(|a, b| a.arm.cmp(&b.arm));
    let names: Vec<String> = found.iter().map(|sample| sample.arm.to_string()).collect();
    let is_meant = |sample: &RecordedSample, name: &str| match arm {
        Some(arm) => arm == name || arm == sample.arm.variant,
        None => true,
    };
    let meant: Vec<usize> = (0..found.len()).filter(|&index| is_meant(&found[index], &names[index])).collect();
    match (meant.as_slice(), arm) {
        ([index], _) => Ok(found.swap_remove(*index)),
        ([], Some(arm)) => {
            let hint = suggestion(arm, names.iter().map(String::as_str)).unwrap_or_default();
            Err(format!("no arm `{arm}`; there is {}{hint}", quoted(names.iter())))
        }
        _ => Err(format!(
            "which arm? name one as RUN:ARM; there is {}",
            quoted(meant.iter().map(|&index| &names[index]))
        )),
    }
}

fn quoted<'a>(names: impl Iterator<Item = &'a String>) -> String {
    let quoted: Vec<String> = names.map(|name| format!("`{}`", shown(name))).collect();
    if quoted.is_empty() { "nothing".into() } else { quoted.join(", ") }
}
