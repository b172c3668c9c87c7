//! What the colours, dashes and shapes stand for, above the plot.

use std::cmp::Ordering;

use super::layout::{LINE, fitting, text_width};
use crate::scene::Scene;
use crate::values::Values;
use crate::{Cell, Layer, Which};

/// A series in the legend, or a level rule.
pub(super) struct Key {
    /// Which; `None` for a rule.
    pub(super) series: Option<usize>,
    /// What it is called.
    pub(super) name: String,
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

/// The keys of all series that are drawn and of the level rules, in lines as wide as the picture, and their height.
pub(super) fn arranged(scene: &Scene, width: f64, top: f64) -> (Vec<Key>, f64) {
    let (mut x, mut y) = (2.0, top + LINE / 2.0);
    let mut keys = Vec::new();
    let shown = (0..scene.plot.series.len()).filter(|series| scene.plot.shows(*series));
    let of_series = shown.map(|series| (Some(series), scene.plot.series[series].clone()));
    let of_rules = scene.plot.layers.iter().filter_map(|layer| Some((None, level_rule(scene, layer)?)));
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

/// What a level rule is, and in which direction it is out of sight.
fn level_rule(scene: &Scene, layer: &Layer) -> Option<String> {
    let Layer::Rule { on: Which::Y, at, label } = layer else { return None };
    let named = match scene.y.side(*at)? {
        Ordering::Less => format!("↓ {label}"),
        Ordering::Equal => label.clone(),
        Ordering::Greater => format!("↑ {label}"),
    };
    (!label.is_empty()).then_some(named)
}

/// The cells of a heat map with what they show and what their colours mean, if the plot is one.
pub(crate) fn colored_cells(scene: &Scene) -> Option<(&[Cell], &str, Values)> {
    scene.plot.layers.iter().find_map(|layer| match layer {
        Layer::Cells { cells, domain, label, unit } => {
            Some((&cells[..], &label[..], Values::new(cells, *domain, unit)))
        }
        _ => None,
    })
}
