use super::scale::Ruler;
use super::thin::{MOST_MARKS, thinned};
use super::{Axis, Interval, Layer, Plot, Range, Scale, Which};
use crate::figure::Figure;
use crate::text::escape_controls;

/// A plot ready to be drawn: names escape_controls, marks thinned, axes with their ends.
pub(super) struct Scene {
    /// The plot, with what is left of its layers.
    pub(super) plot: Plot,
    pub(super) x: Ruler,
    pub(super) y: Ruler,
}

impl Scene {
    pub(super) fn new(plot: &Plot) -> Scene {
        Scene::thinned(plot, MOST_MARKS)
    }

    /// With at most so many marks.
    pub(super) fn thinned(plot: &Plot, most: usize) -> Scene {
        let (mut layers, all) = thinned(&plot.layers, most);
        for layer in &mut layers {
            if let Layer::Cells { label, .. } | Layer::Rule { label, .. } = layer {
                *label = escape_controls(label);
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
            x: harmless_axis(&plot.x),
            y: harmless_axis(&plot.y),
            series: plot.series.iter().map(|name| escape_controls(name)).collect(),
            layers,
        };
        let [x, y] = [(&plot.x, Which::X), (&plot.y, Which::Y)].map(|(axis, on)| Ruler::new(axis, &plot.layers, on));
        Scene { plot, x, y }
    }

    /// Where a point is, as shares of both axes.
    pub(super) fn place(&self, point: &[f64; 2]) -> Option<[f64; 2]> {
        Some([self.x.share(point[0])?, self.y.share(point[1])?])
    }

    /// The points in runs without a break, as shares of both axes.
    pub(super) fn runs(&self, points: &[[f64; 2]]) -> Vec<Vec<[f64; 2]>> {
        let placed: Vec<Option<[f64; 2]>> = points.iter().map(|point| self.place(point)).collect();
        placed
            .split(Option::is_none)
            .filter(|run| !run.is_empty())
            .map(|run| run.iter().flatten().copied().collect())
            .collect()
    }

    /// The ranges of a band in runs without a break: x, low and high as shares. A run is bounded or open (then
    /// `true`); where one goes over into the other they share a range.
    pub(super) fn range_runs(&self, ranges: &[Range]) -> Vec<(bool, Vec<[f64; 3]>)> {
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
    pub(super) fn series_name(&self, series: Option<usize>) -> &str {
        series.and_then(|index| self.plot.series.get(index)).map_or("", String::as_str)
    }

    /// What an interval along the x axis says, in digits that tell its ends from the rules. An end that has no place on
    /// the axis bounds nothing, and where both are at the estimate, that is all there is to say.
    pub(super) fn figure(&self, row: &Interval) -> String {
        let axis = &self.x.axis;
        if row.low == row.high && row.value == row.low && !axis.in_percent {
            return axis.unit.human(row.value);
        }
        let has_place = |number: &f64| !number.is_nan() && (axis.scale != Scale::Log || *number > 0.0);
        let [low, high] = [row.low, row.high].map(|number| Some(number).filter(has_place));
        let value = Some(row.value).filter(|value| !value.is_nan());
        let is_size = |number: &f64| number.is_finite() && *number != 0.0;
        let size = [value, high, low].into_iter().flatten().find(is_size).unwrap_or(0.0);
        let rules = self.plot.layers.iter().filter_map(|layer| match layer {
            Layer::Rule { on: Which::X, at, .. } => Some(*at),
            _ => None,
        });
        let landmarks: Vec<f64> = rules.collect();
        let figure = Figure::with_landmarks(axis.prefix(size), value, low, high, &landmarks);
        // A median ratio of zero, as of time-outs, has no place on the axis: the bound is what there is.
        let is_bound = [low, high].into_iter().flatten().any(f64::is_finite) && !has_place(&row.value);
        if is_bound { figure.range } else { figure.to_string() }
    }

    /// How many names an axis has, if it is one of names.
    pub(super) fn names(axis: &Ruler) -> Option<usize> {
        match &axis.axis.scale {
            Scale::Names(names) => Some(names.len().max(1)),
            _ => None,
        }
    }
}

impl Layer {
    /// Whose marks they are.
    pub(super) fn series(&self) -> Option<usize> {
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
    pub(super) fn shows(&self, series: usize) -> bool {
        self.layers.iter().filter(|layer| layer.series() == Some(series)).any(|layer| match layer {
            Layer::Line { points, .. } | Layer::Dots { points, .. } | Layer::Area { points, .. } => !points.is_empty(),
            Layer::Band { ranges, .. } => !ranges.is_empty(),
            Layer::Intervals { rows, .. } => !rows.is_empty(),
            Layer::Cells { .. } | Layer::Rule { .. } => false,
        })
    }
}

fn harmless_axis(axis: &Axis) -> Axis {
    let scale = match &axis.scale {
        Scale::Names(names) => Scale::Names(names.iter().map(|name| escape_controls(name)).collect()),
        scale => scale.clone(),
    };
    Axis { label: escape_controls(&axis.label), scale, ..axis.clone() }
}
