//! The tables of an experiment: the measurements of its arms, and the measurements of metrics that have keys.

use ascertain_engine::claim::Test;
use ascertain_engine::experiment::Point;
use ascertain_engine::outcome::{Outcome, PointSummary};

use super::{Cell, ColumnKind, Grid, censored, over};
use crate::figure::Figure;
use crate::text::{distinct, gathered, sorted};

const INTERVAL: &str = "95 % interval";

/// Returns a heading and a table for each experiment. The heading names the levels that all arms share.
///
/// The table has a row for each arm. The first metric is shown as its median with the interval, and also as its
/// 0.99-quantile if there are more than 100 trials. If this metric is itself a quantile (see [`Metric::name`]), the
/// other quantiles of the same quantity follow, with their intervals. Every other metric is shown as its median, or as
/// its mean if it is a share.
///
/// [`Metric::name`]: ascertain_engine::experiment::Metric::name
pub(crate) fn points(outcome: &Outcome) -> Vec<(String, Grid)> {
    let tables = gathered(in_tables(outcome).map(|point| (point.experiment.as_str(), point)));
    tables.iter().map(|(experiment, points)| experiment_table(experiment, points, outcome)).collect()
}

/// Returns a heading and a table for each experiment that has metrics with values by key, for example one value for
/// each server. The table has a row for each key of each arm, with the median of each metric and its interval.
pub(crate) fn by_key(outcome: &Outcome) -> Vec<(String, Grid)> {
    let by_experiment = gathered(outcome.by_key.iter().map(|point| (point.experiment.as_str(), point)));
    let table = |(experiment, points): (&str, Vec<&PointSummary>)| {
        let shared = shared_levels(points.iter().map(|point| &point.arm.point));
        let metrics = gathered(points.iter().map(|point| (point.metric.as_str(), *point)));
        let first = [("Variant", ColumnKind::Prose), ("At", ColumnKind::Prose), ("Key", ColumnKind::Prose)];
        let figures = metrics.iter().flat_map(|(metric, _)| [*metric, INTERVAL]);
        let figures = ["Trials"].into_iter().chain(figures).map(|heading| (heading, ColumnKind::Number));
        let mut grid = Grid::with_kinds(first.into_iter().chain(figures)).stacking(&["At", INTERVAL]);
        // The points of the first metric come first, so that its rows do.
        let in_order = metrics.iter().flat_map(|(_, points)| points);
        for ((arm, key), of_key) in gathered(in_order.map(|point| ((&point.arm, &point.key), point))) {
            let own = own_levels(&arm.point, &shared);
            let mut row = vec![Cell::Code(arm.variant.clone()), own.to_string().into()];
            row.extend([Cell::Code(key.clone()), of_key[0].n.to_string().into()]);
            for (metric, _) in &metrics {
                let figure = of_key.iter().find(|point| point.metric == *metric).map(|point| median_figure(point));
                row.extend(figure.map_or_else(Default::default, |figure| [figure.value, figure.range]).map(Cell::Text));
            }
            grid.rows.push(row);
        }
        (headed(&format!("{experiment} by key"), &shared), grid.without_empty_columns())
    };
    by_experiment.into_iter().map(table).collect()
}

fn headed(heading: &str, shared: &Point) -> String {
    if shared.0.is_empty() { heading.to_string() } else { format!("{heading}, {shared}") }
}

/// Returns the summaries to show in tables, one for each metric of an arm. A summary without trials is included only if
/// the run ended before any metric of the arm was measured. An arm that was left out for another reason is not
/// included, because a sentence next to the table names it.
pub(crate) fn in_tables(outcome: &Outcome) -> impl Iterator<Item = &PointSummary> {
    let measured = outcome.points.iter().filter(|point| point.n > 0).map(|point| (&point.experiment, &point.arm));
    let left_out = outcome.left_out.iter().map(|left_out| (&left_out.experiment, &left_out.arm));
    let known: Vec<_> = measured.chain(left_out).collect();
    outcome.points.iter().filter(move |point| point.n > 0 || !known.contains(&(&point.experiment, &point.arm)))
}

/// Returns the heading and the table of one experiment, see [`points`]. Metrics that a claim uses come first. If
/// another metric has the same value in every row, the heading shows this value, and the table has no column for the
/// metric. The trials of a long measurement include those without a value.
pub(crate) fn experiment_table(experiment: &str, points: &[&PointSummary], outcome: &Outcome) -> (String, Grid) {
    let observations = outcome.windows.as_ref().map(|windows| windows.total.observations);
    let shared = shared_levels(points.iter().map(|point| &point.arm.point));
    let heading = headed(experiment, &shared);
    let (measured, others): (Vec<&PointSummary>, Vec<_>) = points.iter().partition(|point| point.n > 0);
    let mut metrics = distinct(measured.into_iter().chain(others).map(|point| point.metric.as_str()));
    let banded = quantiles_first(&mut metrics);
    let claims = outcome.claims.iter().filter(|claim| claim.experiment == experiment);
    let claimed: Vec<&str> = claims.flat_map(|claim| &claim.asked.tests).flat_map(metrics_of).collect();
    metrics[banded..].sort_by_key(|metric| !claimed.contains(metric));
    let variant = if metrics[0] == "wall" { "Command" } else { "Variant" };
    let mut columns = vec![(variant, ColumnKind::Prose), ("At", ColumnKind::Prose), ("Trials", ColumnKind::Number)];
    let of_metrics = metrics.iter().enumerate().flat_map(|(index, metric)| match index {
        0 => vec![*metric, INTERVAL, "p99 of trials"],
        _ if index < banded => vec![*metric, INTERVAL],
        _ => vec![*metric],
    });
    columns.extend(of_metrics.map(|heading| (heading, ColumnKind::Number)));
    let mut grid = Grid::with_kinds(columns).stacking(&["At", INTERVAL]).with_extras_from(5);
    for arm in distinct(points.iter().map(|point| &point.arm)) {
        let of_arm = |metric: &str| points.iter().find(|point| point.metric == metric && point.arm == *arm);
        let own = own_levels(&arm.point, &shared);
        let first = of_arm(metrics[0]);
        let band = |point: &&&PointSummary| [median_figure(point).value, median_figure(point).range];
        let [value, range] = match first {
            Some(point) if point.n == 0 && observations.is_some() => ["no values".into(), String::new()],
            Some(point) if point.n == 0 => ["no trials".into(), String::new()],
            first => first.as_ref().map(band).unwrap_or_default(),
        };
        let mut row = vec![
            Cell::Code(arm.variant.clone()),
            own.to_string().into(),
            first.map_or_else(String::new, |point| observations.unwrap_or(point.n).to_string()).into(),
            value.into(),
            range.into(),
            first.filter(|point| point.n > 100).map_or_else(String::new, |point| plain(point, point.p99)).into(),
        ];
        for (index, metric) in metrics.iter().enumerate().skip(1) {
            let point = of_arm(metric).filter(|point| point.n > 0);
            if index < banded {
                row.extend(point.as_ref().map(band).unwrap_or_default().map(Cell::Text));
            } else {
                row.push(point.map_or_else(String::new, |point| typical(point)).into());
            }
        }
        grid.rows.push(row);
    }
    let first_other = grid.columns.len() - (metrics.len() - banded);
    let constant = grid.without_constant_columns(|index, heading| index >= first_other && !claimed.contains(&heading));
    let heading = match constant.as_slice() {
        [] => heading,
        constant => format!("{heading}; the same in every row: {}", constant.join(", ")),
    };
    let has_shares = points.iter().any(|point| point.is_share && point.n > 0 && point.metric != metrics[0]);
    let heading = if has_shares { format!("{heading}; shares are means") } else { heading };
    (heading, grid.without_empty_columns())
}

/// Returns the names of the metrics that a test uses.
fn metrics_of(test: &Test) -> Vec<&str> {
    match test {
        Test::Versus { measure, .. } => vec![&measure.metric],
        Test::Predicate { conditions, .. } => conditions.iter().map(|one| one.measure.metric.as_str()).collect(),
    }
}

/// If the first metric is a quantile, moves the other quantiles of the same quantity right after it, in ascending
/// order. Returns the number of these quantiles, including the first; 1 if the first metric is not a quantile.
fn quantiles_first(metrics: &mut [&str]) -> usize {
    fn quantile(metric: &str) -> Option<(&str, f64)> {
        let (of, percent) = metric.rsplit_once("_p")?;
        Some((of, percent.parse().ok()?))
    }
    let Some((first, _)) = quantile(metrics[0]) else { return 1 };
    let beside = |metric: &str| quantile(metric).filter(|(of, _)| *of == first).map_or(f64::INFINITY, |(_, at)| at);
    let others = sorted(metrics[1..].to_vec(), |metric| beside(metric));
    metrics[1..].copy_from_slice(&others);
    metrics.iter().filter(|metric| beside(metric).is_finite()).count()
}

/// Writes the typical value of a point: the median, or the mean for a share whose values are all known. Exit codes are
/// written as a range, because their median is 0 even if nearly half of the trials fail.
fn typical(point: &PointSummary) -> String {
    match (point.min, point.max) {
        (Some(min), Some(max)) if point.metric == "exit" && min < max => format!("{min} to {max}"),
        _ => plain(point, point.mean.filter(|_| point.is_share).or(point.median)),
    }
}

/// Returns the levels that the points share. The level of a factor is shared if it is the same in all points that have
/// the factor. Points without the factor are ignored.
pub(crate) fn shared_levels<'a>(points: impl Iterator<Item = &'a Point>) -> Point {
    let mut factors = gathered(points.flat_map(|point| &point.0));
    factors.retain(|(_, levels)| levels.iter().all(|level| *level == levels[0]));
    factors.into_iter().fold(Point::default(), |shared, (factor, levels)| shared.with(factor, levels[0].clone()))
}

/// Returns those levels of a point that are not common to all points.
pub(crate) fn own_levels(point: &Point, shared: &Point) -> Point {
    point.only(|factor, _| shared.get(factor).is_none())
}

fn median_figure(point: &PointSummary) -> Figure {
    let figure = Figure::of_unit(point.unit, point.median, point.median_low, point.median_high);
    censored(point, figure, point.unit.prefix(point.median.unwrap_or(0.0)).1)
}

/// Writes a value in the unit of the point. `None` stands for a trial that was stopped at its time limit. The text then
/// states that the value is above the limit. If the limit is unknown, the text is `-`.
pub(crate) fn plain(point: &PointSummary, value: Option<f64>) -> String {
    match value {
        Some(value) => point.unit.human(value),
        None if point.limit.is_some() => over(point.unit, point.limit),
        None => "-".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A transfer with a single stream is not divided into blocks, so its row has no level of `block` or `connections`.
    /// The heading has the level of `connections` that all other rows share.
    #[test]
    fn a_factor_that_some_arms_do_not_have_is_said_of_the_others() {
        let size = |bytes: u64| Point::default().with("size", bytes).with("url", "own");
        let points = [size(1), size(2), size(2).with("block", 4).with("connections", 32)];
        let points = [&points[..], &[points[2].clone().with("block", 8)]].concat();
        let shared = shared_levels(points.iter());
        assert_eq!(shared.to_string(), "connections=32 url=own");
        let rows: Vec<String> = points.iter().map(|point| own_levels(point, &shared).to_string()).collect();
        assert_eq!(rows, ["size=1", "size=2", "block=4 size=2", "block=8 size=2"]);
    }
}
