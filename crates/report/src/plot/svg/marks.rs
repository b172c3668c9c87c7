//! Lines, bands, dots, areas and intervals.

use std::fmt::Write;

use super::super::ink::{MODEL_DASH, SHAPES, dash, shape};
use super::super::scene::Scene;
use super::super::{Interval, Layer, Range};
use super::axes::dashes;
use super::layout::{Layout, TEXT};
use super::path::{Path, px};
use super::{Drawing, Size, escaped};
use crate::figure::Figure;

/// Lines of at most so many points have markers at them instead of dashes.
const MOST_MARKERS: usize = 24;
/// At most so many dots have shapes; more are round.
const MOST_SHAPES: usize = 400;
/// Plots of more marks than this have coarser coordinates.
const MOST_FINE: usize = 2_000;
/// At most so many rows have their figures written beside them.
const MOST_FIGURES: usize = 60;

impl Drawing {
    pub(super) fn write_layer(&self, layer: &Layer, layout: &Layout, svg: &mut String) {
        match layer {
            Layer::Cells { cells, label, unit } => return self.write_cells(cells, label, *unit, layout, svg),
            Layer::Rule { on, at, label } => return self.write_rule(*on, *at, label, layout, svg),
            _ => {}
        }
        let name = escaped(self.scene.series_name(layer.series()));
        let _ = write!(svg, "<g data-series=\"{name}\" {}>", self.series_color(layer.series()));
        match layer {
            Layer::Line { series, points, steps, dashed } => {
                let dash = match series {
                    _ if *dashed => MODEL_DASH,
                    Some(series) => self.line_dash(*series),
                    None => "",
                };
                self.write_line(points, *steps, dash, layout, svg);
                if self.has_markers()
                    && !dashed
                    && let Some(series) = series
                {
                    self.write_uses(points, *series, "fill=\"currentColor\"", true, layout, svg);
                }
            }
            Layer::Band { ranges, .. } => self.write_band(ranges, layout, svg),
            Layer::Dots { series, points, hollow } => self.write_dots(points, *series, *hollow, layout, svg),
            Layer::Area { series, points } => self.write_area(points, *series, layout, svg),
            Layer::Intervals { series, rows } => {
                rows.iter().for_each(|row| self.write_interval(row, series.unwrap_or(1), layout, svg));
            }
            Layer::Cells { .. } | Layer::Rule { .. } => {}
        }
        *svg += "</g>";
    }

    /// Whether lines have markers: all are short.
    pub(super) fn has_markers(&self) -> bool {
        self.scene.plot.layers.iter().all(|layer| match layer {
            Layer::Line { series: Some(_), points, steps, dashed: false } => points.len() <= MOST_MARKERS && !steps,
            Layer::Area { .. } => false,
            _ => true,
        })
    }

    /// Whether dots have the shapes of their series.
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
        if self.scene.plot.layers.iter().map(marks).sum::<usize>() > MOST_FINE { 10 } else { 100 }
    }

    /// The outlines of all shapes that are used, to be drawn by reference.
    pub(super) fn write_shapes(&self, svg: &mut String) {
        if !self.draws_shapes() && !self.has_markers() {
            return;
        }
        let layers = self.scene.plot.layers.iter();
        let marked = layers.filter(|layer| matches!(layer, Layer::Dots { .. } | Layer::Line { .. }));
        let mut used: Vec<usize> = marked.map(|layer| layer.series().map_or(0, shape)).collect();
        used.sort_unstable();
        used.dedup();
        for shape in used {
            let _ = write!(svg, "<path id=\"{}\" d=\"{}\"/>", self.id(&format!("m{shape}")), SHAPES[shape]);
        }
    }

    fn write_line(&self, points: &[[f64; 2]], steps: bool, dash: &str, layout: &Layout, svg: &mut String) {
        let mut path = Path::new(self.grain());
        for run in self.pixel_runs(points, layout) {
            if !steps {
                path.polyline(&run);
                continue;
            }
            path.jump(run[0][0], run[0][1]);
            for pair in run.windows(2) {
                path.line(pair[1][0], pair[0][1]);
                path.line(pair[1][0], pair[1][1]);
            }
            if run.len() == 1 {
                path.line(run[0][0], run[0][1]);
            }
        }
        let (kind, data) = (if steps { "step" } else { "line" }, path.data());
        let _ = write!(
            svg,
            "<path data-m=\"{kind}\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"2\" stroke-linejoin=\"round\" \
             stroke-linecap=\"{}\"{} d=\"{data}\"/>",
            if dash.is_empty() { "round" } else { "butt" },
            dashes(dash)
        );
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
                // An interval at one place is a bar.
                let half = 1.5 / (frame.right - frame.left);
                run =
                    vec![[(only[0] - half).max(0.0), only[1], only[2]], [(only[0] + half).min(1.0), only[1], only[2]]];
            }
            let upper: Vec<[f64; 2]> = run.iter().map(|[x, _, high]| [frame.x(*x), frame.y(*high)]).collect();
            path.polyline(&upper);
            run.iter().rev().for_each(|[x, low, _]| path.line(frame.x(*x), frame.y(*low)));
            path.close();
        }
        for (path, opacity) in [(bounded, ".18"), (open, ".07")] {
            if !path.is_empty() {
                let data = path.data();
                let _ = write!(
                    svg,
                    "<path data-m=\"band\" fill=\"currentColor\" fill-opacity=\"{opacity}\" d=\"{data}\"/>"
                );
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
        let _ = write!(svg, "<path fill=\"currentColor\" fill-opacity=\".2\" d=\"{}\"/>", path.data());
        self.write_line(points, false, series.map_or("", dash), layout, svg);
    }

    fn write_dots(&self, points: &[[f64; 2]], series: Option<usize>, hollow: bool, layout: &Layout, svg: &mut String) {
        if self.draws_shapes() {
            let paint = match hollow {
                // A document has no properties; its rings are empty.
                true if self.is_document => "fill=\"none\" stroke=\"currentColor\" stroke-width=\"1.4\"",
                true => "fill=\"var(--paper,#fff)\" stroke=\"currentColor\" stroke-width=\"1.4\"",
                false => "fill=\"currentColor\" fill-opacity=\".85\"",
            };
            return self.write_uses(points, series.unwrap_or(0), paint, false, layout, svg);
        }
        let mut path = Path::new(self.grain());
        for [x, y] in self.pixel_runs(points, layout).into_iter().flatten() {
            path.dot(x, y);
        }
        let size = if self.dots() <= MOST_FINE { 4.0 } else { 2.8 };
        let data = path.data();
        let cap = "stroke=\"currentColor\" stroke-linecap=\"round\"";
        if hollow {
            let _ = write!(
                svg,
                "<path data-m=\"dots\" {cap} stroke-width=\"{}\" d=\"{data}\"/><g {}>\
                 <path stroke=\"currentColor\" stroke-linecap=\"round\" stroke-width=\"{}\" d=\"{data}\"/></g>",
                px(size + 1.2),
                self.color("paper"),
                px(size - 0.8)
            );
        } else {
            let _ = write!(
                svg,
                "<path data-m=\"dots\" {cap} stroke-width=\"{}\" stroke-opacity=\".75\" d=\"{data}\"/>",
                px(size)
            );
        }
    }

    /// The shape of a series at each point.
    fn write_uses(
        &self,
        points: &[[f64; 2]],
        series: usize,
        paint: &str,
        is_on_line: bool,
        layout: &Layout,
        svg: &mut String,
    ) {
        let shape = self.id(&format!("m{}", shape(series)));
        // Where a line goes through the points, its vertices are the marks.
        let kind = if is_on_line { "" } else { " data-m=\"marks\"" };
        let _ = write!(svg, "<g{kind} {paint}>");
        for [x, y] in self.pixel_runs(points, layout).into_iter().flatten() {
            let _ = write!(svg, "<use href=\"#{shape}\" x=\"{}\" y=\"{}\"/>", hundredths(x), hundredths(y));
        }
        *svg += "</g>";
    }

    fn write_interval(&self, row: &Interval, series: usize, layout: &Layout, svg: &mut String) {
        let frame = &layout.frame;
        let (Some(y), Some(low), Some(high)) =
            (self.scene.y.share(row.y), self.scene.x.end(row.low), self.scene.x.end(row.high))
        else {
            return;
        };
        let y = frame.y(y);
        let (low, high) = (frame.x(low.min(high)), frame.x(low.max(high)));
        let mut path = Path::new(10);
        path.jump(low, y);
        path.line(high, y);
        for (end, x, inward) in [(row.low, low, 5.0), (row.high, high, -5.0)] {
            if end.is_infinite() {
                path.jump(x + inward, y - 4.0);
                path.line(x, y);
                path.line(x + inward, y + 4.0);
            } else {
                path.jump(x, y - 3.5);
                path.line(x, y + 3.5);
            }
        }
        let value = self.scene.x.share(row.value).map(|share| frame.x(share));
        let (at, text) = (value.unwrap_or(f64::midpoint(low, high)), escaped(&self.figure(row)));
        let _ = write!(
            svg,
            "<path data-m=\"interval\" data-at=\"{} {}\" data-text=\"{text}\" fill=\"none\" stroke=\"currentColor\" \
             stroke-width=\"1.75\" d=\"{}\"/>",
            px(at),
            px(y),
            path.data()
        );
        if let Some(x) = value {
            let (x, y, outline) = (px(x), px(y), SHAPES[shape(series)]);
            let _ = write!(svg, "<path d=\"{outline}\" transform=\"translate({x} {y})\" fill=\"currentColor\"/>");
        }
    }

    fn figure(&self, row: &Interval) -> String {
        let known = |v: f64| (!v.is_nan()).then_some(v);
        Figure::of_unit(self.scene.x.axis.unit, known(row.value), known(row.low), known(row.high)).to_string()
    }

    /// What is written beside the rows of a wide forest plot.
    pub(super) fn figures(&self) -> Vec<String> {
        let rows: Vec<&Interval> = self.rows().collect();
        let fits = self.size == Size::Wide && Scene::names(&self.scene.y).is_some() && rows.len() <= MOST_FIGURES;
        if fits && are_apart(&rows) { rows.into_iter().map(|row| self.figure(row)).collect() } else { Vec::new() }
    }

    fn rows(&self) -> impl Iterator<Item = &Interval> {
        self.scene.plot.layers.iter().flat_map(|layer| match layer {
            Layer::Intervals { rows, .. } => &rows[..],
            _ => &[],
        })
    }

    pub(super) fn write_figures(&self, figures: &[String], layout: &Layout, svg: &mut String) {
        let x = px(layout.width - 2.0);
        for (row, figure) in self.rows().zip(figures) {
            let Some(share) = self.scene.y.share(row.y) else { continue };
            let y = px(layout.frame.y(share) + TEXT * 0.35);
            let _ = write!(
                svg,
                "<text x=\"{x}\" y=\"{y}\" text-anchor=\"end\" fill=\"currentColor\" \
                 style=\"font-variant-numeric:tabular-nums\">{}</text>",
                escaped(figure)
            );
        }
    }
}

/// Whether no two intervals are in the same row.
fn are_apart(rows: &[&Interval]) -> bool {
    let mut at: Vec<f64> = rows.iter().map(|row| row.y).collect();
    at.sort_by(f64::total_cmp);
    at.windows(2).all(|pair| pair[1] - pair[0] > 0.9)
}

fn hundredths(at: f64) -> String {
    format!("{:.2}", at).trim_end_matches('0').trim_end_matches('.').to_string()
}
