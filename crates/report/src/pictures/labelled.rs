//! The texts beside the rows of a forest plot.

use ascertain_engine::unit::Unit;

use crate::figure::Figure;
use crate::plot::{Axis, Interval, Layer, Plot, Scale, Which};

/// Labels each interval of a forest plot with the numbers of the interval. Each end of the interval has enough digits
/// to show its position relative to every vertical line ([`Layer::Rule`]), such as a claimed bound.
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

/// Returns the text for a row. The ends of its interval have enough digits that no end is rounded to one of the
/// `landmarks`, such as a claimed bound. An end that the scale of the axis can't show is left out. If both ends are
/// equal to the estimate, the text is only the estimate.
fn label(row: &Interval, axis: &Axis, unit: Unit, landmarks: &[f64]) -> String {
    if row.low == row.high && row.value == row.low && !axis.in_percent {
        return unit.human(row.value);
    }
    let has_place = |number: &f64| !number.is_nan() && (axis.scale != Scale::Log || *number > 0.0);
    let [low, high] = [row.low, row.high].map(|number| Some(number).filter(has_place));
    let value = Some(row.value).filter(|value| !value.is_nan());
    let is_size = |number: &f64| number.is_finite() && *number != 0.0;
    let size = [value, high, low].into_iter().flatten().find(is_size).unwrap_or(0.0);
    let figure = Figure::with_landmarks(axis.prefix(size), [value, low, high], landmarks);
    // A logarithmic axis can't show a median ratio of zero, which can result from time-outs. The text is then only the
    // bound on the ratio.
    let is_bound = [low, high].into_iter().flatten().any(f64::is_finite) && !has_place(&row.value);
    if is_bound { figure.range } else { figure.to_string() }
}
