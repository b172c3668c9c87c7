//! The picture of a derived series.

use ascertain_engine::unit::Unit;

use super::measured::{from_zero, scale_for};
use super::{Picture, PictureKind, Table};
use crate::plot::{Axis, Layer, Plot, Range, Scale};
use crate::series::SeriesDigest;
use crate::text::plain;

/// Most rows of the table.
const MOST_ROWS: usize = 10;

/// Draws the results in their order. Results that share a section are drawn as a band from the least to the greatest,
/// with a line through their means. `None` if fewer than two sections have finite results.
pub(crate) fn derived(digest: &SeriesDigest, index: usize) -> Option<Picture> {
    let sections = || digest.sections().filter_map(|(first, section)| Some((first, section, section.mean()?)));
    if sections().count() < 2 {
        return None;
    }
    let middle = |first: u64, results: u64| first as f64 + (results - 1) as f64 / 2.0;
    let ranges = sections().map(|(first, section, _)| Range {
        x: middle(first, section.results),
        low: section.low,
        high: section.high,
    });
    let points = sections().map(|(first, section, mean)| [middle(first, section.results), mean]);
    let band = Layer::Band { series: Some(0), ranges: ranges.collect() };
    let has_band = sections().any(|(_, section, _)| section.low < section.high);
    let line = Layer::Line { series: Some(0), points: points.collect(), steps: false, dashed: false };
    let expression = &digest.header().expression;
    let ends = sections().flat_map(|(_, section, _)| [section.low, section.high]);
    let title = match has_band {
        true => format!("{expression}: means, and bands from the least to the greatest result"),
        false => expression.clone(),
    };
    let plot = Plot {
        id: format!("series-{}", index + 1),
        alt: format!("{expression}, result by result. {}", plain(&digest.sentence())),
        title,
        x: Axis::new("result", Scale::Linear, Unit::One),
        y: from_zero(Axis::new("", scale_for(ends), digest.unit())),
        series: vec![expression.clone()],
        layers: has_band.then_some(band).into_iter().chain([line]).collect(),
    };
    Some(Picture { kind: PictureKind::Curve, plot, table: table_of(digest) })
}

/// Returns a table of the series with a row for each tenth of its results, or for each result if there are few.
pub(crate) fn table_of(digest: &SeriesDigest) -> Table {
    let mut table = Table::new(&["Results", "Least", "Mean", "Greatest"]);
    for (first, group) in digest.groups(MOST_ROWS) {
        let last = first + group.results - 1;
        let results = if first == last { first.to_string() } else { format!("{first} to {last}") };
        let cells = match group.mean() {
            Some(mean) => [group.low, mean, group.high].map(|value| digest.unit().human(value)),
            None => ["–", "–", "–"].map(String::from),
        };
        table.rows.push([results].into_iter().chain(cells).collect());
    }
    table
}
