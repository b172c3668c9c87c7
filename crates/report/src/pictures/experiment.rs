use ascertain::experiment::{Metric, Plot, Spec};
use ascertain::recorded::RecordedRun;

use super::curve::curves;
use super::forest::{MANY, medians};
use super::matrix::matrices;
use super::measured::Measured;
use super::quantiles::{LEAST_VALUES, MOST_LINES, about, quantiles};
use super::sweep::Sweep;
use super::trials::trials;
use super::{Picture, names};

/// The pictures of an experiment: of each metric those that the experiment asks for, its quantiles, and its medians
/// where arms are many or values few; of the first metric its values in the order measured.
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
    let same_everywhere = || {
        let first = measured.rows.first().map(|row| row.quantile(0.0));
        measured.is_constant() && measured.rows.iter().all(|row| Some(row.quantile(0.0)) == first)
    };
    // An exit code that is always 0 needs no picture.
    if measured.rows.is_empty() || has_series || (!is_first && same_everywhere()) {
        return pictures;
    }
    let many = measured.rows.len() > MANY;
    let is_swept = is_swept(spec, &measured);
    if !(is_swept && measured.rows.len() > MOST_LINES) {
        pictures.extend(quantiles(&measured, format!("{id}-quantiles"), &about("by quantile", &spec.id, &measured)));
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

/// Whether arms differ in a factor that the experiment sweeps: its plots show them better than rows side by side.
fn is_swept(spec: &Spec, measured: &Measured) -> bool {
    let differ = |factor: &str| {
        let mut levels = measured.rows.iter().map(|row| row.arm.point.get(factor));
        levels.next().is_some_and(|first| levels.any(|level| level != first))
    };
    spec.plots.iter().any(|plot| matches!(plot, Plot::Sweep { factor, .. } if differ(factor)))
}

fn metric_of(plot: &Plot) -> &str {
    match plot {
        Plot::Sweep { metric, .. } | Plot::Matrix { metric } | Plot::Curve { metric } => metric,
    }
}
