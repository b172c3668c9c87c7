//! Two runs side by side: the output of `ascertain history` for two runs.

use ascertain_engine::evidence::Revision;
use ascertain_engine::outcome::{ClaimResult, PointSummary};
use ascertain_engine::unit::{Unit, significant};
use serde::{Serialize, Serializer};
use serde_json::json;

use super::words::{minute, place_in_words, revision};
use crate::clause::{ClaimFigure, arm_label, joined, share_figure};
use crate::csv::{Field, record};
use crate::figure::Figure;
use crate::formats::{Element, Report};
use crate::grid::{self, Cell, ColumnKind, Grid};
use crate::text::{command_line, listed, quoted};

/// Two runs side by side. There is no conclusion about their difference, because trials are paired within a run, not
/// between runs. Unknown values are `None`, in JSON `null`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunComparison {
    /// The two compared runs, in the order of the command line.
    pub runs: [ComparedRun; 2],
    /// The facts about machine, version, options and commands that differ between the runs.
    pub differences: Vec<Difference>,
    /// For each metric of each arm that both runs measured, the summaries of the first run and of the second run.
    #[serde(serialize_with = "serialize_points")]
    pub points: Vec<[PointSummary; 2]>,
    /// For each run, the metrics that the other run did not measure, as `experiment, variant (point), metric`.
    pub unmatched_points: [Vec<String>; 2],
    /// For each claim that both runs judged, the result in the first run and that in the second.
    #[serde(serialize_with = "serialize_claims")]
    pub claims: Vec<[ClaimResult; 2]>,
    /// For each run, the ids of claims without a counterpart in the other run. A counterpart has the same id and the
    /// same tests.
    pub unmatched_claims: [Vec<String>; 2],
}

/// One of the compared runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedRun {
    /// The id of the run, which is the name of its folder.
    pub id: String,
    /// When the run started, in RFC 3339, UTC.
    pub started: String,
    /// The state of the run: `finished`, `interrupted`, `running` or `killed`.
    pub state: &'static str,
    /// The command line that started the run.
    pub command_line: Vec<String>,
    /// The label that the user gave to the run.
    pub label: Option<String>,
    /// The git revision of the folder that the run was started in.
    pub revision: Option<Revision>,
}

/// A fact that differs between the runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// The key path of the fact in `run.json`: `machine.kernel`, `config.error`, `commands.0.time_limit`. In tables, a
    /// description in words replaces it.
    pub what: String,
    /// The values of the fact in the first run and in the second. A text is copied unchanged, a time is written as `30
    /// s`, and any other value is written as JSON. The text is empty if the run lacks the fact.
    pub values: [String; 2],
}

/// The median of some values, with its interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct MedianEstimate {
    /// The number of values.
    pub n: u64,
    /// The median of the values.
    pub median: Option<f64>,
    /// The lower end of the 95 % interval of the median.
    pub low: Option<f64>,
    /// The upper end of the 95 % interval of the median.
    pub high: Option<f64>,
}

impl From<&PointSummary> for MedianEstimate {
    fn from(point: &PointSummary) -> MedianEstimate {
        MedianEstimate { n: point.n, median: point.median, low: point.median_low, high: point.median_high }
    }
}

impl MedianEstimate {
    /// Writes the estimate with its interval for people, in the given unit.
    pub(super) fn figure(&self, unit: Unit) -> Figure {
        match unit {
            Unit::One => Figure::new(self.median, self.low, self.high, &[1.0]),
            unit => Figure::of_unit(unit, self.median, self.low, self.high),
        }
    }
}

fn serialize_points<S: Serializer>(points: &[[PointSummary; 2]], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(points.iter().map(|both| {
        let PointSummary { experiment, arm, metric, unit, better, .. } = &both[0];
        json!({
            "experiment": experiment, "variant": arm.variant, "at": arm.point, "metric": metric, "unit": unit, "better": better,
            "estimates": both.each_ref().map(MedianEstimate::from), "ratio": ratio(both),
        })
    }))
}

fn serialize_claims<S: Serializer>(claims: &[[ClaimResult; 2]], serializer: S) -> Result<S::Ok, S::Error> {
    let side = |claim: &ClaimResult| {
        let ClaimResult { trials, ratio, ratio_low, ratio_high, rate, rate_low, rate_high, .. } = claim;
        json!({
            "answer": grid::answer(claim), "trials": trials,
            "ratio": ratio, "ratio_low": ratio_low, "ratio_high": ratio_high,
            "rate": rate, "rate_low": rate_low, "rate_high": rate_high,
            "figure": figure(claim),
        })
    };
    serializer.collect_seq(claims.iter().map(|both| {
        let ClaimResult { experiment, id, says, .. } = &both[0];
        json!({ "experiment": experiment, "id": id, "says": says, "sides": both.each_ref().map(side) })
    }))
}

/// Returns the second median divided by the first. It has no interval, because the trials of two runs are not paired.
fn ratio([first, second]: &[PointSummary; 2]) -> Option<f64> {
    let ratio = second.median.zip(first.median).map(|(second, first)| second / first);
    ratio.filter(|ratio| ratio.is_finite())
}

/// Returns the measured value of a claim with its interval: `8.7 % longer (5.5 to 11 %)`.
fn figure(claim: &ClaimResult) -> String {
    match ClaimFigure::new(claim).filter(|_| claim.asked.is_comparison()) {
        Some(figure) => joined(&figure.figure),
        None if claim.rate.is_none() => String::new(),
        None => share_figure(claim).to_string(),
    }
}

/// The largest number of names in a sentence about metrics or claims that only one run has. JSON has all of them.
const MOST_ALONE: usize = 2;

/// The warning that is printed below each comparison.
const NO_VERDICT: &str = "Trials are paired within a run, not between runs, so a difference between the medians may \
                          come from the machine. The last column is a description, not a verdict. For a verdict, \
                          measure both in one run: commands with ascertain compare, functions in one bench.";

impl RunComparison {
    fn opening(&self) -> Vec<String> {
        let run = |(run, number): (&ComparedRun, usize)| {
            let ComparedRun { id, started, state, .. } = run;
            let label = run.label.as_ref().map(|label| format!(", label {}", quoted(label)));
            let at = run.revision.as_ref().map(|at| format!(", revision {}", revision(Some(at))));
            format!(
                "Run {number}: {}{}{}, {} UTC, {state}: {}.",
                quoted(id),
                label.unwrap_or_default(),
                at.unwrap_or_default(),
                minute(started),
                quoted(&command_line(&run.command_line))
            )
        };
        self.runs.iter().zip(1..).map(run).collect()
    }

    fn differences(&self) -> Grid {
        let mut grid = Grid::new(&["Differs", "Run 1", "Run 2"]);
        for Difference { what, values: [first, second] } in &self.differences {
            let value = |value: &String| if value.is_empty() { "-".into() } else { Cell::Code(value.clone()) };
            grid.rows.push(vec![place_in_words(what).into(), value(first), value(second)]);
        }
        grid
    }

    fn points(&self) -> Grid {
        let numbers = ["Run 1", "Interval 1", "Run 2", "Interval 2", "2 / 1"];
        let mut grid = Grid::new(&[&["Variant", "Metric"][..], &numbers].concat())
            .kind(ColumnKind::Number, &numbers)
            .stacking(&["Metric", "Interval 1", "Interval 2"]);
        let several = self.points.iter().any(|both| both[0].experiment != self.points[0][0].experiment);
        for both in &self.points {
            let PointSummary { experiment, arm, metric, unit, .. } = &both[0];
            let label = arm_label(arm);
            let label = if several { format!("{experiment}: {label}") } else { label };
            let [first, second] = both.each_ref().map(|point| MedianEstimate::from(point).figure(*unit));
            let ratio = ratio(both).map_or_else(|| "-".into(), significant);
            let mut row = vec![Cell::Code(label), metric.as_str().into()];
            row.extend([first.value, first.range, second.value, second.range, ratio].map(Cell::from));
            grid.rows.push(row);
        }
        grid
    }

    fn claims(&self) -> Grid {
        let mut grid = Grid::new(&["Claim", "Run 1", "Verdict 1", "Run 2", "Verdict 2"])
            .kind(ColumnKind::Word, &["Verdict 1", "Verdict 2"]);
        for [first, second] in &self.claims {
            let says = if first.says.is_empty() { &first.id } else { &first.says };
            let mut row = vec![says.as_str().into()];
            row.extend([first, second].iter().flat_map(|claim| [figure(claim).into(), grid::answer(claim).into()]));
            grid.rows.push(row);
        }
        grid
    }

    /// Returns a sentence for each run about the metrics and claims that only this run has.
    fn unmatched(&self) -> Vec<String> {
        let sentence = |kind: &str, (names, run): (&Vec<String>, usize)| {
            let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
            (!names.is_empty()).then(|| format!("{kind} only in run {run}: {}.", listed(&names, MOST_ALONE)))
        };
        let points = self.unmatched_points.iter().zip(1..).filter_map(|names| sentence("Measured", names));
        points.chain(self.unmatched_claims.iter().zip(1..).filter_map(|names| sentence("Judged", names))).collect()
    }
}

impl Report for RunComparison {
    const SCHEMA: &'static str = "ascertain.comparison/1";

    fn elements(&self) -> Vec<Element> {
        let note = if self.points.is_empty() { "No metric was measured in both runs." } else { NO_VERDICT };
        vec![
            Element::Sentences(self.opening()),
            Element::Table(self.differences()),
            Element::Table(self.points()),
            Element::Sentences(vec![note.into()]),
            Element::Table(self.claims()),
            Element::Sentences(self.unmatched()),
        ]
    }

    /// Returns the comparison as CSV, with a line for each metric that both runs measured.
    fn csv(&self) -> String {
        let mut lines = String::from(
            "experiment,variant,at,metric,unit,n_1,median_1,median_low_1,median_high_1,n_2,median_2,median_low_2,\
             median_high_2,ratio\n",
        );
        for both in &self.points {
            let PointSummary { experiment, arm, metric, unit, .. } = &both[0];
            let (unit, ratio) = (unit.symbol(), ratio(both));
            let names: [&dyn Field; 5] = [experiment, &arm.variant, &arm.point, metric, &unit];
            let [first, second] = both.each_ref().map(fields);
            lines += &record(&[&names[..], &first, &second, &[&ratio]].concat());
        }
        lines
    }
}

fn fields(point: &PointSummary) -> [&dyn Field; 4] {
    [&point.n, &point.median, &point.median_low, &point.median_high]
}
