//! A figure for each arm of a run, and how those of several runs line up.

use ascertain_engine::experiment::{Metric, Point};
use ascertain_engine::outcome::PointSummary;
use ascertain_engine::recorded::Series;
use ascertain_engine::values::{Bounds, Values};
use ascertain_report::history::trend::{Estimate, TrendLine, TrendPoint, Versus};
use ascertain_stats::quantile_ranks;

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

/// How many times better the candidate is than the baseline in the same trial, at each point that both have; and how many
/// trials have no ratio, since a value is zero or below.
pub fn ratios(series: &[Series], experiment: &str, metric: &Metric, versus: &Versus) -> (Vec<ArmFigure>, usize) {
    let of = |variant: &str| {
        let found: Vec<&Series> = series
            .iter()
            .filter(|s| s.experiment == experiment && s.metric == metric.name && s.key.is_empty())
            .filter(|s| s.arm.variant == variant)
            .collect();
        found
    };
    let (baselines, mut without) = (of(&versus.baseline), 0);
    let mut pair = |candidate: &Series| {
        let baseline = baselines.iter().find(|baseline| baseline.arm.point == candidate.arm.point)?;
        let (ratios, without_ratio) = candidate.ratios_to(baseline, metric.reduce, metric.better);
        without += without_ratio;
        let (variant, at) = (versus.candidate.clone(), candidate.arm.point.clone());
        (!ratios.is_empty()).then(|| ArmFigure { variant, at, estimate: estimate(&ratios) })
    };
    let figures = of(&versus.candidate).into_iter().filter_map(&mut pair).collect();
    (figures, without)
}

/// The median with its interval at 95 %, as summaries have it.
fn estimate(values: &Values) -> Estimate {
    let (n, sorted) = (values.len() as u64, values.sorted());
    let (low, high) =
        quantile_ranks(n, 0.5, 0.025, 0.025).map_or((f64::NEG_INFINITY, f64::INFINITY), |ranks| sorted.between(ranks));
    let finite = |value: f64| Some(value).filter(|value| value.is_finite());
    Estimate { n, median: sorted.quantile(0.5).and_then(Bounds::estimate), low: finite(low), high: finite(high) }
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
    use ascertain_engine::experiment::{Arm, Better, Reduce};
    use ascertain_engine::unit::Unit;

    fn series(trials: &[u64], values: &[Bounds]) -> Series {
        Series {
            experiment: "e".into(),
            arm: Arm { variant: "a".into(), point: Point::default() },
            metric: "time".into(),
            unit: Unit::Nanosecond,
            key: String::new(),
            trials: trials.into(),
            offsets_ns: Vec::new(),
            values: values.iter().copied().collect(),
        }
    }

    #[test]
    fn ratios_are_paired_by_trial() {
        let (of, stopped) = (Bounds::exact, Bounds::above(10.0));
        let candidate =
            series(&[0, 1, 2, 3, 4, 5, 6], &[of(2.0), of(4.0), stopped, stopped, of(0.0), Bounds::NONE, of(9.0)]);
        let baseline = series(&[1, 2, 3, 4, 5, 7], &[of(8.0), stopped, of(5.0), of(1.0), of(1.0), of(1.0)]);
        let lower: Values = [of(2.0), Bounds::above(0.0), Bounds { low: 0.0, high: 0.5 }].into_iter().collect();
        let ratios = |better| candidate.ratios_to(&baseline, Reduce::Value, better);
        assert_eq!(ratios(Better::Lower), (lower, 1));
        let higher: Values = [of(0.5), Bounds::above(0.0), Bounds::above(2.0)].into_iter().collect();
        assert_eq!(ratios(Better::Higher), (higher, 1));
    }

    #[test]
    fn medians_have_the_intervals_that_summaries_have() {
        let Estimate { n, median, low, high } = estimate(&(0..1000).map(f64::from).rev().collect());
        assert_eq!((n, median, low, high), (1000, Some(499.5), Some(448.0), Some(551.0)));
        // One was stopped at 1.5: the middle one is that, or 2.
        let values = [Bounds::above(1.5), Bounds::exact(1.0), Bounds::exact(2.0)].into_iter().collect();
        let Estimate { n, median, low, high } = estimate(&values);
        assert_eq!((n, median, low, high), (3, Some(1.75), None, None));
        assert_eq!(estimate(&Values::default()), Estimate::default());
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
