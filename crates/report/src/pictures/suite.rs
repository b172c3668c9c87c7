//! Forest plots of suites: the ratio of each workload and the geometric means, with their intervals.

use ascertain_engine::outcome::Decision;
use ascertain_engine::suite::{Ends, Estimate, Suite, SuiteComparison, SuiteMean, WorkloadRatio};
use ascertain_engine::unit::Unit;

use super::labelled::labelled;
use super::measured::numbered;
use super::{Picture, PictureKind, Table};
use crate::plot::{Axis, Interval, Layer, Plot, Scale, Which};
use crate::suite::{conditions, disagreeing, figure, headline, trend};
use crate::text::{listed, plain};

const WORKLOAD: usize = 0;
const AGAINST: usize = 1;
const MEAN: usize = 2;
const CONTROL: usize = 3;
/// The names of the series.
const SERIES: [&str; 4] = ["workload", "workload against the trend", "geometric mean", "negative control"];

/// Draws a suite: all runtimes with their means if there are several comparisons, and the workloads of each comparison.
pub fn forests(suite: &Suite, id: &str) -> Vec<Picture> {
    let overview = (suite.comparisons.len() > 1).then(|| overview(suite, format!("{id}-means"))).flatten();
    let forests = suite
        .comparisons
        .iter()
        .enumerate()
        .filter_map(|(index, comparison)| forest(suite, comparison, numbered(format!("{id}-forest"), index)));
    overview.into_iter().chain(forests).collect()
}

/// The rows of a forest plot, in the order from top to bottom.
#[derive(Default)]
struct Rows {
    names: Vec<String>,
    intervals: [Vec<Interval>; SERIES.len()],
    table: Vec<Vec<String>>,
}

impl Rows {
    fn add(&mut self, series: usize, name: String, ratio: Estimate, ends: Option<Ends>, decision: Option<Decision>) {
        let y = self.names.len() as f64;
        self.intervals[series].push(interval(y, ratio, ends));
        let verdict = match decision {
            Some(Decision::Faster) => "faster",
            Some(Decision::Slower) => "slower",
            Some(_) => "not decided",
            None => "",
        };
        self.table.push(vec![name.clone(), figure(ratio, None), figure(ratio, ends), verdict.into()]);
        self.names.push(name);
    }

    fn gap(&mut self) {
        self.names.push(String::new());
    }
}

/// Returns an interval for the plot. An unknown end is infinite. Without an interval, only the estimate is drawn.
fn interval(y: f64, ratio: Estimate, ends: Option<Ends>) -> Interval {
    let value = ratio.value();
    let (low, high) = match (ends, value) {
        (Some(ends), _) => (ends.low.unwrap_or(f64::NEG_INFINITY), ends.high.unwrap_or(f64::INFINITY)),
        (None, Some(value)) => (value, value),
        (None, None) => (ratio.low.unwrap_or(f64::NEG_INFINITY), ratio.high.unwrap_or(f64::INFINITY)),
    };
    Interval { y, value: value.unwrap_or(f64::NAN), low, high, label: String::new() }
}

fn forest(suite: &Suite, comparison: &SuiteComparison, id: String) -> Option<Picture> {
    let mean = comparison.mean?;
    let against = disagreeing(comparison);
    let is_against = |workload: &WorkloadRatio| against.iter().any(|other| other.workload == workload.workload);
    let mut workloads: Vec<&WorkloadRatio> = comparison.workloads.iter().collect();
    let size =
        |workload: &WorkloadRatio| workload.ratio.value().or(workload.ratio.low).or(workload.ratio.high).unwrap_or(1.0);
    workloads.sort_by(|one, other| size(other).total_cmp(&size(one)));
    let mut rows = Rows::default();
    for workload in workloads {
        let series = if is_against(workload) { AGAINST } else { WORKLOAD };
        rows.add(series, workload.workload.clone(), workload.ratio, workload.interval, workload.decision);
    }
    rows.gap();
    add_means(&mut rows, suite, comparison, &mean);
    if let Some(control) = &comparison.control {
        rows.gap();
        rows.add(CONTROL, "negative control".into(), control.ratio, control.interval, control.decision);
    }
    let title = plain(&format!("{}{}", headline(comparison), conditions(suite))).replace('`', "");
    let label = format!("times as fast as {} (right of 1: {} is faster)", comparison.baseline, comparison.candidate);
    Some(picture(id, title, &label, rows, &suite.experiment))
}

fn add_means(rows: &mut Rows, suite: &Suite, comparison: &SuiteComparison, mean: &SuiteMean) {
    rows.add(MEAN, "mean: this suite, these builds".into(), mean.ratio, mean.this_suite, mean.decision);
    if let Some(ends) = mean.like_these {
        rows.add(MEAN, "mean: workloads like these".into(), mean.ratio, Some(ends), None);
    }
    let is_of = |name: &str| name == comparison.candidate;
    let group = suite.builds.iter().find(|group| group.builds.iter().any(|build| is_of(&build.name)));
    if let Some((ratio, ends)) = group.and_then(|group| Some((group.ratio?, group.like_these?))) {
        let ratio = Estimate { low: Some(ratio), high: Some(ratio) };
        rows.add(MEAN, "mean: builds like these".into(), ratio, Some(ends), None);
    }
}

fn picture(id: String, title: String, label: &str, rows: Rows, experiment: &str) -> Picture {
    let Rows { names, intervals, table } = rows;
    // Only series with rows are in the legend.
    let used: Vec<usize> = (0..SERIES.len()).filter(|series| !intervals[*series].is_empty()).collect();
    let layers = intervals.into_iter().enumerate().filter_map(|(series, rows)| {
        let place = used.iter().position(|one| *one == series)?;
        Some(Layer::Intervals { series: Some(place), rows })
    });
    let rule = Layer::Rule { on: Which::X, at: 1.0, label: "same speed".into() };
    let said: Vec<String> = table.iter().map(|row| format!("{} {}", row[0], row[2])).collect();
    let plot = Plot {
        id,
        alt: format!("{title}, in the experiment {experiment}. {}.", said.join("; ")),
        title,
        x: Axis::new(label, Scale::Log, Unit::One),
        y: Axis::new("", Scale::Names(names), Unit::One),
        series: used.iter().map(|series| SERIES[*series].to_string()).collect(),
        layers: layers.chain([rule]).collect(),
    };
    let mut numbers = Table::new(&["", "Times as fast", "95 % interval", "Verdict"]);
    numbers.rows = table;
    Picture { kind: PictureKind::Forest, plot: labelled(plot, Unit::One), table: numbers }
}

/// Draws the means of all runtimes, each with its intervals for this suite and for workloads like these.
fn overview(suite: &Suite, id: String) -> Option<Picture> {
    let baseline = &suite.comparisons.first()?.baseline;
    let known = suite.comparisons.iter().filter_map(|of| Some((of, of.mean?)));
    let mut known: Vec<(&SuiteComparison, SuiteMean)> = known.collect();
    known.sort_by(|one, other| rank(&other.1).total_cmp(&rank(&one.1)));
    known.first()?;
    let mut names = Vec::new();
    let mut rows: [Vec<Interval>; 2] = Default::default();
    let mut table = Table::new(&["", "Times as fast", "This suite, these builds", "Workloads like these"]);
    let has_like = known.iter().any(|(_, mean)| mean.like_these.is_some());
    for (comparison, mean) in &known {
        let y = names.len() as f64;
        rows[0].push(interval(y, mean.ratio, mean.this_suite));
        rows[1].extend(mean.like_these.map(|ends| interval(y + 1.0, mean.ratio, Some(ends))));
        let ends = [mean.this_suite, mean.like_these].map(|ends| figure(mean.ratio, ends));
        table.rows.push([comparison.candidate.clone(), figure(mean.ratio, None)].into_iter().chain(ends).collect());
        names.push(comparison.candidate.clone());
        names.extend(has_like.then(|| "other workloads".to_string()));
    }
    let title = format!("{}{}", plain(&overview_title(&known, baseline)), conditions(suite));
    let said: Vec<String> = table.rows.iter().map(|row| format!("{} {}", row[0], row[2])).collect();
    let count = if has_like { 2 } else { 1 };
    let layers = rows.into_iter().take(count).enumerate();
    let rule = Layer::Rule { on: Which::X, at: 1.0, label: baseline.clone() };
    let plot = Plot {
        id,
        alt: format!("{title}, in the experiment {}. {}.", suite.experiment, said.join("; ")),
        title,
        x: Axis::new(&format!("times as fast as {baseline}, geometric mean"), Scale::Log, Unit::One),
        y: Axis::new("", Scale::Names(names), Unit::One),
        series: ["this suite, these builds", "workloads like these"]
            .into_iter()
            .take(count)
            .map(String::from)
            .collect(),
        layers: layers.map(|(series, rows)| Layer::Intervals { series: Some(series), rows }).chain([rule]).collect(),
    };
    Some(Picture { kind: PictureKind::Forest, plot: labelled(plot, Unit::One), table })
}

/// The largest number of runtimes that a title names.
const MOST_NAMES: usize = 3;

/// Returns the title for several runtimes, of which the first one has the highest mean. A runtime is the fastest only
/// if the verdicts and the intervals show it.
fn overview_title(known: &[(&SuiteComparison, SuiteMean)], baseline: &str) -> String {
    let of_trend = |decision: Decision| known.iter().filter(move |(of, _)| trend(of) == Some(decision));
    let end = |end: fn(Ends) -> Option<f64>, mean: &SuiteMean| mean.this_suite.and_then(end);
    // The lower end must be above the upper end of each other runtime. An end without a bound is never passed.
    let is_above = |best: &SuiteMean, other: &SuiteMean| {
        let (low, high) = (end(|ends| ends.low, best), end(|ends| ends.high, other));
        low.zip(high).is_some_and(|(low, high)| low > high)
    };
    let named = |(of, mean): &(&SuiteComparison, SuiteMean)| format!("{} ({})", of.candidate, figure(mean.ratio, None));
    let faster: Vec<String> = of_trend(Decision::Faster).map(named).collect();
    let (best, best_mean) = &known[0];
    let is_fastest = trend(best) == Some(Decision::Faster)
        && best_mean.ratio.value().is_some()
        && known[1..].iter().all(|(_, other)| is_above(best_mean, other));
    let title = match faster.as_slice() {
        _ if is_fastest => {
            format!("{} is the fastest: {} times as fast as {baseline}", best.candidate, figure(best_mean.ratio, None))
        }
        [] if of_trend(Decision::Slower).count() == known.len() => {
            let all: Vec<String> = known.iter().map(named).collect();
            format!("{baseline} is the fastest; times as fast: {}", listed(&all, MOST_NAMES))
        }
        [] => format!("No runtime is shown to be faster than {baseline}"),
        names => {
            let (count, all, are) = (names.len(), known.len(), if names.len() == 1 { "is" } else { "are" });
            format!("{count} of {all} runtimes {are} faster than {baseline}: {}", listed(names, MOST_NAMES))
        }
    };
    let same: Vec<&str> =
        known.iter().filter(|(of, _)| of.is_same_build).map(|(of, _)| of.candidate.as_str()).collect();
    match same.as_slice() {
        [] => title,
        [_] => format!("{title}; {} is the same build as {baseline}", same[0]),
        names => format!("{title}; {} are the same build as {baseline}", listed(names, MOST_NAMES)),
    }
}

/// Draws a suite for a terminal, which has no room for all pictures. With several comparisons, these are the means of
/// all runtimes, and the workloads of the runtime with the highest mean.
pub fn forests_in_short(suite: &Suite) -> Vec<Picture> {
    let id = &suite.experiment;
    let overview = (suite.comparisons.len() > 1).then(|| overview(suite, format!("{id}-means"))).flatten();
    let means = suite.comparisons.iter().filter_map(|of| Some((of, rank(&of.mean?))));
    let best = means.max_by(|one, other| one.1.total_cmp(&other.1));
    let forest = best.and_then(|(of, _)| forest(suite, of, format!("{id}-forest")));
    overview.into_iter().chain(forest).collect()
}

/// Returns the number by which means are ranked. A mean of which only an upper bound is known is the last.
fn rank(mean: &SuiteMean) -> f64 {
    mean.ratio.value().or(mean.ratio.low).unwrap_or(f64::NEG_INFINITY)
}
