//! How a figure went from run to run.

use std::collections::BTreeSet;

use ascertain_engine::experiment::{Better, Point};
use ascertain_engine::unit::Unit;
use serde::Serialize;

use super::comparison::Estimate;
use super::words::minute;
use crate::clause::arm_label;
use crate::csv::{Field, record};
use crate::figure::Figure;
use crate::grid::points::{own_levels, shared_levels};
use crate::grid::{Cell, ColumnKind, Grid};
use crate::plot::{Axis, Layer, Plot, Range, Scale, Which, text};
use crate::terminal::Style;
use crate::text::{ended, escape_controls, plain, quoted};
use crate::{json, markdown};

/// The name and version of the schema of [`Trend`] in JSON.
pub const SCHEMA: &str = "ascertain.trend/1";

/// A metric's median, or a ratio's, over runs. What is not known is `None`, in JSON `null`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trend {
    /// [`SCHEMA`].
    pub schema: String,
    /// The experiment.
    pub experiment: String,
    /// The metric.
    pub metric: String,
    /// The figures' unit: the metric's, or `1` for a ratio.
    pub unit: Unit,
    /// Which way is better; a ratio is better when it is higher.
    pub better: Better,
    /// What is compared with what within each run; `None` for the metric itself.
    pub ratio: Option<VariantPair>,
    /// A line for each arm, or for a ratio each point.
    pub lines: Vec<TrendLine>,
    /// What was left out, and why, in plain sentences.
    pub notes: Vec<String>,
}

/// A ratio: how many times better the candidate is than the baseline in the same trial.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VariantPair {
    /// The variant that the ratio speaks for.
    pub candidate: String,
    /// The variant that it is held against.
    pub baseline: String,
}

/// One arm over the runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrendLine {
    /// The variant; for a ratio the candidate.
    pub variant: String,
    /// Where.
    pub at: Point,
    /// The oldest run first; runs that did not measure it are left out.
    pub runs: Vec<TrendPoint>,
}

/// A run's figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrendPoint {
    /// The run.
    pub run_id: String,
    /// When it started: RFC 3339, UTC.
    pub started: String,
    /// The machine's CPU and kernel, to tell machines apart.
    pub machine: String,
    /// The median, in the trend's unit.
    pub estimate: Estimate,
}

/// More lines than this can't be told apart in a plot.
const MOST_LINES: usize = 8;

impl Trend {
    /// What is shown, and where.
    fn title(&self) -> String {
        let (experiment, metric) = (quoted(&self.experiment), quoted(&self.metric));
        let shared = self.shared_levels();
        let at =
            if shared.0.is_empty() { String::new() } else { format!(" at {}", escape_controls(&shared.to_string())) };
        match self.ratio {
            Some(_) => format!("{experiment}: {metric}{at}, median of the paired ratios, by run (above 1 is better)"),
            None => format!("{experiment}: median of {metric}{at}"),
        }
    }

    fn shared_levels(&self) -> Point {
        shared_levels(self.lines.iter().map(|line| &line.at))
    }

    /// What was left out, and what a reader must bear in mind.
    fn cautions(&self) -> Vec<String> {
        let mut cautions: Vec<String> = self.notes.iter().map(|note| ended(note)).collect();
        let machines: BTreeSet<&str> =
            self.lines.iter().flat_map(|line| &line.runs).map(|run| run.machine.as_str()).collect();
        if machines.len() > 1 {
            cautions.push(format!("Careful: the runs are of {} machines or kernels.", machines.len()));
        }
        if self.ratio.is_some() {
            cautions.push(
                "A ratio here is of all trials of a run; a verdict's, in the run's report, is of those until it was \
                 decided."
                    .into(),
            );
        } else {
            cautions.push(
                "Careful: runs are not paired with one another; a change may be the machine's. A ratio within each run \
                 (--ratio A/B) cancels what slows both alike."
                    .into(),
            );
        }
        cautions
    }

    /// What a line is of: an arm with what others do not share, or for a ratio what against what.
    fn label(&self, line: &TrendLine) -> String {
        let arm = arm_label(&line.variant, &own_levels(&line.at, &self.shared_levels()));
        match &self.ratio {
            Some(VariantPair { baseline, .. }) => format!("{arm} against {}", escape_controls(baseline)),
            None => arm,
        }
    }

    fn grid(&self) -> Grid {
        let figure = if self.ratio.is_some() { "Ratio" } else { "Median" };
        let mut grid = Grid::new(&[
            ("Variant", ColumnKind::Prose),
            ("Run", ColumnKind::Word),
            ("Started (UTC)", ColumnKind::Word),
            ("Trials", ColumnKind::Number),
            (figure, ColumnKind::Number),
            ("95 % interval", ColumnKind::Number),
        ])
        .stacking(&["Started (UTC)", "95 % interval"]);
        for line in &self.lines {
            for (index, run) in line.runs.iter().enumerate() {
                let Figure { value, range, .. } = run.estimate.figure(self.unit);
                let label = if index == 0 { self.label(line) } else { String::new() };
                grid.rows.push(vec![
                    Cell::Code(label),
                    Cell::Code(run.run_id.clone()),
                    minute(&run.started).into(),
                    run.estimate.n.to_string().into(),
                    value.into(),
                    range.into(),
                ]);
            }
        }
        grid
    }

    /// Where the lines are far apart, each is flat on a linear scale.
    fn scale(&self) -> Scale {
        let medians = || self.lines.iter().flat_map(|line| &line.runs).filter_map(|run| run.estimate.median);
        let (least, greatest) = (medians().fold(f64::INFINITY, f64::min), medians().fold(0.0, f64::max));
        if least > 0.0 && greatest > 3.0 * least { Scale::Log } else { Scale::Linear }
    }

    /// The figure over the runs, a line an arm, with bands.
    pub fn plot(&self) -> Plot {
        let lines = &self.lines[..self.lines.len().min(MOST_LINES)];
        let runs: BTreeSet<(&str, &str)> =
            lines.iter().flat_map(|line| &line.runs).map(|run| (run.started.as_str(), run.run_id.as_str())).collect();
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
        let mut names = told_apart(&runs.iter().map(|(started, _)| minute(started)).collect::<Vec<_>>());
        if names.iter().collect::<BTreeSet<_>>().len() < names.len() {
            // Of runs in one minute, the end of each one's name, by which it may be called.
            names = runs.iter().map(|(_, id)| id.rsplit('-').next().unwrap_or(id).to_string()).collect();
        }
        Plot {
            id: "trend".into(),
            title: plain(&self.title()),
            alt: format!("{} over {} runs, with 95 % intervals.", plain(&self.title()), runs.len()),
            x: Axis::new("run", Scale::Names(names), Unit::One),
            y: Axis::new(if self.ratio.is_some() { "ratio" } else { &self.metric }, self.scale(), self.unit),
            series: lines.iter().map(|line| self.label(line)).collect(),
            layers,
        }
    }
}

/// Lines that the plot takes in a terminal.
const PLOT_LINES: usize = 18;

/// The plot, the table, and what to bear in mind.
pub fn table(trend: &Trend, style: &Style) -> String {
    let cautions: String = trend.cautions().iter().map(|caution| style.paragraph(&plain(caution))).collect();
    let plot = text::render(&trend.plot(), style.width, PLOT_LINES, style.color);
    let more = match trend.lines.len().checked_sub(MOST_LINES) {
        Some(more) if more > 0 => {
            style.paragraph(&format!("The plot leaves out {more} more lines; choose with --variant and --at."))
        }
        _ => String::new(),
    };
    let gap = if cautions.is_empty() { "" } else { "\n" };
    format!("{plot}{more}\n{}{gap}{cautions}", style.table(&trend.grid()))
}

/// What is shown, the table, and what to bear in mind.
pub fn markdown(trend: &Trend) -> String {
    let cautions = trend.cautions().join(" ");
    let title = markdown::paragraph(&trend.title());
    format!("{title}\n{}\n{}", markdown::table(&trend.grid()), markdown::paragraph(&cautions))
}

/// The trend as one object.
pub fn json(trend: &Trend) -> String {
    json::object(trend)
}

/// A line a run of each arm.
pub fn csv(trend: &Trend) -> String {
    let mut lines =
        String::from("experiment,metric,unit,variant,at,run_id,started,machine,n,median,median_low,median_high\n");
    for line in &trend.lines {
        for run in &line.runs {
            let Trend { experiment, metric, unit, .. } = trend;
            let TrendPoint { run_id, started, machine, estimate: Estimate { n, median, low, high } } = run;
            let arm: [&dyn Field; 5] = [experiment, metric, &unit.symbol(), &line.variant, &line.at];
            lines += &record(&[&arm[..], &[run_id, started, machine, n, median, low, high]].concat());
        }
    }
    lines
}

/// Times to the minute, told apart by no more than it takes: the time of one day, one run's date, or both.
fn told_apart(minutes: &[String]) -> Vec<String> {
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
            assert_eq!(told_apart(&times), told);
        }
    }
}
