//! The pictures of an experiment; what does not vary is said, not drawn.

use std::collections::{BTreeMap, BTreeSet};

use ascertain_engine::experiment::{Metric, Plot, Point, Spec};
use ascertain_engine::recorded::RecordedRun;

use super::curve::{curves, moves};
use super::forest::{MANY, medians};
use super::matrix::matrices;
use super::measured::Measured;
use super::quantiles::{LEAST_VALUES, MOST_LINES, about, quantiles};
use super::sweep::Sweep;
use super::trials::trials;
use super::waterfall::waterfalls;
use super::{Picture, PictureKind, names};
use crate::clause::ordered;
use crate::text::{counted, quoted};

/// The pictures of an experiment: of each metric those that the experiment asks for, its quantiles, and its medians
/// where arms are many or values few; of the first metric its values in the order measured. Sweeps come first. None of
/// a metric that is the same in every trial of every arm.
///
/// Where there are more arms than colours, a plot of lines shows a selection, and its title says so. None for an
/// experiment that the run does not have.
pub fn of_experiment(run: &RecordedRun, experiment: &str) -> Vec<Picture> {
    let specs = &run.header.experiments;
    let Some(index) = specs.iter().position(|spec| spec.id == experiment) else { return Vec::new() };
    let spec = &specs[index];
    let experiment_slug = &names::slugs(specs.iter().map(|spec| spec.id.as_str()))[index];
    let metric_slugs = names::slugs(spec.metrics.iter().map(|metric| metric.name.as_str()));
    let metrics = spec.metrics.iter().zip(metric_slugs).enumerate();
    let claims = run.outcome.claims.iter().filter(|claim| claim.experiment == spec.id);
    let compared = claims.filter_map(ordered).map(|(measure, ..)| measure.metric.as_str()).next();
    let pictures = metrics.flat_map(|(place, (metric, slug))| {
        let is_compared = compared.is_none_or(|compared| compared == metric.name);
        let pictures = of_metric(run, spec, metric, place == 0, &format!("{experiment_slug}-{slug}"));
        pictures.into_iter().map(move |picture| (is_compared, picture))
    });
    let mut pictures: Vec<(bool, Picture)> = pictures.collect();
    // An experiment is about the effect of its factors, and above all on the compared metric.
    pictures.sort_by_key(|(is_compared, picture)| match picture.kind {
        PictureKind::Sweep => u8::from(!is_compared),
        _ => 2,
    });
    pictures.into_iter().map(|(_, picture)| picture).collect()
}

fn of_metric(run: &RecordedRun, spec: &Spec, metric: &Metric, is_first: bool, id: &str) -> Vec<Picture> {
    let measured = Measured::recorded(run, spec, metric, None);
    // An exit code that is always 0 needs no picture: a sentence says it.
    let is_constant = || measured.everywhere().or(measured.but_for_stopped()).is_some() && !moves(run, spec, metric);
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
            _ => curves(run, spec, metric, id),
        });
        return pictures.collect();
    }
    let parts =
        apart(spec, &measured).into_iter().filter(|part| part.everywhere().or(part.but_for_stopped()).is_none());
    parts.flat_map(|part| of_part(run, spec, &part, is_first, &with_levels(id, &part))).collect()
}

/// The rows that belong on an axis of their own. Factors by which the experiment tells how much memory a number takes
/// tell apart what is not of a kind: sums of floats, and of doubles.
pub(super) fn apart<'a>(spec: &Spec, measured: &Measured<'a>) -> Vec<Measured<'a>> {
    let footprints = spec.plots.iter().flat_map(|plot| match plot {
        Plot::Sweep { footprints, .. } => footprints.as_slice(),
        _ => &[],
    });
    let factors: BTreeSet<&str> = footprints.flat_map(|footprint| footprint.at.0.keys().map(String::as_str)).collect();
    measured.by_levels(&factors.into_iter().collect::<Vec<_>>())
}

/// The address with the levels at which these rows are.
fn with_levels(id: &str, measured: &Measured) -> String {
    if measured.at.is_empty() {
        id.to_string()
    } else {
        format!("{id}-{}", names::slugs([measured.at.as_str()]).concat())
    }
}

fn of_part(run: &RecordedRun, spec: &Spec, measured: &Measured, is_first: bool, id: &str) -> Vec<Picture> {
    let mut pictures = Vec::new();
    for plot in spec.plots.iter().filter(|plot| metric_of(plot) == measured.metric) {
        let Plot::Sweep { factor, footprints, .. } = plot else { continue };
        let caches = &run.outcome.machine.caches;
        let chosen = chosen(spec, measured.metric, factor).map(|metric| Measured::recorded(run, spec, metric, None));
        let sweep = Sweep { measured, factor, footprints, caches, chosen: chosen.as_ref() };
        pictures.extend(sweep.pictures(id, &about("by level", &spec.id, measured)));
    }
    let many = measured.rows.len() > MANY;
    let is_swept = is_swept(spec, measured);
    if !(is_swept && measured.rows.len() > MOST_LINES) {
        for (index, part) in by_level(spec, measured).iter().enumerate() {
            let id = if index == 0 { format!("{id}-quantiles") } else { format!("{id}-quantiles-{}", index + 1) };
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

/// The rows in parts of which each fits a plot with lines, by the levels of a factor; all of them where they fit, or no
/// factor parts them so.
fn by_level<'a>(spec: &Spec, measured: &Measured<'a>) -> Vec<Measured<'a>> {
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

/// Whether most arms have others from which only a factor sets them apart that the experiment sweeps: its plots show
/// them better than rows side by side.
fn is_swept(spec: &Spec, measured: &Measured) -> bool {
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

/// The metric that says at which of the factor's levels an arm was that chose it by itself.
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
        Plot::Matrix { metric } | Plot::Curve { metric } | Plot::Waterfall { metric } => metric,
    }
}

/// The metrics of an experiment that are the same in every trial of every arm, or of the arms that would have a plot of
/// their own, a sentence each, with names marked.
pub(crate) fn constants(run: &RecordedRun, experiment: &str) -> Vec<String> {
    let Some(spec) = run.header.experiments.iter().find(|spec| spec.id == experiment) else { return Vec::new() };
    spec.metrics.iter().flat_map(|metric| constants_of_metric(run, spec, metric)).collect()
}

fn constants_of_metric(run: &RecordedRun, spec: &Spec, metric: &Metric) -> Vec<String> {
    if moves(run, spec, metric) {
        return Vec::new();
    }
    let all = Measured::recorded(run, spec, metric, None);
    if let Some(sentence) = in_words(&all) {
        return vec![sentence];
    }
    let of_part = |part: Measured| match in_words(&part) {
        Some(sentence) => vec![sentence],
        None => of_sweeps(run, spec, &part),
    };
    apart(spec, &all).into_iter().flat_map(of_part).collect()
}

fn in_words(measured: &Measured) -> Option<String> {
    let trials: u64 = measured.rows.iter().map(|row| row.n()).sum();
    if let Some(value) = measured.but_for_stopped() {
        let stopped = measured.censored();
        let trials = counted(trials, "trial");
        return Some(format!(
            "{} was {} in all but {stopped} of {trials}, which met the time limit.",
            subject(measured),
            said(measured, value)
        ));
    }
    let value = measured.everywhere()?;
    let seen = match (trials, measured.rows.len()) {
        (1, _) => "in its one trial".to_string(),
        (_, 1) => format!("in all {trials} trials"),
        (_, 2) => "in every trial of both arms".to_string(),
        (_, rows) => format!("in every trial of all {}", counted(rows, "arm")),
    };
    Some(format!("{} was {} {seen}.", subject(measured), said(measured, value)))
}

/// The plots over a factor's levels that are not drawn, since their lines would lie level upon each other.
fn of_sweeps(run: &RecordedRun, spec: &Spec, measured: &Measured) -> Vec<String> {
    let caches = &run.outcome.machine.caches;
    let sweeps = spec.plots.iter().filter_map(|plot| match plot {
        Plot::Sweep { metric, factor, footprints } if metric == measured.metric => {
            Some(Sweep { measured, factor, footprints, caches, chosen: None })
        }
        _ => None,
    });
    let sentences = sweeps.flat_map(|sweep| {
        let in_words = |(value, lines): (f64, Vec<String>)| {
            let of = match lines.as_slice() {
                [_] | [_, _] | [_, _, _] => lines.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", "),
                lines => counted(lines.len(), "arm"),
            };
            let (value, factor) = (said(measured, value), quoted(sweep.factor));
            format!("{} was {value} for {of} at every level of {factor}.", subject(measured))
        };
        sweep.constants().into_iter().map(in_words).collect::<Vec<_>>()
    });
    sentences.collect()
}

/// The metric, and where it was.
fn subject(measured: &Measured) -> String {
    let metric = quoted(measured.metric);
    if measured.at.is_empty() { metric } else { format!("{metric} at {}", quoted(&measured.at)) }
}

fn said(measured: &Measured, value: f64) -> String {
    if value.is_infinite() { "cut off".into() } else { measured.unit.human(value) }
}
