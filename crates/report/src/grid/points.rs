//! A table for each experiment: what was measured of its arms, and of the keys by which it tells something.

use ascertain_engine::experiment::Point;
use ascertain_engine::outcome::{ClaimResult, Outcome, PointSummary, TestSpec};

use super::{Cell, ColumnKind, Grid, censored, over};
use crate::figure::Figure;
use crate::text::{gathered, sorted};

const INTERVAL: &str = "95 % interval";

/// A table for each experiment: a heading with the levels that all arms share, and a row for each arm. A row has the
/// first metric's median with its interval and, of more than 100 trials, its 0.99-quantile; of the other metrics the
/// median, or of shares the mean. Where the first metric is a quantile (see [`Metric::name`]), the other quantiles of
/// the same thing come next, with their intervals.
///
/// [`Metric::name`]: ascertain_engine::experiment::Metric::name
pub(crate) fn points(outcome: &Outcome) -> Vec<(String, Grid)> {
    let tables = gathered(in_tables(outcome).map(|point| (point.experiment.as_str(), point)));
    tables.iter().map(|(experiment, points)| experiment_table(experiment, points, &outcome.claims)).collect()
}

/// A table for each experiment of what it tells by key, a row for each key of an arm, with the median of each such
/// metric and its interval.
pub(crate) fn by_key(outcome: &Outcome) -> Vec<(String, Grid)> {
    let by_experiment = gathered(outcome.by_key.iter().map(|point| (point.experiment.as_str(), point)));
    let table = |(experiment, points): (&str, Vec<&PointSummary>)| {
        let shared = shared_levels(points.iter().map(|point| &point.at));
        let metrics = gathered(points.iter().map(|point| (point.metric.as_str(), *point)));
        let first = [("Variant", ColumnKind::Prose), ("At", ColumnKind::Prose), ("Key", ColumnKind::Prose)];
        let figures = metrics.iter().flat_map(|(metric, _)| [*metric, INTERVAL]);
        let figures = ["Trials"].into_iter().chain(figures).map(|heading| (heading, ColumnKind::Number));
        let columns: Vec<_> = first.into_iter().chain(figures).collect();
        let mut grid = Grid::new(&columns).stacking(&["At", INTERVAL]);
        // Those of the first metric come first.
        let in_order = metrics.iter().flat_map(|(_, points)| points);
        for ((variant, at, key), of_key) in
            gathered(in_order.map(|point| ((&point.variant, &point.at, &point.key), point)))
        {
            let mut row = vec![Cell::Code(variant.clone()), own_levels(at, &shared).to_string().into()];
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

/// What has a place in a table: what was measured, and arms that were to be and have no trials, since somebody ended
/// the run before their turn came. What was left out for a reason has that said beside the table.
pub(crate) fn in_tables(outcome: &Outcome) -> impl Iterator<Item = &PointSummary> {
    fn key(point: &PointSummary) -> (&str, &str, &Point) {
        (&point.experiment, &point.variant, &point.at)
    }
    let measured = outcome.points.iter().filter(|point| point.n > 0).map(key);
    let left_out = outcome.left_out.iter().map(|left_out| (&*left_out.experiment, &*left_out.variant, &left_out.at));
    let said: Vec<_> = measured.chain(left_out).collect();
    outcome.points.iter().filter(move |point| point.n > 0 || !said.contains(&key(point)))
}

/// A table of one experiment, as in [`points`]. Metrics of claims come before the others. A metric with the same value in
/// every row is printed in the heading instead, unless a claim uses it.
pub(crate) fn experiment_table(experiment: &str, points: &[&PointSummary], claims: &[ClaimResult]) -> (String, Grid) {
    let shared = shared_levels(points.iter().map(|point| &point.at));
    let heading = headed(experiment, &shared);
    let mut metrics: Vec<&str> = Vec::new();
    let (measured, others): (Vec<&PointSummary>, Vec<_>) = points.iter().partition(|point| point.n > 0);
    for point in measured.into_iter().chain(others).filter(|point| point.experiment == experiment) {
        if !metrics.contains(&point.metric.as_str()) {
            metrics.push(&point.metric);
        }
    }
    let banded = quantiles_first(&mut metrics);
    let claims = claims.iter().filter(|claim| claim.experiment == experiment);
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
    let mut grid = Grid::new(&columns).stacking(&["At", INTERVAL]).with_extras_from(5);
    for ((variant, at), _) in gathered(points.iter().map(|&point| ((point.variant.as_str(), &point.at), point))) {
        let of_arm = |metric: &str| {
            points.iter().find(|point| point.metric == metric && point.variant == variant && point.at == *at)
        };
        let own = own_levels(at, &shared);
        let first = of_arm(metrics[0]);
        let band = |point: &&&PointSummary| [median_figure(point).value, median_figure(point).range];
        let [value, range] = match first {
            Some(point) if point.n == 0 => ["no trials".into(), String::new()],
            first => first.as_ref().map(band).unwrap_or_default(),
        };
        let mut row = vec![
            Cell::Code(variant.to_string()),
            own.to_string().into(),
            first.map_or_else(String::new, |point| point.n.to_string()).into(),
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
        constant => format!("{heading}; in each row {}", constant.join(", ")),
    };
    let has_shares = points.iter().any(|point| point.is_share && point.n > 0 && point.metric != metrics[0]);
    let heading = if has_shares { format!("{heading}; shares are means") } else { heading };
    (heading, grid.without_empty_columns())
}

/// The names of the metrics that a test speaks of.
fn metrics_of(test: &TestSpec) -> Vec<&str> {
    match test {
        TestSpec::Versus { measure, .. } => vec![&measure.metric],
        TestSpec::Predicate { conditions, .. } => conditions.iter().map(|one| one.measure.metric.as_str()).collect(),
    }
}

/// Where the first metric is a quantile by its name, puts the other quantiles of the same thing behind it, the lowest
/// first. Returns how many all of these are; 1 where the first is no quantile.
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

/// The median of the point's values; of shares the mean, where all are known; of exit codes all of them: half of the
/// trials may fail beside a median of 0.
fn typical(point: &PointSummary) -> String {
    match (point.min, point.max) {
        (Some(min), Some(max)) if point.metric == "exit" && min < max => format!("{min} to {max}"),
        _ => plain(point, point.mean.filter(|_| point.is_share).or(point.median)),
    }
}

/// The levels that are the same at all points that have the factor: some mean nothing to some arms.
pub(crate) fn shared_levels<'a>(points: impl Iterator<Item = &'a Point>) -> Point {
    let mut factors = gathered(points.flat_map(|point| &point.0));
    factors.retain(|(_, levels)| levels.iter().all(|level| *level == levels[0]));
    factors.into_iter().fold(Point::default(), |shared, (factor, levels)| shared.with(factor, levels[0].clone()))
}

/// The levels that are not among those that all points have in common.
pub(crate) fn own_levels(point: &Point, shared: &Point) -> Point {
    point.only(|factor, _| shared.get(factor).is_none())
}

fn median_figure(point: &PointSummary) -> Figure {
    let figure = Figure::of_unit(point.unit, point.median, point.median_low, point.median_high);
    censored(point, figure, point.unit.prefix(point.median.unwrap_or(0.0)).1)
}

/// A quantile of the point's values.
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

    /// One stream has no blocks: its row has nothing of them, and what all blocks have stands above.
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
