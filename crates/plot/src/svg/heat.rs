//! Heat maps: cells whose colours show their values, and the colour scale.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::layout::{LINE, Layout, TEXT, fitting, text_width};
use super::path::{Path, px};
use super::{Drawing, colored_cells, escaped, prefixes};
use crate::Cell;
use crate::ink::{RAMP, hex, is_light, ramp};
use crate::scene::Scene;
use crate::ticks::{Tick, TickSpace, are_apart, ticks};

/// Index of the last of the 64 colours to which the colours of cells are rounded. Cells of the same colour are drawn as
/// one path, to save space.
const SHADES: f64 = 63.0;

impl Drawing {
    /// Defines the gradient for the legend.
    pub(super) fn write_gradient(&self, svg: &mut String) {
        if colored_cells(&self.scene).is_none() {
            return;
        }
        let _ = write!(svg, "<defs><linearGradient id=\"{}\">", self.id("ramp"));
        for (index, color) in RAMP.iter().enumerate() {
            let offset = index as f64 / (RAMP.len() - 1) as f64;
            let _ = write!(svg, "<stop offset=\"{offset}\" stop-color=\"{}\"/>", hex(*color));
        }
        *svg += "</linearGradient></defs>";
    }

    pub(super) fn write_cells(&self, layout: &Layout, svg: &mut String) {
        let Some((cells, label, values)) = colored_cells(&self.scene) else { return };
        let (Some(columns), Some(rows)) = (Scene::names(&self.scene.x), Scene::names(&self.scene.y)) else { return };
        let frame = &layout.frame;
        let (width, height) = ((frame.right - frame.left) / columns as f64, (frame.bottom - frame.top) / rows as f64);
        let mut shades: BTreeMap<i64, Path> = BTreeMap::new();
        let mut written = vec![String::new(); columns * rows];
        for cell in cells.iter().filter(|cell| cell.x < columns && cell.y < rows) {
            let Some(share) = values.share(cell.value) else { continue };
            written[cell.y * columns + cell.x] = format!("{:.4e}", cell.value);
            let path = shades.entry((share * SHADES).round() as i64).or_insert_with(|| Path::new(10));
            let (x, y) = (frame.left + cell.x as f64 * width, frame.top + cell.y as f64 * height);
            path.polyline(&[[x, y], [x + width, y], [x + width, y + height], [x, y + height]]);
            path.close();
        }
        let _ = write!(
            svg,
            "<g class=\"cells\" data-v-label=\"{}\" data-v-unit=\"{}\" data-v=\"{}\">",
            escaped(label),
            prefixes(values.ruler.axis.unit),
            written.join(",")
        );
        for (shade, path) in shades {
            let fill = hex(ramp(shade as f64 / SHADES));
            // Small cells get a stroke of their own colour, so that there are no gaps between cells. Large cells get a
            // stroke of the background colour, which separates them.
            let edge = if width.min(height) >= 24.0 { "" } else { &format!(";stroke:{fill};stroke-width:.4") };
            let _ = write!(svg, "<path class=\"paper\" style=\"fill:{fill}{edge}\" d=\"{}\"/>", path.data());
        }
        let texts: Vec<(&Cell, String)> = cells.iter().map(|cell| (cell, values.short(cell.value))).collect();
        let has_room = height >= 15.0 && texts.iter().all(|(_, text)| text_width(text) <= width - 4.0);
        for (cell, text) in texts.iter().filter(|(cell, _)| has_room && cell.x < columns && cell.y < rows) {
            let Some(share) = values.share(cell.value) else { continue };
            let x = px(frame.left + (cell.x as f64 + 0.5) * width);
            let y = px(frame.top + (cell.y as f64 + 0.5) * height + TEXT * 0.35);
            // The contrast of the text is computed from the drawn colour of the cell, which is one of the 64 colours.
            let fill = if is_light((share * SHADES).round() / SHADES) { "#000" } else { "#fff" };
            let _ = write!(svg, "<text class=\"x\" style=\"fill:{fill}\" x=\"{x}\" y=\"{y}\">{text}</text>");
        }
        *svg += "</g>";
    }

    /// Draws the legend of a heat map: a bar with all colours, with ticks.
    pub(super) fn write_color_scale(&self, layout: &Layout, svg: &mut String) {
        let Some((_, label, values)) = colored_cells(&self.scene) else { return };
        let (top, left, length) = (layout.colors_top, 2.0, 300.0_f64.min(layout.width - 60.0));
        let start = left + 12.0;
        let (text_y, bar_y) = (px(top + TEXT), px(top + LINE));
        let text = escaped(&fitting(label, layout.width - 8.0));
        let _ = write!(
            svg,
            "<text x=\"{left}\" y=\"{text_y}\">{text}</text>\
             <rect x=\"{start}\" y=\"{bar_y}\" width=\"{length}\" height=\"10\" fill=\"url(#{})\"/>\
             <g class=\"muted x\">",
            self.id("ramp")
        );
        let ends = |tick: &Tick| [-0.5, 0.5].map(|side| tick.share * length + side * text_width(&tick.label));
        let apart = |ticks: &[Tick]| are_apart(ticks, 12.0, ends);
        let ticks = ticks(&values.ruler, &TickSpace { fits: &apart, most: f64::INFINITY, width: text_width });
        for tick in ticks.iter().filter(|tick| !tick.label.is_empty()) {
            let at = start + tick.share * length;
            let x = px(Layout::centered(&tick.label, at, layout.width));
            let (mark, from, y) = (px(at), px(top + LINE + 10.0), px(top + LINE + 26.0));
            let label = escaped(&tick.label);
            let _ = write!(svg, "<path d=\"M{mark} {from}v3\"/><text x=\"{x}\" y=\"{y}\">{label}</text>");
        }
        *svg += "</g>";
    }
}
