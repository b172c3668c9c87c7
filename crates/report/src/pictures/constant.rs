//! What does not vary is said, not drawn.

use ascertain_engine::experiment::{Metric, Plot, Spec};
use ascertain_engine::recorded::RecordedRun;

use super::experiment::apart;
use super::measured::Measured;
use super::names;
use super::sweep::Sweep;
use crate::text::quoted;

/// The metrics of an experiment that are the same in every trial of every arm, or of the arms that would have a plot of
/// their own, a sentence each, with names marked.
pub(crate) fn constants(run: &RecordedRun, experiment: &str) -> Vec<String> {
    let Some(spec) = run.header.experiments.iter().find(|spec| spec.id == experiment) else { return Vec::new() };
    spec.metrics.iter().flat_map(|metric| of_metric(run, spec, metric)).collect()
}

fn of_metric(run: &RecordedRun, spec: &Spec, metric: &Metric) -> Vec<String> {
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
        let trials = names::counted(trials as usize, "trial");
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
        (_, rows) => format!("in every trial of all {}", names::counted(rows, "arm")),
    };
    Some(format!("{} was {} {seen}.", subject(measured), said(measured, value)))
}

/// The plots over a factor's levels that are not drawn, since their lines would lie level upon each other.
fn of_sweeps(run: &RecordedRun, spec: &Spec, measured: &Measured) -> Vec<String> {
    let caches = &run.outcome.machine.caches;
    let sweeps = spec.plots.iter().filter_map(|plot| match plot {
        Plot::Sweep { metric, factor, footprints } if metric == measured.metric => {
            Some(Sweep { measured, factor, footprints, caches })
        }
        _ => None,
    });
    let sentences = sweeps.flat_map(|sweep| {
        let in_words = |(value, lines): (f64, Vec<String>)| {
            let of = match lines.as_slice() {
                [_] | [_, _] | [_, _, _] => lines.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", "),
                lines => names::counted(lines.len(), "arm"),
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
