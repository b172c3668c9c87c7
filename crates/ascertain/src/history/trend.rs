//! Shows how a metric changed from run to run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ascertain_engine::evidence;
use ascertain_engine::experiment::{Arm, Better, Level, Metric, Spec};
use ascertain_engine::outcome::PointSummary;
use ascertain_engine::recorded::{self, Series};
use ascertain_engine::unit::Unit;
use ascertain_engine::values::{Bounds, Values};
use ascertain_report::history::comparison::MedianEstimate;
use ascertain_report::history::trend::{RunTrend, TrendLine, TrendPoint, VariantPair};
use ascertain_stats::quantile_ranks;

use crate::error::{Error, refused};
use crate::names::among;
use crate::runs::{self, Brief, Loaded};

/// A request to show how a metric changed over the recorded runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrendRequest {
    /// Id of the experiment; `compare` or `slo` for runs that measured commands.
    pub experiment: String,
    /// Name of the metric; `None` for the experiment's first metric.
    pub metric: Option<String>,
    /// Names of the variants to show, or command lines as recorded. If this is empty, the variants of the latest run
    /// are shown.
    pub variants: Vec<String>,
    /// Pairs of a factor and a level. Only arms at these levels are shown.
    pub at: Vec<(String, String)>,
    /// Two variants A and B, in the form `A/B`. If given, the trend shows one ratio per run instead of medians. The
    /// ratio is the median factor by which A is better than B in the same trial.
    pub ratio: Option<String>,
    /// Maximum number of runs, counted from the latest.
    pub runs: usize,
}

/// Returns how a metric changed over the runs in the folder `below`: its median in each run, or the ratio of two
/// variants within each run.
///
/// # Errors
/// If the folder has no runs of the experiment, or if none of them has the requested values.
pub fn trend(below: &Path, asked: &TrendRequest) -> Result<RunTrend, Error> {
    let mut left_out = Vec::new();
    let measured = measured_runs(asked, &runs::listed(below)?, below, &mut left_out)?;
    let metric = metric(asked, &measured)?;
    let pair = asked.ratio.as_ref().map(|ratio| variant_pair(ratio, &measured)).transpose()?;
    check_names(asked, &measured)?;
    let (mut figures, mut faults) = (Vec::new(), Vec::new());
    for MeasuredRun { folder, point, .. } in &measured {
        let of_run = match &pair {
            None => medians(folder, &asked.experiment, &metric.name),
            Some(pair) => ratios(folder, &asked.experiment, &metric, pair, &mut faults),
        };
        match of_run {
            Ok(mut of_run) => {
                of_run.retain(|figure| is_wanted(asked, &figure.arm));
                figures.push((point.clone(), of_run));
            }
            Err(error) => left_out.push(format!("{}: {error}", runs::name(folder))),
        }
    }
    let mut notes: Vec<String> = left_out_sentence(&left_out).into_iter().chain(faults).collect();
    let without = figures.iter().filter(|(_, figures)| figures.is_empty()).count();
    if without > 0 && without < figures.len() {
        notes.push(without_value(without, figures.len()));
    }
    let lines = lines(&figures, asked.variants.is_empty() && pair.is_none(), &mut notes);
    if lines.is_empty() {
        let what = if pair.is_some() { "no trial has values of both variants" } else { "no requested arm has a value" };
        let noun = if measured.len() == 1 { "run" } else { "runs" };
        let runs = format!("{} {noun} of `{}`", measured.len(), asked.experiment);
        return refused(format!("{what} for the metric `{}`, in {runs}{}", metric.name, unread(&left_out)));
    }
    let (unit, better) = if pair.is_some() { (Unit::One, Better::Higher) } else { (metric.unit, metric.better) };
    Ok(RunTrend { experiment: asked.experiment.clone(), metric: metric.name, unit, better, ratio: pair, lines, notes })
}

/// Returns a sentence with the number of runs that were left out, and the reason for the first of them. Returns `None`
/// if no run was left out.
fn left_out_sentence(left_out: &[String]) -> Option<String> {
    match left_out {
        [] => None,
        [reason] => Some(format!("Left out: {reason}")),
        [reason, ..] => Some(format!("Left out: {} runs that can't be read, such as {reason}", left_out.len())),
    }
}

/// Returns the sentence of [`left_out_sentence`] in a form that can be appended to an error.
fn unread(left_out: &[String]) -> String {
    left_out_sentence(left_out).map_or_else(String::new, |sentence| format!(". {sentence}"))
}

/// A run in which the experiment was measured.
struct MeasuredRun {
    folder: PathBuf,
    /// The experiment, as recorded in the run.
    spec: Spec,
    /// The run as an entry of the trend. Its median is added later.
    point: TrendPoint,
}

impl MeasuredRun {
    fn variants(&self) -> impl Iterator<Item = &str> {
        self.spec.variants.iter().map(|variant| variant.name.as_str())
    }

    /// Reads a run; returns `None` if it did not measure the experiment. Adds the ids of all the run's experiments to
    /// `others`. If no run has measured the requested experiment, the error message lists these ids.
    fn read(folder: &Path, experiment: &str, others: &mut BTreeSet<String>) -> Result<Option<MeasuredRun>, String> {
        let (brief, _) = Brief::read(folder)?;
        let is_measured = brief.experiments.iter().any(|known| known.id == experiment);
        others.extend(brief.experiments.into_iter().map(|known| known.id));
        if !is_measured {
            return Ok(None);
        }
        let header = evidence::read_header(folder).map_err(|error| error.to_string())?;
        let point = TrendPoint {
            run_id: runs::name(folder),
            started: header.started,
            machine: format!("{}, {}", header.machine.cpu_model, header.machine.kernel),
            revision: header.revision,
            estimate: MedianEstimate::default(),
            baseline: None,
        };
        let spec = header.experiments.into_iter().find(|spec| spec.id == experiment);
        Ok(spec.map(|spec| MeasuredRun { folder: folder.into(), spec, point }))
    }
}

/// Returns the latest runs that measured a requested variant of the experiment, sorted from the oldest. If no run
/// measured one, returns all runs of the experiment, so that the error can list their variants. If a run cannot be
/// read, adds the reason to `left_out`.
fn measured_runs(
    asked: &TrendRequest,
    all: &[PathBuf],
    below: &Path,
    left_out: &mut Vec<String>,
) -> Result<Vec<MeasuredRun>, Error> {
    let (mut known, mut found, mut others) = (BTreeSet::new(), Vec::new(), Vec::new());
    let mut latest: Option<Vec<String>> = None;
    for folder in all.iter().rev() {
        if found.len() == asked.runs {
            break;
        }
        match MeasuredRun::read(folder, &asked.experiment, &mut known) {
            Ok(None) => {}
            Ok(Some(run)) => {
                let latest = latest.get_or_insert_with(|| run.variants().map(str::to_string).collect());
                if has_any(asked, &run, latest) { found.push(run) } else { others.push(run) }
            }
            Err(reason) => left_out.push(reason),
        }
    }
    if found.is_empty() {
        found = others;
    }
    if found.is_empty() {
        let known = match known.is_empty() {
            true => String::new(),
            false => among(&asked.experiment, known.iter().map(String::as_str)),
        };
        let (folder, experiment) = (below.display(), &asked.experiment);
        return refused(format!("no run in {folder} measured `{experiment}`{known}{}", unread(left_out)));
    }
    found.reverse();
    Ok(found)
}

/// Returns whether a run has at least one of the requested variants, or both variants of the ratio. If no variant is
/// requested, the run must have at least one variant of the latest run.
fn has_any(asked: &TrendRequest, run: &MeasuredRun, latest: &[String]) -> bool {
    let has = |name: &str| run.variants().any(|variant| variant == name);
    match &asked.ratio {
        Some(ratio) => splits(ratio).any(|(a, b)| has(a) && has(b)),
        None if asked.variants.is_empty() => latest.iter().any(|name| has(name)),
        None => asked.variants.iter().any(|name| has(name)),
    }
}

/// Splits `A/B` at each slash in turn, and returns both parts of each split. All splits are needed because names may
/// contain slashes.
fn splits(ratio: &str) -> impl Iterator<Item = (&str, &str)> {
    ratio.match_indices('/').map(|(place, _)| (ratio[..place].trim(), ratio[place + 1..].trim()))
}

/// Returns the requested metric, as recorded in the latest run.
fn metric(asked: &TrendRequest, measured: &[MeasuredRun]) -> Result<Metric, Error> {
    let metrics = measured.last().map_or(&[][..], |run| &run.spec.metrics);
    let is_it = |metric: &&Metric| asked.metric.as_ref().is_none_or(|name| metric.name == *name);
    match metrics.iter().find(is_it) {
        Some(metric) => Ok(metric.clone()),
        None => {
            let known = metrics.iter().map(|metric| metric.name.as_str());
            unknown(asked, "metric", asked.metric.as_deref().unwrap_or_default(), known)
        }
    }
}

fn unknown<'a, T>(
    asked: &TrendRequest,
    kind: &str,
    name: &str,
    known: impl Iterator<Item = &'a str>,
) -> Result<T, Error> {
    refused(format!("`{}` has no {kind} `{name}`{}", asked.experiment, among(name, known)))
}

/// Returns the two variants that `A/B` names.
fn variant_pair(ratio: &str, measured: &[MeasuredRun]) -> Result<VariantPair, Error> {
    let known: BTreeSet<&str> = measured.iter().flat_map(MeasuredRun::variants).collect();
    if let Some((candidate, baseline)) = splits(ratio).find(|(a, b)| known.contains(a) && known.contains(b)) {
        return Ok(VariantPair { candidate: candidate.into(), baseline: baseline.into() });
    }
    let Some((a, b)) = splits(ratio).next() else {
        return refused(format!("ratio `{ratio}`: write the names of two variants as A/B"));
    };
    let unknown = if known.contains(a) { b } else { a };
    refused(format!("ratio `{ratio}`: there is no variant `{unknown}`{}", among(unknown, known.iter().copied())))
}

/// Returns an error if any requested variant or factor occurs in no run.
fn check_names(asked: &TrendRequest, measured: &[MeasuredRun]) -> Result<(), Error> {
    let variants: BTreeSet<&str> = measured.iter().flat_map(MeasuredRun::variants).collect();
    let factors = measured.iter().flat_map(|run| run.spec.factors.iter().map(|factor| factor.name.as_str()));
    let factors: BTreeSet<&str> = factors.collect();
    let variants = asked.variants.iter().map(|name| ("variant", name, &variants));
    let mut names = variants.chain(asked.at.iter().map(|(name, _)| ("factor", name, &factors)));
    match names.find(|(_, name, known)| !known.contains(name.as_str())) {
        Some((kind, name, known)) => unknown(asked, kind, name, known.iter().copied()),
        None => Ok(()),
    }
}

fn is_wanted(asked: &TrendRequest, arm: &Arm) -> bool {
    let is_at = |(factor, level): &(String, String)| {
        arm.point.get(factor).is_some_and(|found| found.to_string() == *level || *found == Level::parse(level))
    };
    (asked.variants.is_empty() || asked.variants.contains(&arm.variant)) && asked.at.iter().all(is_at)
}

/// The figures of one arm in one run.
#[derive(Clone)]
struct ArmFigure {
    arm: Arm,
    /// The median of a metric, or the median ratio to another variant.
    estimate: MedianEstimate,
    /// The median of the other variant, if `estimate` is a ratio.
    baseline: Option<f64>,
}

/// The figures of all arms of one run.
type ArmFigures = Vec<ArmFigure>;

/// Returns the medians of a metric from a run's outcome.
fn medians(folder: &Path, experiment: &str, metric: &str) -> Result<ArmFigures, Error> {
    let points = Loaded::read(folder)?.outcome.with_keys();
    let of_metric = points.iter().filter(|p| p.experiment == experiment && p.metric == metric && p.n > 0);
    let figure = |point: &PointSummary| ArmFigure {
        arm: point.arm.clone(),
        estimate: MedianEstimate::from(point),
        baseline: None,
    };
    Ok(of_metric.map(figure).collect())
}

/// Returns the median ratio of two variants within one run, for each combination of levels at which both were measured.
/// Fails if rows of the run are missing. Adds other damage, and the number of trials without a ratio, to `faults`.
fn ratios(
    folder: &Path,
    experiment: &str,
    metric: &Metric,
    pair: &VariantPair,
    faults: &mut Vec<String>,
) -> Result<ArmFigures, Error> {
    let run = recorded::read(folder)?;
    if run.has_lost_rows {
        return refused(format!("rows are missing: {}", run.faults.join("; ")));
    }
    let name = runs::name(folder);
    faults.extend(run.faults.iter().map(|fault| format!("{name}: {fault}")));
    let is_of_metric = |s: &&Series| s.experiment == experiment && s.metric == metric.name && s.key.is_empty();
    let series = || run.series.iter().filter(is_of_metric);
    let (mut figures, mut without) = (Vec::new(), 0);
    for candidate in series().filter(|series| series.arm.variant == pair.candidate) {
        let baseline = Arm { variant: pair.baseline.clone(), point: candidate.arm.point.clone() };
        let Some(baseline) = series().find(|series| series.arm == baseline) else { continue };
        let (ratios, without_ratio) = candidate.ratios_to(baseline, metric.reduce, metric.better);
        without += without_ratio;
        if !ratios.is_empty() {
            let (_, values) = baseline.by_trial(metric.reduce);
            let baseline = estimate(&values).median;
            figures.push(ArmFigure { arm: candidate.arm.clone(), estimate: estimate(&ratios), baseline });
        }
    }
    if without > 0 {
        let trials = if without == 1 { "1 trial has".to_string() } else { format!("{without} trials have") };
        faults.push(format!("{name}: {trials} no ratio, because a value is zero or negative"));
    }
    Ok(figures)
}

/// Returns the median of the values and its 95 % confidence interval, computed in the same way as in the summary of a
/// run.
fn estimate(values: &Values) -> MedianEstimate {
    let (n, sorted) = (values.len() as u64, values.sorted());
    let (low, high) =
        quantile_ranks(n, 0.5, 0.025, 0.025).map_or((f64::NEG_INFINITY, f64::INFINITY), |ranks| sorted.between(ranks));
    let finite = |value: f64| Some(value).filter(|value| value.is_finite());
    MedianEstimate { n, median: sorted.quantile(0.5).and_then(Bounds::estimate), low: finite(low), high: finite(high) }
}

/// Returns one plotted line for each arm, from the values of the runs. `runs` is sorted from the oldest. If `of_latest`
/// is set, only plots the arms of the latest run that has values. If this leaves out an arm, adds a note to `notes`.
fn lines(runs: &[(TrendPoint, ArmFigures)], of_latest: bool, notes: &mut Vec<String>) -> Vec<TrendLine> {
    let (mut arms, mut latest): (Vec<&Arm>, usize) = (Vec::new(), 0);
    for (_, figures) in runs.iter().rev() {
        for ArmFigure { arm, .. } in figures {
            if !arms.contains(&arm) {
                arms.push(arm);
            }
        }
        latest = if latest == 0 { arms.len() } else { latest };
    }
    if of_latest && arms.len() > latest {
        notes
            .push("Variants that the latest run did not measure are left out; request them by name to see them".into());
        arms.truncate(latest);
    }
    let line = |arm: &Arm| {
        let point = |(run, figures): &(TrendPoint, ArmFigures)| {
            let figure = figures.iter().find(|figure| figure.arm == *arm)?;
            Some(TrendPoint { estimate: figure.estimate, baseline: figure.baseline, ..run.clone() })
        };
        TrendLine { arm: arm.clone(), runs: runs.iter().filter_map(point).collect() }
    };
    arms.into_iter().map(line).collect()
}

/// Returns a note that some runs have no value of the metric. `without` is their number, and `all` is the number of all
/// runs.
fn without_value(without: usize, all: usize) -> String {
    let have = if without == 1 { "has" } else { "have" };
    format!("{without} of these {all} runs {have} no value of the metric; request more runs to see more values")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ascertain_engine::experiment::{Point, Reduce};

    fn series(trials: &[u64], values: &[Bounds]) -> Series {
        Series {
            experiment: "e".into(),
            arm: Arm { variant: "a".into(), point: Point::default() },
            metric: "time".into(),
            unit: Unit::Nanosecond,
            key: String::new(),
            trials: trials.into(),
            offsets_ns: Vec::new(),
            values: values.iter().copied().collect(),
        }
    }

    #[test]
    fn one_run_has_and_two_runs_have_no_value() {
        assert!(without_value(1, 4).starts_with("1 of these 4 runs has no value"));
        assert!(without_value(2, 4).starts_with("2 of these 4 runs have no value"));
    }

    #[test]
    fn ratios_are_paired_by_trial() {
        let (of, stopped) = (Bounds::exact, Bounds::above(10.0));
        let candidate =
            series(&[0, 1, 2, 3, 4, 5, 6], &[of(2.0), of(4.0), stopped, stopped, of(0.0), Bounds::NONE, of(9.0)]);
        let baseline = series(&[1, 2, 3, 4, 5, 7], &[of(8.0), stopped, of(5.0), of(1.0), of(1.0), of(1.0)]);
        let lower: Values = [of(2.0), Bounds::above(0.0), Bounds { low: 0.0, high: 0.5 }].into_iter().collect();
        let ratios = |better| candidate.ratios_to(&baseline, Reduce::Value, better);
        assert_eq!(ratios(Better::Lower), (lower, 1));
        let higher: Values = [of(0.5), Bounds::above(0.0), Bounds::above(2.0)].into_iter().collect();
        assert_eq!(ratios(Better::Higher), (higher, 1));
    }

    #[test]
    fn medians_have_the_intervals_that_summaries_have() {
        let MedianEstimate { n, median, low, high } = estimate(&(0..1000).map(f64::from).rev().collect());
        assert_eq!((n, median, low, high), (1000, Some(499.5), Some(448.0), Some(551.0)));
        // One observation was stopped at 1.5, so the median is between 1.5 and 2.
        let values = [Bounds::above(1.5), Bounds::exact(1.0), Bounds::exact(2.0)].into_iter().collect();
        let MedianEstimate { n, median, low, high } = estimate(&values);
        assert_eq!((n, median, low, high), (3, Some(1.75), None, None));
        assert_eq!(estimate(&Values::default()), MedianEstimate::default());
    }

    #[test]
    fn runs_line_up_by_arm() {
        let run = |id: &str| TrendPoint {
            run_id: id.into(),
            started: id.into(),
            machine: String::new(),
            revision: None,
            estimate: MedianEstimate::default(),
            baseline: None,
        };
        let figures = |variants: &[&str]| -> ArmFigures {
            let arm = |variant: &&str| Arm { variant: variant.to_string(), point: Point::default() };
            let figure = |arm| ArmFigure { arm, estimate: MedianEstimate::default(), baseline: None };
            variants.iter().map(arm).map(figure).collect()
        };
        let runs =
            || vec![(run("1"), figures(&["a", "c"])), (run("2"), figures(&["b", "a"])), (run("3"), figures(&[]))];
        let shape = |lines: Vec<TrendLine>| -> Vec<(String, usize)> {
            lines.into_iter().map(|line| (line.arm.variant, line.runs.len())).collect()
        };
        let mut notes = Vec::new();
        let latest = shape(lines(&runs(), true, &mut notes));
        assert_eq!(latest, [("b".to_string(), 1), ("a".to_string(), 2)]);
        assert_eq!(notes.len(), 1);
        let all = shape(lines(&runs(), false, &mut notes));
        assert_eq!(all, [("b".to_string(), 1), ("a".to_string(), 2), ("c".to_string(), 1)]);
    }
}
