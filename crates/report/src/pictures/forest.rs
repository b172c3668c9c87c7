//! Forest plots: the median of each arm with its interval, for the page and for a terminal.

use ascertain_engine::claim::{Judging, Test};
use ascertain_engine::experiment::Arm;
use ascertain_engine::observations::Observations;
use ascertain_engine::outcome::{ClaimResult, Outcome, PointSummary};
use ascertain_engine::unit::Unit;

use super::claim::density;
use super::labelled::labelled;
use super::measured::{ArmRow, MetricRows};
use super::names::{self, Lines};
use super::paired::rules_of_predicate;
use super::quantiles::{MOST_LINES, about, cut_off, quantiles};
use super::sweep::{Sweep, zeros};
use super::{Picture, PictureKind, Table};
use crate::clause::ArmComparison;
use crate::figure::Estimate;
use crate::grid::scan::{number, parameters};
use crate::plot::{Axis, Layer, Plot, Scale};
use crate::text::distinct;

/// The largest number of rows in a plot.
const MOST_ROWS: usize = 64;

/// The words in the title that replace the interval if all values are equal.
const SAME: &str = "the same in every trial";

/// Draws the medians of a metric with a row for each arm, or for some arms if there are too many. `None` if no median
/// is finite. Also `None` if all medians are equal although values differ, because the picture would show no
/// difference.
pub(super) fn medians(measured: &MetricRows, id: String, about: &str) -> Option<Picture> {
    let (shown, selected) = measured.selection(MOST_ROWS);
    // If all values are equal, the median is known exactly and needs no interval.
    let is_constant = shown.is_constant() && shown.rows.iter().any(|row| row.n() > 1);
    let estimate = |row: &ArmRow| match row.median {
        Estimate { value, .. } if is_constant => Estimate { value, low: value, high: value },
        estimate => estimate,
    };
    let estimates: Vec<Estimate> = shown.rows.iter().map(estimate).collect();
    let numbers = || estimates.iter().flat_map(|e| [e.low, e.value, e.high]).filter(|number| number.is_finite());
    let first = numbers().next()?;
    if !is_constant && shown.rows.len() > 1 && numbers().all(|number| number == first) {
        return None;
    }
    let lines = lines(&shown);
    let (series, of_row) = variants(&shown);
    let colours: Vec<Option<usize>> =
        if series.is_empty() { vec![None] } else { (0..series.len()).map(Some).collect() };
    let layers = colours.into_iter().map(|colour| {
        let of_colour = estimates.iter().enumerate().filter(|(index, _)| of_row[*index] == colour);
        let rows = of_colour.map(|(index, estimate)| estimate.at(lines.places[index]));
        Layer::Intervals { series: colour, rows: rows.collect() }
    });
    let what = match () {
        () if is_constant => SAME,
        () if estimates.iter().any(|e| e.low.is_finite() || e.high.is_finite()) => "medians with 95 % intervals",
        () => "medians; too few trials for 95 % intervals",
    };
    let x = shown.axis(numbers().filter(|number| *number != 0.0));
    let hidden = zeros(&x.scale, estimates.iter().map(|estimate| estimate.value));
    let plot = Plot {
        id,
        title: format!("{}: {what}{selected}{hidden}", shown.title()),
        alt: format!("{about}. {}{}", shown.medians_in_words(), cut_off(&shown)),
        x,
        layers: layers.collect(),
        y: Axis::new(&lines.label, Scale::Names(lines.names), Unit::One),
        series,
    };
    Some(Picture { kind: PictureKind::Medians, plot: labelled(plot, measured.unit), table: table(measured) })
}

/// Returns the labels of the rows. If variants and levels both differ, a label names the variant and only those levels
/// that differ. The label of the axis names the factors. If there are many rows, they are grouped by variant: `4` below
/// `kahan:`.
fn lines(measured: &MetricRows) -> Lines {
    const MANY_ROWS: usize = 8;
    let rows: Vec<(&Arm, &str)> = measured.rows.iter().map(|row| (row.arm, row.key)).collect();
    let Some((factors, levels)) = names::levels(&rows) else {
        let (names, label) = names::on_axis(&measured.rows.iter().map(|row| row.name.as_str()).collect::<Vec<_>>());
        return Lines { places: (0..names.len()).map(|place| place as f64).collect(), names, label };
    };
    let mut lines = Lines { names: Vec::new(), label: format!("variant, {factors}"), places: vec![0.0; rows.len()] };
    let mut of_variant: Vec<(&str, Vec<usize>)> = Vec::new();
    for (index, (arm, _)) in rows.iter().enumerate() {
        match of_variant.iter_mut().find(|(variant, _)| *variant == arm.variant && rows.len() > MANY_ROWS) {
            Some((_, known)) => known.push(index),
            None => of_variant.push((&arm.variant, vec![index])),
        }
    }
    for (variant, indices) in of_variant {
        lines.names.extend((indices.len() > 1).then(|| format!("{variant}:")));
        for index in &indices {
            lines.places[*index] = lines.names.len() as f64;
            let level = &levels[*index];
            lines.names.push(if indices.len() > 1 { level.clone() } else { format!("{variant}, {level}") });
        }
    }
    lines
}

/// Returns the names of the series, and for each row the index of its series. Each variant is a series if several rows
/// have the same variant. There are no series if all rows have the same variant, or if there are too many variants.
fn variants(measured: &MetricRows) -> (Vec<String>, Vec<Option<usize>>) {
    let known = distinct(measured.rows.iter().map(|row| row.arm.variant.as_str()));
    if !(2..=MOST_LINES).contains(&known.len()) || known.len() == measured.rows.len() {
        return (Vec::new(), vec![None; measured.rows.len()]);
    }
    let of_row = measured.rows.iter().map(|row| known.iter().position(|variant| *variant == row.arm.variant));
    (known.iter().map(ToString::to_string).collect(), of_row.collect())
}

fn table(measured: &MetricRows) -> Table {
    let mut table = Table::new(&["", "Trials", "Median", "95 % interval", "Least", "Greatest"]);
    for row in &measured.rows {
        let figure = row.median.in_unit(measured.unit);
        let [least, greatest] = [0.0, 1.0].map(|q| measured.human(row.quantile(q)));
        table.rows.push(vec![row.name.clone(), row.n().to_string(), figure.value, figure.range, least, greatest]);
    }
    table
}

/// The largest number of arms whose quantiles are drawn without their medians. The lines of more arms overlap, so the
/// medians are drawn as well.
pub(super) const MANY: usize = 4;

/// Returns whether the point is from the experiment of the claim. If the claim is a comparison, the point must also
/// have the compared metric.
fn is_compared(claim: &ClaimResult, point: &PointSummary) -> bool {
    let metric = ArmComparison::new(claim).map(|comparison| comparison.measure.metric.as_str());
    point.experiment == claim.experiment && metric.is_none_or(|metric| point.metric == metric)
}

/// Draws the metric by the levels of each command parameter whose levels are numbers.
fn sweeps(outcome: &Outcome, measured: &MetricRows, experiment: &str) -> Vec<Plot> {
    let about = about("by level", experiment, measured);
    let parameters = parameters(&outcome.points).into_iter();
    let numeric = parameters.filter(|(_, levels)| levels.iter().all(|level| number(level).is_some()));
    let pictures = numeric.flat_map(|(factor, _)| {
        let sweep = Sweep { measured, factor, footprints: &[], caches: &[], chosen: None };
        sweep.pictures("medians", &about)
    });
    pictures.map(|picture| picture.plot).collect()
}

/// Returns the plots for a terminal after a run. For compared commands or functions, each factor with numeric levels
/// has a plot of the medians by level; without such a factor, one plot has all medians. For a claim about a rate, one
/// plot shows the rate with its interval, another the quantiles of the metric with the claimed bound.
pub fn for_terminal(outcome: &Outcome, observations: &Observations) -> Vec<Plot> {
    let mut plots = Vec::new();
    let order = outcome.claims.iter().find(|claim| claim.asked.judging == Judging::Order);
    if let Some(point) = order.and_then(|claim| outcome.points.iter().find(|point| is_compared(claim, point))) {
        let measured = MetricRows::observed(point, outcome, observations);
        plots.extend(sweeps(outcome, &measured, &point.experiment));
        if plots.is_empty() {
            let about = about("medians", &point.experiment, &measured);
            plots.extend(medians(&measured, "medians".into(), &about).map(|picture| picture.plot));
        }
    }
    for (index, claim) in outcome.claims.iter().filter(|claim| claim.asked.judging == Judging::Rate).enumerate() {
        let [Test::Predicate { arm, measure, conditions, .. }] = claim.asked.tests.as_slice() else { continue };
        plots.extend(density(claim, format!("rate-{}", index + 1)).map(|picture| picture.plot));
        let Some(measure) = measure else { continue };
        let is_it = |point: &&PointSummary| point.is_of(&claim.experiment, arm) && point.metric == measure.metric;
        let Some(point) = outcome.points.iter().find(is_it) else { continue };
        let mut measured = MetricRows::observed(point, outcome, observations);
        measured.rows.retain(|row| row.arm == arm);
        let about = about("by quantile", &point.experiment, &measured);
        let Some(mut picture) = quantiles(&measured, format!("quantiles-{}", index + 1), &about) else { continue };
        picture.plot.layers.extend(rules_of_predicate(conditions, measure));
        plots.push(picture.plot);
    }
    plots
}
