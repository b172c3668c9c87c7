//! Lines, bands, dots, areas and intervals.

use std::fmt::Write;

use super::layout::{Layout, TEXT, fitting};
use super::path::{Path, px};
use super::{Drawing, Size, escaped};
use crate::ink::{MODEL_DASH, OUTLINES, dash, shape};
use crate::scene::{Scene, stepped};
use crate::{Interval, Layer, Range};

/// The largest number of points of a line with markers. If any line has more points, lines are distinguished by dashes
/// instead.
const MOST_MARKERS: usize = 24;
/// If there are at most this many dots, each dot has the shape of its series; otherwise all dots are round.
const MOST_SHAPES: usize = 400;
/// Plots with more marks than this have smaller dots, and coordinates with fewer digits.
const MOST_FINE: usize = 2_000;
/// A forest plot with more rows than this has no numbers beside its rows.
const MOST_FIGURES: usize = 100;

impl Drawing {
    pub(super) fn write_layer(&self, index: usize, layer: &Layer, layout: &Layout, svg: &mut String) {
        match layer {
            Layer::Cells { .. } => return self.write_cells(layout, svg),
            Layer::Rule { on, at, label } => return self.write_rule(*on, *at, label, layout, svg),
            _ => {}
        }
        let name = self.scene.series_name(layer.series());
        let name = if layout.names_series(layer.series(), name) { String::new() } else { escaped(name) };
        let _ = write!(svg, "<g class=\"{}\" data-series=\"{name}\">", self.series_color(layer.series()));
        match layer {
            Layer::Line { series, points, steps, dashed } => {
                let dash = match series {
                    _ if *dashed => MODEL_DASH,
                    Some(series) => self.line_dash(*series),
                    None => "",
                };
                let marked = series.filter(|_| self.has_markers() && !dashed);
                let marker =
                    marked.map_or_else(String::new, |series| self.write_marker(index, series, "mark", true, svg));
                self.write_line(points, *steps, &(marker + &dashes(dash)), layout, svg);
            }
            Layer::Band { ranges, .. } => self.write_band(ranges, layout, svg),
            Layer::Dots { series, points, hollow } => {
                if self.draws_shapes() {
                    let class = if *hollow { "ring" } else { "mark dot" };
                    self.write_marks(index, points, series.unwrap_or(0), ["marks", class], layout, svg);
                } else {
                    self.write_dots(points, *hollow, layout, svg);
                }
            }
            Layer::Area { series, points } => self.write_area(points, *series, layout, svg),
            Layer::Intervals { series, rows } => {
                rows.iter().for_each(|row| self.write_interval(row, layout, svg));
                let points: Vec<[f64; 2]> = rows.iter().map(|row| [row.value, row.y]).collect();
                // The page's script reads these estimates from the intervals. With the class `marks` instead of
                // `estimates`, the script would read them twice.
                self.write_marks(index, &points, series.unwrap_or(1), ["estimates", "mark"], layout, svg);
            }
            Layer::Cells { .. } | Layer::Rule { .. } => {}
        }
        *svg += "</g>";
    }

    /// Returns whether lines have a marker at each point: all lines have few points, and there is no area.
    pub(super) fn has_markers(&self) -> bool {
        self.scene.plot.layers.iter().all(|layer| match layer {
            Layer::Line { series: Some(_), points, steps, dashed: false } => points.len() <= MOST_MARKERS && !steps,
            Layer::Area { .. } => false,
            _ => true,
        })
    }

    /// Returns the dash pattern for the lines of a series; empty if markers distinguish the lines.
    pub(super) fn line_dash(&self, series: usize) -> &'static str {
        if self.has_markers() { "" } else { dash(series) }
    }

    /// Returns whether dots are drawn in the shapes of their series.
    pub(super) fn draws_shapes(&self) -> bool {
        self.dots() <= MOST_SHAPES
    }

    fn dots(&self) -> usize {
        let dots = |layer: &Layer| if let Layer::Dots { points, .. } = layer { points.len() } else { 0 };
        self.scene.plot.layers.iter().map(dots).sum()
    }

    fn grain(&self) -> i64 {
        let marks = |layer: &Layer| match layer {
            Layer::Line { points, .. } | Layer::Dots { points, .. } | Layer::Area { points, .. } => points.len(),
            Layer::Band { ranges, .. } => 2 * ranges.len(),
            _ => 0,
        };
        let are_many = self.scene.plot.layers.iter().map(marks).sum::<usize>() > MOST_FINE;
        match self.size {
            // Most of the size of a page with many pictures is coordinates, so narrow pictures have less exact ones.
            Size::Narrow => 2,
            Size::Wide if are_many => 10,
            Size::Wide => 100,
        }
    }

    /// Defines a marker with the shape of a series, for marks on a line (`on_line`) or for single marks. `index` makes
    /// its id unique in the plot, and `class` is its CSS class. Returns the attribute that draws the marker at each
    /// vertex of a path.
    fn write_marker(&self, index: usize, series: usize, class: &str, on_line: bool, svg: &mut String) -> String {
        let (id, outline) = (self.id(&index.to_string()), OUTLINES[shape(series)]);
        // Without this attribute, the marker would scale with the width of the line.
        let units = if on_line { " markerUnits=\"userSpaceOnUse\"" } else { "" };
        let _ = write!(svg, "<marker id=\"{id}\"{units}><path class=\"{class}\" d=\"{outline}\"/></marker>");
        format!(" style=\"marker:url(#{id})\"")
    }

    /// Draws the shape of a series at each point. `class` is the CSS class of the path, and `of_shape` is the CSS class
    /// of the shape. `index` makes the id of the shape unique in the plot.
    fn write_marks(
        &self,
        index: usize,
        points: &[[f64; 2]],
        series: usize,
        [class, of_shape]: [&str; 2],
        layout: &Layout,
        svg: &mut String,
    ) {
        let mut path = Path::new(self.grain());
        path.polyline(&self.pixel_runs(points, layout).concat());
        if path.is_empty() {
            return;
        }
        let marker = self.write_marker(index, series, of_shape, false, svg);
        let _ = write!(svg, "<path class=\"{class}\"{marker} d=\"{}\"/>", path.data());
    }

    fn write_line(&self, points: &[[f64; 2]], steps: bool, attributes: &str, layout: &Layout, svg: &mut String) {
        let mut path = Path::new(self.grain());
        for run in self.pixel_runs(points, layout) {
            path.polyline(&if steps { stepped(&run) } else { run });
        }
        let class = if steps { "step" } else { "line" };
        let _ = write!(svg, "<path class=\"{class}\"{attributes} d=\"{}\"/>", path.data());
    }

    fn pixel_runs(&self, points: &[[f64; 2]], layout: &Layout) -> Vec<Vec<[f64; 2]>> {
        let frame = &layout.frame;
        let to_pixels = |run: Vec<[f64; 2]>| run.into_iter().map(|[x, y]| [frame.x(x), frame.y(y)]).collect();
        self.scene.runs(points).into_iter().map(to_pixels).collect()
    }

    fn write_band(&self, ranges: &[Range], layout: &Layout, svg: &mut String) {
        let frame = &layout.frame;
        let (mut bounded, mut open) = (Path::new(self.grain()), Path::new(self.grain()));
        for (is_open, mut run) in self.scene.range_runs(ranges) {
            let path = if is_open { &mut open } else { &mut bounded };
            if let [only] = run[..] {
                // A band with a single x is drawn as a bar.
                let half = 1.5 / (frame.right - frame.left);
                run =
                    vec![[(only[0] - half).max(0.0), only[1], only[2]], [(only[0] + half).min(1.0), only[1], only[2]]];
            }
            let upper: Vec<[f64; 2]> = run.iter().map(|[x, _, high]| [frame.x(*x), frame.y(*high)]).collect();
            path.polyline(&upper);
            run.iter().rev().for_each(|[x, low, _]| path.line(frame.x(*x), frame.y(*low)));
            path.close();
        }
        for (path, class) in [(bounded, "band"), (open, "band open")] {
            if !path.is_empty() {
                let _ = write!(svg, "<path class=\"{class}\" d=\"{}\"/>", path.data());
            }
        }
    }

    fn write_area(&self, points: &[[f64; 2]], series: Option<usize>, layout: &Layout, svg: &mut String) {
        let mut path = Path::new(self.grain());
        for run in self.pixel_runs(points, layout) {
            let (Some(first), Some(last)) = (run.first(), run.last()) else { continue };
            path.polyline(&run);
            path.line(last[0], layout.frame.bottom);
            path.line(first[0], layout.frame.bottom);
            path.close();
        }
        let _ = write!(svg, "<path class=\"area\" d=\"{}\"/>", path.data());
        self.write_line(points, false, &dashes(series.map_or("", dash)), layout, svg);
    }

    /// Draws round dots, as one path.
    fn write_dots(&self, points: &[[f64; 2]], hollow: bool, layout: &Layout, svg: &mut String) {
        let mut path = Path::new(self.grain());
        for [x, y] in self.pixel_runs(points, layout).into_iter().flatten() {
            path.dot(x, y);
        }
        let size = if self.dots() <= MOST_FINE { 4.0 } else { 2.8 };
        let data = path.data();
        let _ = match hollow {
            true => write!(
                svg,
                "<path class=\"dots\" stroke-width=\"{}\" d=\"{data}\"/>\
                 <path class=\"paper within\" stroke-width=\"{}\" d=\"{data}\"/>",
                px(size + 1.2),
                px(size - 0.8)
            ),
            false => {
                let size = px(size);
                write!(svg, "<path class=\"dots\" stroke-width=\"{size}\" stroke-opacity=\".75\" d=\"{data}\"/>")
            }
        };
    }

    fn write_interval(&self, row: &Interval, layout: &Layout, svg: &mut String) {
        let frame = &layout.frame;
        let (Some(y), Some(low), Some(high)) =
            (self.scene.y.share(row.y), self.scene.x.end(row.low), self.scene.x.end(row.high))
        else {
            return;
        };
        let y = frame.y(y);
        let (low, high) = (frame.x(low.min(high)), frame.x(low.max(high)));
        let mut path = Path::new(10);
        path.polyline(&[[low, y], [high, y]]);
        for (end, x, inward) in [(row.low, low, 5.0), (row.high, high, -5.0)] {
            if self.scene.x.share(end).is_some() {
                path.polyline(&[[x, y - 3.5], [x, y + 3.5]]);
            } else {
                path.polyline(&[[x + inward, y - 4.0], [x, y], [x + inward, y + 4.0]]);
            }
        }
        let value = self.scene.x.share(row.value).map(|share| frame.x(share));
        let at = px(value.unwrap_or(f64::midpoint(low, high)));
        let (y, text, data) = (px(y), escaped(&row.label), path.data());
        let _ = write!(svg, "<path class=\"interval\" data-at=\"{at} {y}\" data-text=\"{text}\" d=\"{data}\"/>");
    }

    /// Returns the texts beside the rows of a wide forest plot; empty if the plot is narrow or has too many rows.
    pub(super) fn figures(&self) -> Vec<String> {
        let rows: Vec<&Interval> = self.scene.plot.intervals().collect();
        let fits = self.size == Size::Wide && Scene::names(&self.scene.y).is_some() && rows.len() <= MOST_FIGURES;
        let label = |row: &Interval| fitting(&row.label, self.size.width() / 3.0);
        if fits && are_apart(&rows) { rows.into_iter().map(label).collect() } else { Vec::new() }
    }

    pub(super) fn write_figures(&self, figures: &[String], layout: &Layout, svg: &mut String) {
        if figures.is_empty() {
            return;
        }
        let x = px(layout.width - 2.0);
        *svg += "<g class=\"at-rows\">";
        for (row, figure) in self.scene.plot.intervals().zip(figures) {
            let Some(share) = self.scene.y.share(row.y) else { continue };
            let y = px(layout.frame.y(share) + TEXT * 0.35);
            let _ = write!(svg, "<text x=\"{x}\" y=\"{y}\">{}</text>", escaped(figure));
        }
        *svg += "</g>";
    }
}

/// Returns the attribute for a dash pattern; empty for a solid line.
pub(super) fn dashes(dash: &str) -> String {
    if dash.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dash}\"") }
}

/// Returns whether no two intervals are in the same row, so that each row has space for one text.
fn are_apart(rows: &[&Interval]) -> bool {
    let mut at: Vec<f64> = rows.iter().map(|row| row.y).collect();
    at.sort_by(f64::total_cmp);
    at.windows(2).all(|pair| pair[1] - pair[0] > 0.9)
}
