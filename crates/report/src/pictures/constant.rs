//! What does not vary is said, not drawn.

use ascertain::recorded::RecordedRun;

use super::measured::Measured;
use super::names;
use crate::text::quoted;

/// The metrics of an experiment that are the same in every trial of every arm, a sentence each, with names marked.
pub(crate) fn constants(run: &RecordedRun, experiment: &str) -> Vec<String> {
    let Some(spec) = run.header.experiments.iter().find(|spec| spec.id == experiment) else { return Vec::new() };
    spec.metrics.iter().filter_map(|metric| in_words(&Measured::recorded(run, spec, metric, None))).collect()
}

fn in_words(measured: &Measured) -> Option<String> {
    let value = measured.everywhere()?;
    let trials: u64 = measured.rows.iter().map(|row| row.n()).sum();
    let was = if value.is_infinite() { "cut off".to_string() } else { measured.unit.human(value) };
    let seen = match (trials, measured.rows.len()) {
        (1, _) => "in its one trial".to_string(),
        (_, 1) => format!("in all {trials} trials"),
        (_, rows) => format!("in every trial of all {}", names::counted(rows, "arm")),
    };
    Some(format!("{} was {was} {seen}.", quoted(measured.metric)))
}
