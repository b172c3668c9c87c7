//! Curves: a metric over the time since a measurement began.

use std::collections::BTreeMap;
use std::ops::Range as Span;

use ascertain_engine::experiment::{self, Arm, Metric, Spec};
use ascertain_engine::recorded::{RecordedRun, Series};
use ascertain_engine::unit::Unit;
use ascertain_engine::values::Values;
use ascertain_stats::median_sorted;

use super::measured::{Medians, ascending, from_zero, is_taken_back, numbered, scale_for};
use super::quantiles::MOST_LINES;
use super::{Picture, PictureKind, Table, names};
use crate::figure::Estimate;
use crate::plot::{Axis, Layer, Plot, Range, Scale};
use crate::text::capitalised;

/// The largest number of times at which a curve has points, if the trials were observed at different times.
const MOST_PLACES: usize = 100;

/// The medians of one key over time; a key names a part of the metric, such as a server.
struct Curve<'a> {
    key: &'a str,
    /// For each time in nanoseconds, the median of the trials and the interval of this median.
    at: Vec<(f64, Estimate)>,
    trials: usize,
}

/// Draws a metric over the time since the measurement began. There is a plot for each arm, and a line for each key
/// (such as a server). The line shows the median of the trials at each time. Empty if the values have no times.
pub(super) fn curves(run: &RecordedRun, spec: &Spec, metric: &Metric, id: &str) -> Vec<Picture> {
    let by_arm = by_arm(run, spec, metric);
    let mut pictures = Vec::new();
    for (name, of_arm) in &by_arm {
        let curves: Vec<Curve> = of_arm.iter().filter_map(|series| curve(series, metric)).collect();
        for (part, curves) in curves.chunks(MOST_LINES).enumerate() {
            let id = numbered(format!("{id}-curve"), pictures.len());
            let mut of_which = if by_arm.len() > 1 { format!(", {name}") } else { String::new() };
            if part > 0 || of_arm.len() > MOST_LINES {
                of_which += &format!(" (part {})", part + 1);
            }
            pictures.extend(picture(curves, metric, id, &of_which, &spec.id));
        }
    }
    pictures
}

/// Returns whether the experiment requests a curve of the metric and the metric changes. This function compares all
/// values of each trial, because earlier values may differ even if all trials end with the same value.
pub(super) fn is_moving(run: &RecordedRun, spec: &Spec, metric: &Metric) -> bool {
    let is_drawn =
        |plot: &experiment::Plot| matches!(plot, experiment::Plot::Curve { metric: of } if *of == metric.name);
    let by_arm = by_arm(run, spec, metric);
    let mut values = by_arm.iter().flat_map(|(_, of_arm)| of_arm.iter().flat_map(|series| series.values.iter()));
    let first = values.next();
    spec.plots.iter().any(is_drawn) && values.any(|value| Some(value) != first)
}

/// Returns the name of each arm with its recorded series of the metric, one for each key.
pub(super) fn by_arm<'a>(run: &'a RecordedRun, spec: &Spec, metric: &Metric) -> Vec<(String, Vec<&'a Series>)> {
    let is_of = |series: &&Series| series.experiment == spec.id && series.metric == metric.name;
    let series: Vec<&Series> =
        run.series.iter().filter(is_of).filter(|series| !is_taken_back(&run.outcome, series)).collect();
    let by_arm: Vec<&[&Series]> = series.chunk_by(|a, b| a.arm == b.arm).collect();
    let arms: Vec<(&Arm, &str)> = by_arm.iter().map(|series| (&series[0].arm, "")).collect();
    names::of_rows(&arms).into_iter().zip(by_arm.into_iter().map(<[_]>::to_vec)).collect()
}

/// Returns the medians of a recorded series over time. If the metric is a share, a trial keeps its last value until its
/// next observation, and also after its end. Without this rule, trials with more observations, or longer trials, would
/// dominate the median. For other metrics, the median at a time covers the trials that were observed at that time.
fn curve<'s>(series: &'s Series, metric: &Metric) -> Option<Curve<'s>> {
    let mut places: BTreeMap<u64, BTreeMap<u64, Vec<f64>>> = BTreeMap::new();
    let mut trials = series.trials.clone();
    trials.dedup();
    let place = place(series, trials.len());
    for ((trial, offset_ns), value) in series.trials.iter().zip(&series.offsets_ns).zip(series.values.iter()) {
        if !value.is_nan() {
            places.entry(place(*offset_ns)).or_default().entry(*trial).or_default().push(*value);
        }
    }
    let mut medians = Medians::default();
    let mut last: BTreeMap<u64, f64> = BTreeMap::new();
    let at = places.into_iter().map(|(offset_ns, by_trial)| {
        if !metric.is_share {
            last.clear();
        }
        let known = |(trial, values)| Some((trial, median_sorted(&ascending(values))?));
        last.extend(by_trial.into_iter().filter_map(known));
        (offset_ns as f64, medians.median(&last.values().copied().collect::<Values>().sorted()))
    });
    let at: Vec<(f64, Estimate)> = at.collect();
    (at.len() > 1).then_some(Curve { key: &series.key, at, trials: trials.len() })
}

/// Returns a function that maps the time of an observation to the time at which it is drawn. The two times are equal if
/// all trials are observed at the same times. Otherwise, time is divided into equal sections, and an observation is
/// drawn in the middle of its section.
fn place(series: &Series, trials: usize) -> impl Fn(u64) -> u64 + use<> {
    let mut distinct = series.offsets_ns.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let a_trial = series.offsets_ns.len() / trials.max(1);
    let is_common = distinct.len() <= 2 * a_trial;
    let span: Span<u64> = distinct.first().copied().unwrap_or(0)..distinct.last().copied().unwrap_or(0);
    let width = ((span.end - span.start) / a_trial.clamp(2, MOST_PLACES) as u64).max(1);
    move |offset_ns| match is_common {
        true => offset_ns,
        false => span.start + (offset_ns - span.start) / width * width + width / 2,
    }
}

fn picture(curves: &[Curve], metric: &Metric, id: String, of_which: &str, experiment: &str) -> Option<Picture> {
    let values = || curves.iter().flat_map(|curve| curve.at.iter().map(|(_, estimate)| estimate.value));
    values().find(|value| value.is_finite())?;
    let bands = curves.iter().enumerate().map(|(index, curve)| {
        let ranges = curve.at.iter().map(|&(x, Estimate { low, high, .. })| Range { x, low, high }).collect();
        Layer::Band { series: Some(index), ranges }
    });
    let lines = curves.iter().enumerate().map(|(index, curve)| {
        let points = curve.at.iter().map(|(x, estimate)| [*x, estimate.value]).collect();
        Layer::Line { series: Some(index), points, steps: false, dashed: false }
    });
    let name = names::spoken(&metric.name);
    let keys = curves.iter().map(|curve| if curve.key.is_empty() { name.clone() } else { curve.key.to_string() });
    let title = format!("{} over time{of_which}: medians with 95 % bands", capitalised(&name));
    let plot = Plot {
        id,
        alt: format!("{title}, in the experiment {experiment}. {}", in_words(curves, metric.unit)),
        title,
        x: Axis::new("time since the start", Scale::Linear, Unit::Nanosecond),
        y: from_zero(Axis::new(&name, scale_for(values()), metric.unit)),
        series: keys.collect(),
        layers: bands.chain(lines).collect(),
    };
    Some(Picture { kind: PictureKind::Curve, plot, table: table(curves, metric.unit) })
}

/// Returns the medians of a curve at three times: at its beginning, halfway and at its end.
fn places(curve: &Curve) -> [f64; 3] {
    let last = curve.at.len() - 1;
    [0, last / 2, last].map(|index| curve.at[index].1.value)
}

fn in_words(curves: &[Curve], unit: Unit) -> String {
    let said = curves.iter().take(4).map(|curve| {
        let [first, middle, last] = places(curve).map(|value| unit.human(value));
        let key = if curve.key.is_empty() { String::new() } else { format!("{}: ", curve.key) };
        format!("{key}{first} at the start, {middle} halfway, {last} at the end")
    });
    format!("{}.", said.collect::<Vec<_>>().join("; "))
}

fn table(curves: &[Curve], unit: Unit) -> Table {
    let mut table = Table::new(&["", "Trials", "At the start", "Halfway", "At the end"]);
    for curve in curves {
        let mut row = vec![curve.key.to_string(), curve.trials.to_string()];
        row.extend(places(curve).map(|value| unit.human(value)));
        table.rows.push(row);
    }
    table
}
