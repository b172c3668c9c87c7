//! Axes, the legend, and the labels of rules.

use std::fmt::Write;

use super::layout::{LINE, Layout, TEXT};
use super::legend::{Key, SPACE};
use super::path::{Path, px};
use super::{Drawing, escaped};
use crate::ink::{MODEL_DASH, OUTLINES, shape};
use crate::scene::Scene;
use crate::stairs::Step;
use crate::{Layer, Which};

impl Drawing {
    pub(super) fn write_axes(&self, layout: &Layout, svg: &mut String) {
        let frame = &layout.frame;
        let is_cells = super::colored_cells(&self.scene).is_some();
        if !is_cells {
            self.write_grid(layout, svg);
        }
        *svg += "<g class=\"muted y\">";
        for tick in layout.y_ticks.iter().filter(|tick| !tick.label.is_empty()) {
            let (x, y) = (px(frame.left - 7.0), px(frame.y(tick.share) + TEXT * 0.35));
            let text = titled(&tick.label, &tick.name);
            let _ = write!(svg, "<text x=\"{x}\" y=\"{y}\">{text}</text>");
        }
        let _ = write!(svg, "</g><g class=\"muted {}\">", if layout.is_slanted { "slanted" } else { "x" });
        for tick in layout.x_ticks.iter().filter(|tick| !tick.label.is_empty()) {
            let text = titled(&tick.label, &tick.name);
            let at = frame.x(tick.share);
            if layout.is_slanted {
                let (x, y) = (px(at + 4.0), px(frame.bottom + 13.0));
                let _ = write!(svg, "<text x=\"{x}\" y=\"{y}\" transform=\"rotate(-45 {x} {y})\">{text}</text>");
            } else {
                let (x, y) = (px(Layout::centered(&tick.label, at, layout.width)), px(frame.bottom + 18.0));
                let _ = write!(svg, "<text x=\"{x}\" y=\"{y}\">{text}</text>");
                if let Some(y) = layout.x_ticks_above {
                    let _ = write!(svg, "<text x=\"{x}\" y=\"{}\">{text}</text>", px(y));
                }
            }
        }
        *svg += "</g>";
        self.write_axis_labels(layout, svg);
    }

    /// Draws the grid behind the marks, both axes, and their ticks.
    fn write_grid(&self, layout: &Layout, svg: &mut String) {
        let frame = &layout.frame;
        let has_rows = Scene::names(&self.scene.y).is_some();
        let mut grid = Path::new(10);
        for tick in layout.y_ticks.iter().filter(|tick| !tick.label.is_empty()) {
            grid.polyline(&[[frame.left, frame.y(tick.share)], [frame.right, frame.y(tick.share)]]);
        }
        let written = layout.x_ticks.iter().filter(|tick| !tick.label.is_empty());
        for tick in written.clone() {
            grid.polyline(&[[frame.x(tick.share), frame.top], [frame.x(tick.share), frame.bottom]]);
        }
        let class = if has_rows { "grid rows" } else { "grid" };
        let _ = write!(svg, "<path class=\"{class}\" d=\"{}\"/>", grid.data());
        let mut axis = Path::new(10);
        let ends = [[frame.left, frame.top], [frame.left, frame.bottom], [frame.right, frame.bottom]];
        axis.polyline(if has_rows { &ends[1..] } else { &ends });
        for tick in &layout.x_ticks {
            let (x, length) = (frame.x(tick.share), if tick.label.is_empty() { 3.0 } else { 5.0 });
            axis.polyline(&[[x, frame.bottom], [x, frame.bottom + length]]);
        }
        for tick in layout.y_ticks.iter().filter(|_| !has_rows) {
            let (y, length) = (frame.y(tick.share), if tick.label.is_empty() { 2.5 } else { 4.0 });
            axis.polyline(&[[frame.left, y], [frame.left - length, y]]);
        }
        let _ = write!(svg, "<path class=\"muted\" d=\"{}\"/>", axis.data());
    }

    fn write_axis_labels(&self, layout: &Layout, svg: &mut String) {
        let frame = &layout.frame;
        if !layout.y_label.is_empty() {
            let text = titled(&layout.y_label, &self.scene.y.axis.label);
            let _ = write!(svg, "<text x=\"2\" y=\"{}\">{text}</text>", px(frame.top - 11.0));
        }
        let whole = &self.scene.x.axis.label;
        if !whole.is_empty() {
            let label = super::layout::fitting(whole, layout.width - 8.0);
            let x = Layout::centered(&label, f64::midpoint(frame.left, frame.right), layout.width);
            let (x, y) = (px(x), px(layout.height - 6.0));
            let text = titled(&label, whole);
            let _ = write!(svg, "<text class=\"x\" x=\"{x}\" y=\"{y}\">{text}</text>");
        }
    }

    /// Draws the legend: each series with a sample of its marks.
    pub(super) fn write_legend(&self, layout: &Layout, svg: &mut String) {
        for key in &layout.legend {
            let (from, y) = (px(key.x), px(key.y));
            match key.series {
                Some(series) => self.write_sample(series, key, svg),
                None => {
                    let _ =
                        write!(svg, "<g class=\"muted\"><path class=\"rule\" d=\"M{from} {y}h{}\"/>", px(key.sample));
                }
            }
            let text = titled(&key.text, &key.name);
            let (x, y) = (px(key.x + key.sample + SPACE), px(key.y + TEXT * 0.35));
            let _ = write!(svg, "<text class=\"ink\" x=\"{x}\" y=\"{y}\">{text}</text></g>");
        }
    }

    /// Opens a group in the colour of a series, and draws a sample of the marks for its legend entry. The caller closes
    /// the group.
    fn write_sample(&self, series: usize, key: &Key, svg: &mut String) {
        let (from, y) = (px(key.x), px(key.y));
        let _ = write!(svg, "<g class=\"{}\">", self.series_color(Some(series)));
        let layers: Vec<&Layer> = self.scene.plot.layers.iter().filter(|l| l.series() == Some(series)).collect();
        if layers.iter().any(|layer| matches!(layer, Layer::Band { .. } | Layer::Area { .. })) {
            let _ = write!(svg, "<path class=\"band\" d=\"M{from} {}h26v12h-26z\"/>", px(key.y - 6.0));
        }
        let line = layers.iter().find_map(|layer| match layer {
            Layer::Line { dashed, .. } => Some(if *dashed { MODEL_DASH } else { self.line_dash(series) }),
            Layer::Area { .. } => Some(self.line_dash(series)),
            Layer::Intervals { .. } => Some(""),
            _ => None,
        });
        if let Some(dash) = line {
            let _ = write!(
                svg,
                "<path class=\"line\"{} d=\"M{from} {y}h{}\"/>",
                super::marks::dashes(dash),
                px(key.sample)
            );
        }
        let is_marked = layers.iter().any(|layer| match layer {
            Layer::Dots { hollow, .. } => !hollow,
            Layer::Intervals { .. } => true,
            Layer::Line { points, dashed, .. } => self.has_markers() && !dashed && !points.is_empty(),
            _ => false,
        });
        let is_ring = layers.iter().any(|layer| matches!(layer, Layer::Dots { hollow: true, .. }));
        if is_marked || is_ring {
            let outline = if self.draws_shapes() { OUTLINES[shape(series)] } else { OUTLINES[0] };
            let (class, x) = (if is_marked { "mark" } else { "ring" }, px(key.x + key.sample / 2.0));
            let _ = write!(svg, "<path class=\"{class}\" d=\"M{x} {y}{outline}\"/>");
        }
    }

    /// Writes the labels of vertical lines ([`Layer::Rule`]) above the plot, and extends each line up to its label.
    pub(super) fn write_rule_labels(&self, layout: &Layout, svg: &mut String) {
        let frame = &layout.frame;
        let mut leaders = Path::new(10);
        let label_y = |label: &Step| frame.top - 10.0 - label.row as f64 * LINE;
        for (x, label) in layout.rules.iter().filter_map(|label| Some((label.rule?, label))) {
            leaders.polyline(&[[x, frame.top], [x, label_y(label) - TEXT + 2.0]]);
        }
        if !leaders.is_empty() {
            let _ = write!(svg, "<path class=\"muted\" d=\"{}\"/>", leaders.data());
        }
        for label in &layout.rules {
            let (x, y) = (px(label.from), px(label_y(label)));
            let text = escaped(&label.text);
            let _ = write!(svg, "<text class=\"muted\" x=\"{x}\" y=\"{y}\">{text}</text>");
        }
    }

    /// Draws a labelled line ([`Layer::Rule`]) across the plot at the number `at`, without its label. Does nothing if
    /// the number is outside the axis.
    pub(super) fn write_rule(&self, on: Which, at: f64, label: &str, layout: &Layout, svg: &mut String) {
        let ruler = if on == Which::X { &self.scene.x } else { &self.scene.y };
        let (Some(std::cmp::Ordering::Equal), Some(share)) = (ruler.side(at), ruler.share(at)) else { return };
        let frame = &layout.frame;
        let mut path = Path::new(10);
        path.polyline(&match on {
            Which::X => [[frame.x(share), frame.bottom], [frame.x(share), frame.top]],
            Which::Y => [[frame.left, frame.y(share)], [frame.right, frame.y(share)]],
        });
        let data = path.data();
        let is_written = layout.rules.iter().any(|written| written.text == label)
            || layout.legend.iter().any(|key| key.series.is_none() && key.text == label);
        let _ = match is_written {
            true => write!(svg, "<path class=\"muted rule\" d=\"{data}\"/>"),
            false => {
                let label = escaped(label);
                write!(svg, "<path class=\"muted rule\" d=\"{data}\"><title>{label}</title></path>")
            }
        };
    }
}

/// Returns the escaped text; if it is a shortened name, with a `<title>` element that has the whole name.
fn titled(text: &str, whole: &str) -> String {
    let title = if text == whole { String::new() } else { format!("<title>{}</title>", escaped(whole)) };
    escaped(text) + &title
}
