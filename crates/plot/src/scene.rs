use std::cmp::Ordering;

use crate::clip::Clip;
use crate::escape::escape_controls;
use crate::scale::{Ruler, numbers};
use crate::thin::{MOST_MARKS, thinned};
use crate::{Axis, Interval, Layer, Plot, Range, Scale, Which};

/// A plot ready to be drawn. Control characters are escaped, excess marks are left out, and the ends of the axes are
/// known. If an axis does not start at zero, its label states this.
pub(crate) struct Scene {
    /// The plot with the marks that are left after thinning.
    pub(crate) plot: Plot,
    pub(crate) x: Ruler,
    pub(crate) y: Ruler,
}

impl Scene {
    pub(crate) fn new(plot: &Plot) -> Scene {
        Scene::thinned(plot, MOST_MARKS)
    }

    /// Prepares a plot, and thins its marks to at most `most`.
    pub(crate) fn thinned(plot: &Plot, most: usize) -> Scene {
        let clip = Clip::find(&plot.y, &plot.layers);
        let (mut layers, all) = thinned(&plot.layers, most);
        layers.extend(clip.iter().flat_map(|clip| clip.rules.clone()));
        for layer in &mut layers {
            match layer {
                Layer::Cells { label, .. } | Layer::Rule { label, .. } => *label = escape_controls(label),
                Layer::Intervals { rows, .. } => {
                    rows.iter_mut().for_each(|row| row.label = escape_controls(&row.label))
                }
                Layer::Line { .. } | Layer::Band { .. } | Layer::Dots { .. } | Layer::Area { .. } => {}
            }
        }
        let mut alt = escape_controls(&plot.alt);
        if let Some(all) = all {
            alt += &format!(
                " The plot has {all} marks. Each section of it shows only the first, last, lowest and highest mark."
            );
        }
        let plot = Plot {
            // An id of these characters needs no escaping in HTML, CSS and URLs.
            id: plot.id.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).collect(),
            title: escape_controls(&plot.title),
            alt,
            x: escaped_axis(&plot.x),
            y: escaped_axis(&plot.y),
            series: plot.series.iter().map(|name| escape_controls(name)).collect(),
            layers,
        };
        let x = Ruler::new(&plot.x, &plot.layers, Which::X, None);
        let mut y = Ruler::new(&plot.y, &plot.layers, Which::Y, clip.as_ref());
        if y.is_cut() && !y.axis.label.is_empty() {
            y.axis.label += " (not starting at 0)";
        }
        Scene { plot, x, y }
    }

    /// Returns the position of a point on both axes, from 0 to 1; `None` if a scale can't show the point.
    pub(crate) fn place(&self, point: &[f64; 2]) -> Option<[f64; 2]> {
        Some([self.x.share(point[0])?, self.y.share(point[1])?])
    }

    /// Splits a line at the points that can't be drawn, and returns the unbroken parts. Each point of a part is given
    /// by its positions on both axes, from 0 to 1.
    pub(crate) fn runs(&self, points: &[[f64; 2]]) -> Vec<Vec<[f64; 2]>> {
        let placed: Vec<Option<[f64; 2]>> = points.iter().map(|point| self.place(point)).collect();
        placed
            .split(Option::is_none)
            .filter(|run| !run.is_empty())
            .map(|run| run.iter().flatten().copied().collect())
            .collect()
    }

    /// Divides a band into parts that are drawn separately. A new part begins after a range that cannot be drawn. A new
    /// part also begins when the ranges change from bounded to unbounded, or back. Each part is a pair: `true` if the
    /// part is unbounded, and its ranges. A range is `[x, low, high]`, three positions on the axes from 0 to 1.
    pub(crate) fn range_runs(&self, ranges: &[Range]) -> Vec<(bool, Vec<[f64; 3]>)> {
        let mut runs: Vec<(bool, Vec<[f64; 3]>)> = Vec::new();
        let mut before: Option<[f64; 3]> = None;
        for range in ranges {
            let is_open = range.low.is_infinite() || range.high.is_infinite();
            let ends = self.x.share(range.x).zip(self.y.end(range.low)).zip(self.y.end(range.high));
            let Some(place) = ends.map(|((x, low), high)| [x, low, high]) else {
                before = None;
                continue;
            };
            match runs.last_mut().filter(|_| before.is_some()) {
                Some((open, run)) if *open == is_open => run.push(place),
                // If bounded and unbounded ranges meet, the new part begins with the last range of the part before,
                // so that there is no gap.
                _ => runs.push((is_open, before.into_iter().chain([place]).collect())),
            }
            before = Some(place);
        }
        runs
    }

    /// Returns the vertical position (0 to 1) and the label of a labelled horizontal line ([`Layer::Rule`]). The label
    /// begins with an arrow if the line is above or below the plot. `None` for other layers and for lines without a
    /// label.
    pub(crate) fn level_rule(&self, layer: &Layer) -> Option<(f64, String)> {
        let Layer::Rule { on: Which::Y, at, label } = layer else { return None };
        let arrow = match self.y.side(*at)? {
            Ordering::Less => "↓ ",
            Ordering::Equal => "",
            Ordering::Greater => "↑ ",
        };
        Some((self.y.share(*at)?, format!("{arrow}{label}"))).filter(|_| !label.is_empty())
    }

    /// Returns the name of a series; empty if a layer refers to a series that does not exist.
    pub(crate) fn series_name(&self, series: Option<usize>) -> &str {
        series.and_then(|index| self.plot.series.get(index)).map_or("", String::as_str)
    }

    /// Returns the number of names of an axis; `None` if it is an axis of numbers.
    pub(crate) fn names(axis: &Ruler) -> Option<usize> {
        match &axis.axis.scale {
            Scale::Names(names) => Some(names.len().max(1)),
            _ => None,
        }
    }
}

impl Layer {
    /// Returns the index of the series that the layer belongs to; `None` if the layer has none.
    pub(crate) fn series(&self) -> Option<usize> {
        match self {
            Layer::Line { series, .. }
            | Layer::Band { series, .. }
            | Layer::Dots { series, .. }
            | Layer::Area { series, .. }
            | Layer::Intervals { series, .. } => *series,
            Layer::Cells { .. } | Layer::Rule { .. } => None,
        }
    }
}

impl Plot {
    /// Returns whether a series has any marks. A series without marks is not in the legend.
    pub(crate) fn shows(&self, series: usize) -> bool {
        self.layers.iter().any(|layer| layer.series() == Some(series) && !numbers(layer, Which::X).is_empty())
    }

    /// Returns the rows of all forest plot layers ([`Layer::Intervals`]).
    pub(crate) fn intervals(&self) -> impl Iterator<Item = &Interval> {
        self.layers.iter().flat_map(|layer| match layer {
            Layer::Intervals { rows, .. } => &rows[..],
            _ => &[],
        })
    }
}

/// Returns the corners of a step line: it stays at the same height until the next point, and then goes up or down.
pub(crate) fn stepped(points: &[[f64; 2]]) -> Vec<[f64; 2]> {
    let corners = points.windows(2).flat_map(|pair| [pair[0], [pair[1][0], pair[0][1]]]);
    corners.chain(points.last().copied()).collect()
}

fn escaped_axis(axis: &Axis) -> Axis {
    let scale = match &axis.scale {
        Scale::Names(names) => Scale::Names(names.iter().map(|name| escape_controls(name)).collect()),
        scale => scale.clone(),
    };
    Axis { label: escape_controls(&axis.label), scale, ..axis.clone() }
}
