//! How a figure went from run to run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ascertain_engine::evidence::{self, Header};
use ascertain_engine::experiment::{Better, Level, Metric, Point};
use ascertain_engine::outcome::PointSummary;
use ascertain_engine::recorded::{self, Series};
use ascertain_engine::unit::Unit;
use ascertain_engine::values::{Bounds, Values};
use ascertain_report::history::comparison::Estimate;
use ascertain_report::history::trend::{SCHEMA, Trend, TrendLine, TrendPoint, VariantPair};
use ascertain_stats::quantile_ranks;

use crate::error::{Error, refused};
use crate::names::among;
use crate::runs::{self, Brief, Loaded};

/// Which figure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrendRequest {
    /// The experiment; runs of commands are `compare` and `slo`.
    pub experiment: String,
    /// The metric; by default the experiment's first.
    pub metric: Option<String>,
    /// Variants, or commands as they were given; by default those of the latest run.
    pub variants: Vec<String>,
    /// Only where these factors have these levels.
    pub at: Vec<(String, String)>,
    /// `A/B`: how many times better variant A is than B, as the median of the paired ratios within each run.
    pub ratio: Option<String>,
    /// So many runs that measured it, the latest.
    pub runs: usize,
}

/// How a figure went, from the runs below a folder: a metric's median, or the ratio of two variants within each run.
///
/// # Errors
/// When there are no such runs, or what is asked for is in none of them.
pub fn trend(below: &Path, asked: &TrendRequest) -> Result<Trend, Error> {
    let mut left_out = Vec::new();
    let measured = measured(asked, &runs::listed(below)?, below, &mut left_out)?;
    let metric = metric(asked, &measured)?;
    let versus = asked.ratio.as_ref().map(|ratio| versus(ratio, &asked.experiment, &measured)).transpose()?;
    check_names(asked, &measured)?;
    let (mut figures, mut faults) = (Vec::new(), Vec::new());
    for Measured { folder, header } in &measured {
        let of_run = match &versus {
            None => Loaded::read(folder).map(|run| medians(&run.outcome.with_keys(), &asked.experiment, &metric.name)),
            Some(versus) => ratios_of(folder, &asked.experiment, &metric, versus, &mut faults),
        };
        match of_run {
            Ok(of_run) => {
                let wanted = |figure: &ArmFigure| is_wanted(asked, figure);
                figures.push((described(folder, header), of_run.into_iter().filter(wanted).collect()));
            }
            Err(error) => left_out.push(format!("{}: {error}", runs::name(folder))),
        }
    }
    let mut notes = Vec::from_iter(said_of(&left_out));
    notes.extend(faults);
    let without = figures.iter().filter(|(_, figures): &&(_, Vec<ArmFigure>)| figures.is_empty()).count();
    if without > 0 && without < figures.len() {
        notes.push(format!("{without} of these {} runs have no such value; -n asks for more runs", figures.len()));
    }
    let lines = lines(figures, asked.variants.is_empty() && versus.is_none(), &mut notes);
    if lines.is_empty() {
        let what = if versus.is_some() { "no trial has both" } else { "none of them has a value" };
        let unread = said_of(&left_out).map_or_else(String::new, |said| format!(". {said}"));
        return refused(format!(
            "{what} of `{}` there, in {} runs of `{}`{unread}",
            metric.name,
            measured.len(),
            asked.experiment
        ));
    }
    let (unit, better) = if versus.is_some() { (Unit::One, Better::Higher) } else { (metric.unit, metric.better) };
    let (experiment, metric) = (asked.experiment.clone(), metric.name);
    Ok(Trend { schema: SCHEMA.into(), experiment, metric, unit, better, ratio: versus, lines, notes })
}

/// The ratios within a run of which no rows are missing; what is wrong with its files all the same goes to `faults`.
fn ratios_of(
    folder: &Path,
    experiment: &str,
    metric: &Metric,
    versus: &VariantPair,
    faults: &mut Vec<String>,
) -> Result<Vec<ArmFigure>, Error> {
    let run = recorded::read(folder)?;
    if run.has_lost_rows {
        return refused(format!("rows are missing: {}", run.faults.join("; ")));
    }
    faults.extend(run.faults.iter().map(|fault| format!("{}: {fault}", runs::name(folder))));
    let (figures, without) = ratios(&run.series, experiment, metric, versus);
    if without > 0 {
        let name = runs::name(folder);
        faults.push(format!("{name}: {without} trials have no ratio, since a value is zero or below"));
    }
    Ok(figures)
}

/// Why runs were left out, in one line, however many they are.
fn said_of(left_out: &[String]) -> Option<String> {
    match left_out {
        [] => None,
        [reason] => Some(format!("Left out: {reason}")),
        [reason, ..] => Some(format!("Left out: {} runs that can't be read, such as {reason}", left_out.len())),
    }
}

/// A run that measured the experiment.
struct Measured {
    folder: PathBuf,
    header: Header,
}

/// The latest runs of the experiment that have a variant in question, the oldest first, and why others were left out:
/// runs of other commands are runs of `compare` too. Where none has one, those that names are looked for in.
fn measured(
    asked: &TrendRequest,
    all: &[PathBuf],
    below: &Path,
    left_out: &mut Vec<String>,
) -> Result<Vec<Measured>, Error> {
    let mut known = BTreeSet::new();
    let (mut found, mut others) = (Vec::new(), Vec::new());
    let mut latest: Option<Vec<String>> = None;
    for folder in all.iter().rev() {
        if found.len() == asked.runs {
            break;
        }
        let brief = match Brief::read(folder) {
            Ok((brief, _)) => brief,
            Err(reason) => {
                left_out.push(reason);
                continue;
            }
        };
        if brief.experiments.iter().any(|experiment| experiment.id == asked.experiment) {
            match evidence::read_header(folder) {
                Ok(header) => {
                    let run = Measured { folder: folder.clone(), header };
                    let variants: Vec<&str> = run.variants(&asked.experiment).collect();
                    let latest = latest.get_or_insert_with(|| variants.iter().map(ToString::to_string).collect());
                    let is_in_question = has_any(asked, &variants, latest);
                    if is_in_question { found.push(run) } else { others.push(run) }
                }
                Err(error) => left_out.push(error.to_string()),
            }
        }
        known.extend(brief.experiments.into_iter().map(|experiment| experiment.id));
    }
    if found.is_empty() {
        found = others;
    }
    if found.is_empty() {
        let known = match known.is_empty() {
            true => String::new(),
            false => among(&asked.experiment, known.iter().map(String::as_str)),
        };
        let unread = said_of(left_out).map_or_else(String::new, |said| format!(". {said}"));
        return refused(format!("no run in {} measured `{}`{known}{unread}", below.display(), asked.experiment));
    }
    found.reverse();
    Ok(found)
}

/// Whether a run of these variants has one that is asked for, or both of the ratio; unless any is asked for, one of the
/// latest run.
fn has_any(asked: &TrendRequest, variants: &[&str], latest: &[String]) -> bool {
    match &asked.ratio {
        Some(ratio) => splits(ratio).any(|(a, b)| variants.contains(&a) && variants.contains(&b)),
        None => {
            let asked = if asked.variants.is_empty() { latest } else { &asked.variants };
            asked.iter().any(|name| variants.contains(&name.as_str()))
        }
    }
}

/// `A/B` in every way, as names may have slashes of their own.
fn splits(ratio: &str) -> impl Iterator<Item = (&str, &str)> {
    ratio.match_indices('/').map(|(place, _)| (ratio[..place].trim(), ratio[place + 1..].trim()))
}

impl Measured {
    /// The names of the experiment's variants when the run was made.
    fn variants(&self, experiment: &str) -> impl Iterator<Item = &str> {
        let spec = self.header.experiments.iter().find(move |spec| spec.id == experiment);
        spec.into_iter().flat_map(|spec| spec.variants.iter().map(|variant| variant.name.as_str()))
    }
}

/// The metric that is asked for, as the latest run has it.
fn metric(asked: &TrendRequest, measured: &[Measured]) -> Result<Metric, Error> {
    let latest = measured.last().map(|run| &run.header.experiments);
    let spec = latest.and_then(|experiments| experiments.iter().find(|spec| spec.id == asked.experiment));
    let metrics = spec.map_or(&[][..], |spec| &spec.metrics);
    let found = match &asked.metric {
        None => metrics.first(),
        Some(name) => metrics.iter().find(|metric| metric.name == *name),
    };
    let Some(found) = found else {
        let name = asked.metric.as_deref().unwrap_or_default();
        let names = metrics.iter().map(|metric| metric.name.as_str());
        return refused(format!("`{}` has no metric `{name}`{}", asked.experiment, among(name, names)));
    };
    Ok(found.clone())
}

/// The experiment's two variants of `A/B`.
fn versus(text: &str, experiment: &str, measured: &[Measured]) -> Result<VariantPair, Error> {
    let known: BTreeSet<&str> = measured.iter().flat_map(|run| run.variants(experiment)).collect();
    if let Some((candidate, baseline)) = splits(text).find(|(a, b)| known.contains(a) && known.contains(b)) {
        return Ok(VariantPair { candidate: candidate.into(), baseline: baseline.into() });
    }
    match splits(text).next() {
        None => refused(format!("--ratio {text}: write A/B, two variants")),
        Some((a, b)) => {
            let unknown = if known.contains(a) { b } else { a };
            refused(format!("--ratio {text}: there is no variant `{unknown}`{}", among(unknown, known.iter().copied())))
        }
    }
}

/// A variant or factor that none of the runs has is a mistake.
fn check_names(asked: &TrendRequest, measured: &[Measured]) -> Result<(), Error> {
    let variants: BTreeSet<&str> = measured.iter().flat_map(|run| run.variants(&asked.experiment)).collect();
    let specs = measured.iter().flat_map(|run| &run.header.experiments).filter(|spec| spec.id == asked.experiment);
    let factors: BTreeSet<&str> = specs.flat_map(|spec| spec.factors.iter().map(|f| f.name.as_str())).collect();
    let variants_asked = asked.variants.iter().map(|name| ("variant", name, &variants));
    let factors_asked = asked.at.iter().map(|(name, _)| ("factor", name, &factors));
    for (kind, name, known) in variants_asked.chain(factors_asked) {
        if !known.contains(name.as_str()) {
            return refused(format!(
                "`{}` has no {kind} `{name}`{}",
                asked.experiment,
                among(name, known.iter().copied())
            ));
        }
    }
    Ok(())
}

fn is_wanted(asked: &TrendRequest, figure: &ArmFigure) -> bool {
    let is_there = |at: &Point, (factor, level): &(String, String)| {
        at.get(factor).is_some_and(|found| found.to_string() == *level || *found == Level::parse(level))
    };
    (asked.variants.is_empty() || asked.variants.contains(&figure.variant))
        && asked.at.iter().all(|wanted| is_there(&figure.at, wanted))
}

/// A run's point of the trend, without its figure.
fn described(folder: &Path, header: &Header) -> TrendPoint {
    TrendPoint {
        run_id: runs::name(folder),
        started: header.started.clone(),
        machine: format!("{}, {}", header.machine.cpu_model, header.machine.kernel),
        estimate: Estimate::default(),
    }
}

/// An arm's figure in one run.
struct ArmFigure {
    variant: String,
    at: Point,
    estimate: Estimate,
}

/// The medians of a metric, as the run's outcome has them.
fn medians(points: &[PointSummary], experiment: &str, metric: &str) -> Vec<ArmFigure> {
    let of_metric = points.iter().filter(|p| p.experiment == experiment && p.metric == metric && p.n > 0);
    let figure = |point: &PointSummary| ArmFigure {
        variant: point.variant.clone(),
        at: point.at.clone(),
        estimate: Estimate::of(point),
    };
    of_metric.map(figure).collect()
}

/// How many times better the candidate is than the baseline in the same trial, at each point that both have; and how
/// many trials have no ratio, since a value is zero or below.
fn ratios(series: &[Series], experiment: &str, metric: &Metric, versus: &VariantPair) -> (Vec<ArmFigure>, usize) {
    let of = |variant: &str| {
        let found: Vec<&Series> = series
            .iter()
            .filter(|s| s.experiment == experiment && s.metric == metric.name && s.key.is_empty())
            .filter(|s| s.arm.variant == variant)
            .collect();
        found
    };
    let (baselines, mut without) = (of(&versus.baseline), 0);
    let mut pair = |candidate: &Series| {
        let baseline = baselines.iter().find(|baseline| baseline.arm.point == candidate.arm.point)?;
        let (ratios, without_ratio) = candidate.ratios_to(baseline, metric.reduce, metric.better);
        without += without_ratio;
        let (variant, at) = (versus.candidate.clone(), candidate.arm.point.clone());
        (!ratios.is_empty()).then(|| ArmFigure { variant, at, estimate: estimate(&ratios) })
    };
    let figures = of(&versus.candidate).into_iter().filter_map(&mut pair).collect();
    (figures, without)
}

/// The median with its interval at 95 %, as summaries have it.
fn estimate(values: &Values) -> Estimate {
    let (n, sorted) = (values.len() as u64, values.sorted());
    let (low, high) =
        quantile_ranks(n, 0.5, 0.025, 0.025).map_or((f64::NEG_INFINITY, f64::INFINITY), |ranks| sorted.between(ranks));
    let finite = |value: f64| Some(value).filter(|value| value.is_finite());
    Estimate { n, median: sorted.quantile(0.5).and_then(Bounds::estimate), low: finite(low), high: finite(high) }
}

/// The figures of several runs, the oldest first, by arm: those of the latest run that has any, or of all.
fn lines(runs: Vec<(TrendPoint, Vec<ArmFigure>)>, of_latest: bool, notes: &mut Vec<String>) -> Vec<TrendLine> {
    let mut lines: Vec<TrendLine> = Vec::new();
    for (_, figures) in runs.iter().rev() {
        let is_new = |figure: &&ArmFigure| !lines.iter().any(|line| is_of(figure, line));
        let new: Vec<&ArmFigure> = figures.iter().filter(is_new).collect();
        if of_latest && !lines.is_empty() {
            if !new.is_empty() {
                notes.push("Variants that the latest run did not measure are left out; --variant shows them".into());
                break;
            }
            continue;
        }
        let line =
            |figure: &ArmFigure| TrendLine { variant: figure.variant.clone(), at: figure.at.clone(), runs: Vec::new() };
        let new: Vec<TrendLine> = new.into_iter().map(line).collect();
        lines.extend(new);
    }
    for (run, figures) in runs {
        for figure in figures {
            if let Some(line) = lines.iter_mut().find(|line| is_of(&figure, line)) {
                line.runs.push(TrendPoint { estimate: figure.estimate, ..run.clone() });
            }
        }
    }
    lines
}

fn is_of(figure: &ArmFigure, line: &TrendLine) -> bool {
    figure.variant == line.variant && figure.at == line.at
}

#[cfg(test)]
mod tests {
    use super::*;
    use ascertain_engine::experiment::{Arm, Reduce};

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
        let Estimate { n, median, low, high } = estimate(&(0..1000).map(f64::from).rev().collect());
        assert_eq!((n, median, low, high), (1000, Some(499.5), Some(448.0), Some(551.0)));
        // One was stopped at 1.5: the middle one is that, or 2.
        let values = [Bounds::above(1.5), Bounds::exact(1.0), Bounds::exact(2.0)].into_iter().collect();
        let Estimate { n, median, low, high } = estimate(&values);
        assert_eq!((n, median, low, high), (3, Some(1.75), None, None));
        assert_eq!(estimate(&Values::default()), Estimate::default());
    }

    #[test]
    fn runs_line_up_by_arm() {
        let run = |id: &str| TrendPoint {
            run_id: id.into(),
            started: id.into(),
            machine: String::new(),
            estimate: Estimate::default(),
        };
        let figures = |variants: &[&str]| -> Vec<ArmFigure> {
            let figure = |variant: &&str| ArmFigure {
                variant: variant.to_string(),
                at: Point::default(),
                estimate: Estimate::default(),
            };
            variants.iter().map(figure).collect()
        };
        let runs =
            || vec![(run("1"), figures(&["a", "c"])), (run("2"), figures(&["b", "a"])), (run("3"), figures(&[]))];
        let shape = |lines: Vec<TrendLine>| -> Vec<(String, usize)> {
            lines.into_iter().map(|line| (line.variant, line.runs.len())).collect()
        };
        let mut notes = Vec::new();
        let latest = shape(lines(runs(), true, &mut notes));
        assert_eq!(latest, [("b".to_string(), 1), ("a".to_string(), 2)]);
        assert_eq!(notes.len(), 1);
        let all = shape(lines(runs(), false, &mut notes));
        assert_eq!(all, [("b".to_string(), 1), ("a".to_string(), 2), ("c".to_string(), 1)]);
    }
}
