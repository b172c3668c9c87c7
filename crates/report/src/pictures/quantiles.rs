//! Quantile plots: for each share of the trials, the value that this share does not exceed.

use std::collections::BTreeMap;

use ascertain_engine::unit::Unit;
use ascertain_stats::QuantileRanks;

use super::measured::{ArmRow, MetricRows, ranks};
use super::{Picture, PictureKind, Table};
use crate::plot::{Axis, Layer, Plot, Range, Scale};
use crate::text::counted;

/// The largest number of lines in a plot, because there are only so many distinguishable colours.
pub(super) const MOST_LINES: usize = 8;
/// The smallest number of values for a quantile plot. Fewer values are clearer as single dots.
pub(super) const LEAST_VALUES: u64 = 10;
/// The number of computed quantiles on each side of the median.
const STEPS: i32 = 24;
/// Quantiles that are always drawn if there are enough values, as well as their counterparts below the median.
const LANDMARKS: [f64; 7] = [0.75, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.99999];
/// The quantiles in the table.
const IN_TABLE: [(f64, &str); 5] = [(0.01, "p1"), (0.25, "p25"), (0.5, "p50"), (0.9, "p90"), (0.99, "p99")];

/// Draws the quantiles of a metric, with a line and a band for each row, or for some rows if there are many. `None` if
/// the values within each row are equal, if no row has enough values, or if no quantile is finite.
pub(super) fn quantiles(measured: &MetricRows, id: String, about: &str) -> Option<Picture> {
    let enough = measured.with_values(LEAST_VALUES);
    if enough.is_constant() {
        return None;
    }
    let (shown, selected) = enough.selection(MOST_LINES);
    // If a value is frequent in one row, all lines are drawn as steps, so that they look the same.
    let steps = shown.rows.iter().any(|row| recur(row.sorted.as_slice()));
    let mut by_n = BTreeMap::new();
    let (mut bands, mut open_ends) = (Vec::new(), Vec::new());
    let mut lines = Vec::new();
    let (places, series) = shown.series();
    for (index, row) in places.into_iter().zip(&shown.rows) {
        let supported = by_n.entry(row.n()).or_insert_with_key(|n| supported(*n));
        // An interval with an unknown end has no band, because the band would hide the others. Its known end is a dashed
        // line.
        let ranges = supported.iter().filter_map(|&(q, ranks)| {
            let (low, high) = row.sorted.between(ranks);
            (low.is_finite() && high.is_finite()).then_some(Range { x: q, low, high })
        });
        let ranges: Vec<Range> = ranges.collect();
        let ranges = if steps { in_steps(&ranges) } else { ranges };
        bands.push(Layer::Band { series: Some(index), ranges });
        // If the metric has few different values, quantiles are not interpolated, because no value between two of them
        // is possible.
        let at = |q: f64| if steps { row.reached(q) } else { row.quantile(q) };
        for is_above in [false, true] {
            let known = |&(q, ranks): &(f64, QuantileRanks)| {
                let (low, high) = row.sorted.between(ranks);
                let (known, other) = if is_above { (low, high) } else { (high, low) };
                (known.is_finite() && !other.is_finite()).then_some([q, known])
            };
            let points: Vec<[f64; 2]> = supported.iter().filter_map(known).collect();
            if points.len() > 1 {
                open_ends.push(Layer::Line { series: Some(index), points, steps, dashed: true });
            }
        }
        let points = supported.iter().map(|(q, _)| [*q, at(*q)]).collect();
        lines.push(Layer::Line { series: Some(index), points, steps, dashed: false });
    }
    let drawn = lines.iter().flat_map(|line| match line {
        Layer::Line { points, .. } => points.as_slice(),
        _ => &[],
    });
    let drawn: Vec<f64> = drawn.map(|point| point[1]).filter(|value| value.is_finite()).collect();
    if drawn.is_empty() {
        return None;
    }
    let is_banded = bands.iter().any(|band| matches!(band, Layer::Band { ranges, .. } if !ranges.is_empty()));
    let bands_are = match (is_banded, open_ends.is_empty()) {
        (true, true) => ", with 95 % bands where both ends are known",
        (true, false) => ", with 95 % bands where both ends are known, and dashed lines where only one is",
        (false, false) => ", with dashed lines where one end of the 95 % interval is known",
        (false, true) => "; too few trials for 95 % bands",
    };
    let plot = Plot {
        id,
        title: format!("{} by quantile{bands_are}{selected}", shown.title()),
        alt: format!("{about}. {}{}", shown.medians_in_words(), cut_off(&shown)),
        x: Axis::new("quantile of the trials", Scale::Logit, Unit::One),
        y: shown.axis(drawn.into_iter()),
        series,
        layers: bands.into_iter().chain(lines).chain(open_ends).collect(),
    };
    Some(Picture { kind: PictureKind::Quantiles, plot, table: table(&enough) })
}

/// Returns whether some value is frequent among these sorted values, as it is with a coarse clock or with counts.
fn recur(sorted: &[f64]) -> bool {
    const LEAST: usize = 3;
    const SHARE: usize = 20;
    let most = sorted.chunk_by(|a, b| a == b).map(<[f64]>::len).max().unwrap_or(0);
    most >= LEAST.max(sorted.len().div_ceil(SHARE))
}

/// Returns the intervals of a band that is drawn in steps. If the interval changes at a position, the result has two
/// intervals at that position: first the previous one, then the new one. The band therefore keeps its height up to that
/// position.
fn in_steps(ranges: &[Range]) -> Vec<Range> {
    let turns = ranges.windows(2).filter(|pair| (pair[0].low, pair[0].high) != (pair[1].low, pair[1].high));
    let turns: Vec<Range> = turns.map(|pair| Range { x: pair[1].x, ..pair[0] }).collect();
    let mut all = [turns.as_slice(), ranges].concat();
    // An interval that ends at a position must come before the one that begins there.
    all.sort_by(|a, b| a.x.total_cmp(&b.x));
    all
}

/// Returns a sentence about the number of values that were stopped at the time limit; empty if there are none.
pub(super) fn cut_off(measured: &MetricRows) -> String {
    match measured.censored() {
        0 => String::new(),
        1 => " One value was cut off: the true value is higher than drawn.".into(),
        count => format!(" {count} values were cut off: the true values are higher than drawn."),
    }
}

/// Returns the quantiles that can be estimated from `n` values, each with the ranks of the values at which its interval
/// ends. A quantile can be estimated if, on average, at least one of the values is beyond it.
fn supported(n: u64) -> Vec<(f64, QuantileRanks)> {
    let furthest = ((n as f64) - 1.0).ln();
    let steps = (-STEPS..=STEPS).map(|step| 1.0 / (1.0 + (-furthest * f64::from(step) / f64::from(STEPS)).exp()));
    let landmarks = LANDMARKS.iter().flat_map(|&q| [q, mirrored(q)]).filter(|&q| is_supported(q, n));
    let mut quantiles: Vec<f64> = steps.chain(landmarks).collect();
    quantiles.sort_by(f64::total_cmp);
    // Two quantiles may be equal except for rounding.
    quantiles.dedup_by(|a, b| (*a - *b).abs() < 1e-9);
    quantiles.into_iter().filter_map(|q| Some((q, ranks(n, q)?))).collect()
}

/// Returns the counterpart of a quantile, `1 − q`, without a rounding error: 0.1, not 0.09999999999999998.
fn mirrored(q: f64) -> f64 {
    ((1.0 - q) * 1e9).round() / 1e9
}

fn is_supported(q: f64, n: u64) -> bool {
    q.min(1.0 - q) * n as f64 >= 1.0 - 1e-9
}

fn table(measured: &MetricRows) -> Table {
    let mut headings = vec!["", "Trials", "Least"];
    headings.extend(IN_TABLE.iter().map(|(_, name)| *name));
    headings.extend(["Greatest", "95 % interval of p50"]);
    let mut table = Table::new(&headings);
    table.rows.extend(measured.rows.iter().map(|row| cells(row, measured)));
    table
}

fn cells(row: &ArmRow, measured: &MetricRows) -> Vec<String> {
    let at = |q: f64| if is_supported(q, row.n()) { measured.human(row.quantile(q)) } else { "-".into() };
    let mut cells = vec![row.name.clone(), row.n().to_string(), measured.human(row.quantile(0.0))];
    cells.extend(IN_TABLE.iter().map(|(q, _)| at(*q)));
    cells.extend([measured.human(row.quantile(1.0)), row.median.in_unit(measured.unit).range]);
    cells
}

/// Returns the alternative text of a picture. It has the metric, the kind of picture (`what`, such as "by level"), the
/// arms and the experiment.
pub(super) fn about(what: &str, experiment: &str, measured: &MetricRows) -> String {
    let arms = match measured.rows.as_slice() {
        [row] => row.name.clone(),
        rows => counted(rows.len(), "arm"),
    };
    format!("{} {what} of {arms} in the experiment {experiment}", measured.title())
}
