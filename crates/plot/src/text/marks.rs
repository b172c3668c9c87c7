//! Lines, bands, dots, areas, intervals and rules in characters.

use std::cmp::Ordering;

use unicode_width::UnicodeWidthStr;

use super::canvas::{Canvas, Frame, Paint};
use super::{Drawing, fitting};
use crate::ink::{HOLLOW, glyph};
use crate::scene::{Scene, stepped};
use crate::{Interval, Layer, Range, Which};

/// The largest number of dots that are drawn as characters. If there are more, the series with the most dots is drawn
/// in Braille.
const MOST_GLYPHS: usize = 200;
/// The largest number of series whose bands are drawn; more bands would hide each other.
const MOST_BANDS: usize = 2;
/// A forest plot with fewer columns than this has no numbers beside its rows.
const FIGURES_WIDTH: usize = 70;

fn paint(series: Option<usize>) -> Paint {
    series.map_or(Paint::Plain, Paint::Series)
}

impl Drawing<'_> {
    /// Draws all layers. The characters that mark each series are drawn after all lines, on top of them, so that the
    /// lines can be told apart.
    pub(super) fn write_layers(&self, frame: &Frame, canvas: &mut Canvas) {
        let layers = &self.scene.plot.layers;
        let bands = layers.iter().filter(|layer| matches!(layer, Layer::Band { .. })).count();
        let areas = layers.iter().filter(|layer| matches!(layer, Layer::Area { .. })).count();
        for layer in layers {
            match layer {
                Layer::Band { series, ranges } if bands <= MOST_BANDS => {
                    self.write_band(ranges, paint(*series), frame, canvas);
                }
                Layer::Area { series, points } => self.write_area(points, paint(*series), areas == 1, frame, canvas),
                _ => {}
            }
        }
        for layer in layers {
            if let Layer::Rule { on, at, .. } = layer {
                self.write_rule(*on, *at, frame, canvas);
            }
        }
        let lines = layers.iter().filter(|layer| matches!(layer, Layer::Line { series: Some(_), .. })).count();
        let mut places = Vec::new();
        let mut rank = 0;
        for layer in layers {
            if let Layer::Line { series, points, steps, dashed } = layer {
                let corners = if *steps { stepped(points) } else { points.clone() };
                self.write_line(&corners, paint(*series), *dashed, frame, canvas);
                if let Some(series) = series {
                    places.extend(self.places_on(&corners, points, (rank, lines), frame).map(|at| (at, *series)));
                    rank += 1;
                }
            }
        }
        for ([column, row], series) in places {
            canvas.write(column, row, &glyph(Some(series)).to_string(), Paint::Series(series));
        }
        self.write_dots(frame, canvas);
        for layer in layers {
            if let Layer::Intervals { series, rows } = layer {
                rows.iter().for_each(|row| self.write_interval(row, *series, frame, canvas));
            }
        }
        self.write_rule_labels(frame, canvas);
    }

    fn write_line(&self, points: &[[f64; 2]], paint: Paint, dashed: bool, frame: &Frame, canvas: &mut Canvas) {
        for run in self.scene.runs(points) {
            let dots: Vec<[usize; 2]> = run.into_iter().map(|share| frame.dot(share)).collect();
            if let [only] = dots[..] {
                canvas.dot(only, paint);
            }
            for (index, pair) in dots.windows(2).enumerate() {
                if !dashed || index % 2 == 0 {
                    canvas.line(pair[0], pair[1], paint);
                }
            }
        }
    }

    /// Returns the columns and rows at which the character of a series is drawn on its line. If there are few points,
    /// the character is drawn at each of the `points`. Otherwise it is drawn at regular distances along `corners`, the
    /// drawn line. `rank` is the index of the line, and `lines` the number of all lines. Each line uses different
    /// columns.
    fn places_on(
        &self,
        corners: &[[f64; 2]],
        points: &[[f64; 2]],
        (rank, lines): (usize, usize),
        frame: &Frame,
    ) -> impl Iterator<Item = [usize; 2]> + use<> {
        let square = |share: [f64; 2]| [frame.column(share[0]), frame.row(share[1])];
        if points.len() <= frame.width / 4 {
            let places: Vec<[usize; 2]> = self.scene.runs(points).into_iter().flatten().map(square).collect();
            return places.into_iter();
        }
        let every = (frame.width / 5).max(8).min(frame.width);
        let first = every * (2 * rank + 1) / (2 * lines);
        let mut places = Vec::new();
        for run in self.scene.runs(corners) {
            for target in (first..frame.width).step_by(every.max(1)) {
                let at = (target as f64 + 0.5) / frame.width as f64;
                let crossing = run.windows(2).find(|pair| pair[0][0] <= at && at < pair[1][0]);
                places.extend(crossing.map(|pair| {
                    let along = (at - pair[0][0]) / (pair[1][0] - pair[0][0]);
                    square([at, pair[0][1] + (pair[1][1] - pair[0][1]) * along])
                }));
            }
        }
        places.into_iter()
    }

    fn write_band(&self, ranges: &[Range], paint: Paint, frame: &Frame, canvas: &mut Canvas) {
        for (_, mut run) in self.scene.range_runs(ranges) {
            if run.len() == 1 {
                run.push(run[0]);
            }
            for pair in run.windows(2) {
                let (from, to) = (frame.column(pair[0][0]), frame.column(pair[1][0]));
                for column in from..=to {
                    let along = (column - from) as f64 / (to - from).max(1) as f64;
                    let [low, high] = [1, 2].map(|end| pair[0][end] + (pair[1][end] - pair[0][end]) * along);
                    (frame.row(high)..=frame.row(low)).for_each(|row| canvas.shade(column, row, paint));
                }
            }
        }
    }

    /// Draws a line, and fills the area below it with Braille dots if `is_filled`. Several filled areas would hide each
    /// other.
    fn write_area(&self, points: &[[f64; 2]], paint: Paint, is_filled: bool, frame: &Frame, canvas: &mut Canvas) {
        self.write_line(points, paint, false, frame, canvas);
        let bottom = (frame.top + frame.height) * 4 - 1;
        for run in self.scene.runs(points).into_iter().filter(|_| is_filled) {
            for pair in run.windows(2) {
                let [from, to] = [frame.dot(pair[0]), frame.dot(pair[1])];
                for x in from[0]..=to[0] {
                    let along = (x - from[0]) as f64 / (to[0] - from[0]).max(1) as f64;
                    let y = (from[1] as f64 + (to[1] as f64 - from[1] as f64) * along).round() as usize;
                    (y..=bottom).for_each(|y| canvas.dot([x, y], paint));
                }
            }
        }
    }

    /// Returns the index of the series that is drawn in Braille: the series with the most dots. `None` if there are so
    /// few dots that all can be drawn as characters.
    pub(super) fn braille_dots(&self) -> Option<usize> {
        let mut counts = vec![0; self.scene.plot.series.len()];
        for layer in &self.scene.plot.layers {
            if let Layer::Dots { series: Some(series), points, .. } = layer
                && let Some(count) = counts.get_mut(*series)
            {
                *count += points.len();
            }
        }
        let (series, most) = counts.iter().enumerate().max_by_key(|(_, count)| **count)?;
        (counts.iter().sum::<usize>() > MOST_GLYPHS && *most > 0).then_some(series)
    }

    fn write_dots(&self, frame: &Frame, canvas: &mut Canvas) {
        let braille = self.braille_dots();
        for is_braille in [true, false] {
            for layer in &self.scene.plot.layers {
                let Layer::Dots { series, points, hollow } = layer else { continue };
                if (series.is_some() && *series == braille) != is_braille {
                    continue;
                }
                for share in points.iter().filter_map(|point| self.scene.place(point)) {
                    if is_braille {
                        canvas.dot(frame.dot(share), paint(*series));
                    } else {
                        let mark = if *hollow { HOLLOW } else { glyph(*series) }.to_string();
                        canvas.write(frame.column(share[0]), frame.row(share[1]), &mark, paint(*series));
                    }
                }
            }
        }
    }

    fn write_interval(&self, row: &Interval, series: Option<usize>, frame: &Frame, canvas: &mut Canvas) {
        let ends = self.scene.y.share(row.y).zip(self.scene.x.end(row.low)).zip(self.scene.x.end(row.high));
        let Some(((y, low), high)) = ends else { return };
        let (line, from, to) = (frame.row(y), frame.column(low.min(high)), frame.column(low.max(high)));
        for column in from..=to {
            canvas.write(column, line, "─", paint(series));
        }
        canvas.write(from, line, if row.low.is_infinite() { "◄" } else { "├" }, paint(series));
        canvas.write(to, line, if row.high.is_infinite() { "►" } else { "┤" }, paint(series));
        if let Some(share) = self.scene.x.share(row.value) {
            canvas.write(frame.column(share), line, &glyph(series).to_string(), paint(series));
        }
    }

    /// Returns the texts beside the rows of a forest plot, each with its vertical position; empty if the picture is too
    /// narrow.
    pub(super) fn figures(&self) -> Vec<(f64, String)> {
        if self.width < FIGURES_WIDTH || Scene::names(&self.scene.y).is_none() {
            return Vec::new();
        }
        let figure = |row: &Interval| Some((self.scene.y.share(row.y)?, fitting(&row.label, self.width / 3)));
        self.scene.plot.intervals().filter_map(figure).collect()
    }

    fn write_rule(&self, on: Which, at: f64, frame: &Frame, canvas: &mut Canvas) {
        let ruler = if on == Which::X { &self.scene.x } else { &self.scene.y };
        let (Some(Ordering::Equal), Some(share)) = (ruler.side(at), ruler.share(at)) else { return };
        match on {
            Which::X => (frame.top..frame.top + frame.height).for_each(|row| {
                canvas.write(frame.column(share), row, "┊", Paint::Muted);
            }),
            Which::Y => canvas.write(frame.left, frame.row(share), &"╌".repeat(frame.width), Paint::Muted),
        }
    }

    /// Writes the label of each horizontal line ([`Layer::Rule`]) on the line, at columns without marks.
    fn write_rule_labels(&self, frame: &Frame, canvas: &mut Canvas) {
        for layer in &self.scene.plot.layers {
            let Some((share, label)) = self.scene.level_rule(layer) else { continue };
            let text = format!(" {} ", fitting(&label, frame.width.saturating_sub(4)));
            let (line, length) = (frame.row(share), text.width());
            let last = (frame.left + frame.width).saturating_sub(length + 1);
            // If the line's own row has no space, the rows above and below it are tried.
            let lines = [line, line.saturating_sub(1).max(frame.top), (line + 1).min(frame.top + frame.height - 1)];
            let mut places =
                lines.into_iter().flat_map(|row| (frame.left + 1..=last).rev().step_by(3).map(move |x| (x, row)));
            if let Some((column, row)) = places.find(|(column, row)| canvas.is_clear(*column, *row, length)) {
                canvas.write(column, row, &text, Paint::Muted);
            }
        }
    }
}
