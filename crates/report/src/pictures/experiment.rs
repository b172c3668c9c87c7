use std::collections::BTreeMap;

use ascertain::experiment::{Metric, Plot, Point, Spec};
use ascertain::recorded::RecordedRun;

use super::curve::curves;
use super::forest::{MANY, medians};
use super::matrix::matrices;
use super::measured::{Measured, Row};
use super::quantiles::{LEAST_VALUES, MOST_LINES, about, quantiles};
use super::sweep::Sweep;
use super::trials::trials;
use super::{Picture, names};

/// The pictures of an experiment: of each metric those that the experiment asks for, its quantiles, and its medians
/// where arms are many or values few; of the first metric its values in the order measured. None of a metric that is the
/// same in every trial of every arm.
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
    let pictures = metrics.flat_map(|(place, (metric, slug))| {
        of_metric(run, spec, metric, place == 0, &format!("{experiment_slug}-{slug}"))
    });
    pictures.collect()
}

fn of_metric(run: &RecordedRun, spec: &Spec, metric: &Metric, is_first: bool, id: &str) -> Vec<Picture> {
    let measured = Measured::recorded(run, spec, metric, None);
    // An exit code that is always 0 needs no picture: a sentence says it.
    if measured.rows.is_empty() || measured.everywhere().is_some() {
        return Vec::new();
    }
    let declared = spec.plots.iter().filter(|plot| metric_of(plot) == metric.name);
    let (mut pictures, mut has_series) = (Vec::new(), false);
    for plot in declared {
        match plot {
            Plot::Sweep { factor, footprints, .. } => {
                let about = about("by level", &spec.id, &measured);
                let caches = &run.outcome.machine.caches;
                let sweep = Sweep { measured: &measured, factor, footprints, caches };
                pictures.extend(sweep.pictures(id, &about));
            }
            Plot::Matrix { .. } => {
                has_series = true;
                pictures.extend(matrices(&measured, id, &spec.id));
            }
            Plot::Curve { .. } => {
                has_series = true;
                pictures.extend(curves(run, spec, metric, id));
            }
        }
    }
    if has_series {
        return pictures;
    }
    let many = measured.rows.len() > MANY;
    let is_swept = is_swept(spec, &measured);
    if !(is_swept && measured.rows.len() > MOST_LINES) {
        let parts = by_level(spec, &measured);
        for (index, (level, part)) in parts.iter().enumerate() {
            let id = if index == 0 { format!("{id}-quantiles") } else { format!("{id}-quantiles-{}", index + 1) };
            let Some(mut picture) = quantiles(part, id, &about("by quantile", &spec.id, part)) else { continue };
            if !level.is_empty() {
                picture.plot.title = format!("{} ({level})", picture.plot.title);
            }
            pictures.push(picture);
        }
    }
    let few_values = measured.rows.iter().any(|row| row.n() < LEAST_VALUES);
    if !is_swept && (many || few_values || measured.is_constant()) {
        pictures.extend(medians(&measured, format!("{id}-medians"), &about("medians", &spec.id, &measured)));
    }
    if is_first {
        pictures.extend(trials(&measured, format!("{id}-trials"), &about("trial by trial", &spec.id, &measured)));
    }
    pictures
}

/// The rows in parts of which each fits a plot with lines, by the levels of a factor, each with a name; all of them
/// without a name where they fit, or no factor parts them so.
fn by_level<'a>(spec: &Spec, measured: &Measured<'a>) -> Vec<(String, Measured<'a>)> {
    const MOST_PARTS: usize = 4;
    let whole = || vec![(String::new(), measured.of(measured.rows.clone()))];
    if measured.rows.len() <= MOST_LINES {
        return whole();
    }
    let parted = spec.factors.iter().find_map(|factor| {
        let mut parts: BTreeMap<String, Vec<Row<'a>>> = BTreeMap::new();
        for row in &measured.rows {
            let level = row.arm.point.get(&factor.name)?;
            parts.entry(format!("{}={level}", factor.name)).or_default().push(row.clone());
        }
        let fit = (2..=MOST_PARTS).contains(&parts.len()) && parts.values().all(|rows| rows.len() <= MOST_LINES);
        fit.then(|| parts.into_iter().map(|(level, rows)| (level, measured.of(rows))).collect())
    });
    parted.unwrap_or_else(whole)
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

fn metric_of(plot: &Plot) -> &str {
    match plot {
        Plot::Sweep { metric, .. } | Plot::Matrix { metric } | Plot::Curve { metric } => metric,
    }
}
