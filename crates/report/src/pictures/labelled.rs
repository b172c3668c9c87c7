//! What stands beside the rows of a forest plot.

use ascertain_engine::unit::Unit;

use crate::figure::Figure;
use crate::plot::{Axis, Interval, Layer, Plot, Scale, Which};

/// The plot with its intervals in figures, in digits that tell their ends from the rules.
pub(super) fn labelled(mut plot: Plot, unit: Unit) -> Plot {
    let rules = plot.layers.iter().filter_map(|layer| match layer {
        Layer::Rule { on: Which::X, at, .. } => Some(*at),
        _ => None,
    });
    let landmarks: Vec<f64> = rules.collect();
    for layer in &mut plot.layers {
        if let Layer::Intervals { rows, .. } = layer {
            rows.iter_mut().for_each(|row| row.label = label(row, &plot.x, unit, &landmarks));
        }
    }
    plot
}

/// An end that has no place on the axis bounds nothing, and where both are at the estimate, that is all there is to
/// say.
fn label(row: &Interval, axis: &Axis, unit: Unit, landmarks: &[f64]) -> String {
    if row.low == row.high && row.value == row.low && !axis.in_percent {
        return unit.human(row.value);
    }
    let has_place = |number: &f64| !number.is_nan() && (axis.scale != Scale::Log || *number > 0.0);
    let [low, high] = [row.low, row.high].map(|number| Some(number).filter(has_place));
    let value = Some(row.value).filter(|value| !value.is_nan());
    let is_size = |number: &f64| number.is_finite() && *number != 0.0;
    let size = [value, high, low].into_iter().flatten().find(is_size).unwrap_or(0.0);
    let figure = Figure::with_landmarks(axis.prefix(size), value, low, high, landmarks);
    // A median ratio of zero, as of time-outs, has no place on the axis: the bound is what there is.
    let is_bound = [low, high].into_iter().flatten().any(f64::is_finite) && !has_place(&row.value);
    if is_bound { figure.range } else { figure.to_string() }
}
