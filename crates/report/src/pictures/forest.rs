//! Forest plots: a median with its interval for each arm.

use std::collections::BTreeMap;

use ascertain::unit::Unit;

use super::measured::{Estimate, Measured, Row};
use super::quantiles::{MOST_LINES, cut_off};
use super::sweep::zeros;
use super::{Picture, Table, names};
use crate::plot::{Axis, Interval, Layer, Plot, Scale};

/// The most rows in a plot.
const MOST_ROWS: usize = 64;

/// What a title says of values that do not vary.
const SAME: &str = "the same in every trial";

/// Whether it is a picture of values that are the same in every trial of an arm.
pub(crate) fn is_constant(plot: &Plot) -> bool {
    plot.title.contains(SAME)
}

/// The medians of a metric, a row an arm; of very many a selection. Nothing where no median is finite.
pub(super) fn medians(measured: &Measured, id: String, about: &str) -> Option<Picture> {
    let (shown, selected) = measured.selection(MOST_ROWS);
    // What does not vary has no interval: it is known.
    let is_constant = shown.is_constant() && shown.rows.iter().any(|row| row.n() > 1);
    let estimate = |row: &Row| match row.median {
        Estimate { value, .. } if is_constant => Estimate { value, low: value, high: value },
        estimate => estimate,
    };
    let estimates: Vec<Estimate> = shown.rows.iter().map(estimate).collect();
    let numbers = || estimates.iter().flat_map(|e| [e.low, e.value, e.high]).filter(|number| number.is_finite());
    numbers().next()?;
    let (series, of_row) = variants(&shown);
    let colours: Vec<Option<usize>> =
        if series.is_empty() { vec![None] } else { (0..series.len()).map(Some).collect() };
    let layers = colours.into_iter().map(|colour| {
        let of_colour = estimates.iter().enumerate().filter(|(index, _)| of_row[*index] == colour);
        let rows = of_colour.map(|(index, e)| Interval { y: index as f64, value: e.value, low: e.low, high: e.high });
        Layer::Intervals { series: colour, rows: rows.collect() }
    });
    let what = if is_constant { SAME } else { "medians with 95 % intervals" };
    let x = shown.axis(numbers().filter(|number| *number != 0.0));
    let hidden = zeros(&x.scale, estimates.iter().map(|estimate| estimate.value));
    let (names, label) = names::on_axis(&shown.rows.iter().map(|row| row.name.as_str()).collect::<Vec<_>>());
    let plot = Plot {
        id,
        title: format!("{}: {what}{selected}{hidden}", shown.title()),
        alt: format!("{about}. {}{}", shown.medians_in_words(), cut_off(&shown)),
        x,
        y: Axis::new(&label, Scale::Names(names), Unit::One),
        layers: layers.collect(),
        series,
    };
    Some(Picture { plot, table: table(measured) })
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
        let [least, greatest] = [0.0, 1.0].map(|q| measured.unit.human(row.quantile(q)));
        table.rows.push(vec![row.name.clone(), row.n().to_string(), figure.value, figure.range, least, greatest]);
    }
    table
}

/// The number of arms from which on lines lie on top of each other, and rows side by side say more.
pub(super) const MANY: usize = 4;
