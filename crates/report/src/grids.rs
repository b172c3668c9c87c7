//! The tables of a run, as cells.

use std::collections::BTreeSet;

use ascertain::claim::Judging;
use ascertain::experiment::Point;
use ascertain::outcome::{AskedTest, ClaimResult, Outcome, PointSummary, Verdict};

use crate::clause::{ClaimFigure, arm_label};
use crate::figure::Figure;
use crate::grid::{Cell, Grid, Kind};

/// What is claimed, by whom, the source's figure, the figure here, the verdict.
pub(crate) fn claims(outcome: &Outcome) -> Grid {
    let mut grid = Grid::new(&[
        ("Claim", Kind::Prose),
        ("By", Kind::Prose),
        ("Said", Kind::Prose),
        ("Here", Kind::Prose),
        ("Verdict", Kind::Word),
    ])
    .stacking(&["By"]);
    for claim in &outcome.claims {
        let says = if claim.says.is_empty() { &claim.id } else { &claim.says };
        let by = claim.source.strip_suffix(".txt").unwrap_or(&claim.source);
        grid.rows.push(vec![
            says.as_str().into(),
            by.into(),
            claim.source_value.as_str().into(),
            here(claim).into(),
            answer(claim).into(),
        ]);
    }
    grid.without_empty_columns()
}

/// The figure that a claim came to here, or why there is none.
pub(crate) fn here(claim: &ClaimResult) -> String {
    let is_judged = matches!(claim.verdict, Verdict::Holds | Verdict::Refuted | Verdict::Undecided);
    if !is_judged {
        return claim.reason.clone().unwrap_or_default();
    }
    let figure = ClaimFigure::of(claim).map(|figure| figure.short);
    let is_versus = matches!(claim.asked.tests.as_slice(), [AskedTest::Versus { .. }]);
    let rate = Figure::of_share(claim.rate, claim.rate_low, claim.rate_high, claim.rate_claimed);
    let rate = claim.rate.filter(|_| claim.asked.judging != Judging::Exact).map(|_| rate.to_string());
    match (figure, rate) {
        (Some(figure), _) if is_versus => figure,
        (Some(figure), Some(rate)) => format!("{rate}; {figure}"),
        (figure, rate) => figure.or(rate).unwrap_or_else(|| "-".into()),
    }
}

/// The word for a claim's verdict, or for `compare`'s decision.
pub(crate) fn answer(claim: &ClaimResult) -> &'static str {
    match (claim.verdict, claim.decision) {
        (Verdict::Holds | Verdict::Refuted | Verdict::Undecided, Some(decision)) => decision.word(),
        (verdict, _) => verdict.word(),
    }
}

/// An arm's key in tables: where several metrics of it stand in one row.
type ArmKey<'a> = (&'a str, &'a Point);

/// A row for each command or function: its time with interval, what else was measured, ratio and decision.
pub(crate) fn compared(outcome: &Outcome) -> Grid {
    let are_commands = outcome.points.iter().any(|point| point.metric == "wall");
    let mut grid = Grid::new(&[
        (if are_commands { "Command" } else { "Function" }, Kind::Prose),
        ("Median", Kind::Number),
        ("95 % interval", Kind::Number),
        ("User", Kind::Number),
        ("System", Kind::Number),
        ("Memory", Kind::Number),
        ("Throughput", Kind::Number),
        ("Ratio", Kind::Number),
        ("Interval", Kind::Number),
        ("Answer", Kind::Word),
    ])
    .stacking(&["95 % interval", "System", "Interval"]);
    for key in arms_in_order(outcome) {
        let of_arm: Vec<&PointSummary> =
            outcome.points.iter().filter(|point| (point.variant.as_str(), &point.at) == key).collect();
        let median = |metric: &str| {
            let found = of_arm.iter().find(|point| point.metric == metric);
            found.map_or_else(String::new, |point| plain(point, point.median))
        };
        // An experiment's first metric is the one that it is about.
        let Figure { value, range } = median_figure(of_arm[0]);
        let [ratio, interval, decision] = comparison_cells(outcome, key);
        grid.rows.push(vec![
            Cell::Code(arm_label(key.0, key.1)),
            value.into(),
            range.into(),
            median("user").into(),
            median("system").into(),
            median("memory_peak").into(),
            median("throughput").into(),
            ratio.into(),
            interval.into(),
            decision.into(),
        ]);
    }
    grid.without_empty_columns()
}

/// Each arm that was measured once: references before what is held against them, in the claims' order.
fn arms_in_order(outcome: &Outcome) -> Vec<ArmKey<'_>> {
    let versus = outcome.claims.iter().flat_map(|claim| &claim.asked.tests).filter_map(|test| match test {
        AskedTest::Versus { candidate, baseline, .. } => Some([baseline, candidate]),
        AskedTest::Predicate { .. } => None,
    });
    let claimed = versus.flatten().map(|arm| (arm.variant.as_str(), &arm.point));
    let measured: Vec<ArmKey> = outcome.points.iter().map(|point| (point.variant.as_str(), &point.at)).collect();
    let mut seen = BTreeSet::new();
    let known: BTreeSet<ArmKey> = measured.iter().copied().collect();
    claimed.chain(measured).filter(|key| known.contains(key) && seen.insert(*key)).collect()
}

/// Ratio, interval and answer of the command that is the arm; the reference says that it is.
fn comparison_cells(outcome: &Outcome, key: ArmKey) -> [String; 3] {
    for claim in outcome.claims.iter().filter(|claim| claim.asked.judging == Judging::Order) {
        let [AskedTest::Versus { candidate, baseline, .. }] = claim.asked.tests.as_slice() else { continue };
        if (candidate.variant.as_str(), &candidate.point) == key {
            let figure = Figure::new(claim.ratio, claim.ratio_low, claim.ratio_high, &[1.0]);
            return [figure.value, figure.range, answer(claim).into()];
        }
        if (baseline.variant.as_str(), &baseline.point) == key {
            return ["1".into(), String::new(), "reference".into()];
        }
    }
    Default::default()
}

/// A table for each experiment: its heading, which says what all of its arms share, and a row for each
/// arm, with the first metric's interval and tail, and the median of the others.
pub(crate) fn points(outcome: &Outcome) -> Vec<(String, Grid)> {
    let mut tables: Vec<(&str, Vec<&PointSummary>)> = Vec::new();
    for point in outcome.points.iter().filter(|point| point.n > 0) {
        match tables.iter_mut().find(|(experiment, _)| *experiment == point.experiment) {
            Some((_, points)) => points.push(point),
            None => tables.push((&point.experiment, vec![point])),
        }
    }
    tables.iter().map(|(experiment, points)| experiment_table(experiment, points)).collect()
}

pub(crate) fn experiment_table(experiment: &str, points: &[&PointSummary]) -> (String, Grid) {
    let shared = shared_levels(points);
    let heading = match shared.0.is_empty() {
        true => experiment.to_string(),
        false => format!("{experiment}, {shared}"),
    };
    let mut metrics: Vec<&str> = Vec::new();
    for point in points.iter().filter(|point| point.experiment == experiment) {
        if !metrics.contains(&point.metric.as_str()) {
            metrics.push(&point.metric);
        }
    }
    let mut columns = vec![("Variant", Kind::Prose), ("At", Kind::Prose), ("Trials", Kind::Number)];
    columns.extend([(metrics[0], Kind::Number), ("95 % interval", Kind::Number), ("p99", Kind::Number)]);
    columns.extend(metrics[1..].iter().map(|metric| (*metric, Kind::Number)));
    let mut grid = Grid::new(&columns).stacking(&["At", "95 % interval"]);
    let mut arms: Vec<ArmKey> = points.iter().map(|point| (point.variant.as_str(), &point.at)).collect();
    let mut seen = BTreeSet::new();
    arms.retain(|arm| seen.insert(*arm));
    for (variant, at) in arms {
        let of_arm = |metric: &str| {
            points.iter().find(|point| point.metric == metric && point.variant == variant && point.at == *at)
        };
        let own = at.0.iter().filter(|(factor, _)| shared.get(factor).is_none());
        let own = Point(own.map(|(factor, level)| (factor.clone(), level.clone())).collect());
        let first = of_arm(metrics[0]);
        let figure = first.map(|point| median_figure(point));
        let (value, range) = figure.map_or_else(Default::default, |figure| (figure.value, figure.range));
        let mut row = vec![
            Cell::Code(variant.to_string()),
            own.to_string().into(),
            first.map_or_else(String::new, |point| point.n.to_string()).into(),
            value.into(),
            range.into(),
            first.map_or_else(String::new, |point| plain(point, point.p99)).into(),
        ];
        let others = metrics[1..].iter().map(|metric| of_arm(metric));
        row.extend(others.map(|point| point.map_or_else(String::new, |point| plain(point, point.median)).into()));
        grid.rows.push(row);
    }
    (heading, grid.without_empty_columns())
}

/// The levels that all points have in common.
fn shared_levels(points: &[&PointSummary]) -> Point {
    let Some(first) = points.first() else { return Point::default() };
    let is_shared = |factor: &str| points.iter().all(|point| point.at.get(factor) == first.at.get(factor));
    let shared = first.at.0.iter().filter(|(factor, _)| is_shared(factor));
    Point(shared.map(|(factor, level)| (factor.clone(), level.clone())).collect())
}

fn median_figure(point: &PointSummary) -> Figure {
    Figure::of_unit(point.unit, point.median, point.median_low, point.median_high)
}

fn plain(point: &PointSummary, value: Option<f64>) -> String {
    value.map_or_else(|| "-".into(), |value| point.unit.human(value))
}
