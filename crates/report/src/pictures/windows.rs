//! Pictures of long measurements: percentiles by window, and derived series by window.

use ascertain_engine::outcome::Outcome;
use ascertain_engine::unit::Unit;
use ascertain_engine::windows::{SeriesReport, WindowReport, WindowSummary};

use super::measured::{from_zero, scale_for};
use super::{Picture, PictureKind, Table};
use crate::plot::{Axis, Layer, Plot, Range, Scale};
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
    let series = report.series.iter().enumerate().filter_map(|(index, series)| derived(series, report, index));
    by_window.into_iter().chain(series).collect()
}

/// Draws the median and the 99th percentile by window. A window is drawn at its middle. `None` if fewer than two windows
/// have values.
pub(crate) fn percentiles(windows: &[WindowSummary], unit: Unit, metric: &str) -> Option<Plot> {
    let line = |series: usize, value: fn(&WindowSummary) -> Option<f64>| Layer::Line {
        series: Some(series),
        points: windows.iter().map(|window| [middle(window), value(window).unwrap_or(f64::NAN)]).collect(),
        steps: false,
        dashed: false,
    };
    let values = || windows.iter().flat_map(|window| [window.median, window.p99]).flatten();
    if windows.iter().filter(|window| window.median.is_some()).count() < 2 {
        return None;
    }
    let (least, most) =
        values().fold((f64::INFINITY, 0.0_f64), |(least, most), value| (least.min(value), most.max(value)));
    Some(Plot {
        id: "windows".into(),
        title: format!("{metric}: p99 and median by window"),
        alt: format!(
            "The median and the 99th percentile of {metric} in each window, from {} to {}.",
            unit.human(least),
            unit.human(most)
        ),
        x: Axis::new("time since the start", Scale::Linear, Unit::Nanosecond).showing(0.0, 0.0),
        y: from_zero(Axis::new("", scale_for(values()), unit)),
        series: vec!["p99".into(), "median".into()],
        layers: vec![line(1, |window| window.median), line(0, |window| window.p99)],
    })
}

fn middle(window: &WindowSummary) -> f64 {
    f64::midpoint(window.start_ns as f64, window.end_ns as f64)
}

/// Draws a derived series by window: the mean of its results, in a band from the least to the greatest.
fn derived(series: &SeriesReport, report: &WindowReport, index: usize) -> Option<Picture> {
    let placed = || {
        let windows = report.windows.iter().zip(&series.windows);
        windows.filter_map(|(window, results)| Some((window, results.least?, results.mean?, results.most?)))
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
        let figures = figures.map(|value| value.map_or_else(|| "–".into(), |value| series.unit.human(value)));
        let counts = [(window + 1).to_string(), results.results.to_string()];
        table.rows.push(counts.into_iter().chain(figures).collect());
    }
    Some(Picture { kind: PictureKind::Curve, plot, table })
}
