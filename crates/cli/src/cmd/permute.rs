//! `ascertain permute`: the exact test on data that exists.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use ascertain::Ending;
use ascertain::permute::{
    Alternative, Budget, Comparison, Decision, End, HeadedSample, Method, Null, Permute, Question, Sample, Statistic,
    permute,
};
use ascertain::runs;
use ascertain_engine::evidence;
use ascertain_engine::samples::{Column, RecordedSample, read_column, read_recorded};
use ascertain_engine::unit::{Unit, parse_quantity};
use ascertain_report::permutation;
use ascertain_report::progress::Line;
use ascertain_report::terminal::escape_controls;
use ascertain_sys::interrupt::{self, Stop};
use ascertain_sys::standard;

use crate::options::{Display, Word, count, duration, one_of, share};
use crate::{output, session};

const EXAMPLES: &str = "\
Examples:
  ascertain permute before.csv after.csv
      Test whether the means of two files of numbers differ
  ascertain permute --statistic p99 --column time before.csv after.csv
      Compare the 99th percentiles of a column";

/// Test whether samples that exist already differ by more than chance: `ascertain permute A.csv B.csv`
///
/// Deals the values out anew, again and again, and counts how often the samples then differ as much as they do: exact
/// for every distribution, if the values are independent. It stops as soon as that is decided.
///
/// A sample is a CSV file or one of a number a line, `-` for standard input, or with --metric an arm of a recorded run:
/// RUN or RUN:ARM, where RUN is a run's folder or its name below the folder of runs. Differences are the second
/// sample's less the first's.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The samples, two or more: files, `FILE:COLUMN` for a column of one, or with --metric arms of runs
    #[arg(value_name = "SAMPLE", required = true, num_args = 2..)]
    samples: Vec<String>,
    /// What is compared: mean, median, std, a percentile such as p99, a quantile such as q0.9
    #[arg(long, value_name = "NAME", default_value = "mean")]
    statistic: Statistic,
    /// How it is compared
    #[arg(long, value_parser = one_of(COMPARISONS), default_value = "difference")]
    by: Comparison,
    /// Which differences count against chance
    #[arg(long, value_parser = one_of(ALTERNATIVES), default_value = "two-sided")]
    alternative: Alternative,
    /// The null hypothesis is that the second sample is as the first plus this
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    shift: Option<String>,
    /// The null hypothesis is that the second sample is as the first times this
    #[arg(long, value_name = "S", default_value_t = 1.0, allow_hyphen_values = true)]
    scale: f64,
    /// The column, by its heading or its number from 1; once for all files, or once for each
    #[arg(long, value_name = "NAME|N", conflicts_with = "metric")]
    column: Vec<String>,
    /// Refuse a file of more values than that: each takes up to 17 bytes of memory
    #[arg(long, value_name = "N", default_value_t = 100_000_000, value_parser = count)]
    max_values: u64,
    /// Take the values of this metric from recorded runs
    #[arg(long, value_name = "METRIC")]
    metric: Option<String>,
    /// The chance that samples are called different that do not differ
    #[arg(long, value_name = "A", default_value = "0.05", value_parser = share, help_heading = "Judging")]
    alpha: f64,
    /// The sequential test
    #[arg(long, value_parser = one_of(METHODS), default_value = "betting", help_heading = "Judging")]
    method: MethodOf,
    /// With --method csm: the chance that the p-value is put on the wrong side of alpha
    #[arg(long, value_name = "E", default_value = "0.001", value_parser = share, help_heading = "Judging")]
    error: f64,
    /// Reshuffle no more often than that
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = count, help_heading = "Judging")]
    max_shuffles: u64,
    /// Reshuffle no longer than that: `30s`, `2min`
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Judging")]
    max_time: Option<Duration>,
    /// Seed of the reshuffles: the same seed gives the same reshuffles
    #[arg(long, value_name = "N", help_heading = "Judging")]
    seed: Option<u64>,
    /// Exit with 1 when the samples are called different, and with 3 when it is undecided
    #[arg(long, value_parser = one_of(FAIL_IF))]
    fail_if: Option<Decision>,
    #[command(flatten)]
    display: Display,
}

const COMPARISONS: &[Word<Comparison>] = &[
    (&["difference"], "The second's less the first's; of several, the greatest less the least", Comparison::Difference),
    (
        &["ratio"],
        "The second's divided by the first's; of several, the greatest by the least. For positive values",
        Comparison::Ratio,
    ),
];

const ALTERNATIVES: &[Word<Alternative>] = &[
    (&["two-sided"], "Both ways", Alternative::TwoSided),
    (&["greater"], "The second sample's is greater", Alternative::Greater),
    (&["less"], "The second sample's is less", Alternative::Less),
];

/// The sequential test with this alpha and this error.
type MethodOf = fn(f64, f64) -> Method;

const METHODS: &[Word<MethodOf>] = &[
    (&["betting"], "Decides at alpha, by betting: needs the fewest reshuffles", |alpha, _| Method::Betting { alpha }),
    (
        &["csm"],
        "Says on which side of alpha the p-value is, with its interval: the confidence sequence method",
        |alpha, error| Method::Csm { alpha, error },
    ),
];

const FAIL_IF: &[Word<Decision>] = &[(&["different"], "The samples differ by more than chance", Decision::Different)];

pub fn execute(args: &Args) -> anyhow::Result<Ending> {
    let (samples, unit) = match &args.metric {
        Some(metric) => recorded(&args.samples, metric)?,
        None => (from_files(args)?, Unit::One),
    };
    let shift = args.shift.as_deref().map(|shift| parse_quantity(shift, unit)).transpose().context("--shift")?;
    let question = Question {
        statistic: args.statistic,
        comparison: args.by,
        alternative: args.alternative,
        null: Null { shift: shift.unwrap_or(0.0), scale: args.scale },
    };
    let method = (args.method)(args.alpha, args.error);
    let budget = Budget { max_shuffles: args.max_shuffles, max_time: args.max_time };
    let asked = Permute { samples, unit, question, method, budget, seed: session::seed(args.seed) };
    interrupt::install().context("Ctrl-C can't be caught")?;
    let line = Line::new(!args.display.quiet);
    let permutation = permute(asked, &Stop::default(), &mut |progress| {
        let of_shuffles = progress.shuffles as f64 / args.max_shuffles as f64;
        let of_time = args.max_time.map_or(0.0, |max_time| progress.elapsed.as_secs_f64() / max_time.as_secs_f64());
        line.draw(of_shuffles.max(of_time), || {
            let seconds = progress.elapsed.as_secs();
            format!("{seconds} s · {} of {} reshuffles as far off", progress.exceedances, progress.shuffles)
        });
    })?;
    drop(line);
    let formats = [permutation::json, permutation::csv, permutation::markdown];
    output::formatted(&permutation, &args.display, formats, permutation::terminal)?;
    Ok(match (permutation.end, permutation.decision, args.fail_if) {
        (End::Interrupted, ..) => Ending::Interrupted,
        (_, decision, Some(failing)) if decision == failing => Ending::GateFailed,
        (_, Decision::Undecided, Some(_)) => Ending::Undecided,
        _ => Ending::Done,
    })
}

/// The file, and the column of it that is meant, by its heading or its number: `A.csv:wall`. A name that is a file's
/// own may have a colon.
fn with_column(sample: &str) -> (&str, Option<&str>) {
    match sample.rsplit_once(':') {
        Some((file, column)) if !Path::new(sample).exists() && (file == "-" || Path::new(file).is_file()) => {
            (file, Some(column))
        }
        _ => (sample, None),
    }
}

/// A column of each file, and its heading where it has one.
fn from_files(args: &Args) -> anyhow::Result<Vec<HeadedSample>> {
    let (samples, columns) = (&args.samples, &args.column);
    let files: Vec<(&str, Option<&str>)> = samples.iter().map(|sample| with_column(sample)).collect();
    if let (false, Some((file, Some(column)))) = (columns.is_empty(), files.iter().find(|(_, own)| own.is_some())) {
        bail!("`{file}:{column}` names its column, and so does --column: leave one of them out");
    }
    if columns.len() > 1 && columns.len() != files.len() {
        bail!(
            "--column is given {} times for {} files: give it once for all, or once for each",
            columns.len(),
            files.len()
        );
    }
    if files.iter().filter(|(file, _)| *file == "-").count() > 1 {
        bail!("standard input, `-`, can be read only once");
    }
    let distinct = files.iter().map(|(file, _)| file).collect::<HashSet<_>>().len() == files.len();
    let most = usize::try_from(args.max_values).unwrap_or(usize::MAX);
    let read = |(index, &(file, own)): (usize, &(&str, Option<&str>))| {
        let column = own.or(columns.get(index).or(columns.first()).map(String::as_str));
        let Column { heading, values } = match file {
            "-" if standard::input_was_closed() => bail!("standard input is closed"),
            "-" => read_column(io::stdin().lock(), "standard input", column, most)?,
            file => read_column(File::open(file).map_err(|error| not_a_file(file, &error))?, file, column, most)?,
        };
        let name = match (distinct, column) {
            (false, Some(column)) => format!("{file}:{column}"),
            _ => file.to_string(),
        };
        // One that was asked for by its name surprises nobody; a number that is misspelt may be taken for one.
        if let Some(heading) = heading.as_deref().filter(|heading| column != Some(heading) && !args.display.quiet) {
            let [file, heading] = [file, heading].map(escape_controls);
            output::note(&format!("note: {file}: the first line, `{heading}`, is taken as a heading, not as a value"));
        }
        Ok((Sample { name, values }, heading))
    };
    files.iter().enumerate().map(read).collect()
}

/// What can't be opened may be meant as a run.
fn not_a_file(file: &str, error: &io::Error) -> anyhow::Error {
    let run = file.split(':').next().unwrap_or(file);
    let is_run = runs::find(Some(Path::new(run)), &evidence::runs_folder()).is_ok();
    let file = escape_controls(file);
    match is_run {
        true => anyhow!("`{file}` is a recorded run: name the metric to compare, such as --metric wall"),
        false => anyhow!("`{file}` can't be opened: {error}"),
    }
}

/// The metric of an arm of each run, and its unit.
fn recorded(addresses: &[String], metric: &str) -> anyhow::Result<(Vec<HeadedSample>, Unit)> {
    let read = |address: &String| {
        // A folder may have a colon in its name.
        let (run, arm) = match address.split_once(':') {
            Some((run, arm)) if !Path::new(address).is_dir() => (run, Some(arm)),
            _ => (address.as_str(), None),
        };
        let folder = runs::find(Some(Path::new(run)), &evidence::runs_folder())?;
        Ok(read_recorded(&folder, arm, metric)?)
    };
    let read: Vec<RecordedSample> = addresses.iter().map(read).collect::<anyhow::Result<_>>()?;
    let unit = read[0].unit;
    if let Some(other) = read.iter().find(|sample| sample.unit != unit) {
        bail!("`{metric}` is in {unit} in run {} and in {} in run {}", read[0].run_id, other.unit, other.run_id);
    }
    let mut faults: Vec<String> = Vec::new();
    for RecordedSample { run_id, faults: of_run, .. } in &read {
        faults.extend(of_run.iter().map(|fault| format!("note: {run_id}: {fault}")));
    }
    faults.dedup();
    faults.iter().for_each(|fault| output::note(fault));
    let runs: HashSet<&str> = read.iter().map(|sample| sample.run_id.as_str()).collect();
    if runs.len() > 1 {
        output::note(
            "note: the state of the machine differs from run to run, and successive trials of a run are not \
             independent, which this test assumes: what it calls different may be that alone; measure both in one \
             run, as by `ascertain compare`",
        );
    }
    if runs.len() < read.len() {
        output::note(
            "note: arms of one run were measured in turn, trial by trial, so that what disturbed the machine \
             disturbed both; the run's own verdict knows that, and is the better one",
        );
    }
    let is_one_run = runs.len() == 1;
    let samples = read.into_iter().map(|RecordedSample { run_id, arm, values, .. }| {
        let name = if is_one_run { arm.to_string() } else { format!("{run_id}:{arm}") };
        (Sample { name, values }, None)
    });
    Ok((samples.collect(), unit))
}
