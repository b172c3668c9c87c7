//! Comparisons of files of pyperf, as text for people and for programs.

use std::path::PathBuf;

use ascertain_engine::experiment::Point;
use ascertain_engine::pyperf::{OtherUnit, PyperfComparison};
use ascertain_engine::suite::{Suite, WorkloadRatio};
use serde::{Deserialize, Serialize};

use crate::csv::record;
use crate::formats::{Element, Report};
use crate::grid::{ColumnKind, Grid};
use crate::pictures::{Picture, forests};
use crate::suite::{figure, sentences_of};
use crate::terminal::{self, Style};
use crate::text::{counted, escape_controls, listed, parted, quoted};

/// The largest number of workloads that a sentence names.
const MOST_NAMES: usize = 6;

/// The result of comparing suites of pyperf.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PyperfReport {
    /// The comparisons, each with the first suite under the same conditions.
    pub comparisons: Vec<PyperfComparison>,
    /// The files that were written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub written: Vec<PathBuf>,
    /// For each runtime of a run, the workloads that are left out because a process of them was stopped or failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub incomplete: Vec<(String, Vec<String>)>,
}

impl PyperfReport {
    /// Creates the report of these comparisons.
    pub fn new(
        comparisons: Vec<PyperfComparison>,
        written: Vec<PathBuf>,
        incomplete: Vec<(String, Vec<String>)>,
    ) -> PyperfReport {
        PyperfReport { comparisons, written, incomplete }
    }

    /// Returns the comparisons with each baseline.
    fn suites(&self) -> Vec<Suite> {
        let of_baseline = self.comparisons.chunk_by(|one, other| one.times.baseline == other.times.baseline);
        let suite = |comparisons: &[PyperfComparison]| Suite {
            experiment: "pyperf".into(),
            metric: "time".into(),
            factor: String::new(),
            levels: Point::default(),
            conditions: Point::default(),
            sample: String::new(),
            comparisons: comparisons.iter().map(|of| of.times.clone()).collect(),
            builds: Vec::new(),
        };
        of_baseline.map(suite).collect()
    }

    /// Returns the sentences below the table: the answers, the benchmarks of other units, warnings, and the files.
    fn sentences(&self) -> Vec<String> {
        let of = |comparison: &PyperfComparison| {
            let mut sentences = sentences_of(&comparison.times);
            let [candidate, baseline] = [&comparison.times.candidate, &comparison.times.baseline];
            if !comparison.counts.is_empty() {
                let of = |side: usize| values(comparison.counts.iter().map(|of| of.values[side]));
                sentences.push(format!(
                    "Each process counts once, by the mean of its values: {} has {} for each benchmark, and {} has {}.",
                    quoted(candidate),
                    of(0),
                    quoted(baseline),
                    of(1)
                ));
            }
            sentences.extend(comparison.others.iter().map(|other| other_unit(other, candidate, baseline)));
            sentences.extend(comparison.suspicious.iter().map(|(name, ratio)| {
                let ratio = figure(ascertain_engine::suite::Estimate { low: Some(*ratio), high: Some(*ratio) }, None);
                format!(
                    "Careful: the ratio of {} is {ratio}, which is close to a power of 1,000 or 1,024. Check that both \
                     files have the same unit.",
                    escape_controls(name)
                )
            }));
            sentences
        };
        let written = self.written.iter().map(|path| format!("Written: {}.", quoted(&path.display().to_string())));
        let incomplete = self.incomplete.iter().map(|(name, workloads)| {
            let names: Vec<String> = workloads.iter().map(|workload| escape_controls(workload)).collect();
            format!(
                "{} lacks workloads of which a process was stopped or failed: {}.",
                quoted(name),
                listed(&names, MOST_NAMES)
            )
        });
        self.comparisons.iter().flat_map(of).chain(incomplete).chain(written).collect()
    }

    fn grid(&self) -> Grid {
        let mut grid = Grid::with_kinds([
            ("comparison", ColumnKind::Prose),
            ("benchmark", ColumnKind::Id),
            ("times as fast", ColumnKind::Number),
            ("share of the time", ColumnKind::Number),
            ("processes", ColumnKind::Number),
            ("values", ColumnKind::Number),
        ]);
        for comparison in &self.comparisons {
            let times = &comparison.times;
            for workload in &times.workloads {
                let share = workload.ratio.value().map_or_else(String::new, |ratio| format!("{:.3}", 1.0 / ratio));
                let cells = [
                    format!("{} / {}", times.candidate, times.baseline),
                    workload.workload.clone(),
                    figure(workload.ratio, workload.interval),
                    share,
                    both(workload.values),
                    both(value_counts(comparison, workload)),
                ];
                grid.rows.push(cells.iter().map(|cell| cell.as_str().into()).collect());
            }
        }
        grid
    }
}

fn both([candidate, baseline]: [u64; 2]) -> String {
    format!("{candidate} / {baseline}")
}

/// Returns the numbers of values of a benchmark, for the candidate and for the baseline.
fn value_counts(comparison: &PyperfComparison, workload: &WorkloadRatio) -> [u64; 2] {
    let found = comparison.counts.iter().find(|of| of.benchmark == workload.workload);
    found.map_or(workload.values, |of| of.values)
}

/// Returns the numbers of values of several benchmarks as text: `60 values` or `30 to 60 values`.
fn values(counts: impl Iterator<Item = u64> + Clone) -> String {
    let (least, most) = (counts.clone().min().unwrap_or(0), counts.max().unwrap_or(0));
    if least == most { counted(most, "value") } else { format!("{least} to {most} values") }
}

/// Returns a sentence about a benchmark that measures no time: it needs more or less, and is never faster or slower.
fn other_unit(OtherUnit { benchmark, unit, ratio }: &OtherUnit, candidate: &str, baseline: &str) -> String {
    let more = if ratio.ratio.value().is_some_and(|ratio| ratio < 1.0) { "less" } else { "more" };
    let what = if unit == "byte" { "memory".to_string() } else { format!("({})", escape_controls(unit)) };
    format!(
        "{}: {} needs {more} {what} than {}, {} times as much. It is not part of the mean.",
        escape_controls(benchmark),
        quoted(candidate),
        quoted(baseline),
        figure(ratio.ratio, ratio.interval)
    )
}

impl Report for PyperfReport {
    const SCHEMA: &'static str = "ascertain.pyperf/1";

    fn elements(&self) -> Vec<Element> {
        vec![Element::Table(self.grid()), Element::Sentences(self.sentences())]
    }

    /// Draws a line for each benchmark. Markdown has a table in place of the pictures.
    fn text(&self, style: &Style) -> String {
        let pictures: Vec<Picture> = self.suites().iter().flat_map(|suite| forests(suite, "pyperf")).collect();
        let drawn = pictures.iter().map(|picture| terminal::forest(&picture.plot, style));
        parted(drawn.chain([style.paragraphs(&self.sentences())]))
    }

    fn csv(&self) -> String {
        let heading = "candidate,baseline,benchmark,unit,ratio,low,high,candidate_processes,baseline_processes,\
                       candidate_values,baseline_values\n";
        let mut lines = String::from(heading);
        for comparison in &self.comparisons {
            let PyperfComparison { times, others, .. } = comparison;
            let of_times = times.workloads.iter().map(|workload| ("second", workload));
            for (unit, of) in of_times.chain(others.iter().map(|other| (other.unit.as_str(), &other.ratio))) {
                let (low, high) = of.interval.map_or((None, None), |ends| (ends.low, ends.high));
                let names = [times.candidate.as_str(), times.baseline.as_str(), of.workload.as_str(), unit];
                let counts = [of.values, value_counts(comparison, of)].map(|both| both.map(|count| count.to_string()));
                lines += &record(&[
                    &names[0],
                    &names[1],
                    &names[2],
                    &names[3],
                    &of.ratio.value(),
                    &low,
                    &high,
                    &counts[0][0].as_str(),
                    &counts[0][1].as_str(),
                    &counts[1][0].as_str(),
                    &counts[1][1].as_str(),
                ]);
            }
        }
        lines
    }
}
