//! Values in the order measured, which show whether a metric drifts.

use ascertain_engine::unit::Unit;
use ascertain_engine::values::Bounds;
use ascertain_stats::median_sorted;

use super::measured::{MetricRows, ascending};
use super::quantiles::{MOST_LINES, cut_off};
use super::{Picture, PictureKind, Table};
use crate::plot::{Axis, Layer, Plot, Scale, Which};
use crate::text::counted;

/// Draws a metric by trial with a dot for each value, for some rows if there are many. `None` if no row has two values,
/// or if no value is finite.
pub(super) fn trials(measured: &MetricRows, id: String, about: &str) -> Option<Picture> {
    let (shown, selected) = measured.selection(MOST_LINES);
    let finite = || shown.rows.iter().flat_map(|row| row.values.iter().copied()).filter(|value| value.is_finite());
    let greatest = finite().reduce(f64::max)?;
    if shown.rows.iter().all(|row| row.n() < 2) {
        return None;
    }
    // A value that was stopped at the time limit is a hollow dot at the observed value. If that is unknown, the dot is
    // above all other values.
    let top = shown.limit.unwrap_or(greatest * 1.1).max(greatest);
    let stopped = shown.censored();
    let (places, series) = shown.series();
    let dots = places.into_iter().zip(&shown.rows).flat_map(|(index, row)| {
        let layer = move |hollow: bool| {
            let placed = row.trials.iter().zip(0..).map(|(trial, index)| (trial, row.values.bounds(index)));
            let placed = placed.filter(|(_, value)| value.high.is_infinite() == hollow);
            let at = |value: Bounds| match value {
                Bounds { low, high } if high.is_infinite() && low > Bounds::CUT_OFF.low => low,
                Bounds { high, .. } => high.min(top),
            };
            // Trials are numbered from 1 in pictures.
            let points = placed.map(|(trial, value)| [*trial as f64 + 1.0, at(value)]).collect();
            Layer::Dots { series: Some(index), points, hollow }
        };
        let (all, stopped) = (row.values.len(), row.censored());
        [(stopped < all, false), (stopped > 0, true)]
            .into_iter()
            .filter(|(are, _)| *are)
            .map(move |(_, hollow)| layer(hollow))
    });
    let label = format!("hollow: stopped ({stopped})");
    let limit = (stopped > 0).then_some(Layer::Rule { on: Which::Y, at: top, label });
    let plot = Plot {
        id,
        title: format!("{} trial by trial{selected}", shown.title()),
        alt: format!("{about}. {}{}", halves(&shown), cut_off(&shown)),
        x: Axis::new("trial", Scale::Linear, Unit::One),
        y: shown.axis(finite().chain(limit.is_some().then_some(top))),
        series,
        layers: limit.clone().into_iter().chain(dots).collect(),
    };
    Some(Picture { kind: PictureKind::Trials, plot, table: table(measured) })
}

/// Returns a note for the title that `count` values are infinite and not drawn; empty if there are none.
pub(super) fn not_drawn(count: usize) -> String {
    if count == 0 { String::new() } else { format!(" ({} cut off, not drawn)", counted(count, "value")) }
}

/// Returns two medians: the median of the first half of the values, and the median of the second half.
fn of_halves(values: &[f64]) -> [f64; 2] {
    let (first, second) = values.split_at(values.len() / 2);
    [first, second].map(|half| median_sorted(&ascending(half.iter().copied())).unwrap_or(f64::NAN))
}

/// Returns a sentence about the row whose median differs most between the first and the second half of its trials.
fn halves(measured: &MetricRows) -> String {
    let moved = measured.rows.iter().filter(|row| row.n() > 1).map(|row| (row, of_halves(&row.values)));
    let by_much = |[first, second]: [f64; 2]| {
        let change = (second - first).abs() / first.abs();
        if change.is_nan() { 0.0 } else { change }
    };
    let most = moved.max_by(|(_, a), (_, b)| by_much(*a).total_cmp(&by_much(*b)));
    most.map_or_else(String::new, |(row, halves)| {
        let [first, second] = halves.map(|median| measured.human(median));
        let which = if measured.rows.len() > 1 { "The median that changed most" } else { "The median" };
        format!("{which}, of {}, was {first} in the first half of its trials and {second} in the second.", row.name)
    })
}

fn table(measured: &MetricRows) -> Table {
    let mut table = Table::new(&["", "Trials", "Median of the first half", "Median of the second half"]);
    for row in measured.rows.iter().filter(|row| row.n() > 1) {
        let [first, second] = of_halves(&row.values).map(|median| measured.human(median));
        table.rows.push(vec![row.name.clone(), row.n().to_string(), first, second]);
    }
    table
}
