//! Reads a sample from the evidence of a run.

use std::collections::HashSet;
use std::path::Path;

use super::error::{Error, shown};
use crate::evidence::{RunEvidence, Series, read_run};
use crate::experiment::{Arm, Reduce};
use crate::names::suggestion;
use crate::unit::Unit;

/// The values of one metric of one arm of a run, one per trial, in the order in which they were measured.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedSample {
    /// Id of the run that the sample is from.
    pub run_id: String,
    /// Id of the experiment that the arm belongs to.
    pub experiment: String,
    /// The arm that was measured.
    pub arm: Arm,
    /// Unit in which the values are recorded.
    pub unit: Unit,
    /// One value per trial, in the order of the trials; all are finite.
    pub values: Vec<f64>,
    /// Messages about files of the run that are damaged, or that became longer or shorter after the run ended. All rows
    /// could be read nevertheless.
    pub faults: Vec<String>,
}

/// Reads the values of a metric of an arm from a run's folder. `arm` names the arm as tables do. The name of the
/// variant is enough if no other arm has the same variant. `None` is enough if only one arm has this metric. Values
/// with keys (curves, matrices) are ignored.
///
/// # Errors
/// - The run cannot be read, or some of its rows are missing.
/// - The run does not have the metric or the arm, or several of its arms match `arm`.
/// - An observation has no finite value, because it was cut off or failed.
pub fn read_recorded(run: &Path, arm: Option<&str>, metric: &str) -> Result<RecordedSample, Error> {
    let wrong = |problem: String| Error::Run { run: run.display().to_string(), problem };
    let RunEvidence { header, trials, faults, lost_rows } = read_run(run)?;
    if let Some(lost_rows) = lost_rows {
        return Err(lost_rows.into());
    }
    let scalars = trials.into_series().into_iter().filter(|series| series.key.is_empty());
    let (found, others): (Vec<Series>, Vec<Series>) = scalars.partition(|series| series.metric == metric);
    if found.is_empty() {
        let mut metrics: Vec<String> = others.into_iter().map(|series| series.metric).collect();
        let mut seen = HashSet::new();
        metrics.retain(|metric| seen.insert(metric.clone()));
        let hint = suggestion(metric, metrics.iter().map(String::as_str)).unwrap_or_default();
        return Err(wrong(format!(
            "the run has no values of `{metric}`; its scalar metrics: {}{hint}",
            quoted(metrics.iter())
        )));
    }
    let sample = |series: Series| {
        let spec = header.experiments.iter().find(|spec| spec.id == series.experiment);
        let known = spec.and_then(|spec| Some(spec.metrics[spec.metric(metric)?].reduce));
        let values = series.by_trial(known.unwrap_or(Reduce::Value)).1.to_vec();
        let Series { experiment, arm, unit, .. } = series;
        RecordedSample { run_id: header.run_id.clone(), experiment, arm, unit, values, faults: faults.clone() }
    };
    let found = found.into_iter().map(sample).collect();
    let sample = select(found, arm).map_err(&wrong)?;
    match sample.values.iter().position(|value| !value.is_finite()) {
        Some(index) => Err(wrong(format!(
            "observation {} of `{}` has no finite `{metric}`: it was cut off, or failed; statistics of the \
             other observations would be misleading, so use `ascertain slo` or `compare` instead",
            index + 1,
            sample.arm
        ))),
        None => Ok(sample),
    }
}

/// Returns the sample of the arm with the name `arm`. If `arm` is `None`, returns the only sample.
fn select(mut found: Vec<RecordedSample>, arm: Option<&str>) -> Result<RecordedSample, String> {
    // Sorted, because the rows begin with the arms in the random order of the first trial.
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
            Err(format!("the run has no arm `{arm}`; choose one of {}{hint}", quoted(names.iter())))
        }
        _ => Err(format!(
            "several arms match; choose one of them as RUN:ARM: {}",
            quoted(meant.iter().map(|&index| &names[index]))
        )),
    }
}

fn quoted<'a>(names: impl Iterator<Item = &'a String>) -> String {
    let quoted: Vec<String> = names.map(|name| format!("`{}`", shown(name))).collect();
    if quoted.is_empty() { "none".into() } else { quoted.join(", ") }
}
