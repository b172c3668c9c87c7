//! Waterfalls: the durations of the consecutive stages of a measurement, such as the stages of a request.

use std::collections::BTreeSet;

use ascertain_engine::experiment::{Metric, Spec};
use ascertain_engine::recorded::{RecordedRun, Series};
use ascertain_engine::unit::Unit;
use ascertain_stats::median_sorted;

use super::curve::by_arm;
use super::measured::{ascending, from_zero, numbered};
use super::{Picture, PictureKind, Table, names};
use crate::plot::{Axis, Interval, Layer, Plot, Range, Scale};
use crate::text::capitalised;

/// The largest number of rows in a picture.
const MOST_ROWS: usize = 16;
/// Half the height of the bar for a stage, if the distance between two rows is 1.
const HALF_HEIGHT: f64 = 0.25;

/// An arm, with the median start and the median duration of each stage.
struct Row<'a> {
    name: &'a str,
    trials: usize,
    parts: Vec<Stretch<'a>>,
}

struct Stretch<'a> {
    key: &'a str,
    begin_ns: f64,
    took_ns: f64,
}

/// Draws a metric whose keys are the stages of a measurement and have start times. There is a row for each arm, with a
/// bar for each stage in its own colour. A bar begins at the median start of its stage, and is as long as the median
/// duration.
pub(super) fn waterfalls(run: &RecordedRun, spec: &Spec, metric: &Metric, id: &str) -> Vec<Picture> {
    let by_arm = by_arm(run, spec, metric);
    let rows: Vec<Row> = by_arm.iter().filter_map(|(name, series)| row(name, series)).collect();
    let count = rows.len().div_ceil(MOST_ROWS);
    let pictures = rows.chunks(MOST_ROWS).enumerate().map(|(index, rows)| {
        let of_all = if count > 1 { format!(" ({} of {count})", index + 1) } else { String::new() };
        picture(rows, metric, numbered(format!("{id}-waterfall"), index), &of_all, &spec.id)
    });
    pictures.collect()
}

fn row<'a>(name: &'a str, series: &[&'a Series]) -> Option<Row<'a>> {
    let part = |series: &&'a Series| {
        // Without recorded start times, all stages begin at 0.
        let begin_ns = median(series.offsets_ns.iter().map(|offset_ns| *offset_ns as f64)).unwrap_or(0.0);
        Some(Stretch { key: &series.key, begin_ns, took_ns: median(series.values.iter().copied())? })
    };
    let mut parts: Vec<Stretch> = series.iter().filter_map(part).collect();
    parts.sort_by(|a, b| a.begin_ns.total_cmp(&b.begin_ns));
    let trials = series.iter().flat_map(|series| &series.trials).collect::<BTreeSet<_>>().len();
    (!parts.is_empty()).then_some(Row { name, trials, parts })
}

/// Returns the median of the finite values; `None` if there are none.
fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    median_sorted(&ascending(values.filter(|value| value.is_finite())))
}

fn picture(rows: &[Row], metric: &Metric, id: String, of_all: &str, experiment: &str) -> Picture {
    let keys = keys(rows);
    let layers = keys.iter().enumerate().flat_map(|(series, key)| {
        let (mut ranges, mut stretches) = (Vec::new(), Vec::new());
        for (place, row) in rows.iter().enumerate() {
            let y = place as f64;
            for part in row.parts.iter().filter(|part| part.key == *key) {
                let (low, high) = (part.begin_ns, part.begin_ns + part.took_ns);
                // A point that can't be drawn interrupts the band between two rows.
                let ends = [low, high, f64::NAN];
                ranges.extend(ends.map(|x| Range { x, low: y - HALF_HEIGHT, high: y + HALF_HEIGHT }));
                let label = format!("{key}: {}", metric.unit.human(part.took_ns));
                stretches.push(Interval { y, value: f64::NAN, low, high, label });
            }
        }
        let series = Some(series);
        [Layer::Band { series, ranges }, Layer::Intervals { series, rows: stretches }]
    });
    let title = format!("{} by part{of_all}: medians", capitalised(&names::spoken(&metric.name)));
    let in_words = |row: &Row| {
        let parts = row.parts.iter().map(|part| format!("{} {}", part.key, metric.unit.human(part.took_ns)));
        format!("{}: {}", row.name, parts.collect::<Vec<_>>().join(", "))
    };
    let (names, label) = names::on_axis(&rows.iter().map(|row| row.name).collect::<Vec<_>>());
    let plot = Plot {
        id,
        alt: format!(
            "{title}, in the experiment {experiment}. {}.",
            rows.iter().take(4).map(in_words).collect::<Vec<_>>().join("; ")
        ),
        title,
        x: from_zero(Axis::new("time since the start", Scale::Linear, Unit::Nanosecond)),
        y: Axis::new(&label, Scale::Names(names), Unit::One),
        series: keys.iter().map(ToString::to_string).collect(),
        layers: layers.collect(),
    };
    Picture { kind: PictureKind::Waterfall, plot, table: table(rows, &keys, metric.unit) }
}

/// Returns each key of the rows once. A new key is inserted right after the key that comes before it in the same row.
fn keys<'a>(rows: &[Row<'a>]) -> Vec<&'a str> {
    let mut keys: Vec<&str> = Vec::new();
    for row in rows {
        let mut place = 0;
        for part in &row.parts {
            place = match keys.iter().position(|key| *key == part.key) {
                Some(known) => known + 1,
                None => {
                    keys.insert(place, part.key);
                    place + 1
                }
            };
        }
    }
    keys
}

fn table(rows: &[Row], keys: &[&str], unit: Unit) -> Table {
    let keys_as_headings = keys.iter().map(|key| capitalised(key)).collect::<Vec<_>>();
    let headings: Vec<&str> = ["", "Trials"].into_iter().chain(keys_as_headings.iter().map(String::as_str)).collect();
    let mut table = Table::new(&headings);
    for row in rows {
        let took = |key: &&str| {
            let part = row.parts.iter().find(|part| part.key == *key);
            part.map_or_else(String::new, |part| unit.human(part.took_ns))
        };
        let first = [row.name.to_string(), row.trials.to_string()];
        table.rows.push(first.into_iter().chain(keys.iter().map(took)).collect());
    }
    table
}
