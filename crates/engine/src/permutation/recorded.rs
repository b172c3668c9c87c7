//! A sample from the evidence of a run.

use std::path::Path;

use super::error::ColumnError;
use crate::evidence::{read_header, read_rows};
use crate::experiment::Arm;
use crate::nearest::suggestion;
use crate::unit::Unit;

/// The values of one metric of one arm of a run, in the order in which they were measured.
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
}

/// Reads the values of a metric of an arm from a run's folder. `arm` is an arm as tables show it, or its variant where no
/// other arm has it; it may be left out where the run has one arm with this metric. Values with keys (curves, matrices) are
/// left aside.
///
/// # Errors
/// When the run can't be read, has no such metric or arm or several such arms, or an observation has no finite value: one
/// that was cut off, or failed.
pub fn read_recorded(run: &Path, arm: Option<&str>, metric: &str) -> Result<RecordedSample, ColumnError> {
    let wrong = |problem: String| ColumnError::Run { run: run.display().to_string(), problem };
    let run_id = read_header(run)?.run_id;
    let mut found: Vec<RecordedSample> = Vec::new();
    let mut metrics: Vec<String> = Vec::new();
    for row in read_rows(run)? {
        let row = row?;
        if !row.key.is_empty() {
            continue;
        }
        if row.metric != metric {
            if !metrics.contains(&row.metric) {
                metrics.push(row.metric);
            }
            continue;
        }
        let this = |known: &RecordedSample| {
            (&known.experiment, &known.arm.variant, &known.arm.point) == (&row.experiment, &row.variant, &row.point)
        };
        let at = found.iter().position(this).unwrap_or_else(|| {
            let arm = Arm { variant: row.variant.clone(), point: row.point.clone() };
            let (experiment, unit) = (row.experiment.clone(), row.unit);
            found.push(RecordedSample { run_id: run_id.clone(), experiment, arm, unit, values: Vec::new() });
            found.len() - 1
        });
        found[at].values.push(row.value);
    }
    if found.is_empty() {
        let hint = suggestion(metric, metrics.iter().map(String::as_str)).unwrap_or_default();
        return Err(wrong(format!("no values of `{metric}`; there is {}{hint}", quoted(metrics.iter()))));
    }
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
    let quoted: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    if quoted.is_empty() { "nothing".into() } else { quoted.join(", ") }
}
