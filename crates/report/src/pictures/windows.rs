//! Pictures of long measurements: percentiles by window, and derived series by window.

use ascertain_engine::outcome::Outcome;
use ascertain_engine::unit::Unit;
use ascertain_engine::values::Bounds;
use ascertain_engine::windows::{SeriesReport, WindowReport, WindowSummary};

use super::measured::{from_zero, scale_for};
use super::{Picture, PictureKind, Table};
use crate::plot::{Axis, Layer, Plot, Range, Scale};
use crate::text::counted;
use crate::windows;

/// Returns the pictures of a long measurement; empty for any other run.
pub(crate) fn windows(outcome: &Outcome) -> Vec<Picture> {
    let Some(report) = &outcome.windows else { return Vec::new() };
    let by_window = percentiles(&report.windows, report.unit, &report.metric).map(|plot| {
        let grid = windows::grid(report);
        let headings: Vec<&str> = grid.columns.iter().map(|column| column.heading.as_str()).collect();
        let mut table = Table::new(&headings);
        table.rows = grid.rows.iter().map(|row| row.iter().map(|cell| cell.text().to_string()).collect()).collect();
        Picture { kind: PictureKind::Curve, plot, table }
    });
    by_window.into_iter().chain(of_live_series(report)).collect()
}

/// Returns the pictures of the derived series of a long measurement.
pub(crate) fn of_live_series(report: &WindowReport) -> Vec<Picture> {
    let series = report.series.iter().enumerate();
    series.filter_map(|(index, series)| derived(series, report, index)).collect()
}

/// Draws the median and the 99th percentile by window. A window is drawn at its middle. A figure that is known only as
/// a range is a band, or a hollow dot at its lower bound. `None` if fewer than two windows have values.
pub(crate) fn percentiles(windows: &[WindowSummary], unit: Unit, metric: &str) -> Option<Plot> {
    type Figure = fn(&WindowSummary) -> Bounds;
    const FIGURES: [(usize, Figure); 2] = [(1, WindowSummary::median_range), (0, WindowSummary::p99_range)];
    let is_open = |range: &Bounds| !range.is_none() && !range.high.is_finite();
    let drawn = |range: Bounds| match range {
        range if is_open(&range) && range.low.is_finite() && range.low != 0.0 => range.low,
        range => range.estimate().unwrap_or(f64::NAN),
    };
    let placed = |figure: Figure| windows.iter().map(move |window| (middle(window), figure(window)));
    let mut layers = Vec::new();
    for (series, figure) in FIGURES {
        let series = Some(series);
        let between = placed(figure).filter(|(_, range)| range.value().is_none() && range.estimate().is_some());
        let ranges: Vec<Range> = between.map(|(x, Bounds { low, high })| Range { x, low, high }).collect();
        if !ranges.is_empty() {
            layers.push(Layer::Band { series, ranges });
        }
        let points = placed(figure).map(|(x, range)| [x, drawn(range)]).collect();
        layers.push(Layer::Line { series, points, steps: false, dashed: false });
        let open = placed(figure).filter(|(_, range)| is_open(range)).map(|(x, range)| [x, drawn(range)]);
        let points: Vec<[f64; 2]> = open.filter(|point| point[1].is_finite()).collect();
        if !points.is_empty() {
            layers.push(Layer::Dots { series, points, hollow: true });
        }
    }
    let values =
        || windows.iter().flat_map(|window| FIGURES.map(|(_, figure)| drawn(figure(window)))).filter(|y| y.is_finite());
    if windows.iter().filter(|window| drawn(window.median_range()).is_finite()).count() < 2 {
        return None;
    }
    let (least, most) =
        values().fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| (least.min(value), most.max(value)));
    let open = windows.iter().filter(|window| FIGURES.iter().any(|(_, figure)| is_open(&figure(window)))).count();
    let note = match open {
        0 => String::new(),
        open => format!(" (hollow: only lower bounds, in {open} of {})", counted(windows.len() as u64, "window")),
    };
    Some(Plot {
        id: "windows".into(),
        title: format!("{metric}: p99 and median by window{note}"),
        alt: format!(
            "The median and the 99th percentile of {metric} in each window{note}, from {} to {}.",
            unit.human(least),
            unit.human(most)
        ),
        x: Axis::new("time since the start", Scale::Linear, Unit::Nanosecond).showing(0.0, 0.0),
        y: from_zero(Axis::new("", scale_for(values()), unit)),
        series: vec!["p99".into(), "median".into()],
        layers,
    })
}

fn middle(window: &WindowSummary) -> f64 {
    f64::midpoint(window.start_ns as f64, window.end_ns as f64)
}

/// Draws a derived series by window: the mean of its results, in a band from the least to the greatest.
fn derived(series: &SeriesReport, report: &WindowReport, index: usize) -> Option<Picture> {
    let placed = || {
        let windows = report.windows.iter().zip(&series.windows);
        // Without a greatest result, the band ends at the mean.
        windows.filter_map(|(window, results)| {
            let mean = results.mean?;
            Some((window, results.least?, mean, results.most.unwrap_or(mean)))
        })
    };
    placed().next()?;
    let ranges = placed().map(|(window, low, _, high)| Range { x: middle(window), low, high }).collect();
    let points = placed().map(|(window, _, mean, _)| [middle(window), mean]).collect();
    let ends = placed().flat_map(|(_, low, _, high)| [low, high]);
    let expression = &series.expression;
    let plot = Plot {
        id: format!("windows-series-{}", index + 1),
        title: format!("{expression}: means by window, and bands from the least to the greatest result"),
        alt: format!("The mean of {expression} in each window."),
        x: Axis::new("time since the start", Scale::Linear, Unit::Nanosecond).showing(0.0, 0.0),
        y: from_zero(Axis::new("", scale_for(ends), series.unit)),
        series: vec![expression.clone()],
        layers: vec![
            Layer::Band { series: Some(0), ranges },
            Layer::Line { series: Some(0), points, steps: false, dashed: false },
        ],
    };
    let mut table = Table::new(&["Window", "Results", "Least", "Mean", "Greatest"]);
    // The table has at most twenty windows, at equal distances.
    let step = series.windows.len().div_ceil(20).max(1);
    for (window, results) in series.windows.iter().enumerate().step_by(step) {
        let figures = [results.least, results.mean, results.most];
        let mut figures = figures.map(|value| value.map_or_else(|| "–".into(), |value| series.unit.human(value)));
        if results.unbounded > 0 && results.mean.is_some() {
            figures[1].insert_str(0, "> ");
        }
        let counts = [(window + 1).to_string(), results.results.to_string()];
        table.rows.push(counts.into_iter().chain(figures).collect());
    }
    Some(Picture { kind: PictureKind::Curve, plot, table })
}

#[cfg(test)]
mod tests {
    use ascertain_engine::windows::{Range as Known, Ranges};

    use super::*;

    fn window(index: u64, p99: Known) -> WindowSummary {
        let median = Known::exact(5e6);
        let ranges = Some(Ranges { median, p99, ..Ranges::default() });
        WindowSummary { start_ns: index, end_ns: index + 1, observations: 9, ranges, ..WindowSummary::default() }
    }

    #[test]
    fn windows_whose_p99_is_only_bounded_are_drawn() {
        let above = Known { low: Some(2e8), high: None };
        let between = Known { low: Some(6e6), high: Some(8e6) };
        let windows = [window(0, Known::exact(7e6)), window(1, above), window(2, between), window(3, Known::default())];
        let plot = percentiles(&windows, Unit::Nanosecond, "wall").unwrap();
        assert_eq!(plot.title, "wall: p99 and median by window (hollow: only lower bounds, in 2 of 4 windows)");
        let of_p99 = |layer: &&Layer| match layer {
            Layer::Line { series, .. } | Layer::Band { series, .. } | Layer::Dots { series, .. } => *series == Some(0),
            _ => false,
        };
        let layers: Vec<&Layer> = plot.layers.iter().filter(of_p99).collect();
        let [Layer::Band { ranges, .. }, Layer::Line { points, .. }, Layer::Dots { points: dots, hollow: true, .. }] =
            layers.as_slice()
        else {
            panic!("{layers:?}")
        };
        assert_eq!(ranges.as_slice(), [Range { x: 2.5, low: 6e6, high: 8e6 }]);
        assert_eq!(points[..3], [[0.5, 7e6], [1.5, 2e8], [2.5, 7e6]]);
        assert!(points[3][1].is_nan(), "of an unknown value, there is no point");
        assert_eq!(dots.as_slice(), [[1.5, 2e8]]);
    }

    #[test]
    fn negative_values_have_a_negative_maximum() {
        let windows = [0, 1].map(|index| {
            let ranges = Ranges { median: Known::exact(-5.0), p99: Known::exact(-3.0), ..Ranges::default() };
            WindowSummary { ranges: Some(ranges), ..window(index, Known::default()) }
        });
        let plot = percentiles(&windows, Unit::One, "change").unwrap();
        assert!(plot.alt.ends_with("from -5 to -3."), "{}", plot.alt);
    }

    #[test]
    fn a_window_of_which_only_the_median_is_open_is_counted() {
        let median = Known { low: Some(2e8), high: None };
        let open = Ranges { median, p99: Known::exact(3e8), ..Ranges::default() };
        let windows =
            [window(0, Known::exact(7e6)), WindowSummary { ranges: Some(open), ..window(1, Known::default()) }];
        let plot = percentiles(&windows, Unit::Nanosecond, "wall").unwrap();
        assert!(plot.title.contains("in 1 of 2 windows"), "{}", plot.title);
    }

    #[test]
    fn a_run_whose_medians_are_all_above_the_limit_has_a_picture() {
        let above = Known { low: Some(2e8), high: None };
        let ranges = Some(Ranges { median: above, p99: above, ..Ranges::default() });
        let windows = [0, 1].map(|index| WindowSummary { ranges, ..window(index, above) });
        assert!(percentiles(&windows, Unit::Nanosecond, "wall").is_some());
    }
}
