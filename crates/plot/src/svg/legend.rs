//! The legend above the plot: colours, dashes and shapes.

use super::layout::{LINE, fitting, text_width};
use crate::scene::Scene;
use crate::values::Values;
use crate::{Cell, Layer};

/// An entry of the legend: a series or a horizontal line ([`Layer::Rule`](crate::Layer::Rule)).
pub(super) struct Key {
    /// The index of the series; `None` for a horizontal line.
    pub(super) series: Option<usize>,
    /// The complete name of the series or of the line.
    pub(super) name: String,
    /// The name as it is written in the legend, possibly shortened.
    pub(super) text: String,
    /// The left end of the sample (a line or a mark that is drawn before the name), in pixels.
    pub(super) x: f64,
    /// The length of the sample in pixels.
    pub(super) sample: f64,
    /// The vertical middle of the entry's line of text, in pixels.
    pub(super) y: f64,
}

/// The space between a sample and its name, in pixels.
pub(super) const SPACE: f64 = 8.0;
const GAP: f64 = 18.0;

/// Arranges the legend, which has an entry for each drawn series and for each labelled horizontal line. Entries are
/// side by side, in rows that are not wider than the picture. `top` is the upper edge of the first row. Returns the
/// entries and their total height.
pub(super) fn arranged(scene: &Scene, width: f64, top: f64) -> (Vec<Key>, f64) {
    let (mut x, mut y) = (2.0, top + LINE / 2.0);
    let mut keys = Vec::new();
    let shown = (0..scene.plot.series.len()).filter(|series| scene.plot.shows(*series));
    let of_series = shown.map(|series| (Some(series), scene.plot.series[series].clone()));
    let of_rules = scene.plot.layers.iter().filter_map(|layer| Some((None, scene.level_rule(layer)?.1)));
    for (series, name) in of_series.chain(of_rules) {
        let is_dots = |layer: &Layer| layer.series() != series || matches!(layer, Layer::Dots { .. });
        let sample = if series.is_some() && scene.plot.layers.iter().all(is_dots) { 10.0 } else { 26.0 };
        let text = fitting(&name, width - sample - SPACE - 6.0);
        let length = sample + SPACE + text_width(&text);
        if x > 2.0 && x + length > width - 2.0 {
            (x, y) = (2.0, y + LINE + 2.0);
        }
        keys.push(Key { series, name, text, x, sample, y });
        x += length + GAP;
    }
    let height = if keys.is_empty() { 0.0 } else { y - top + LINE / 2.0 + 6.0 };
    (keys, height)
}

/// Returns the cells of a heat map, the label of their values, and their colour scale; `None` if the plot is not a
/// heat map.
pub(crate) fn colored_cells(scene: &Scene) -> Option<(&[Cell], &str, Values)> {
    scene.plot.layers.iter().find_map(|layer| match layer {
        Layer::Cells { cells, domain, label, unit } => {
            Some((&cells[..], &label[..], Values::new(cells, *domain, unit)))
        }
        _ => None,
    })
}
