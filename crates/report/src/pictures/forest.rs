//! Forest plots: a median with its interval for each arm, on the page and for a terminal.

use std::collections::BTreeMap;

use ascertain_engine::claim::Judging;
use ascertain_engine::experiment::Arm;
use ascertain_engine::observations::Observations;
use ascertain_engine::outcome::{ClaimResult, Outcome, PointSummary, TestSpec};
use ascertain_engine::unit::Unit;

use super::claim::density;
use super::labelled::labelled;
use super::measured::{ArmRow, Measured, MedianInterval};
use super::names::{self, Lines};
use super::paired::of_predicate;
use super::quantiles::{MOST_LINES, about, cut_off, quantiles};
use super::sweep::{Sweep, zeros};
use super::{Picture, PictureKind, Table};
use crate::clause::ordered;
use crate::grid::scan::{number, parameters};
use crate::plot::{Axis, Interval, Layer, Plot, Scale};

/// The most rows in a plot.
const MOST_ROWS: usize = 64;

/// What a title says of values that do not vary.
const SAME: &str = "the same in every trial";

/// The medians of a metric, a row an arm; of very many a selection. Nothing where no median is finite.
pub(super) fn medians(measured: &Measured, id: String, about: &str) -> Option<Picture> {
    let (shown, selected) = measured.selection(MOST_ROWS);
    // What does not vary has no interval: it is known.
    let is_constant = shown.is_constant() && shown.rows.iter().any(|row| row.n() > 1);
    let estimate = |row: &ArmRow| match row.median {
        MedianInterval { value, .. } if is_constant => MedianInterval { value, low: value, high: value },
        estimate => estimate,
    };
    let estimates: Vec<MedianInterval> = shown.rows.iter().map(estimate).collect();
    let numbers = || estimates.iter().flat_map(|e| [e.low, e.value, e.high]).filter(|number| number.is_finite());
    let first = numbers().next()?;
    // Medians that are all alike, of which nothing more is known, are no picture.
    if !is_constant && shown.rows.len() > 1 && numbers().all(|number| number == first) {
        return None;
    }
    let lines = lines(&shown);
    let (series, of_row) = variants(&shown);
    let colours: Vec<Option<usize>> =
        if series.is_empty() { vec![None] } else { (0..series.len()).map(Some).collect() };
    let layers = colours.into_iter().map(|colour| {
        let of_colour = estimates.iter().enumerate().filter(|(index, _)| of_row[*index] == colour);
        let rows = of_colour.map(|(index, e)| {
            let (y, label) = (lines.places[index], String::new());
            Interval { y, value: e.value, low: e.low, high: e.high, label }
        });
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

/// The lines of the rows. Where variants and levels differ, only these are written, which the axis's label names; of
/// many rows those of a variant stand below its name: `4` below `kahan:`.
fn lines(measured: &Measured) -> Lines {
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

/// The variants as series and the series of each row, where that tells more than the rows' names.
fn variants(measured: &Measured) -> (Vec<String>, Vec<Option<usize>>) {
    let mut known: Vec<&str> = Vec::new();
    for row in &measured.rows {
        if !known.contains(&row.arm.variant.as_str()) {
            known.push(&row.arm.variant);
        }
    }
    if !(2..=MOST_LINES).contains(&known.len()) || known.len() == measured.rows.len() {
        return (Vec::new(), vec![None; measured.rows.len()]);
    }
    let place: BTreeMap<&str, usize> = known.iter().enumerate().map(|(index, variant)| (*variant, index)).collect();
    let of_row = measured.rows.iter().map(|row| place.get(row.arm.variant.as_str()).copied());
    (known.iter().map(ToString::to_string).collect(), of_row.collect())
}

fn table(measured: &Measured) -> Table {
    let mut table = Table::new(&["", "Trials", "Median", "95 % interval", "Least", "Greatest"]);
    for row in &measured.rows {
        let figure = row.median.figure(measured.unit);
        let [least, greatest] = [0.0, 1.0].map(|q| measured.human(row.quantile(q)));
        table.rows.push(vec![row.name.clone(), row.n().to_string(), figure.value, figure.range, least, greatest]);
    }
    table
}

/// The number of arms from which on lines lie on top of each other, and rows side by side say more.
pub(super) const MANY: usize = 4;

/// Whether the point is about what the claim compares.
fn is_compared(claim: &ClaimResult, point: &PointSummary) -> bool {
    let metric = ordered(claim).map(|(measure, ..)| measure.metric.as_str());
    point.experiment == claim.experiment && metric.is_none_or(|metric| point.metric == metric)
}

/// The metric over each parameter of commands that has numbers for levels.
fn sweeps(outcome: &Outcome, measured: &Measured, experiment: &str) -> Vec<Plot> {
    let about = about("by level", experiment, measured);
    let parameters = parameters(&outcome.points).into_iter();
    let numeric = parameters.filter(|(_, levels)| levels.iter().all(|level| number(level).is_some()));
    let pictures = numeric.flat_map(|(factor, _)| {
        let sweep = Sweep { measured, factor, footprints: &[], caches: &[], chosen: None };
        sweep.pictures("medians", &about)
    });
    pictures.map(|picture| picture.plot).collect()
}

/// The plots of a terminal after a run that has just ended. For commands or functions that were compared: their medians
/// over each parameter that has numbers for levels, or else side by side. For a rate: its interval, and the quantiles of
/// the metric that it is about with their bound.
pub fn for_terminal(outcome: &Outcome, observations: &Observations) -> Vec<Plot> {
    let mut plots = Vec::new();
    let order = outcome.claims.iter().find(|claim| claim.asked.judging == Judging::Order);
    if let Some(point) = order.and_then(|claim| outcome.points.iter().find(|point| is_compared(claim, point))) {
        let measured = Measured::observed(point, outcome, observations);
        plots.extend(sweeps(outcome, &measured, &point.experiment));
        if plots.is_empty() {
            let about = about("medians", &point.experiment, &measured);
            plots.extend(medians(&measured, "medians".into(), &about).map(|picture| picture.plot));
        }
    }
    for (index, claim) in outcome.claims.iter().filter(|claim| claim.asked.judging == Judging::Rate).enumerate() {
        let [TestSpec::Predicate { arm, measure, conditions, .. }] = claim.asked.tests.as_slice() else { continue };
        plots.extend(density(claim, format!("rate-{}", index + 1)).map(|picture| picture.plot));
        let Some(measure) = measure else { continue };
        let is_it = |point: &&PointSummary| point.is_of(&claim.experiment, arm) && point.metric == measure.metric;
        let Some(point) = outcome.points.iter().find(is_it) else { continue };
        let mut measured = Measured::observed(point, outcome, observations);
        measured.rows.retain(|row| row.arm == arm);
        let about = about("by quantile", &point.experiment, &measured);
        let Some(mut picture) = quantiles(&measured, format!("quantiles-{}", index + 1), &about) else { continue };
        picture.plot.layers.extend(of_predicate(conditions, measure));
        plots.push(picture.plot);
    }
    plots
}
