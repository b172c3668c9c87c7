//! Plots in characters, for terminals.
//!
//! Lines and areas are drawn with Braille dots, two by four per character. The character of the series is repeated
//! along its line, so that lines can be distinguished without colour. If there are many dots, the series with the most
//! dots is drawn in Braille, and the others with their characters. Hollow dots have a character of their own. Labels
//! and ticks are chosen as in [`svg`](super::svg).

mod canvas;
mod heat;
mod marks;

use unicode_width::UnicodeWidthStr;

use crate::ink::{HOLLOW, glyph};
use crate::names::shortened;
use crate::scale::Ruler;
use crate::scene::Scene;
use crate::svg::colored_cells;
use crate::ticks::{Tick, TickSpace, are_apart, ticks};
use crate::{Layer, Plot, stairs};
use canvas::{Canvas, Frame, Paint};

/// The smallest width of a picture, in columns.
const LEAST_WIDTH: usize = 40;
/// The smallest height of the frame that contains the marks, in lines.
const LEAST_ROWS: usize = 5;

/// Draws the plot in at most `width` columns and `height` lines. If the names and the legend need more lines, the plot
/// is taller. Each line ends with a newline. `color` adds terminal escapes for colours, and changes nothing else.
///
/// ```
/// use ascertain_plot::{Axis, Layer, Plot, Prefixes, Scale, text};
/// const NONE: Prefixes = &[];
/// let plot = Plot {
///     id: "ratios".into(),
///     title: "Paired ratios".into(),
///     alt: "All ratios are above 1.".into(),
///     x: Axis::new("trial", Scale::Linear, NONE),
///     y: Axis::new("ratio", Scale::Linear, NONE),
///     series: vec!["faster".into()],
///     layers: vec![Layer::Dots { series: Some(0), points: vec![[1.0, 1.1], [2.0, 1.2]], hollow: false }],
/// };
/// let text = text::render(&plot, 60, 12, false);
/// assert!(text.starts_with("Paired ratios\n") && text.contains("● faster"));
/// ```
pub fn render(plot: &Plot, width: usize, height: usize, color: bool) -> String {
    let scene = Scene::new(plot);
    let width = width.clamp(LEAST_WIDTH, 1000);
    let drawing = Drawing { scene: &scene, width };
    let canvas = if colored_cells(&scene).is_some() { drawing.heat_map() } else { drawing.marks(height.min(1000)) };
    canvas.text(color)
}

/// Returns the number of terminal columns of a text.
fn columns(text: &str) -> f64 {
    text.width() as f64
}

fn fitting(text: &str, most: usize) -> String {
    shortened(text, most as f64, columns)
}

/// A plot while it is converted to characters.
struct Drawing<'a> {
    scene: &'a Scene,
    width: usize,
}

/// A line of the legend. Each entry has the colour of a series, a sample of its marks as characters, and its name.
type LegendLine = Vec<(Paint, String, String)>;

impl Drawing<'_> {
    /// Draws a plot that is not a heat map: title, legend, labels of rules, frame, ticks, and the label of the x axis.
    fn marks(&self, height: usize) -> Canvas {
        let (scene, width) = (self.scene, self.width);
        let legend = self.legend();
        let figures = self.figures();
        let beside = figures.iter().map(|(_, figure)| figure.width() + 2).max().unwrap_or(1);
        let named = Scene::names(&scene.y);
        let below = 2 + usize::from(!scene.x.axis.label.is_empty());
        let above = 1 + legend.len();
        let rows = named.unwrap_or_else(|| height.saturating_sub(above + below + 1).max(LEAST_ROWS));
        let y_ticks = y_ticks(&scene.y, rows, if named.is_some() { width / 3 } else { width / 4 });
        let left = y_ticks.iter().map(|tick| tick.label.width()).max().unwrap_or(0) + 2;
        let mut frame = Frame { left, top: 0, width: width.saturating_sub(left + beside).max(8), height: rows };

        let y_label = fitting(&scene.y.axis.label, width / 2);
        let taken = if y_label.is_empty() { 0.0 } else { columns(&y_label) + 1.0 };
        let room = stairs::LabelSpace { width: width as f64, taken, gap: 1.0, measure: &columns };
        let (steps, step_rows) = stairs::arranged(scene, |share| frame.column(share) as f64, &room);
        // One row of labels is already subtracted from the height.
        if named.is_none() && step_rows != 1 {
            frame.height = (rows + 1).saturating_sub(step_rows).max(LEAST_ROWS);
        }
        frame.top = above + step_rows;

        let mut canvas = Canvas::new(width, frame.top + frame.height + below);
        canvas.write(0, 0, &fitting(&scene.plot.title, width), Paint::Bold);
        self.write_legend(&legend, 1, &mut canvas);
        canvas.write(0, frame.top.saturating_sub(1), &y_label, Paint::Plain);
        self.write_layers(&frame, &mut canvas);
        for step in &steps {
            let row = frame.top - 1 - step.row;
            canvas.write(step.from.max(0.0) as usize, row, &step.text, Paint::Muted);
            if let Some(x) = step.rule {
                (row..frame.top).for_each(|y| canvas.write(x as usize, y, "┊", Paint::Muted));
            }
        }
        for (share, figure) in &figures {
            canvas.write(width - figure.width(), frame.row(*share), figure, Paint::Plain);
        }
        self.write_axes(&frame, &y_ticks, &mut canvas);
        canvas
    }

    fn write_axes(&self, frame: &Frame, y_ticks: &[Tick], canvas: &mut Canvas) {
        let has_rows = Scene::names(&self.scene.y).is_some();
        let (axis, bottom) = (frame.left - 1, frame.top + frame.height);
        for row in frame.top..bottom {
            canvas.write(axis, row, "│", Paint::Muted);
        }
        for tick in y_ticks.iter().filter(|tick| !tick.label.is_empty()) {
            let row = frame.row(tick.share);
            canvas.write(axis, row, if has_rows { "│" } else { "┤" }, Paint::Muted);
            canvas.write(axis - 1 - tick.label.width(), row, &tick.label, Paint::Plain);
        }
        canvas.write(axis, bottom, &format!("└{}", "─".repeat(frame.width)), Paint::Muted);
        let x_ticks = self.x_ticks(frame, 10);
        for tick in x_ticks.iter().filter(|tick| !tick.label.is_empty()) {
            canvas.write(frame.column(tick.share), bottom, "┬", Paint::Muted);
        }
        self.write_x_labels(frame, &x_ticks, bottom + 1, canvas);
    }

    /// Writes the tick labels of the x axis below the frame, and the label of the axis in the next line.
    fn write_x_labels(&self, frame: &Frame, x_ticks: &[Tick], row: usize, canvas: &mut Canvas) {
        for tick in x_ticks {
            canvas.write(self.label_start(frame, tick), row, &tick.label, Paint::Plain);
        }
        let label = fitting(&self.scene.x.axis.label, self.width);
        let start = (frame.left + frame.width / 2).saturating_sub(label.width() / 2).min(self.width - label.width());
        canvas.write(start, row + 1, &label, Paint::Plain);
    }

    fn label_start(&self, frame: &Frame, tick: &Tick) -> usize {
        let length = tick.label.width();
        frame.column(tick.share).saturating_sub(length / 2).min(self.width.saturating_sub(length))
    }

    fn x_ticks(&self, frame: &Frame, most_name: usize) -> Vec<Tick> {
        let gap = if Scene::names(&self.scene.x).is_some() { 1.0 } else { 3.0 };
        let ends = |tick: &Tick| {
            let start = self.label_start(frame, tick) as f64;
            [start, start + columns(&tick.label)]
        };
        let fits = |ticks: &[Tick]| are_apart(ticks, gap, ends);
        ticks(&self.scene.x, &TickSpace { fits: &fits, most: most_name as f64, width: columns })
    }

    /// Returns the lines of the legend.
    fn legend(&self) -> Vec<LegendLine> {
        let mut lines: Vec<LegendLine> = Vec::new();
        let mut used = 0;
        for (paint, sample, name) in self.legend_entries() {
            let name = fitting(&name, self.width - sample.width() - 1);
            let length = sample.width() + 1 + name.width();
            match lines.last_mut() {
                Some(line) if used + 3 + length <= self.width => {
                    used += 3 + length;
                    line.push((paint, sample, name));
                }
                _ => {
                    used = length;
                    lines.push(vec![(paint, sample, name)]);
                }
            }
        }
        lines
    }

    /// Returns the entries of the legend: each series, and then hollow dots if they are not the sample of their series.
    fn legend_entries(&self) -> LegendLine {
        let braille = self.braille_dots();
        let mut entries: LegendLine = Vec::new();
        let mut has_other_hollow = false;
        let shown = self.scene.plot.series.iter().enumerate().filter(|(series, _)| self.scene.plot.shows(*series));
        for (series, name) in shown {
            let of_series = |layer: &&Layer| layer.series() == Some(series);
            let mark = glyph(Some(series));
            let samples = self.scene.plot.layers.iter().filter(of_series).map(|layer| match layer {
                Layer::Line { dashed: true, .. } => format!("╌{mark}╌"),
                Layer::Line { .. } => format!("─{mark}─"),
                Layer::Intervals { .. } => format!("├{mark}┤"),
                Layer::Dots { .. } if braille == Some(series) => "⠪".into(),
                Layer::Dots { hollow: true, .. } => HOLLOW.to_string(),
                Layer::Dots { .. } => mark.to_string(),
                Layer::Area { .. } => "⣿".into(),
                _ => "░".into(),
            });
            let samples: Vec<String> = samples.collect();
            let is_hollow = |sample: &String| sample.starts_with(HOLLOW);
            // If a series has several layers, its sample shows the first layer that is neither a band nor hollow dots.
            let rank = |sample: &&String| (*sample == "░", is_hollow(sample));
            let Some(sample) = samples.iter().min_by_key(rank) else { continue };
            has_other_hollow |= samples.iter().any(is_hollow) && !is_hollow(sample);
            entries.push((Paint::Series(series), sample.clone(), name.clone()));
        }
        if has_other_hollow {
            entries.push((Paint::Plain, HOLLOW.to_string(), "hollow".into()));
        }
        entries
    }

    fn write_legend(&self, lines: &[LegendLine], top: usize, canvas: &mut Canvas) {
        for (row, line) in lines.iter().enumerate() {
            let mut column = 0;
            for (paint, sample, name) in line {
                canvas.write(column, top + row, sample, *paint);
                column += sample.width() + 1;
                canvas.write(column, top + row, name, Paint::Plain);
                column += name.width() + 3;
            }
        }
    }
}

/// Returns the ticks of a y axis that is `rows` lines high, with labels of at most `most` columns. Labels are at least
/// two lines apart, unless they are names.
fn y_ticks(ruler: &Ruler, rows: usize, most: usize) -> Vec<Tick> {
    let apart = if Scene::names(ruler).is_some() { 1.0 } else { 2.5 };
    let fits = |ticks: &[Tick]| {
        let written: Vec<&Tick> = ticks.iter().filter(|tick| !tick.label.is_empty()).collect();
        written.windows(2).all(|pair| (pair[1].share - pair[0].share).abs() * rows as f64 >= apart - 1e-6)
            && written.iter().all(|tick| tick.label.width() <= most)
    };
    let mut ticks = ticks(ruler, &TickSpace { fits: &fits, most: most as f64, width: columns });
    ticks.iter_mut().for_each(|tick| tick.label = fitting(&tick.label, most));
    ticks
}
