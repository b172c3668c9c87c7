//! Completes the outcome of a long measurement that was killed, from its `windows.jsonl`.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use ascertain_stats::Tally;

use super::judge::{explain_too_early, judge_of, limit_of, primary_metric, stopped_threat};
use super::values::WindowValues;
use super::{Drift, Ended, HISTOGRAMS, RecordedReport, WindowLine, WindowReport, WindowSummary};
use crate::error::Error;
use crate::evidence::{Header, RowCursor};
use crate::finding::Threat;
use crate::outcome::Outcome;
use crate::unit::Unit;
use crate::values::Bounds;

/// Largest number of groups of windows.
const MOST_GROUPS: u64 = 20;

/// Adds the windows that have ended to the outcome of a run that has not written one. The claim is judged by the counts
/// of these windows, because only a part of the observations is recorded as rows. `every` is the distance between the
/// rows that are at equal distances. Does nothing for any other run.
pub(crate) fn complete(folder: &Path, header: &Header, every: u64, outcome: &mut Outcome) -> Result<(), Error> {
    let (Some(plan), [spec]) = (&header.plan.windows, header.experiments.as_slice()) else { return Ok(()) };
    if outcome.windows.is_some() {
        return Ok(());
    }
    let mut judge = judge_of(&header.plan, plan, spec)?;
    let metric = &spec.metrics[primary_metric(&plan.success, spec)];
    let per_group = plan.windows().div_ceil(MOST_GROUPS).max(1);
    let is_signed = metric.unit == Unit::One;
    let (mut windows, mut groups, mut broken) = (Vec::new(), Vec::new(), Vec::new());
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
        broken = line.broken;
        windows.push(summary);
    }
    judge.add_broken(&broken);
    groups.extend(group.take());
    let [median_low, median_high] = total.values.as_mut().map_or([None; 2], WindowValues::median_interval);
    let total = total.take().unwrap_or_default();
    let [_, median, p90, p99, ..] = total.figures().map(Bounds::estimate);
    if !header.plan.claims.is_empty() {
        outcome.claims = vec![judge.result()];
        for claim in &mut outcome.claims {
            claim.median = median;
            explain_too_early(claim, &Ended::Open, &total);
        }
    }
    if let Some(point) = outcome.points.iter_mut().find(|point| point.metric == metric.name) {
        (point.n, point.median, point.p90, point.p99) = (total.values(), median, p90, p99);
        (point.min, point.max, point.censored) = (total.least, total.most, total.stopped);
        (point.mean, point.std, point.median_low, point.median_high) = (None, None, median_low, median_high);
        // The threat from the rows is about a part of the observations.
        outcome.threats.retain(|threat| !matches!(threat, Threat::Stopped { .. }));
        let set = header.plan.commands.first().zip(plan.success.arms().first().copied());
        outcome.threats.extend(set.and_then(|(set, arm)| stopped_threat(point, set, arm)));
    }
    let around = plan.around.observations;
    let failures = total.observations - total.successes;
    let is_growing = plan.record_every.is_none();
    let window_ns = plan.window.as_nanos() as u64;
    outcome.windows = Some(WindowReport {
        limit: header.plan.commands.first().and_then(|set| limit_of(set, metric)),
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
    plan.record_every.or(written).unwrap_or_else(|| greatest_distance(folder)).max(1)
}

/// Returns the greatest distance between neighbouring rows. The run was killed, and has not recorded its last n. Each n
/// is a multiple of the one before it, so all rows after the first one at this distance have it too.
fn greatest_distance(folder: &Path) -> u64 {
    let Ok(mut rows) = RowCursor::open(folder) else { return 1 };
    let (mut last, mut greatest) = (0, 1);
    // A damaged row is an error for the reader of the rows.
    while let Ok(Some(row)) = rows.next_number() {
        greatest = greatest.max(row.trial.saturating_sub(last));
        last = row.trial;
    }
    greatest
}

/// Returns the complete lines of the file, up to the first that is damaged. There are none if the file is missing.
fn lines(folder: &Path) -> impl Iterator<Item = WindowLine> {
    let file = File::open(folder.join(HISTOGRAMS)).ok().map(BufReader::new);
    let lines = file.into_iter().flat_map(|file| file.lines().map_while(Result::ok));
    lines.map_while(|line| serde_json::from_str(&line).ok())
}

/// The observations of neighbouring windows.
struct Merged {
    /// The values; `None` if there is no memory for them.
    values: Option<WindowValues>,
    counts: Option<WindowSummary>,
}

impl Merged {
    fn new(is_signed: bool) -> Merged {
        // Without memory for the values, the figures stay unknown.
        Merged { values: WindowValues::new(is_signed, true, 1 << 17).ok(), counts: None }
    }

    fn add(&mut self, line: &WindowLine) {
        self.values.iter_mut().for_each(|values| values.insert_recorded(line));
        let more = WindowSummary { ranges: None, ..line.summary };
        let Some(counts) = &mut self.counts else {
            self.counts = Some(more);
            return;
        };
        *counts = WindowSummary {
            windows: counts.windows + more.windows,
            end_ns: more.end_ns,
            observations: counts.observations + more.observations,
            successes: counts.successes + more.successes,
            unknown: counts.unknown + more.unknown,
            without_value: counts.without_value + more.without_value,
            stopped: counts.stopped + more.stopped,
            ..*counts
        };
    }

    /// Returns the figures, if any window was added, and removes all observations.
    fn take(&mut self) -> Option<WindowSummary> {
        let counts = self.counts.take()?;
        let unknown =
            WindowSummary { least: None, median: None, p90: None, p99: None, p999: None, most: None, ..counts };
        Some(self.values.as_mut().map_or(unknown, |values| {
            let summary = values.summary(counts);
            values.clear();
            summary
        }))
    }
}

#[cfg(all(test, feature = "commands"))]
mod tests;
