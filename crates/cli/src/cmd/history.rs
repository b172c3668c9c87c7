//! `ascertain history`.

use std::path::PathBuf;
use std::time::Duration;

use ascertain::history::{self, TrendRequest};
use ascertain::{Ending, Error, runs};
use ascertain_engine::evidence;
use ascertain_engine::unit::{Unit, parse_quantity};
use ascertain_report::history::{comparison, list, prune, trend};

use crate::options::{Display, count, duration};
use crate::{exports, output};

const EXAMPLES: &str = "\
Examples:
  ascertain history
      List the latest runs
  ascertain history prune --keep 50 --dry-run
      List the runs that would be deleted, all but the latest 50";

/// The runs there are; how a figure went from run to run; two runs side by side; which to delete
///
/// Without a subcommand: the latest runs.
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
    /// The latest runs, as without a subcommand
    List(ListArgs),
    Trend(TrendArgs),
    Compare(CompareArgs),
    Prune(PruneArgs),
}

/// Options of every subcommand: where the runs are, and how what is said of them is shown.
#[derive(clap::Args)]
struct Shared {
    /// Folder of runs, instead of ~/.local/state/ascertain/runs
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    evidence: Option<PathBuf>,
    #[command(flatten)]
    display: Display,
}

const LIST_EXAMPLES: &str = "\
Examples:
  ascertain history list --runs 5
      List the latest five runs";

/// The group has a name of its own, as that of the subcommands' options is taken.
#[derive(clap::Args)]
#[command(after_help = LIST_EXAMPLES)]
#[group(id = "list")]
struct ListArgs {
    /// So many runs, the latest
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20, value_parser = count)]
    runs: u64,
    #[command(flatten)]
    shared: Shared,
}

const TREND_EXAMPLES: &str = "\
Examples:
  ascertain history trend compare --ratio 'sleep 0.011/sleep 0.010'
      Follow the ratio of two commands over the runs
  ascertain history trend sum --variant kahan --at elements=187500
      Follow the median of a variant of an experiment";

/// How a figure went from run to run: a metric's median, or the ratio of two variants within each run
#[derive(clap::Args)]
#[command(after_help = TREND_EXAMPLES)]
struct TrendArgs {
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

const COMPARE_EXAMPLES: &str = "\
Examples:
  ascertain history compare v1.1 v1.2
      Compare the runs with these labels";

/// Two runs side by side: medians, verdicts, and what differs in machine, version and options
///
/// Nothing is concluded of the difference: trials are paired within a run, not between runs.
#[derive(clap::Args)]
#[command(after_help = COMPARE_EXAMPLES)]
struct CompareArgs {
    /// A run's folder, its name, a unique beginning or end of its name, its label, or `latest`
    #[arg(value_name = "RUN1")]
    first: PathBuf,
    /// The run to hold against it
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
/// Whole folders, and only such as have the name that a run is given and a `run.json`: a folder that you have
/// renamed stays. So does a run that is being written.
#[derive(clap::Args)]
#[command(after_help = PRUNE_EXAMPLES)]
#[group(id = "which", required = true, multiple = true, args = ["keep", "older_than"])]
struct PruneArgs {
    /// Keep the latest N
    #[arg(long, value_name = "N")]
    keep: Option<u64>,
    /// Only those that started longer ago than that: `30d`, `12h`
    #[arg(long, value_name = "AGE", value_parser = age)]
    older_than: Option<Duration>,
    /// Say what would be deleted, and delete nothing
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
    /// The folder that has the runs.
    fn folder(&self) -> PathBuf {
        self.evidence.clone().unwrap_or_else(evidence::runs_folder)
    }
}

fn list_runs(args: &ListArgs) -> anyhow::Result<()> {
    let runs = history::list(&args.shared.folder(), as_usize(args.runs))?;
    output::formatted(&runs, &args.shared.display, [list::json, list::csv, list::markdown], list::table)
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
    let found = history::trend(&args.shared.folder(), &asked)?;
    if exports::write_svg(args.svg.as_deref(), || found.plot())? {
        output::formatted(&found, &args.shared.display, [trend::json, trend::csv, trend::markdown], trend::table)?;
    }
    Ok(())
}

fn compare_runs(args: &CompareArgs) -> anyhow::Result<()> {
    let below = args.shared.folder();
    let [first, second] = [&args.first, &args.second].map(|run| runs::find(Some(run), &below));
    let compared = history::compare([&first?, &second?])?;
    let formats = [comparison::json, comparison::csv, comparison::markdown];
    output::formatted(&compared, &args.shared.display, formats, comparison::table)
}

fn prune_runs(args: &PruneArgs) -> anyhow::Result<()> {
    let pruning = history::prune(&args.shared.folder(), args.keep, args.older_than, args.dry_run)?;
    output::formatted(&pruning, &args.shared.display, [prune::json, prune::csv, prune::markdown], prune::table)
}

fn as_usize(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

fn at(text: &str) -> Result<(String, String), String> {
    let (factor, level) = text.split_once('=').ok_or("write FACTOR=LEVEL")?;
    Ok((factor.trim().to_string(), level.trim().to_string()))
}

/// A duration, also in days.
fn age(text: &str) -> Result<Duration, String> {
    let days = text.trim().strip_suffix('d').and_then(|days| days.trim_end().parse::<f64>().ok());
    let hours = days.map(|days| format!("{}h", days * 24.0));
    let age = hours.as_deref().unwrap_or(text);
    parse_quantity(age, Unit::Nanosecond).map_err(|error| format!("{error}, or in d"))?;
    duration(age).map_err(|_| format!("`{text}` is no age; give one such as 30d, or --keep 0 for all runs"))
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
        assert!(message.contains("no age") && message.contains("--keep 0"), "{message}");
        assert!(age("30").is_err() && age("d").is_err() && age("-1d").is_err() && age("1e30d").is_err());
    }
}
