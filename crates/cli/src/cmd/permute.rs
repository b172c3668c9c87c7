//! The subcommand `permute`: an exact test on existing data.

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
use ascertain_report::progress::Line;
use ascertain_report::terminal::escape_controls;
use ascertain_sys::interrupt::{self, Stop};
use ascertain_sys::standard;

use crate::options::{Display, Word, count, duration, one_of, share};
use crate::output;

const EXAMPLES: &str = "\
Examples:
  ascertain permute before.csv after.csv
      Test whether the means of two files of numbers differ
  ascertain permute --statistic p99 --column time before.csv after.csv
      Compare the 99th percentiles of a column";

/// Test whether two samples differ by more than chance
///
/// Reshuffles the values among the samples many times, and counts how often the reshuffled samples differ at least as
/// much as the real ones. The test is exact for every distribution if the values are independent. It stops as soon as
/// the answer is decided.
///
/// A sample is a CSV file, a file with one number per line, or `-` for standard input. With --metric, a sample is an
/// arm of a recorded run: RUN or RUN:ARM, where RUN is a folder or a name in the folder of runs. A difference is the
/// second sample's value minus the first's.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Two or more samples: files, `FILE:COLUMN` for a column of a file or, with --metric, arms of runs
    #[arg(value_name = "SAMPLE", required = true, num_args = 2..)]
    samples: Vec<String>,
    /// Statistic to compare: mean, median, std, a percentile such as p99, or a quantile such as q0.9
    #[arg(long, value_name = "NAME", default_value = "mean")]
    statistic: Statistic,
    /// Way to compare the statistics of the samples
    #[arg(long, value_parser = one_of(COMPARISONS), default_value = "difference")]
    by: Comparison,
    /// Direction of the difference to test for
    #[arg(long, value_parser = one_of(ALTERNATIVES), default_value = "two-sided")]
    alternative: Alternative,
    /// Difference under the null hypothesis: the second sample is distributed like the first plus this value [default:
    /// 0]
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    shift: Option<String>,
    /// Factor under the null hypothesis: the second sample is distributed like the first times this value
    #[arg(long, value_name = "S", default_value_t = 1.0, allow_hyphen_values = true)]
    scale: f64,
    /// Column to read, by its heading or its number from 1 (give this option once for all files, or once for each)
    #[arg(long, value_name = "NAME|N", conflicts_with = "metric")]
    column: Vec<String>,
    /// Maximum number of values in a file; a larger file is an error, because each value takes up to 17 bytes of memory
    #[arg(long, value_name = "N", default_value_t = 100_000_000, value_parser = count)]
    max_values: u64,
    /// Metric to read from recorded runs
    #[arg(long, value_name = "METRIC")]
    metric: Option<String>,
    /// Highest chance that samples are called different although they are not
    #[arg(long, value_name = "A", default_value = "0.05", value_parser = share, help_heading = "Judging")]
    alpha: f64,
    /// Sequential test that decides
    #[arg(long, value_parser = one_of(METHODS), default_value = "betting", help_heading = "Judging")]
    method: MethodOf,
    /// Highest chance that --method csm puts the p-value on the wrong side of --alpha
    #[arg(long, value_name = "E", default_value = "0.001", value_parser = share, help_heading = "Judging")]
    error: f64,
    /// Maximum number of reshuffles
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = count, help_heading = "Judging")]
    max_shuffles: u64,
    /// Time limit for reshuffling, such as `30s` or `2min`
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Judging")]
    max_time: Option<Duration>,
    /// Seed of the reshuffles: the same seed gives the same reshuffles
    #[arg(long, value_name = "N", help_heading = "Judging")]
    seed: Option<u64>,
    /// Exit with 1 if the samples are called different, and with 3 if the answer is undecided
    #[arg(long, value_parser = one_of(FAIL_IF))]
    fail_if: Option<Decision>,
    #[command(flatten)]
    display: Display,
}

const COMPARISONS: &[Word<Comparison>] = &[
    (&["difference"], "Second minus first; for three or more samples, greatest minus least", Comparison::Difference),
    (
        &["ratio"],
        "Second divided by first; for three or more samples, greatest divided by least (for positive values)",
        Comparison::Ratio,
    ),
];

const ALTERNATIVES: &[Word<Alternative>] = &[
    (&["two-sided"], "Difference in either direction", Alternative::TwoSided),
    (&["greater"], "The second sample's statistic is greater", Alternative::Greater),
    (&["less"], "The second sample's statistic is less", Alternative::Less),
];

/// A function that makes the sequential test from the values of `--alpha` and `--error`. `--alpha` is the highest
/// chance of a false difference. `--error` is the highest chance that the p-value is placed on the wrong side of
/// `--alpha`.
type MethodOf = fn(f64, f64) -> Method;

const METHODS: &[Word<MethodOf>] = &[
    (&["betting"], "Test by betting, at the level --alpha: needs the fewest reshuffles", |alpha, _| Method::Betting {
        alpha,
    }),
    (
        &["csm"],
        "Confidence sequence method: finds whether the p-value is above or below --alpha, and an interval for the \
         p-value",
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
    let asked = Permute { samples, unit, question, method, budget, seed: crate::options::seed(args.seed) };
    interrupt::install().context("can't handle Ctrl-C")?;
    let line = Line::new(!args.display.quiet);
    let permutation = permute(asked, &Stop::default(), &mut |progress| {
        let of_shuffles = progress.shuffles as f64 / args.max_shuffles as f64;
        let of_time = args.max_time.map_or(0.0, |max_time| progress.elapsed.as_secs_f64() / max_time.as_secs_f64());
        line.draw(of_shuffles.max(of_time), || {
            let seconds = progress.elapsed.as_secs();
            format!("{seconds} s · {} of {} reshuffles at least as extreme", progress.exceedances, progress.shuffles)
        });
    })?;
    drop(line);
    output::report(&permutation, &args.display)?;
    Ok(match (permutation.end, permutation.decision, args.fail_if) {
        (End::Interrupted, ..) => Ending::Interrupted,
        (_, decision, Some(failing)) if decision == failing => Ending::GateFailed,
        (_, Decision::Undecided, Some(_)) => Ending::Undecided,
        _ => Ending::Done,
    })
}

/// Splits `A.csv:wall` into the file and its column (a heading or a number). If a file with a colon in its name exists,
/// the colon does not separate a column.
fn with_column(sample: &str) -> (&str, Option<&str>) {
    match sample.rsplit_once(':') {
        Some((file, column)) if !Path::new(sample).exists() && (file == "-" || Path::new(file).is_file()) => {
            (file, Some(column))
        }
        _ => (sample, None),
    }
}

/// Reads one column of each file, with its heading if the file has headings.
fn from_files(args: &Args) -> anyhow::Result<Vec<HeadedSample>> {
    let (samples, columns) = (&args.samples, &args.column);
    let files: Vec<(&str, Option<&str>)> = samples.iter().map(|sample| with_column(sample)).collect();
    if let (false, Some((file, Some(column)))) = (columns.is_empty(), files.iter().find(|(_, own)| own.is_some())) {
        bail!("`{file}:{column}` and --column both name a column; leave one of them out");
    }
    if columns.len() > 1 && columns.len() != files.len() {
        bail!(
            "--column is given {} times for {} files; give it once for all, or once for each",
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
        // Print a note that the first line was read as a heading, because it may be a misspelt number. If the user
        // named the column by this heading, no note is needed.
        if let Some(heading) = heading.as_deref().filter(|heading| column != Some(heading) && !args.display.quiet) {
            let [file, heading] = [file, heading].map(escape_controls);
            output::note(&format!("note: {file}: the first line, `{heading}`, is taken as a heading, not as a value"));
        }
        Ok((Sample { name, values }, heading))
    };
    files.iter().enumerate().map(read).collect()
}

/// Returns the error for a file that can't be opened. If a recorded run has this name, the error message explains how
/// to use the run as a sample.
fn not_a_file(file: &str, error: &io::Error) -> anyhow::Error {
    let run = file.split(':').next().unwrap_or(file);
    let is_run = runs::find(Some(Path::new(run)), &evidence::runs_folder()).is_ok();
    let file = escape_controls(file);
    match is_run {
        true => anyhow!("`{file}` is a recorded run; name the metric to compare, such as --metric wall"),
        false => anyhow!("`{file}` can't be opened: {error}"),
    }
}

/// Reads the values of a metric for an arm of each run, and the metric's unit.
fn recorded(addresses: &[String], metric: &str) -> anyhow::Result<(Vec<HeadedSample>, Unit)> {
    let read = |address: &String| {
        // If the whole argument is the path of a folder, a colon in it is part of the name.
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
            "note: this test assumes independent values, but the machine differs between runs, and successive \
             trials depend on one another. That alone may explain a difference; measure both in one run with \
             `ascertain compare`",
        );
    }
    if runs.len() < read.len() {
        output::note(
            "note: these arms were measured in the same trials, so disturbances of the machine affected both. The \
             run's own verdict accounts for that; prefer it to this test",
        );
    }
    let is_one_run = runs.len() == 1;
    let samples = read.into_iter().map(|RecordedSample { run_id, arm, values, .. }| {
        let name = if is_one_run { arm.to_string() } else { format!("{run_id}:{arm}") };
        (Sample { name, values }, None)
    });
    Ok((samples.collect(), unit))
}
