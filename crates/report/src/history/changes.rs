//! The runs at which the ratio of two variants changed, with the cause of each change.

use ascertain_engine::evidence::Revision;
use ascertain_engine::experiment::Arm;
use ascertain_engine::outcome::RowArm;
use ascertain_engine::unit::significant;
use serde::Serialize;

use super::trend::{RunTrend, TrendPoint};
use super::words::revision;
use crate::csv::record;
use crate::formats::{Element, Report};
use crate::grid::{Cell, ColumnKind, Grid};
use crate::plot::{Layer, Plot, Which};
use crate::text::{counted, grouped};

/// The changes of a ratio over several runs, and the ratio in each run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Changes {
    /// The ratio in each run.
    #[serde(flatten)]
    pub trend: RunTrend,
    /// The changes, sorted by arm and then from the oldest.
    pub changes: Vec<Change>,
    /// While nothing changes, the average number of runs between two false alarms is at least this number.
    pub runs_per_false_alarm: u64,
}

/// A change of the ratio, of its baseline, or of both.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// The candidate's arm.
    #[serde(flatten, with = "RowArm")]
    pub arm: Arm,
    /// The cause: `code`, `machine` or `unclear`.
    pub cause: Cause,
    /// The last run at the old level.
    pub previous: ChangeRun,
    /// The first run at the new level. This is an estimate; the change may be a few runs earlier or later.
    pub first: ChangeRun,
    /// The id of the run with which there was enough evidence for the change.
    pub found_run_id: String,
    /// The median of the ratios since the change before this one.
    pub ratio_before: f64,
    /// The median of the ratios until the next change.
    pub ratio_after: f64,
    /// The median of the baseline since the change before this one.
    pub baseline_before: f64,
    /// The median of the baseline until the next change.
    pub baseline_after: f64,
}

/// The cause of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Only the ratio changed, on the same machine: the code of the candidate changed.
    Code,
    /// Only the baseline changed: the machine changed both variants alike.
    Machine,
    /// The ratio changed together with the baseline, or with the name of the machine.
    Unclear,
}

/// A run beside a change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChangeRun {
    /// The id of the run.
    pub run_id: String,
    /// When the run started, in RFC 3339, UTC.
    pub started: String,
    /// The names of the CPU and of the kernel.
    pub machine: String,
    /// The git revision of the folder in which the run was started.
    pub revision: Option<Revision>,
}

impl ChangeRun {
    /// Returns the run of this point of a trend.
    pub fn new(point: &TrendPoint) -> ChangeRun {
        let TrendPoint { run_id, started, machine, revision, .. } = point.clone();
        ChangeRun { run_id, started, machine, revision }
    }
}

impl Cause {
    /// Returns the word for tables and CSV.
    pub fn word(self) -> &'static str {
        match self {
            Cause::Code => "code",
            Cause::Machine => "machine",
            Cause::Unclear => "unclear",
        }
    }

    /// Returns the reason for this cause as a sentence.
    fn reason(self) -> &'static str {
        match self {
            Cause::Code => "Code: the ratio changed, but the baseline did not.",
            Cause::Machine => "Machine: the baseline changed, but the ratio did not.",
            Cause::Unclear => {
                "Unclear: the ratio changed together with the baseline or with the name of the machine. Measure both \
                 revisions in one `compare` to find the cause."
            }
        }
    }
}

impl Changes {
    /// Returns the plot of the ratios, with a line before the first run of each new level.
    pub fn plot(&self) -> Plot {
        let runs = self.trend.plotted_runs();
        let mut plot = self.trend.plot();
        for Change { first, cause, .. } in &self.changes {
            let place = runs.range(..(first.started.as_str(), first.run_id.as_str())).count() as f64;
            plot.layers.push(Layer::Rule { on: Which::X, at: place - 0.5, label: cause.word().into() });
        }
        plot
    }

    /// Returns the series as the CSV that Apache Otava reads; `None` if there are several series. The columns are the
    /// time, three attributes of the run, the ratio, and the baseline's own median.
    pub fn otava_csv(&self) -> Option<String> {
        let [line] = self.trend.lines.as_slice() else { return None };
        let mut text = String::from("time,run,commit,machine,ratio,baseline\n");
        for run in &line.runs {
            // Otava reads only rows in which every metric is a number.
            let (Some(ratio), Some(baseline)) = (run.estimate.median, run.baseline) else { continue };
            let commit = revision(run.revision.as_ref());
            text += &record(&[&run.started, &run.run_id, &commit, &run.machine, &ratio, &baseline]);
        }
        Some(text)
    }

    fn grid(&self) -> Grid {
        let numbers = ["Ratio before", "Ratio after", "Baseline"];
        let mut grid = Grid::new(&[&["Variant", "Cause", "From run", "Revision"][..], &numbers].concat())
            .kind(ColumnKind::Word, &["Cause", "From run", "Revision"])
            .kind(ColumnKind::Number, &numbers)
            .stacking(&["Revision", "Ratio after"]);
        for change in &self.changes {
            let growth = (change.baseline_after / change.baseline_before - 1.0) * 100.0;
            grid.rows.push(vec![
                Cell::Code(self.trend.label(&change.arm)),
                change.cause.word().into(),
                Cell::Code(change.first.run_id.clone()),
                revision(change.first.revision.as_ref()).into(),
                significant(change.ratio_before).into(),
                significant(change.ratio_after).into(),
                format!("{growth:+.1} %").into(),
            ]);
        }
        grid.without_empty_columns()
    }

    /// Returns the number of changes, the meaning of their causes, and the rate of false alarms.
    fn sentences(&self) -> Vec<String> {
        let runs = counted(self.trend.plotted_runs().len(), "run");
        let mut sentences = vec![match self.changes.len() {
            0 => format!("The ratio and the baseline did not change in {runs}."),
            count => format!("{} in {runs}.", counted(count, "change")),
        }];
        let causes = [Cause::Code, Cause::Machine, Cause::Unclear];
        let has = |cause: &Cause| self.changes.iter().any(|change| change.cause == *cause);
        sentences.extend(causes.into_iter().filter(has).map(|cause| cause.reason().to_string()));
        sentences.push(format!(
            "A clear change is found with the fifth run at the new level. If ratios do not change, one false alarm is \
             expected in {} runs or more.",
            grouped(self.runs_per_false_alarm)
        ));
        sentences
    }
}

impl Report for Changes {
    const SCHEMA: &'static str = "ascertain.changes/1";

    fn elements(&self) -> Vec<Element> {
        let mut elements = vec![Element::Plot(Box::new(self.plot()), Some(self.trend.title()))];
        if !self.changes.is_empty() {
            elements.push(Element::Table(self.grid()));
        }
        elements.extend([Element::Paragraph(self.sentences()), Element::Paragraph(self.trend.cautions())]);
        elements
    }

    /// Returns a line for each change.
    fn csv(&self) -> String {
        let mut lines = String::from(
            "experiment,metric,variant,at,cause,previous_run_id,first_run_id,found_run_id,commit,ratio_before,\
             ratio_after,baseline_before,baseline_after\n",
        );
        let RunTrend { experiment, metric, .. } = &self.trend;
        for change in &self.changes {
            let Change { arm, previous, first, found_run_id, ratio_before, ratio_after, .. } = change;
            let commit = revision(first.revision.as_ref());
            lines += &record(&[
                experiment,
                metric,
                &arm.variant,
                &arm.point,
                &change.cause.word(),
                &previous.run_id,
                &first.run_id,
                found_run_id,
                &commit,
                ratio_before,
                ratio_after,
                &change.baseline_before,
                &change.baseline_after,
            ]);
        }
        lines
    }
}
