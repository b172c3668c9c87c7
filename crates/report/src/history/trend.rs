//! The median of a metric over several runs.

use std::collections::BTreeSet;

use ascertain_engine::evidence::Revision;
use ascertain_engine::experiment::{Arm, Better, Point};
use ascertain_engine::outcome::RowArm;
use ascertain_engine::unit::Unit;
use serde::Serialize;

use super::comparison::MedianEstimate;
use super::words::minute;
use crate::clause::arm_label;
use crate::csv::{Field, record};
use crate::figure::Figure;
use crate::formats::{Element, Report};
use crate::grid::points::{own_levels, shared_levels};
use crate::grid::{Cell, ColumnKind, Grid};
use crate::plot::{Axis, Layer, Plot, Range, Scale, Which};
use crate::text::{ended, escape_controls, plain, quoted};

/// The median of a metric, or of a ratio of two variants, in several runs. Unknown values are `None`, in JSON `null`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunTrend {
    /// The id of the experiment.
    pub experiment: String,
    /// The name of the metric.
    pub metric: String,
    /// The unit of the medians: the metric's unit, or `1` for a ratio.
    pub unit: Unit,
    /// The direction in which the metric improves; for a ratio, higher is always better.
    pub better: Better,
    /// The two variants whose ratio is shown; `None` to show the metric itself.
    pub ratio: Option<VariantPair>,
    /// The lines of the plot, one for each arm. A plot of a ratio has a line for each combination of levels at which
    /// both variants were measured.
    pub lines: Vec<TrendLine>,
    /// Sentences about runs that were left out, with the reasons.
    pub notes: Vec<String>,
}

/// The two variants of a ratio. A ratio of 2 in a trial means that the candidate was twice as good as the baseline, for
/// example twice as fast.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VariantPair {
    /// The variant that is better if the ratio is above 1.
    pub candidate: String,
    /// The variant that the candidate is compared with.
    pub baseline: String,
}

/// The medians of one arm in several runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrendLine {
    /// The arm; for a ratio, the candidate's arm.
    #[serde(flatten, with = "RowArm")]
    pub arm: Arm,
    /// The medians in the runs that measured the arm, the oldest first.
    pub runs: Vec<TrendPoint>,
}

/// The median of one arm in one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrendPoint {
    /// The id of the run.
    pub run_id: String,
    /// When the run started, in RFC 3339, UTC.
    pub started: String,
    /// The names of the CPU and of the kernel; runs with the same text are taken to be from the same machine.
    pub machine: String,
    /// The git revision of the folder in which the run was started.
    pub revision: Option<Revision>,
    /// The median with its interval, in the unit of the trend.
    pub estimate: MedianEstimate,
    /// For a ratio, the baseline's own median in the metric's unit; for times, in nanoseconds.
    pub baseline: Option<f64>,
}

/// The largest number of lines in a plot; more could not be distinguished.
const MOST_LINES: usize = 8;

impl RunTrend {
    /// Returns the title: the metric or ratio, the experiment, and the levels that all arms share.
    pub(super) fn title(&self) -> String {
        let (experiment, metric) = (quoted(&self.experiment), quoted(&self.metric));
        let shared = self.shared_levels();
        let at =
            if shared.0.is_empty() { String::new() } else { format!(" at {}", escape_controls(&shared.to_string())) };
        match self.ratio {
            Some(_) => {
                let (what, better) = match self.metric.as_str() {
                    "wall" | "time" => ("speed".to_string(), "faster"),
                    _ => (metric, "better"),
                };
                format!(
                    "{experiment}: {what} relative to the baseline{at}, median of the pairs, by run (above 1: {better})"
                )
            }
            None => format!("{experiment}: median of {metric}{at}"),
        }
    }

    fn shared_levels(&self) -> Point {
        shared_levels(self.lines.iter().map(|line| &line.arm.point))
    }

    /// Returns the notes about runs that were left out, and warnings about the comparison of runs.
    pub(super) fn cautions(&self) -> Vec<String> {
        let mut cautions: Vec<String> = self.notes.iter().map(|note| ended(note)).collect();
        let machines: BTreeSet<&str> =
            self.lines.iter().flat_map(|line| &line.runs).map(|run| run.machine.as_str()).collect();
        if machines.len() > 1 {
            cautions.push(format!("Careful: the runs are from {} machines or kernels.", machines.len()));
        }
        let caution = match self.ratio {
            Some(_) => {
                "These ratios are medians of all trials of a run. In the report of a run, the ratio beside a verdict \
                 may differ, because it uses only the trials until the verdict."
            }
            None => {
                "Careful: runs are not paired with each other, so a change may come from the machine. A ratio within each run \
                 (--ratio A/B) cancels effects on both variants."
            }
        };
        cautions.push(caution.into());
        cautions
    }

    /// Returns the label of an arm's line in the plot: the arm with the levels that not all lines share. The label of a ratio
    /// names both variants.
    pub(super) fn label(&self, arm: &Arm) -> String {
        let point = own_levels(&arm.point, &self.shared_levels());
        let arm = arm_label(&Arm { variant: arm.variant.clone(), point });
        match &self.ratio {
            Some(VariantPair { baseline, .. }) => format!("{arm} against {}", escape_controls(baseline)),
            None => arm,
        }
    }

    fn grid(&self) -> Grid {
        let figure = if self.ratio.is_some() { "Ratio" } else { "Median" };
        let numbers = ["Trials", figure, "95 % interval"];
        let mut grid = Grid::new(&[&["Variant", "Run", "Started (UTC)"][..], &numbers].concat())
            .kind(ColumnKind::Word, &["Run", "Started (UTC)"])
            .kind(ColumnKind::Number, &numbers)
            .stacking(&["Started (UTC)", "95 % interval"]);
        for line in &self.lines {
            let mut label = self.label(&line.arm);
            for run in &line.runs {
                let Figure { value, range, .. } = run.estimate.figure(self.unit);
                let mut row = vec![Cell::Code(std::mem::take(&mut label)), Cell::Code(run.run_id.clone())];
                row.extend([minute(&run.started), run.estimate.n.to_string(), value, range].map(Cell::from));
                grid.rows.push(row);
            }
        }
        grid
    }

    /// Returns the scale of the y axis. It is logarithmic if the lines are so far apart that each would look flat on a
    /// linear scale.
    fn scale(&self) -> Scale {
        let medians = || self.lines.iter().flat_map(|line| &line.runs).filter_map(|run| run.estimate.median);
        let (least, greatest) = (medians().fold(f64::INFINITY, f64::min), medians().fold(0.0, f64::max));
        if least > 0.0 && greatest > 3.0 * least { Scale::Log } else { Scale::Linear }
    }

    /// Returns the start and the id of each plotted run, in the order of the x axis.
    pub(super) fn plotted_runs(&self) -> BTreeSet<(&str, &str)> {
        let lines = self.lines.iter().take(MOST_LINES);
        lines.flat_map(|line| &line.runs).map(|run| (run.started.as_str(), run.run_id.as_str())).collect()
    }

    /// Returns a plot of the medians by run, with a line and a band for each arm.
    pub fn plot(&self) -> Plot {
        let lines = &self.lines[..self.lines.len().min(MOST_LINES)];
        let runs = self.plotted_runs();
        let place = |run: &TrendPoint| runs.range(..(run.started.as_str(), run.run_id.as_str())).count() as f64;
        let mut layers = Vec::new();
        if self.ratio.is_some() {
            layers.push(Layer::Rule { on: Which::Y, at: 1.0, label: "equal".into() });
        }
        for (index, line) in lines.iter().enumerate() {
            let series = Some(index);
            let range = |run: &TrendPoint| Range {
                x: place(run),
                low: run.estimate.low.unwrap_or(f64::NEG_INFINITY),
                high: run.estimate.high.unwrap_or(f64::INFINITY),
            };
            let ranges = line.runs.iter().map(range).collect();
            let points: Vec<[f64; 2]> =
                line.runs.iter().map(|run| [place(run), run.estimate.median.unwrap_or(f64::NAN)]).collect();
            layers.push(Layer::Band { series, ranges });
            layers.push(Layer::Line { series, points: points.clone(), steps: false, dashed: false });
            layers.push(Layer::Dots { series, points, hollow: false });
        }
        let mut names = short_times(&runs.iter().map(|(started, _)| minute(started)).collect::<Vec<_>>());
        if names.iter().collect::<BTreeSet<_>>().len() < names.len() {
            // Runs that started in the same minute are labelled with the end of their ids, which also identifies them
            // on the command line.
            names = runs.iter().map(|(_, id)| id.rsplit('-').next().unwrap_or(id).to_string()).collect();
        }
        Plot {
            id: "trend".into(),
            title: plain(&self.title()),
            alt: format!("{} over {} runs, with 95 % intervals.", plain(&self.title()), runs.len()),
            x: Axis::new("run", Scale::Names(names), Unit::One),
            y: Axis::new(if self.ratio.is_some() { "ratio" } else { &self.metric }, self.scale(), self.unit),
            series: lines.iter().map(|line| self.label(&line.arm)).collect(),
            layers,
        }
    }
}

impl Report for RunTrend {
    const SCHEMA: &'static str = "ascertain.trend/1";

    fn elements(&self) -> Vec<Element> {
        let mut parts = vec![Element::Plot(Box::new(self.plot()), Some(self.title()))];
        if let Some(more @ 1..) = self.lines.len().checked_sub(MOST_LINES) {
            parts.push(Element::Note(format!(
                "The plot leaves out {more} lines; choose lines with --variant and --at."
            )));
        }
        parts.extend([Element::Table(self.grid()), Element::Paragraph(self.cautions())]);
        parts
    }

    /// Returns the trend as CSV, with a line for each run of each arm.
    fn csv(&self) -> String {
        let mut lines =
            String::from("experiment,metric,unit,variant,at,run_id,started,machine,n,median,median_low,median_high\n");
        let RunTrend { experiment, metric, unit, .. } = self;
        let symbol = unit.symbol();
        for TrendLine { arm, runs } in &self.lines {
            for TrendPoint { run_id, started, machine, estimate, .. } in runs {
                let MedianEstimate { n, median, low, high } = estimate;
                let names: [&dyn Field; 5] = [experiment, metric, &symbol, &arm.variant, &arm.point];
                lines += &record(&[&names[..], &[run_id, started, machine, n, median, low, high]].concat());
            }
        }
        lines
    }
}

/// Shortens times to the part that differs between them: the time of day, the date, or both. The times must be exact to
/// the minute.
fn short_times(minutes: &[String]) -> Vec<String> {
    let common = |length: usize| minutes.iter().all(|minute| minute.get(..length) == minutes[0].get(..length));
    let dates: BTreeSet<Option<&str>> = minutes.iter().map(|minute| minute.get(..10)).collect();
    let shown = match () {
        () if minutes.len() < 2 => 0..16,
        () if common(11) => 11..16,
        () if dates.len() == minutes.len() && common(5) => 5..10,
        () if dates.len() == minutes.len() => 0..10,
        () if common(8) => 8..16,
        () if common(5) => 5..16,
        () => 0..16,
    };
    minutes.iter().map(|minute| minute.get(shown.clone()).unwrap_or(minute).to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_apart() {
        for (times, told) in [
            (&["2026-11-21 09:30", "2026-11-21 10:30"][..], &["09:30", "10:30"][..]),
            (&["2026-11-20 09:30", "2026-11-21 10:30"], &["11-20", "11-21"]),
            (&["2025-11-20 09:30", "2026-11-21 10:30"], &["2025-11-20", "2026-11-21"]),
            (&["2026-11-20 09:30", "2026-11-21 10:30", "2026-11-21 11:30"], &["20 09:30", "21 10:30", "21 11:30"]),
            (
                &["2026-10-20 09:30", "2026-11-21 10:30", "2026-11-21 11:30"],
                &["10-20 09:30", "11-21 10:30", "11-21 11:30"],
            ),
            (&["2026-11-21 09:30"], &["2026-11-21 09:30"]),
            (&["then", "now"], &["then", "now"]),
            (&[], &[]),
        ] {
            let times: Vec<String> = times.iter().map(|time| time.to_string()).collect();
            assert_eq!(short_times(&times), told);
        }
    }
}
