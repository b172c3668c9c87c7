//! What the colours, dashes and shapes stand for, above the plot.

use super::super::scene::Scene;
use super::super::{Cell, Layer};
use super::layout::{LINE, fitting, text_width};
use ascertain::unit::Unit;

/// A series in the legend.
pub(super) struct Key {
    pub(super) series: usize,
    /// What is written, possibly shortened.
    pub(super) text: String,
    /// Where its sample begins, how wide that is, and the middle of its line.
    pub(super) x: f64,
    pub(super) sample: f64,
    pub(super) y: f64,
}

/// The space after a sample, and after a key.
pub(super) const SPACE: f64 = 8.0;
const GAP: f64 = 18.0;

/// The keys of all series that are drawn, in lines as wide as the picture, and their height.
pub(super) fn arranged(scene: &Scene, width: f64, top: f64) -> (Vec<Key>, f64) {
    let (mut x, mut y) = (2.0, top + LINE / 2.0);
    let mut keys = Vec::new();
    for series in (0..scene.plot.series.len()).filter(|series| scene.plot.shows(*series)) {
        let is_dots = |layer: &Layer| layer.series() != Some(series) || matches!(layer, Layer::Dots { .. });
        let sample = if scene.plot.layers.iter().all(is_dots) { 10.0 } else { 26.0 };
        let text = fitting(&scene.plot.series[series], width - sample - SPACE - 6.0);
        let length = sample + SPACE + text_width(&text);
        if x > 2.0 && x + length > width - 2.0 {
            (x, y) = (2.0, y + LINE + 2.0);
        }
        keys.push(Key { series, text, x, sample, y });
        x += length + GAP;
    }
    let height = if keys.is_empty() { 0.0 } else { y - top + LINE / 2.0 + 6.0 };
    (keys, height)
}

/// The cells of a heat map with what they show, if the plot is one.
pub(in super::super) fn colored_cells(scene: &Scene) -> Option<(&[Cell], &str, Unit)> {
    scene.plot.layers.iter().find_map(|layer| match layer {
        Layer::Cells { cells, label, unit } => Some((&cells[..], &label[..], *unit)),
        _ => None,
    })
}
