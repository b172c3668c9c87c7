//! Each metric of each arm in a few numbers.

use ascertain_stats::{Moments, quantile_ranks, quantile_sorted};

use crate::experiment::Spec;
use crate::observations::ArmValues;
use crate::outcome::PointSummary;

/// The error of each interval in a summary: they are at 95 % each, outside of the run's budget.
const ERROR: f64 = 0.05;

/// Summarises an arm's metrics.
pub(crate) fn summarise(values: &ArmValues, spec: &Spec) -> Vec<PointSummary> {
    let metrics = spec.metrics.iter().zip(&values.by_metric);
    metrics
        .map(|(metric, observed)| {
            let mut sorted = observed.clone();
            sorted.sort_by(f64::total_cmp);
            let n = sorted.len() as u64;
            let ranks = quantile_ranks(n, 0.5, ERROR / 2.0, ERROR / 2.0).ok();
            let at = |rank: Option<u64>| rank.map(|rank| sorted[rank as usize]).filter(|v| v.is_finite());
            let quantile = |q| quantile_sorted(&sorted, q).filter(|value| value.is_finite());
            // Where some observations timed out there is no mean to speak of.
            let finite = sorted.last().is_some_and(|last| last.is_finite());
            let moments: Option<Moments> = finite.then(|| observed.iter().copied().collect());
            PointSummary {
                experiment: values.experiment.clone(),
                variant: values.arm.variant.clone(),
                at: values.arm.point.clone(),
                metric: metric.name.clone(),
                unit: metric.unit,
                better: metric.better,
                n,
                median: quantile(0.5),
                median_low: ranks.as_ref().and_then(|ranks| at(ranks.low)),
                median_high: ranks.as_ref().and_then(|ranks| at(ranks.high)),
                p90: quantile(0.9),
                p99: quantile(0.99),
                mean: moments.as_ref().and_then(Moments::mean),
                std: moments.as_ref().and_then(Moments::standard_deviation),
                min: quantile(0.0),
                max: quantile(1.0),
            }
        })
        .collect()
}
