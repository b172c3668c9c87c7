//! The pictures of an experiment. A metric whose values are all equal gets a sentence instead.

use std::collections::{BTreeMap, BTreeSet};

use ascertain_engine::experiment::{Metric, Plot, Point, Spec};
use ascertain_engine::recorded::RecordedRun;

use super::curve::{curves, is_moving};
use super::forest::{MANY, medians};
use super::matrix::matrices;
use super::measured::{MetricRows, numbered};
use super::quantiles::{LEAST_VALUES, MOST_LINES, about, quantiles};
use super::suite::forests;
use super::sweep::Sweep;
use super::trials::trials;
use super::waterfall::waterfalls;
use super::{Picture, PictureKind, names};
use crate::clause::ArmComparison;
use crate::text::{counted, quoted};

/// Returns the pictures of an experiment, sweeps first. A metric has the plots that the experiment requests for it. If
/// the experiment requests no plots, or only sweeps, the metric also has other plots:
///
/// - its quantiles;
/// - its medians, if there are many arms or few values;
/// - its values in the order measured, if it is the first metric.
///
/// A metric with the same value in every trial of every arm has no pictures. If there are more arms than colours, a
/// plot of lines shows only some of them, and its title mentions this. Empty if the experiment is not part of the run.
pub fn of_experiment(run: &RecordedRun, experiment: &str) -> Vec<Picture> {
    let specs = &run.header.experiments;
    let Some(index) = specs.iter().position(|spec| spec.id == experiment) else { return Vec::new() };
    let spec = &specs[index];
    let experiment_slug = &names::slugs(specs.iter().map(|spec| spec.id.as_str()))[index];
    let metric_slugs = names::slugs(spec.metrics.iter().map(|metric| metric.name.as_str()));
    let metrics = spec.metrics.iter().zip(metric_slugs).enumerate();
    let claims = run.outcome.claims.iter().filter(|claim| claim.experiment == spec.id);
    let compared = claims.filter_map(ArmComparison::new).map(|comparison| comparison.measure.metric.as_str()).next();
    let pictures = metrics.flat_map(|(place, (metric, slug))| {
        let is_compared = compared.is_none_or(|compared| compared == metric.name);
        let pictures = of_metric(run, spec, metric, place == 0, &format!("{experiment_slug}-{slug}"));
        pictures.into_iter().map(move |picture| (is_compared, picture))
    });
    let mut pictures: Vec<(bool, Picture)> = pictures.collect();
    // The sweeps of the compared metric come first, because they show the effects of the experiment's factors.
    pictures.sort_by_key(|(is_compared, picture)| match picture.kind {
        PictureKind::Forest => 0,
        PictureKind::Sweep => 1 + u8::from(!is_compared),
        _ => 3,
    });
    pictures.into_iter().map(|(_, picture)| picture).collect()
}

fn of_metric(run: &RecordedRun, spec: &Spec, metric: &Metric, is_first: bool, id: &str) -> Vec<Picture> {
    let measured = MetricRows::recorded(run, spec, metric, None);
    // If an exit code is always 0, a sentence replaces the picture.
    let is_constant =
        || measured.everywhere().or(measured.but_for_stopped()).is_some() && !is_moving(run, spec, metric);
    if measured.rows.is_empty() || is_constant() {
        return Vec::new();
    }
    let is_series =
        |plot: &&Plot| metric_of(plot) == metric.name && !matches!(plot, Plot::Sweep { .. } | Plot::Choice { .. });
    let mut series = spec.plots.iter().filter(is_series).peekable();
    if series.peek().is_some() {
        let pictures = series.flat_map(|plot| match plot {
            Plot::Matrix { .. } => matrices(&measured, id, &spec.id),
            Plot::Waterfall { .. } => waterfalls(run, spec, metric, id),
            Plot::Forest { .. } => of_suites(run, spec, id),
            _ => curves(run, spec, metric, id),
        });
        return pictures.collect();
    }
    let parts =
        apart(spec, &measured).into_iter().filter(|part| part.everywhere().or(part.but_for_stopped()).is_none());
    parts.flat_map(|part| of_part(run, spec, &part, is_first, &with_levels(id, &part))).collect()
}

/// Draws the suites of the experiment.
fn of_suites(run: &RecordedRun, spec: &Spec, id: &str) -> Vec<Picture> {
    let suites: Vec<_> = run.outcome.suites.iter().filter(|suite| suite.experiment == spec.id).collect();
    let forests = suites.iter().enumerate().flat_map(|(index, suite)| forests(suite, &numbered(id.to_string(), index)));
    forests.collect()
}

/// Divides the rows into groups, each with its own axes. Rows of different groups are not comparable, because they
/// differ in a factor that determines the size of a number in memory. For example, a sum of floats is not comparable to
/// a sum of doubles.
pub(super) fn apart<'a>(spec: &Spec, measured: &MetricRows<'a>) -> Vec<MetricRows<'a>> {
    let footprints = spec.plots.iter().flat_map(|plot| match plot {
        Plot::Sweep { footprints, .. } => footprints.as_slice(),
        _ => &[],
    });
    let factors: BTreeSet<&str> = footprints.flat_map(|footprint| footprint.at.0.keys().map(String::as_str)).collect();
    measured.by_levels(&factors.into_iter().collect::<Vec<_>>())
}

/// Returns the id of a picture, with the levels that distinguish its rows from the rows of the metric's other pictures.
fn with_levels(id: &str, measured: &MetricRows) -> String {
    if measured.at.is_empty() {
        id.to_string()
    } else {
        format!("{id}-{}", names::slugs([measured.at.as_str()]).concat())
    }
}

fn of_part(run: &RecordedRun, spec: &Spec, measured: &MetricRows, is_first: bool, id: &str) -> Vec<Picture> {
    let mut pictures = Vec::new();
    for plot in spec.plots.iter().filter(|plot| metric_of(plot) == measured.metric) {
        let Plot::Sweep { factor, footprints, .. } = plot else { continue };
        let caches = &run.outcome.machine.caches;
        let chosen = chosen(spec, measured.metric, factor).map(|metric| MetricRows::recorded(run, spec, metric, None));
        let sweep = Sweep { measured, factor, footprints, caches, chosen: chosen.as_ref() };
        pictures.extend(sweep.pictures(id, &about("by level", &spec.id, measured)));
    }
    let many = measured.rows.len() > MANY;
    let is_swept = is_swept(spec, measured);
    if !(is_swept && measured.rows.len() > MOST_LINES) {
        for (index, part) in by_level(spec, measured).iter().enumerate() {
            let id = numbered(format!("{id}-quantiles"), index);
            pictures.extend(quantiles(part, id, &about("by quantile", &spec.id, part)));
        }
    }
    let few_values = measured.rows.iter().any(|row| row.n() < LEAST_VALUES);
    if !is_swept && (many || few_values || measured.is_constant()) {
        pictures.extend(medians(measured, format!("{id}-medians"), &about("medians", &spec.id, measured)));
    }
    if is_first {
        pictures.extend(trials(measured, format!("{id}-trials"), &about("trial by trial", &spec.id, measured)));
    }
    pictures
}

/// Divides the rows into groups by the levels of a factor, so that each group has few enough rows for a plot of lines.
/// Returns a single group if all rows fit in one plot, or if no factor yields small enough groups.
fn by_level<'a>(spec: &Spec, measured: &MetricRows<'a>) -> Vec<MetricRows<'a>> {
    const MOST_PARTS: usize = 4;
    if measured.rows.len() <= MOST_LINES {
        return vec![measured.clone()];
    }
    let parted = spec.factors.iter().find_map(|factor| {
        let parts = measured.by_levels(&[&factor.name]);
        let fit = (2..=MOST_PARTS).contains(&parts.len()) && parts.iter().all(|part| part.rows.len() <= MOST_LINES);
        fit.then_some(parts)
    });
    parted.unwrap_or_else(|| vec![measured.clone()])
}

/// Returns whether, for most arms, there is another arm that differs only in a factor that the experiment sweeps. A
/// plot of the sweep shows these arms better than a list of medians.
fn is_swept(spec: &Spec, measured: &MetricRows) -> bool {
    let on_a_line = |factor: &str| {
        let mut lines: BTreeMap<(&str, Point, &str), usize> = BTreeMap::new();
        for row in &measured.rows {
            let mut point = row.arm.point.clone();
            point.0.remove(factor);
            *lines.entry((row.arm.variant.as_str(), point, row.key)).or_default() += 1;
        }
        lines.into_values().filter(|arms| *arms > 1).sum::<usize>()
    };
    let are_most = |factor: &str| 2 * on_a_line(factor) > measured.rows.len();
    spec.plots.iter().any(|plot| matches!(plot, Plot::Sweep { factor, .. } if are_most(factor)))
}

/// Returns the metric whose values are the levels of the factor `by` that some arms chose by themselves. Plots of the
/// metric `swept` show these levels. `None` if the experiment has no such metric.
fn chosen<'a>(spec: &'a Spec, swept: &str, by: &str) -> Option<&'a Metric> {
    let name = spec.plots.iter().find_map(|plot| match plot {
        Plot::Choice { metric, factor, chosen } if metric == swept && factor == by => Some(chosen),
        _ => None,
    })?;
    spec.metrics.iter().find(|metric| metric.name == *name)
}

fn metric_of(plot: &Plot) -> &str {
    match plot {
        Plot::Sweep { metric, .. } | Plot::Choice { metric, .. } => metric,
        Plot::Matrix { metric } | Plot::Curve { metric } | Plot::Waterfall { metric } | Plot::Forest { metric, .. } => {
            metric
        }
    }
}

/// Returns sentences about metrics that have no picture. A metric has none if its values are equal in every trial of
/// every arm. If they are equal only within one plot, the sentence is about the arms of that plot. Names are marked as
/// in [`quoted`].
pub(crate) fn constants(run: &RecordedRun, experiment: &str) -> Vec<String> {
    let Some(spec) = run.header.experiments.iter().find(|spec| spec.id == experiment) else { return Vec::new() };
    spec.metrics.iter().flat_map(|metric| constants_of_metric(run, spec, metric)).collect()
}

fn constants_of_metric(run: &RecordedRun, spec: &Spec, metric: &Metric) -> Vec<String> {
    if is_moving(run, spec, metric) {
        return Vec::new();
    }
    let all = MetricRows::recorded(run, spec, metric, None);
    if let Some(sentence) = in_words(&all) {
        return vec![sentence];
    }
    let of_part = |part: MetricRows| match in_words(&part) {
        Some(sentence) => vec![sentence],
        None => of_sweeps(run, spec, &part),
    };
    apart(spec, &all).into_iter().flat_map(of_part).collect()
}

fn in_words(measured: &MetricRows) -> Option<String> {
    let trials: u64 = measured.rows.iter().map(|row| row.n()).sum();
    if let Some(value) = measured.but_for_stopped() {
        let stopped = measured.censored();
        let (complete, trials) = (trials - stopped as u64, counted(trials, "trial"));
        let were = if stopped == 1 { "was" } else { "were" };
        let seen = format!("in {complete} of {trials}; {stopped} {were} stopped at the time limit");
        return Some(constant_in_words(measured, value, &seen));
    }
    let value = measured.everywhere()?;
    let seen = match (trials, measured.rows.len()) {
        (1, _) => "in its one trial".to_string(),
        (_, 1) => format!("in all {trials} trials"),
        (_, 2) => "in every trial of both arms".to_string(),
        (_, rows) => format!("in every trial of all {}", counted(rows, "arm")),
    };
    Some(constant_in_words(measured, value, &seen))
}

/// Returns sentences for sweeps that are not drawn, because all their lines would be horizontal and at the same height.
fn of_sweeps(run: &RecordedRun, spec: &Spec, measured: &MetricRows) -> Vec<String> {
    let mut sentences = Vec::new();
    for plot in spec.plots.iter().filter(|plot| metric_of(plot) == measured.metric) {
        let Plot::Sweep { factor, footprints, .. } = plot else { continue };
        let sweep = Sweep { measured, factor, footprints, caches: &run.outcome.machine.caches, chosen: None };
        sentences.extend(sweep.constants().into_iter().map(|(value, lines)| {
            let lines = match lines.len() {
                ..=3 => lines.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", "),
                lines => counted(lines, "arm"),
            };
            constant_in_words(measured, value, &format!("for {lines} at every level of {}", quoted(factor)))
        }));
    }
    sentences
}

/// Returns a sentence for a metric whose values are all equal to `value`: "`time` at `type=f32` was 3 ns in every trial
/// of both arms." The text `seen` is put after the value.
fn constant_in_words(measured: &MetricRows, value: f64, seen: &str) -> String {
    let at = if measured.at.is_empty() { String::new() } else { format!(" at {}", quoted(&measured.at)) };
    let value = if value.is_infinite() { "cut off".into() } else { measured.unit.human(value) };
    format!("{}{at} was {value} {seen}.", quoted(measured.metric))
}
