//! Completes the outcome of a long measurement that was killed, from its `windows.jsonl`.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use ascertain_stats::Tally;
use ascertain_streams::FlatTable;

use super::judge::{judge_of, primary_metric};
use super::{Drift, HISTOGRAMS, RecordedReport, WindowLine, WindowReport, WindowSummary};
use crate::error::Error;
use crate::evidence::Header;
use crate::outcome::Outcome;
use crate::unit::Unit;

/// Largest number of groups of windows.
const MOST_GROUPS: u64 = 20;

/// Adds the windows that have ended to the outcome of a run that has not written one. The claim is judged by the counts of
/// these windows, because only a part of the observations is recorded as rows. Does nothing for any other run.
pub(crate) fn complete(folder: &Path, header: &Header, outcome: &mut Outcome) -> Result<(), Error> {
    let (Some(plan), [spec]) = (&header.plan.windows, header.experiments.as_slice()) else { return Ok(()) };
    if outcome.windows.is_some() {
        return Ok(());
    }
    let mut judge = judge_of(&header.plan, plan, spec)?;
    let metric = &spec.metrics[primary_metric(&plan.success, spec)];
    let per_group = plan.windows().div_ceil(MOST_GROUPS).max(1);
    let is_signed = metric.unit == Unit::One;
    let (mut windows, mut groups, mut every) = (Vec::new(), Vec::new(), 0);
    let (mut group, mut total) = (Merged::new(is_signed), Merged::new(is_signed));
    for line in lines(folder) {
        let summary = line.summary;
        group.add(&line);
        total.add(&line);
        if (summary.window + 1).is_multiple_of(per_group) {
            groups.extend(group.take());
        }
        let known = Tally { trials: summary.observations - summary.unknown, successes: summary.successes };
        judge.count_batch(known, summary.unknown);
        every = line.every;
        windows.push(summary);
    }
    groups.extend(group.take());
    let total = total.take().unwrap_or_default();
    if !header.plan.claims.is_empty() {
        outcome.claims = vec![judge.result()];
        outcome.claims.iter_mut().for_each(|claim| claim.median = total.median);
    }
    if let Some(point) = outcome.points.iter_mut().find(|point| point.metric == metric.name) {
        (point.n, point.median, point.p90, point.p99) = (total.values(), total.median, total.p90, total.p99);
        (point.min, point.max, point.censored) = (total.least, total.most, total.stopped);
        (point.mean, point.std, point.median_low, point.median_high) = (None, None, None, None);
    }
    let around = plan.around.observations;
    let failures = total.failures();
    let is_growing = plan.record_every.is_none();
    let window_ns = plan.window.as_nanos() as u64;
    outcome.windows = Some(WindowReport {
        elapsed_ns: total.end_ns,
        drift: Drift::of(&windows, window_ns),
        total,
        groups,
        windows,
        recorded: RecordedReport { every, is_growing, around, failures, ..RecordedReport::default() },
        ..WindowReport::empty(plan, metric)
    });
    Ok(())
}

/// Returns the n of a run that recorded every n-th observation; 1 for any other run. The observations whose index is a
/// multiple of n are at equal distances, even if more were recorded at the start of the run.
pub fn recorded_every(folder: &Path, header: &Header) -> u64 {
    let Some(plan) = &header.plan.windows else { return 1 };
    let written = header.outcome.as_ref().and_then(|outcome| outcome.windows.as_ref());
    let written = written.map(|windows| windows.recorded.every);
    let last = || lines(folder).map(|line| line.every).last();
    plan.record_every.or(written).or_else(last).unwrap_or(1).max(1)
}

/// Returns the complete lines of the file, up to the first that is damaged. There are none if the file is missing.
fn lines(folder: &Path) -> impl Iterator<Item = WindowLine> {
    let file = File::open(folder.join(HISTOGRAMS)).ok().map(BufReader::new);
    let lines = file.into_iter().flat_map(|file| file.lines().map_while(Result::ok));
    lines.map_while(|line| serde_json::from_str(&line).ok())
}

/// The observations of neighbouring windows.
struct Merged {
    table: Option<FlatTable>,
    counts: Option<WindowSummary>,
    is_signed: bool,
}

impl Merged {
    fn new(is_signed: bool) -> Merged {
        Merged { table: None, counts: None, is_signed }
    }

    fn add(&mut self, line: &WindowLine) {
        if self.table.is_none() {
            // Without memory for a table, the figures stay unknown.
            self.table = FlatTable::new(self.is_signed, 1 << 17).ok();
        }
        for (value, count) in &line.histogram {
            let _ = self.table.as_mut().map(|table| table.insert_times(value.unwrap_or(f64::INFINITY), *count));
        }
        let more = &line.summary;
        let Some(counts) = &mut self.counts else {
            self.counts = Some(*more);
            return;
        };
        let least = |one: Option<f64>, other: Option<f64>| one.into_iter().chain(other).reduce(f64::min);
        *counts = WindowSummary {
            windows: counts.windows + more.windows,
            end_ns: more.end_ns,
            observations: counts.observations + more.observations,
            successes: counts.successes + more.successes,
            unknown: counts.unknown + more.unknown,
            without_value: counts.without_value + more.without_value,
            stopped: counts.stopped + more.stopped,
            least: least(counts.least, more.least),
            most: counts.most.into_iter().chain(more.most).reduce(f64::max),
            ..*counts
        };
    }

    /// Returns the figures, if any window was added, and removes all observations.
    fn take(&mut self) -> Option<WindowSummary> {
        let counts = self.counts.take()?;
        let mut table = self.table.take();
        let mut quantile = |level: f64| {
            let value = table.as_mut()?.quantile(level).filter(|value| value.is_finite())?;
            // Observations that reached their time limit are larger than the greatest observed value.
            let most = counts.most.filter(|_| counts.stopped == 0).unwrap_or(value);
            let least = counts.least.unwrap_or(value);
            Some(value.max(least).min(most))
        };
        let [median, p90, p99, p999] = [0.5, 0.9, 0.99, 0.999].map(&mut quantile);
        let most = counts.most.filter(|_| counts.stopped == 0);
        Some(WindowSummary { median, p90, p99, p999, most, ..counts })
    }
}
