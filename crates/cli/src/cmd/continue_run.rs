//! `ascertain continue`: continues a run from its evidence.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::bail;
use ascertain::{Continuation, Ending, GatedVerdict, runs};
use ascertain_engine::claim::Judging;
use ascertain_engine::evidence::{self, Header};
use ascertain_report::options::RenderOptions;
use ascertain_report::terminal::escape_controls;

use super::commands::{Variables, variables};
use crate::exit::{FAIL_ON, fail_on};
use crate::exports::Exports;
use crate::measure::{Start, measure};
use crate::options::{Display, count, duration, one_of, positive_share};
use crate::output;

const EXAMPLES: &str = "\
Examples:
  ascertain continue
      Resume the latest run
  ascertain continue --max-time 5min v1.2
      Measure for five more minutes in the run with the label v1.2
  ascertain continue --precision 2%
      Narrow the intervals of the latest run, if it is a comparison";

/// Continue a run from its evidence
///
/// Measures the undecided claims of the run. Continuing a run does not raise the chance of a wrong verdict; starting a
/// new run would. Tables, gates and exit codes are those of the original command, such as `compare --fail-if slower`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Run to continue: its folder, its name, a unique beginning or end of its name, or its label [default: the latest
    /// run that this program can continue]
    run: Option<PathBuf>,
    /// Time limit of the continuation [default: the limit of the run]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    max_time: Option<Duration>,
    /// Maximum number of trials for each claim, including those already measured [default: the limit of the run]
    #[arg(long, value_name = "N", value_parser = count)]
    max_trials: Option<u64>,
    /// Precision to reach for each ratio of a `compare` run: `1%` means ±1 % [default: the precision of the run]
    #[arg(long, value_name = "P", value_parser = positive_share)]
    precision: Option<f64>,
    /// Verdicts that make the command fail, instead of those that the original command chose
    #[arg(long, value_parser = one_of(FAIL_ON), value_delimiter = ',')]
    fail_on: Option<Vec<Option<GatedVerdict>>>,
    /// Values of environment variables that the run did not record, such as `A=1 B='x y'`
    #[arg(long, value_name = "NAME=VALUE …", value_parser = variables)]
    env: Vec<Variables>,
    /// Execute the command lines of a run that was recorded elsewhere, without asking for confirmation
    #[arg(long, short)]
    yes: bool,
    /// Folder in which to find the run [default: ~/.local/state/ascertain/runs]
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    evidence: Option<PathBuf>,
    #[command(flatten)]
    display: Display,
    /// Explain, below the answers, how each answer was decided
    #[arg(long, help_heading = "Output")]
    explain: bool,
    #[command(flatten)]
    exports: Exports,
}

pub fn execute(args: &Args) -> anyhow::Result<Ending> {
    let below = args.evidence.clone().unwrap_or_else(evidence::runs_folder);
    let folder = match &args.run {
        Some(run) => runs::find(Some(run), &below)?,
        None => latest(&below)?,
    };
    let header = evidence::read_header(&folder)?;
    if !args.yes && !evidence::is_known(&evidence::known_folder(), &header) {
        agree(&folder, &header)?;
    }
    let fail_on = args.fail_on.as_deref().map(fail_on);
    if fail_on.is_some() && header.plan.claims.iter().any(|claim| claim.asked.judging == Judging::Order) {
        bail!("--fail-on is for claims, but this run compares commands; leave it out (the run keeps its --fail-if)");
    }
    if args.precision.is_some() && !header.plan.claims.iter().any(|claim| claim.asked.judging == Judging::Order) {
        bail!("--precision is for runs that compare commands, but this run does not; use --max-trials or --max-time");
    }
    let env = args.env.iter().flatten().filter_map(|(name, value)| Some((name.clone(), value.clone()?))).collect();
    let stored: RenderOptions = serde_json::from_value(header.render).unwrap_or_default();
    let RenderOptions { format, quiet, style, .. } = args.display.render();
    let options = RenderOptions { format, quiet, style, explain: args.explain, ..stored };
    let Args { max_time, max_trials, precision, .. } = *args;
    let continuation = Continuation { folder, max_time, max_trials, precision, fail_on, env };
    measure(Start::Recorded(continuation), &options, &args.exports)
}

/// If the run was not recorded on this machine, shows the command lines that its continuation executes, and asks for
/// confirmation.
fn agree(folder: &Path, header: &Header) -> anyhow::Result<()> {
    let lines = ascertain::executed_lines(&header.plan);
    let shown: String = lines.iter().map(|line| format!("  {}\n", escape_controls(line))).collect();
    let run = folder.display();
    output::note(&format!("you did not record {run} on this machine. Continuing it executes these lines:\n{shown}"));
    let mut answer = String::new();
    if io::stdin().is_terminal() {
        output::note("Execute these lines? [y/N]");
        io::stdin().read_line(&mut answer)?;
    }
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => bail!("nothing was executed; use --yes to execute these lines"),
    }
}

/// Returns the folder of the latest run whose experiments this program has.
fn latest(below: &Path) -> anyhow::Result<PathBuf> {
    for folder in runs::all(below).into_iter().rev() {
        let header = evidence::read_header(&folder)?;
        let Some(id) = missing(&header) else { return Ok(folder) };
        output::note(&format!(
            "skipping {}: `{id}` is not an experiment of this program; to repeat your own bench, run it again",
            runs::name(&folder)
        ));
    }
    bail!("there is no run in {} that this program can continue; name the folder of a run", below.display())
}

/// Returns the id of the run's first experiment that this program lacks, or has with other metrics. Returns `None` if
/// the program can continue all experiments of the run.
fn missing(header: &Header) -> Option<&str> {
    let is_here = |id: &str| {
        let shipped = ascertain_experiments::registry().into_iter().find(|experiment| experiment.spec().id == id);
        let then = header.experiments.iter().find(|spec| spec.id == id);
        let is_shipped = shipped.zip(then).is_some_and(|(now, then)| now.spec().metrics == then.metrics);
        is_shipped || header.plan.commands.iter().any(|set| set.id == id)
    };
    header.experiments.iter().map(|spec| spec.id.as_str()).find(|id| !is_here(id))
}
