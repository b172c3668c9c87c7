//! `ascertain history trend`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::bail;
use ascertain_engine::evidence::{self, Header};
use ascertain_engine::experiment::{Better, Level, Metric, Point};
use ascertain_engine::recorded;
use ascertain_engine::unit::Unit;
use ascertain_report::history::trend::{self, SCHEMA, Trend, TrendPoint, Versus};

use super::args::Shared;
use super::brief::{self, Brief};
use super::figures::{ArmFigure, lines, medians, ratios};
use super::loaded::Loaded;
use crate::exit::Code;
use crate::names::among;
use crate::options::count;
use crate::{exports, output, runs};

/// How a figure went from run to run: a metric's median, or the ratio of two variants within each run
#[derive(clap::Args)]
pub struct Args {
    /// The experiment; runs of commands are `compare` and `slo`
    #[arg(value_name = "EXPERIMENT")]
    experiment: String,
    /// The metric [default: the experiment's first]
    #[arg(long, value_name = "METRIC")]
    metric: Option<String>,
    /// A variant, or a command as it was given; may be given again [default: those of the latest run]
    #[arg(long, value_name = "NAME")]
    variant: Vec<String>,
    /// Only where a factor has this level; may be given again
    #[arg(long, value_name = "FACTOR=LEVEL", value_parser = at)]
    at: Vec<(String, String)>,
    /// How many times better variant A is than B: the median of the paired ratios within each run, of all its trials; a
    /// verdict's ratio, in the run's report, is of those until it was decided
    #[arg(long, value_name = "A/B", conflicts_with = "variant")]
    ratio: Option<String>,
    /// So many runs that measured it, the latest
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20, value_parser = count)]
    runs: u64,
    /// Write the plot as an SVG; `-` is standard output
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    shared: Shared,
}

fn at(text: &str) -> Result<(String, String), String> {
    let (factor, level) = text.split_once('=').ok_or("write FACTOR=LEVEL")?;
    Ok((factor.trim().to_string(), level.trim().to_string()))
}

pub fn execute(args: &Args) -> anyhow::Result<Code> {
    let below = args.shared.folder();
    let all = match brief::all(&below) {
        Ok(all) => all,
        Err(code) => return Ok(code),
    };
    let trend = trend(args, &all, &below)?;
    if exports::write_svg(args.svg.as_deref(), || trend.plot())? {
        output::formatted(&trend, &args.shared.display, [trend::json, trend::csv, trend::markdown], trend::table)?;
    }
    Ok(Code::Done)
}

fn trend(args: &Args, all: &[PathBuf], below: &Path) -> anyhow::Result<Trend> {
    let mut left_out = Vec::new();
    let measured = measured(args, all, below, &mut left_out)?;
    let metric = metric(args, &measured)?;
    let versus = args.ratio.as_ref().map(|ratio| versus(ratio, &args.experiment, &measured)).transpose()?;
    check_names(args, &measured)?;
    let (mut figures, mut faults) = (Vec::new(), Vec::new());
    for Measured { folder, header } in &measured {
        let of_run = match &versus {
            None => Loaded::read(folder).map(|run| medians(&run.outcome.points, &args.experiment, &metric.name)),
            Some(versus) => ratios_of(folder, &args.experiment, &metric, versus, &mut faults),
        };
        match of_run {
            Ok(of_run) => {
                let wanted = |figure: &ArmFigure| is_wanted(args, figure);
                figures.push((described(folder, header), of_run.into_iter().filter(wanted).collect()));
            }
            Err(error) => left_out.push(format!("{}: {error:#}", runs::name(folder))),
        }
    }
    let mut notes = Vec::from_iter(said_of(&left_out));
    notes.extend(faults);
    let without = figures.iter().filter(|(_, figures): &&(_, Vec<ArmFigure>)| figures.is_empty()).count();
    if without > 0 && without < figures.len() {
        notes.push(format!("{without} of these {} runs have no such value; -n asks for more runs", figures.len()));
    }
    let lines = lines(figures, args.variant.is_empty() && versus.is_none(), &mut notes);
    if lines.is_empty() {
        let what = if versus.is_some() { "no trial has both" } else { "none of them has a value" };
        let unread = said_of(&left_out).map_or_else(String::new, |said| format!(". {said}"));
        bail!("{what} of `{}` there, in {} runs of `{}`{unread}", metric.name, measured.len(), args.experiment);
    }
    let (unit, better) = if versus.is_some() { (Unit::One, Better::Higher) } else { (metric.unit, metric.better) };
    let (experiment, metric) = (args.experiment.clone(), metric.name);
    Ok(Trend { schema: SCHEMA.into(), experiment, metric, unit, better, ratio: versus, lines, notes })
}

/// The ratios within a run of which no rows are missing; what is wrong with its files all the same goes to `faults`.
fn ratios_of(
    folder: &Path,
    experiment: &str,
    metric: &Metric,
    versus: &Versus,
    faults: &mut Vec<String>,
) -> anyhow::Result<Vec<ArmFigure>> {
    let run = recorded::read(folder)?;
    if run.has_lost_rows {
        bail!("rows are missing: {}", run.faults.join("; "));
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
fn measured(args: &Args, all: &[PathBuf], below: &Path, left_out: &mut Vec<String>) -> anyhow::Result<Vec<Measured>> {
    let mut known = BTreeSet::new();
    let (mut found, mut others) = (Vec::new(), Vec::new());
    let mut latest: Option<Vec<String>> = None;
    for folder in all.iter().rev() {
        if found.len() as u64 == args.runs {
            break;
        }
        let brief = match Brief::read(folder) {
            Ok((brief, _)) => brief,
            Err(reason) => {
                left_out.push(reason);
                continue;
            }
        };
        if brief.experiments.iter().any(|experiment| experiment.id == args.experiment) {
            match evidence::read_header(folder) {
                Ok(header) => {
                    let run = Measured { folder: folder.clone(), header };
                    let variants: Vec<&str> = run.variants(&args.experiment).collect();
                    let latest = latest.get_or_insert_with(|| variants.iter().map(ToString::to_string).collect());
                    let is_in_question = has_any(args, &variants, latest);
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
        let asked = &args.experiment;
        let known = match known.is_empty() {
            true => String::new(),
            false => among(asked, known.iter().map(String::as_str)),
        };
        let unread = said_of(left_out).map_or_else(String::new, |said| format!(". {said}"));
        bail!("no run in {} measured `{asked}`{known}{unread}", below.display());
    }
    found.reverse();
    Ok(found)
}

/// Whether a run of these variants has one that is asked for, or both of the ratio; unless any is asked for, one of the
/// latest run.
fn has_any(args: &Args, variants: &[&str], latest: &[String]) -> bool {
    match &args.ratio {
        Some(ratio) => splits(ratio).any(|(a, b)| variants.contains(&a) && variants.contains(&b)),
        None => {
            let asked = if args.variant.is_empty() { latest } else { &args.variant };
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
fn metric(args: &Args, measured: &[Measured]) -> anyhow::Result<Metric> {
    let latest = measured.last().map(|run| &run.header.experiments);
    let spec = latest.and_then(|experiments| experiments.iter().find(|spec| spec.id == args.experiment));
    let metrics = spec.map_or(&[][..], |spec| &spec.metrics);
    let found = match &args.metric {
        None => metrics.first(),
        Some(name) => metrics.iter().find(|metric| metric.name == *name),
    };
    let Some(found) = found else {
        let asked = args.metric.as_deref().unwrap_or_default();
        let names = metrics.iter().map(|metric| metric.name.as_str());
        bail!("`{}` has no metric `{asked}`{}", args.experiment, among(asked, names));
    };
    Ok(found.clone())
}

/// The experiment's two variants of `A/B`.
fn versus(text: &str, experiment: &str, measured: &[Measured]) -> anyhow::Result<Versus> {
    let known: BTreeSet<&str> = measured.iter().flat_map(|run| run.variants(experiment)).collect();
    if let Some((candidate, baseline)) = splits(text).find(|(a, b)| known.contains(a) && known.contains(b)) {
        return Ok(Versus { candidate: candidate.into(), baseline: baseline.into() });
    }
    match splits(text).next() {
        None => bail!("--ratio {text}: write A/B, two variants"),
        Some((a, b)) => {
            let unknown = if known.contains(a) { b } else { a };
            bail!("--ratio {text}: there is no variant `{unknown}`{}", among(unknown, known.iter().copied()))
        }
    }
}

/// A variant or factor that none of the runs has is a mistake.
fn check_names(args: &Args, measured: &[Measured]) -> anyhow::Result<()> {
    let variants: BTreeSet<&str> = measured.iter().flat_map(|run| run.variants(&args.experiment)).collect();
    let specs = measured.iter().flat_map(|run| &run.header.experiments).filter(|spec| spec.id == args.experiment);
    let factors: BTreeSet<&str> = specs.flat_map(|spec| spec.factors.iter().map(|f| f.name.as_str())).collect();
    let variants_asked = args.variant.iter().map(|name| ("variant", name, &variants));
    let factors_asked = args.at.iter().map(|(name, _)| ("factor", name, &factors));
    for (kind, name, known) in variants_asked.chain(factors_asked) {
        if !known.contains(name.as_str()) {
            bail!("`{}` has no {kind} `{name}`{}", args.experiment, among(name, known.iter().copied()));
        }
    }
    Ok(())
}

fn is_wanted(args: &Args, figure: &ArmFigure) -> bool {
    let is_there = |at: &Point, (factor, level): &(String, String)| {
        at.get(factor).is_some_and(|found| found.to_string() == *level || *found == Level::parse(level))
    };
    (args.variant.is_empty() || args.variant.contains(&figure.variant))
        && args.at.iter().all(|wanted| is_there(&figure.at, wanted))
}

/// A run's point of the trend, without its figure.
fn described(folder: &Path, header: &Header) -> TrendPoint {
    TrendPoint {
        run_id: runs::name(folder),
        started: header.started.clone(),
        machine: format!("{}, {}", header.machine.cpu_model, header.machine.kernel),
        estimate: trend::Estimate::default(),
    }
}
