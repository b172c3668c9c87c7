//! What came of a run: each metric of each arm in a few numbers, beside the claims.

use ascertain_numeric::sum::{mean_of, variance_of};
use ascertain_stats::quantile_ranks;
use ascertain_sys::machine::{CpuTimes, Machine, cpu_times};

use crate::command::CommandSet;
use crate::experiment::Spec;
use crate::observations::{ArmValues, Observations};
use crate::outcome::{ClaimResult, Outcome, PointSummary, SCHEMA};
use crate::plan::Registry;
use crate::threats;
use crate::values::Bounds;

/// The error of each interval in a summary: they are at 95 % each, outside of the run's budget.
const ERROR: f64 = 0.05;

/// What an outcome says of a run before anything is measured.
pub(crate) struct Setting<'a> {
    pub registry: &'a Registry<'a>,
    pub machine: &'a Machine,
    /// When it began.
    pub cpu_times: Option<CpuTimes>,
    pub commands: &'a [CommandSet],
    pub run_id: &'a str,
    pub seed: u64,
}

/// The outcome of what was observed, and of the claims about it.
pub(crate) fn outcome(
    setting: &Setting,
    observations: &Observations,
    claims: Vec<ClaimResult>,
    interrupted: bool,
) -> Outcome {
    let spec = |id: &str| setting.registry.iter().map(|experiment| experiment.spec()).find(|spec| spec.id == id);
    let with_spec = observations.arms().iter().filter_map(|values| Some((values, spec(&values.experiment)?)));
    let cpu_times = setting.cpu_times.zip(cpu_times()).map(|(before, now)| now.since(&before));
    let mut threats = threats::of_machine(setting.machine);
    threats.extend(cpu_times.and_then(threats::of_steal));
    threats.extend(threats::of_commands(setting.commands, observations));
    Outcome {
        schema: SCHEMA.to_string(),
        run_id: setting.run_id.to_string(),
        machine: setting.machine.clone(),
        cpu_times,
        threats,
        seed: setting.seed,
        interrupted,
        points: with_spec.flat_map(|(values, spec)| summarise(values, spec)).collect(),
        claims,
        left_out: observations.left_out(),
    }
}

/// Summarises an arm's metrics.
fn summarise(values: &ArmValues, spec: &Spec) -> Vec<PointSummary> {
    let metrics = spec.metrics.iter().zip(&values.by_metric);
    metrics
        .map(|(metric, observed)| {
            let sorted = observed.sorted();
            let (low, high) = quantile_ranks(observed.len() as u64, 0.5, ERROR / 2.0, ERROR / 2.0)
                .map_or((f64::NEG_INFINITY, f64::INFINITY), |ranks| sorted.between(ranks));
            let quantile = |q| sorted.quantile(q).and_then(Bounds::estimate).filter(|value| value.is_finite());
            // Where some observations were cut off there is no mean to speak of.
            let finite = sorted.as_slice().last().is_some_and(|last| last.is_finite());
            let numbers = || observed.iter().copied();
            PointSummary {
                experiment: values.experiment.clone(),
                variant: values.arm.variant.clone(),
                at: values.arm.point.clone(),
                metric: metric.name.clone(),
                unit: metric.unit,
                better: metric.better,
                n: observed.len() as u64,
                median: quantile(0.5),
                median_low: Some(low).filter(|low| low.is_finite()),
                median_high: Some(high).filter(|high| high.is_finite()),
                p90: quantile(0.9),
                p99: quantile(0.99),
                mean: if finite { mean_of(numbers()) } else { None },
                std: if finite { variance_of(numbers()).map(f64::sqrt) } else { None },
                min: quantile(0.0),
                max: quantile(1.0),
                censored: observed.iter().filter(|value| **value == f64::INFINITY).count() as u64,
                limit: observed.limit(),
                seen: observed.most(),
            }
        })
        .collect()
}
