use crate::clip::Clip;
use crate::escape::escape_controls;
use crate::scale::Ruler;
use crate::thin::{MOST_MARKS, thinned};
use crate::{Axis, Layer, Plot, Range, Scale, Which};

/// A plot ready to be drawn: control characters escaped, marks thinned, axes with their ends, which say where they are
/// cut.
pub(crate) struct Scene {
    /// The plot, with what is left of its layers.
    pub(crate) plot: Plot,
    pub(crate) x: Ruler,
    pub(crate) y: Ruler,
}

impl Scene {
    pub(crate) fn new(plot: &Plot) -> Scene {
        Scene::thinned(plot, MOST_MARKS)
    }

    /// With at most so many marks.
    pub(crate) fn thinned(plot: &Plot, most: usize) -> Scene {
        let clip = Clip::of(&plot.y, &plot.layers);
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
            alt += &format!(" Of {all} marks those are drawn that are outermost in their stretch.");
        }
        let plot = Plot {
            // An id that needs no escaping anywhere.
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

    /// Where a point is, as shares of both axes.
    pub(crate) fn place(&self, point: &[f64; 2]) -> Option<[f64; 2]> {
        Some([self.x.share(point[0])?, self.y.share(point[1])?])
    }

    /// The points in runs without a break, as shares of both axes.
    pub(crate) fn runs(&self, points: &[[f64; 2]]) -> Vec<Vec<[f64; 2]>> {
        let placed: Vec<Option<[f64; 2]>> = points.iter().map(|point| self.place(point)).collect();
        placed
            .split(Option::is_none)
            .filter(|run| !run.is_empty())
            .map(|run| run.iter().flatten().copied().collect())
            .collect()
    }

    /// The ranges of a band in runs without a break: x, low and high as shares. A run is bounded or open (then
    /// `true`); where one goes over into the other they share a range.
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
                // What is open begins level with what is bounded.
                _ => runs.push((is_open, before.into_iter().chain([place]).collect())),
            }
            before = Some(place);
        }
        runs
    }

    /// The name of a series; a layer may name one that is not there.
    pub(crate) fn series_name(&self, series: Option<usize>) -> &str {
        series.and_then(|index| self.plot.series.get(index)).map_or("", String::as_str)
    }

    /// How many names an axis has, if it is one of names.
    pub(crate) fn names(axis: &Ruler) -> Option<usize> {
        match &axis.axis.scale {
            Scale::Names(names) => Some(names.len().max(1)),
            _ => None,
        }
    }
}

impl Layer {
    /// Whose marks they are.
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
    /// Whether a series has any marks: one without is not in the legend.
    pub(crate) fn shows(&self, series: usize) -> bool {
        self.layers.iter().filter(|layer| layer.series() == Some(series)).any(|layer| match layer {
            Layer::Line { points, .. } | Layer::Dots { points, .. } | Layer::Area { points, .. } => !points.is_empty(),
            Layer::Band { ranges, .. } => !ranges.is_empty(),
            Layer::Intervals { rows, .. } => !rows.is_empty(),
            Layer::Cells { .. } | Layer::Rule { .. } => false,
        })
    }
}

fn escaped_axis(axis: &Axis) -> Axis {
    let scale = match &axis.scale {
        Scale::Names(names) => Scale::Names(names.iter().map(|name| escape_controls(name)).collect()),
        scale => scale.clone(),
    };
    Axis { label: escape_controls(&axis.label), scale, ..axis.clone() }
}
