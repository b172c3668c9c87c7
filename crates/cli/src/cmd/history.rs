//! `ascertain history`: lists, compares and deletes runs, shows how metrics changed over time, and finds the runs at
//! which they changed.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use ascertain::history::{self, TrendRequest};
use ascertain::{Ending, Error, runs};
use ascertain_engine::evidence;
use ascertain_engine::unit::{Unit, parse_quantity};
use clap::ValueEnum;

use crate::options::{Display, count, duration};
use crate::{exports, output};

const EXAMPLES: &str = "\
Examples:
  ascertain history
      List the latest runs
  ascertain history prune --keep 50 --dry-run
      List the runs that would be deleted, all but the latest 50";

/// List, compare and delete runs; show how a metric developed
///
/// Without a subcommand, `history` lists the latest runs.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Subcommand>,
    #[command(flatten)]
    list: ListArgs,
}

#[derive(clap::Subcommand)]
enum Subcommand {
    /// List the latest runs (as without a subcommand)
    List(ListArgs),
    Trend(TrendArgs),
    Changes(ChangesArgs),
    Compare(CompareArgs),
    Prune(PruneArgs),
}

/// Options of every subcommand of `history`: the folder of runs, and how to print.
#[derive(clap::Args)]
struct Shared {
    /// Folder of runs [default: ~/.local/state/ascertain/runs]
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    evidence: Option<PathBuf>,
    #[command(flatten)]
    display: Display,
}

const LIST_EXAMPLES: &str = "\
Examples:
  ascertain history list --runs 5
      List the latest five runs";

/// Options of `history list`. The group needs an explicit id, because clap already uses the default id for the
/// subcommand.
#[derive(clap::Args)]
#[command(after_help = LIST_EXAMPLES)]
#[group(id = "list")]
struct ListArgs {
    /// Number of runs to list, counted back from the latest
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20, value_parser = count)]
    runs: u64,
    #[command(flatten)]
    shared: Shared,
}

const TREND_EXAMPLES: &str = "\
Examples:
  ascertain history trend compare --ratio 'sleep 0.011/sleep 0.010'
      Show the ratio of two commands in each run
  ascertain history trend sum --variant kahan --at elements=187500
      Show the median of a variant in each run";

/// Show how a metric developed from run to run: its median, or the ratio of two variants
#[derive(clap::Args)]
#[command(after_help = TREND_EXAMPLES)]
struct TrendArgs {
    /// Id of an experiment; `compare` or `slo` for runs of commands
    #[arg(value_name = "EXPERIMENT")]
    experiment: String,
    /// Metric to show [default: the experiment's first metric]
    #[arg(long, value_name = "METRIC")]
    metric: Option<String>,
    /// Variant, or command line as in the run; repeat the option for several [default: the variants of the latest run]
    #[arg(long, value_name = "NAME")]
    variant: Vec<String>,
    /// Level of a factor: show only arms at this level; repeat the option for more factors
    #[arg(long, value_name = "FACTOR=LEVEL", value_parser = at)]
    at: Vec<(String, String)>,
    /// Two variants: show how many times better A is than B, instead of medians
    ///
    /// The ratio in each run is the median of the paired ratios of all trials. The ratio in the run's report can
    /// differ, because it uses only the trials until the verdict.
    #[arg(long, value_name = "A/B", conflicts_with = "variant")]
    ratio: Option<String>,
    /// Number of runs to show, counted back from the latest run that measured the variants
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20, value_parser = count)]
    runs: u64,
    /// File for the plot, as an SVG; with `-`, only the SVG is printed, to standard output
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    shared: Shared,
}

const CHANGES_EXAMPLES: &str = "\
Examples:
  ascertain history changes compare --ratio 'sleep 0.011/sleep 0.010'
      Find the runs at which the ratio of two commands changed
  ascertain history changes compare --ratio new/old --export otava > runs.csv
      Write the ratio of each run for Apache Otava";

/// Find the runs at which the ratio of two variants changed, and the cause
///
/// The time of B alone shows whether the code or the machine changed. If ratios do not change, one false alarm is
/// expected in 1,000 runs or more. A clear change is found with the fifth run at the new level.
#[derive(clap::Args)]
#[command(after_help = CHANGES_EXAMPLES)]
struct ChangesArgs {
    /// Id of an experiment; `compare` or `slo` for runs of commands
    #[arg(value_name = "EXPERIMENT")]
    experiment: String,
    /// Two variants: follow how many times better A is than B, the baseline
    #[arg(long, value_name = "A/B")]
    ratio: String,
    /// Metric to follow [default: the experiment's first metric]
    #[arg(long, value_name = "METRIC")]
    metric: Option<String>,
    /// Level of a factor: follow only arms at this level; repeat the option for more factors
    #[arg(long, value_name = "FACTOR=LEVEL", value_parser = at)]
    at: Vec<(String, String)>,
    /// Number of runs to search, counted back from the latest run that measured the variants [default: all]
    ///
    /// If the first run moves with each new run, false alarms can be more frequent than stated.
    #[arg(short = 'n', long, value_name = "N", value_parser = count)]
    runs: Option<u64>,
    /// File for the plot, as an SVG; with `-`, only the SVG is printed, to standard output
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    svg: Option<PathBuf>,
    /// Print the series of ratios as the CSV of another tool, instead of the changes
    #[arg(long, value_enum, value_name = "TOOL", help_heading = "Output", conflicts_with = "svg")]
    export: Option<ExportTool>,
    #[command(flatten)]
    shared: Shared,
}

/// A tool that finds changes in series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ExportTool {
    /// Apache Otava, which finds changes by E-divisive means
    Otava,
}

const COMPARE_EXAMPLES: &str = "\
Examples:
  ascertain history compare v1.1 v1.2
      Compare the runs with these labels";

/// Show two runs side by side: medians, verdicts, and differences in machine, version and options
///
/// The comparison has no verdict, because trials are paired within a run and not between runs.
#[derive(clap::Args)]
#[command(after_help = COMPARE_EXAMPLES)]
struct CompareArgs {
    /// First run: its folder, its name, a unique beginning or end of its name, its label, or `latest`
    #[arg(value_name = "RUN1")]
    first: PathBuf,
    /// Second run: its folder, its name, a unique beginning or end of its name, its label, or `latest`
    #[arg(value_name = "RUN2")]
    second: PathBuf,
    #[command(flatten)]
    shared: Shared,
}

const PRUNE_EXAMPLES: &str = "\
Examples:
  ascertain history prune --keep 50 --dry-run
      List the runs that would be deleted, all but the latest 50
  ascertain history prune --older-than 30d
      Delete the runs that are older than 30 days";

/// Delete old runs
///
/// Deletes whole folders, and only those with a `run.json` and the name that the run was given. A folder that you have
/// renamed is kept, and so is a run that is still being written. With both options, a run is deleted if neither keeps
/// it.
#[derive(clap::Args)]
#[command(after_help = PRUNE_EXAMPLES)]
#[group(id = "which", required = true, multiple = true, args = ["keep", "older_than"])]
struct PruneArgs {
    /// Number of latest runs to keep
    #[arg(long, value_name = "N")]
    keep: Option<u64>,
    /// Age above which runs are deleted, such as `30d` or `12h`
    #[arg(long, value_name = "AGE", value_parser = age)]
    older_than: Option<Duration>,
    /// List the runs that would be deleted, without deleting them
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    shared: Shared,
}

pub fn execute(args: &Args) -> anyhow::Result<Ending> {
    let done = match &args.command {
        None => list_runs(&args.list),
        Some(Subcommand::List(args)) => list_runs(args),
        Some(Subcommand::Trend(args)) => show_trend(args),
        Some(Subcommand::Changes(args)) => show_changes(args),
        Some(Subcommand::Compare(args)) => compare_runs(args),
        Some(Subcommand::Prune(args)) => prune_runs(args),
    };
    match done {
        Ok(()) => Ok(Ending::Done),
        Err(error) => match error.downcast_ref() {
            Some(nothing @ Error::NoRun { .. }) => {
                output::note(&nothing.to_string());
                Ok(Ending::Nothing)
            }
            _ => Err(error),
        },
    }
}

impl Shared {
    /// Returns the folder that contains the runs.
    fn folder(&self) -> PathBuf {
        self.evidence.clone().unwrap_or_else(evidence::runs_folder)
    }
}

fn list_runs(args: &ListArgs) -> anyhow::Result<()> {
    output::report(&history::list(&args.shared.folder(), as_usize(args.runs))?, &args.shared.display)
}

fn show_trend(args: &TrendArgs) -> anyhow::Result<()> {
    let asked = TrendRequest {
        experiment: args.experiment.clone(),
        metric: args.metric.clone(),
        variants: args.variant.clone(),
        at: args.at.clone(),
        ratio: args.ratio.clone(),
        runs: as_usize(args.runs),
    };
    let trend = history::trend(&args.shared.folder(), &asked)?;
    match exports::write_svg(args.svg.as_deref(), || trend.plot())? {
        true => output::report(&trend, &args.shared.display),
        false => Ok(()),
    }
}

fn show_changes(args: &ChangesArgs) -> anyhow::Result<()> {
    let asked = TrendRequest {
        experiment: args.experiment.clone(),
        metric: args.metric.clone(),
        variants: Vec::new(),
        at: args.at.clone(),
        ratio: Some(args.ratio.clone()),
        runs: args.runs.map_or(usize::MAX, as_usize),
    };
    let changes = history::changes(&args.shared.folder(), &asked)?;
    if let Some(ExportTool::Otava) = args.export {
        let several = "Otava's CSV has a single series, but there are several; choose one with --at FACTOR=LEVEL";
        return output::print(&changes.otava_csv().context(several)?);
    }
    match exports::write_svg(args.svg.as_deref(), || changes.plot())? {
        true => output::report(&changes, &args.shared.display),
        false => Ok(()),
    }
}

fn compare_runs(args: &CompareArgs) -> anyhow::Result<()> {
    let below = args.shared.folder();
    let [first, second] = [&args.first, &args.second].map(|run| runs::find(Some(run), &below));
    output::report(&history::compare([&first?, &second?])?, &args.shared.display)
}

fn prune_runs(args: &PruneArgs) -> anyhow::Result<()> {
    let pruning = history::prune(&args.shared.folder(), args.keep, args.older_than, args.dry_run)?;
    output::report(&pruning, &args.shared.display)
}

fn as_usize(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

fn at(text: &str) -> Result<(String, String), String> {
    let (factor, level) = text.split_once('=').ok_or("write FACTOR=LEVEL")?;
    Ok((factor.trim().to_string(), level.trim().to_string()))
}

/// Parses a duration, which may also be in days: `30d`.
fn age(text: &str) -> Result<Duration, String> {
    let days = text.trim().strip_suffix('d').and_then(|days| days.trim_end().parse::<f64>().ok());
    let hours = days.map(|days| format!("{}h", days * 24.0));
    let age = hours.as_deref().unwrap_or(text);
    parse_quantity(age, Unit::Nanosecond).map_err(|error| format!("{error}, or in d"))?;
    duration(age)
        .map_err(|_| format!("`{text}` is not an age; give an age such as 30d, or use --keep 0 to delete all runs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_may_be_in_days() {
        assert_eq!(age("30d"), Ok(Duration::from_secs(30 * 86_400)));
        assert_eq!(age("1.5 d"), Ok(Duration::from_secs(36 * 3600)));
        assert_eq!(age("12h"), Ok(Duration::from_secs(12 * 3600)));
        let message = age("0s").unwrap_err();
        assert!(message.contains("not an age") && message.contains("--keep 0"), "{message}");
        assert!(age("30").is_err() && age("d").is_err() && age("-1d").is_err() && age("1e30d").is_err());
    }
}
