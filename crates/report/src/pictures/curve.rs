//! Curves: values over the time since a measurement began.

use std::collections::BTreeMap;
use std::ops::Range as Span;

use ascertain_engine::experiment::{self, Arm, Metric, Spec};
use ascertain_engine::recorded::{RecordedRun, Series};
use ascertain_engine::unit::Unit;
use ascertain_engine::values::Values;
use ascertain_stats::median_sorted;

use super::measured::{MedianInterval, Medians, from_zero, is_taken_back, scale_for};
use super::quantiles::MOST_LINES;
use super::{Picture, PictureKind, Table, names};
use crate::plot::{Axis, Layer, Plot, Range, Scale};
use crate::text::capitalised;

/// The most places in time where trials do not look at the same times.
const MOST_PLACES: usize = 100;

/// The trials of one key, pointwise.
struct Curve<'a> {
    key: &'a str,
    /// The median over the trials and its interval, by offset in nanoseconds.
    at: Vec<(f64, MedianInterval)>,
    trials: usize,
}

/// A metric over the time since its measurement began: a plot an arm, a line a key, the median over the trials at
/// each time. Nothing of arms whose values were all seen at once.
pub(super) fn curves(run: &RecordedRun, spec: &Spec, metric: &Metric, id: &str) -> Vec<Picture> {
    let by_arm = by_arm(run, spec, metric);
    let mut pictures = Vec::new();
    for (name, of_arm) in &by_arm {
        let curves: Vec<Curve> = of_arm.iter().filter_map(|series| curve(series, metric)).collect();
        for (part, curves) in curves.chunks(MOST_LINES).enumerate() {
            let number = pictures.len();
            let id = if number == 0 { format!("{id}-curve") } else { format!("{id}-curve-{}", number + 1) };
            let mut of_which = if by_arm.len() > 1 { format!(", {name}") } else { String::new() };
            if part > 0 || of_arm.len() > MOST_LINES {
                of_which += &format!(" (part {})", part + 1);
            }
            pictures.extend(picture(curves, metric, id, &of_which, &spec.id));
        }
    }
    pictures
}

/// Whether a metric is a curve that goes somewhere, though all of its trials may end with one value.
pub(super) fn moves(run: &RecordedRun, spec: &Spec, metric: &Metric) -> bool {
    let is_drawn =
        |plot: &experiment::Plot| matches!(plot, experiment::Plot::Curve { metric: of } if *of == metric.name);
    let by_arm = by_arm(run, spec, metric);
    let mut values = by_arm.iter().flat_map(|(_, of_arm)| of_arm.iter().flat_map(|series| series.values.iter()));
    let first = values.next();
    spec.plots.iter().any(is_drawn) && values.any(|value| Some(value) != first)
}

/// A metric's series by arm, with the arm's name.
pub(super) fn by_arm<'a>(run: &'a RecordedRun, spec: &Spec, metric: &Metric) -> Vec<(String, Vec<&'a Series>)> {
    let is_of = |series: &&Series| series.experiment == spec.id && series.metric == metric.name;
    let series: Vec<&Series> =
        run.series.iter().filter(is_of).filter(|series| !is_taken_back(&run.outcome, series)).collect();
    let by_arm: Vec<&[&Series]> = series.chunk_by(|a, b| a.arm == b.arm).collect();
    let arms: Vec<(&Arm, &str)> = by_arm.iter().map(|series| (&series[0].arm, "")).collect();
    names::of_rows(&arms).into_iter().zip(by_arm.into_iter().map(<[_]>::to_vec)).collect()
}

/// A share stays what it was until its trial looks again, and when it has ended: else the median would be that of those
/// which look more often, or took longest.
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
    let in_order = |mut values: Vec<f64>| {
        values.sort_unstable_by(f64::total_cmp);
        values
    };
    let mut medians = Medians::default();
    let mut last: BTreeMap<u64, f64> = BTreeMap::new();
    let at = places.into_iter().map(|(offset_ns, by_trial)| {
        if !metric.is_share {
            last.clear();
        }
        let known = |(trial, values)| Some((trial, median_sorted(&in_order(values))?));
        last.extend(by_trial.into_iter().filter_map(known));
        (offset_ns as f64, medians.of(&last.values().copied().collect::<Values>().sorted()))
    });
    let at: Vec<(f64, MedianInterval)> = at.collect();
    (at.len() > 1).then_some(Curve { key: &series.key, at, trials: trials.len() })
}

/// Where an offset is drawn: where it is, if trials look at the same times, else in the middle of the stretch that it
/// falls in.
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
        let ranges = curve.at.iter().map(|&(x, MedianInterval { low, high, .. })| Range { x, low, high }).collect();
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

/// A curve's medians at its start, halfway and at its end.
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
