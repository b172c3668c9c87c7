//! Two runs side by side.

use ascertain_engine::evidence::Revision;
use ascertain_engine::experiment::{Better, Point};
use ascertain_engine::outcome::{ClaimResult, PointSummary};
use ascertain_engine::unit::{Unit, significant};
use serde::Serialize;

use super::list::RunState;
use super::words::{minute, of_place, revision};
use crate::clause::{ClaimFigure, arm_label, joined};
use crate::csv::{Field, record};
use crate::figure::Figure;
use crate::grid::{self, Cell, ColumnKind, Grid};
use crate::terminal::Style;
use crate::text::{command_line, parted, plain, quoted};
use crate::{json, markdown};

/// The name and version of the schema of [`RunComparison`] in JSON.
pub const SCHEMA: &str = "ascertain.comparison/1";

/// Two runs side by side. Nothing is concluded of how they differ: trials are paired within a run, not between runs.
/// What is not known is `None`, in JSON `null`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunComparison {
    /// [`SCHEMA`].
    pub schema: String,
    /// The first run and the second.
    pub runs: [ComparedRun; 2],
    /// What differs in machine, version, options and commands.
    pub differences: Vec<Difference>,
    /// What both measured.
    pub points: Vec<ComparedPoint>,
    /// What only one of them measured: `experiment, variant (point), metric`, by run.
    pub unmatched_points: [Vec<String>; 2],
    /// What both judged.
    pub claims: Vec<ComparedClaim>,
    /// The claims that only one of them judged, or judged otherwise, by run.
    pub unmatched_claims: [Vec<String>; 2],
}

/// A run that is compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedRun {
    /// The name of its folder.
    pub id: String,
    /// When it started: RFC 3339, UTC.
    pub started: String,
    /// How it ended, if it did.
    pub state: RunState,
    /// What asked for it.
    pub command_line: Vec<String>,
    /// The label that the user gave it.
    pub label: Option<String>,
    /// The git revision of the folder in which it was started.
    pub revision: Option<Revision>,
}

/// A fact that differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Which: `machine.kernel`, `config.error`, `commands.0.time_limit`. Tables say it in words.
    pub what: String,
    /// What the first run and the second have there; text as it is, a time as `30 s`, anything else as JSON, nothing as
    /// nothing.
    pub values: [String; 2],
}

/// A metric of an arm in both runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedPoint {
    /// The experiment.
    pub experiment: String,
    /// The arm's variant.
    pub variant: String,
    /// The arm's point.
    pub at: Point,
    /// The metric.
    pub metric: String,
    /// Its unit.
    pub unit: Unit,
    /// Which way is better.
    pub better: Better,
    /// Its median in the first run and in the second.
    pub estimates: [Estimate; 2],
    /// The second median divided by the first: a description, with no interval, as nothing pairs the runs.
    pub ratio: Option<f64>,
}

/// A median and its interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Estimate {
    /// How many values.
    pub n: u64,
    /// Their median.
    pub median: Option<f64>,
    /// The lower end of its interval, at 95 %.
    pub low: Option<f64>,
    /// The upper end of its interval, at 95 %.
    pub high: Option<f64>,
}

impl Estimate {
    /// What a run says of an arm.
    pub fn of(point: &PointSummary) -> Estimate {
        Estimate { n: point.n, median: point.median, low: point.median_low, high: point.median_high }
    }

    fn fields(&self) -> [&dyn Field; 4] {
        [&self.n, &self.median, &self.low, &self.high]
    }

    /// As people read it, in a unit.
    pub(super) fn figure(&self, unit: Unit) -> Figure {
        match unit {
            Unit::One => Figure::new(self.median, self.low, self.high, &[1.0]),
            unit => Figure::of_unit(unit, self.median, self.low, self.high),
        }
    }
}

/// A claim in both runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedClaim {
    /// Its experiment.
    pub experiment: String,
    /// Its name.
    pub id: String,
    /// The claim as a sentence.
    pub says: String,
    /// What became of it in the first run and in the second.
    pub sides: [ClaimSide; 2],
}

/// What became of a claim in a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClaimSide {
    /// `holds`, `refuted`, `undecided`, …; of `compare`: `faster`, `slower`, `same`.
    pub answer: &'static str,
    /// The trials that were judged.
    pub trials: u64,
    /// The ratio, or the difference in the metric's unit.
    pub ratio: Option<f64>,
    /// The lower end of its interval: wrong with a chance of at most the claim's error, for an order half of it.
    pub ratio_low: Option<f64>,
    /// The upper end of its interval: wrong with a chance of at most the claim's error, for an order half of it.
    pub ratio_high: Option<f64>,
    /// The share of trials in which it was true.
    pub rate: Option<f64>,
    /// The lower end of its interval: wrong with a chance of at most the claim's error, for an order half of it.
    pub rate_low: Option<f64>,
    /// The upper end of its interval: wrong with a chance of at most the claim's error, for an order half of it.
    pub rate_high: Option<f64>,
    /// The figure as people read it: `6.1x (5.9 to 6.3)`.
    pub figure: String,
}

impl ClaimSide {
    /// What became of the claim.
    pub fn of(claim: &ClaimResult) -> ClaimSide {
        let rate = Figure::of_share(claim.rate, claim.rate_low, claim.rate_high, claim.rate_claimed);
        let figure =
            ClaimFigure::of(claim).filter(|_| claim.asked.is_comparison()).map(|figure| joined(&figure.figure));
        ClaimSide {
            answer: grid::answer(claim),
            trials: claim.trials,
            ratio: claim.ratio,
            ratio_low: claim.ratio_low,
            ratio_high: claim.ratio_high,
            rate: claim.rate,
            rate_low: claim.rate_low,
            rate_high: claim.rate_high,
            figure: figure.unwrap_or_else(|| if claim.rate.is_some() { rate.to_string() } else { String::new() }),
        }
    }
}

/// So many names of what only one run has are said; JSON has all.
const MOST_ALONE: usize = 2;

/// What every reader of such a table must know.
const NO_VERDICT: &str = "Trials are paired within a run, not between runs: what differs between the medians may be \
                          the machine's doing, so the last column describes and nothing is concluded of it. To know, \
                          measure both in one run: commands by ascertain compare, functions side by side in one bench.";

impl RunComparison {
    fn opening(&self) -> Vec<String> {
        let run = |(index, run): (usize, &ComparedRun)| {
            let label = run.label.as_ref().map(|label| format!(", label {}", quoted(label)));
            let at = run.revision.as_ref().map(|at| format!(", revision {}", revision(Some(at))));
            format!(
                "Run {}: {}{}{}, {} UTC, {}: {}.",
                index + 1,
                quoted(&run.id),
                label.unwrap_or_default(),
                at.unwrap_or_default(),
                minute(&run.started),
                run.state.word(),
                quoted(&command_line(&run.command_line))
            )
        };
        self.runs.iter().enumerate().map(run).collect()
    }

    fn differences(&self) -> Grid {
        let mut grid =
            Grid::new(&[("Differs", ColumnKind::Prose), ("Run 1", ColumnKind::Prose), ("Run 2", ColumnKind::Prose)]);
        for Difference { what, values: [first, second] } in &self.differences {
            let value = |value: &String| if value.is_empty() { "-".into() } else { Cell::Code(value.clone()) };
            grid.rows.push(vec![of_place(what).into(), value(first), value(second)]);
        }
        grid
    }

    fn points(&self) -> Grid {
        let mut grid = Grid::new(&[
            ("Variant", ColumnKind::Prose),
            ("Metric", ColumnKind::Prose),
            ("Run 1", ColumnKind::Number),
            ("Interval 1", ColumnKind::Number),
            ("Run 2", ColumnKind::Number),
            ("Interval 2", ColumnKind::Number),
            ("2 / 1", ColumnKind::Number),
        ])
        .stacking(&["Metric", "Interval 1", "Interval 2"]);
        let several = self.points.iter().any(|point| point.experiment != self.points[0].experiment);
        for point in &self.points {
            let label = arm_label(&point.variant, &point.at);
            let [first, second] = point.estimates.map(|estimate| estimate.figure(point.unit));
            grid.rows.push(vec![
                Cell::Code(if several { format!("{}: {label}", point.experiment) } else { label }),
                point.metric.as_str().into(),
                first.value.into(),
                first.range.into(),
                second.value.into(),
                second.range.into(),
                point.ratio.map_or_else(|| "-".into(), significant).into(),
            ]);
        }
        grid
    }

    fn claims(&self) -> Grid {
        let mut grid = Grid::new(&[
            ("Claim", ColumnKind::Prose),
            ("Run 1", ColumnKind::Prose),
            ("Verdict 1", ColumnKind::Word),
            ("Run 2", ColumnKind::Prose),
            ("Verdict 2", ColumnKind::Word),
        ]);
        for claim in &self.claims {
            let [first, second] = &claim.sides;
            grid.rows.push(vec![
                if claim.says.is_empty() { claim.id.as_str() } else { claim.says.as_str() }.into(),
                first.figure.as_str().into(),
                first.answer.into(),
                second.figure.as_str().into(),
                second.answer.into(),
            ]);
        }
        grid
    }

    /// What has no counterpart, a sentence a run, which names some of it.
    fn unmatched(&self) -> Vec<String> {
        let said = |kind: &str, names: &[String], run: usize| {
            let named: Vec<String> = names.iter().take(MOST_ALONE).map(|name| quoted(name)).collect();
            let more = match names.len().saturating_sub(MOST_ALONE) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            (!names.is_empty()).then(|| format!("{kind} in run {run} alone: {}{more}.", named.join(", ")))
        };
        let points = self.unmatched_points.iter().zip(1..).filter_map(|(names, run)| said("Measured", names, run));
        let claims = self.unmatched_claims.iter().zip(1..).filter_map(|(names, run)| said("Judged", names, run));
        points.chain(claims).collect()
    }

    /// All of it, with what stands between sentences of one kind.
    fn drawn(&self, gap: &str, said: &dyn Fn(&str) -> String, table: &dyn Fn(&Grid) -> String) -> String {
        let all =
            |sentences: Vec<String>| sentences.iter().map(|sentence| said(sentence)).collect::<Vec<_>>().join(gap);
        let note = if self.points.is_empty() { "Nothing was measured in both." } else { NO_VERDICT };
        let (differences, points, claims) = (table(&self.differences()), table(&self.points()), table(&self.claims()));
        parted([all(self.opening()), differences, points, said(note), claims, all(self.unmatched())])
    }
}

/// Both runs, what differs, what both measured and judged, and what only one did.
pub fn table(comparison: &RunComparison, style: &Style) -> String {
    comparison.drawn("", &|sentence| style.paragraph(&plain(sentence)), &|grid| style.table(grid))
}

/// The same.
pub fn markdown(comparison: &RunComparison) -> String {
    comparison.drawn("\n", &markdown::paragraph, &markdown::table)
}

/// The comparison as one object.
pub fn json(comparison: &RunComparison) -> String {
    json::object(comparison)
}

/// What both measured, a line each.
pub fn csv(comparison: &RunComparison) -> String {
    let mut lines = String::from("experiment,variant,at,metric,unit");
    for run in ["1", "2"] {
        for field in ["n", "median", "median_low", "median_high"] {
            lines += &format!(",{field}_{run}");
        }
    }
    lines += ",ratio\n";
    for point in &comparison.points {
        let ComparedPoint { experiment, variant, at, metric, unit, estimates: [first, second], ratio, .. } = point;
        let arm: [&dyn Field; 5] = [experiment, variant, at, metric, &unit.symbol()];
        lines += &record(&[&arm[..], &first.fields(), &second.fields(), &[ratio]].concat());
    }
    lines
}
