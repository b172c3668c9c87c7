//! A figure for each arm of a run, and how those of several runs line up.

use std::collections::BTreeMap;

use ascertain::experiment::{Better, Metric, Point};
use ascertain::outcome::PointSummary;
use ascertain::recorded::Series;
use ascertain_report::history::trend::{Estimate, TrendLine, TrendPoint, Versus};
use ascertain_stats::{median_sorted, quantile_ranks};

/// An arm's figure in one run.
pub struct ArmFigure {
    pub variant: String,
    pub at: Point,
    pub estimate: Estimate,
}

/// The medians of a metric, as the run's outcome has them.
pub fn medians(points: &[PointSummary], experiment: &str, metric: &str) -> Vec<ArmFigure> {
    let of_metric = points.iter().filter(|p| p.experiment == experiment && p.metric == metric && p.n > 0);
    let figure = |point: &PointSummary| ArmFigure {
        variant: point.variant.clone(),
        at: point.at.clone(),
        estimate: Estimate { n: point.n, median: point.median, low: point.median_low, high: point.median_high },
    };
    of_metric.map(figure).collect()
}

/// How many times better the candidate is than the baseline in the same trial, at each point that both have.
pub fn ratios(series: &[Series], experiment: &str, metric: &Metric, versus: &Versus) -> Vec<ArmFigure> {
    let of = |variant: &str| {
        let found: Vec<&Series> = series
            .iter()
            .filter(|s| s.experiment == experiment && s.metric == metric.name && s.key.is_empty())
            .filter(|s| s.arm.variant == variant)
            .collect();
        found
    };
    let baselines = of(&versus.baseline);
    let pair = |candidate: &Series| {
        let baseline = baselines.iter().find(|baseline| baseline.arm.point == candidate.arm.point)?;
        let estimate = estimate(paired(candidate, baseline, metric.better));
        (estimate.n > 0).then(|| ArmFigure {
            variant: versus.candidate.clone(),
            at: candidate.arm.point.clone(),
            estimate,
        })
    };
    of(&versus.candidate).into_iter().filter_map(pair).collect()
}

/// The ratio of each trial that has both, larger when the candidate is better. Values of zero or below have none;
/// two that were cut off are equal.
fn paired(candidate: &Series, baseline: &Series, better: Better) -> Vec<f64> {
    let baseline: BTreeMap<u64, f64> = by_trial(baseline);
    let ratio = |(trial, candidate): (u64, f64)| {
        let baseline = *baseline.get(&trial)?;
        let (worse, best) = match better {
            Better::Lower => (baseline, candidate),
            Better::Higher => (candidate, baseline),
        };
        let ratio = if worse == best { 1.0 } else { worse / best };
        (worse > 0.0 && best > 0.0).then_some(ratio)
    };
    by_trial(candidate).into_iter().filter_map(ratio).collect()
}

/// Of several values in a trial the last, as claims judge it.
fn by_trial(series: &Series) -> BTreeMap<u64, f64> {
    series.trials.iter().copied().zip(series.values.iter().copied()).collect()
}

/// The median with its interval at 95 %, as summaries have it.
fn estimate(mut values: Vec<f64>) -> Estimate {
    values.sort_by(f64::total_cmp);
    let n = values.len() as u64;
    let (low, high) =
        quantile_ranks(n, 0.5, 0.025, 0.025).map_or((f64::NEG_INFINITY, f64::INFINITY), |ranks| ranks.of(&values));
    let finite = |value: f64| Some(value).filter(|value| value.is_finite());
    Estimate { n, median: median_sorted(&values).and_then(finite), low: finite(low), high: finite(high) }
}

/// The figures of several runs, the oldest first, by arm: those of the latest run that has any, or of all.
pub fn lines(runs: Vec<(TrendPoint, Vec<ArmFigure>)>, of_latest: bool, notes: &mut Vec<String>) -> Vec<TrendLine> {
    let mut lines: Vec<TrendLine> = Vec::new();
    for (_, figures) in runs.iter().rev() {
        let is_new = |figure: &&ArmFigure| !lines.iter().any(|line| is_of(figure, line));
        let new: Vec<&ArmFigure> = figures.iter().filter(is_new).collect();
        if of_latest && !lines.is_empty() {
            if !new.is_empty() {
                notes.push("Variants that the latest run did not measure are left out; --variant shows them".into());
                break;
            }
            continue;
        }
        let line =
            |figure: &ArmFigure| TrendLine { variant: figure.variant.clone(), at: figure.at.clone(), runs: Vec::new() };
        let new: Vec<TrendLine> = new.into_iter().map(line).collect();
        lines.extend(new);
    }
    for (run, figures) in runs {
        for figure in figures {
            if let Some(line) = lines.iter_mut().find(|line| is_of(&figure, line)) {
                line.runs.push(TrendPoint { estimate: figure.estimate, ..run.clone() });
            }
        }
    }
    lines
}

fn is_of(figure: &ArmFigure, line: &TrendLine) -> bool {
    figure.variant == line.variant && figure.at == line.at
}

#[cfg(test)]
mod tests {
    use super::*;
    use ascertain::experiment::Arm;
    use ascertain::unit::Unit;

    fn series(trials: &[u64], values: &[f64]) -> Series {
        Series {
            experiment: "e".into(),
            arm: Arm { variant: "a".into(), point: Point::default() },
            metric: "time".into(),
            unit: Unit::Nanosecond,
            key: String::new(),
            trials: trials.into(),
            offsets_ns: Vec::new(),
            values: values.into(),
        }
    }

    #[test]
    fn ratios_are_paired_by_trial() {
        let inf = f64::INFINITY;
        let candidate = series(&[0, 1, 2, 3, 4, 5, 6], &[2.0, 4.0, inf, inf, 0.0, f64::NAN, 9.0]);
        let baseline = series(&[1, 2, 3, 4, 5, 7], &[8.0, inf, 5.0, 1.0, 1.0, 1.0]);
        assert_eq!(paired(&candidate, &baseline, Better::Lower), [2.0, 1.0, 0.0]);
        assert_eq!(paired(&candidate, &baseline, Better::Higher), [0.5, 1.0, inf]);
    }

    #[test]
    fn medians_have_the_intervals_that_summaries_have() {
        let Estimate { n, median, low, high } = estimate((0..1000).map(f64::from).rev().collect());
        assert_eq!((n, median, low, high), (1000, Some(499.5), Some(449.0), Some(550.0)));
        let Estimate { n, median, low, high } = estimate(vec![f64::INFINITY, 1.0, 2.0]);
        assert_eq!((n, median, low, high), (3, Some(2.0), None, None));
        assert_eq!(estimate(Vec::new()), Estimate::default());
    }

    #[test]
    fn runs_line_up_by_arm() {
        let run = |id: &str| TrendPoint {
            run_id: id.into(),
            started: id.into(),
            machine: String::new(),
            estimate: Estimate::default(),
        };
        let figures = |variants: &[&str]| -> Vec<ArmFigure> {
            let figure = |variant: &&str| ArmFigure {
                variant: variant.to_string(),
                at: Point::default(),
                estimate: Estimate::default(),
            };
            variants.iter().map(figure).collect()
        };
        let runs =
            || vec![(run("1"), figures(&["a", "c"])), (run("2"), figures(&["b", "a"])), (run("3"), figures(&[]))];
        let shape = |lines: Vec<TrendLine>| -> Vec<(String, usize)> {
            lines.into_iter().map(|line| (line.variant, line.runs.len())).collect()
        };
        let mut notes = Vec::new();
        let latest = shape(lines(runs(), true, &mut notes));
        assert_eq!(latest, [("b".to_string(), 1), ("a".to_string(), 2)]);
        assert_eq!(notes.len(), 1);
        let all = shape(lines(runs(), false, &mut notes));
        assert_eq!(all, [("b".to_string(), 1), ("a".to_string(), 2), ("c".to_string(), 1)]);
    }
}
