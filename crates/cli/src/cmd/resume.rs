//! `ascertain continue`.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{anyhow, bail};
use ascertain::{Continue, Ending, Error, GatedVerdict, Request, RunContext, runs};
use ascertain_engine::command::CommandError;
use ascertain_engine::evidence::{self, Header};
use ascertain_engine::outcome::Gate;
use ascertain_engine::run::Observer;
use ascertain_report::terminal::escape_controls;

use super::commands::{Variables, variables};
use super::{check, compare, run, slo};
use crate::exit::{FAIL_ON, fail_on};
use crate::exports::Exports;
use crate::options::{Display, count, duration, one_of};
use crate::{output, session};

const EXAMPLES: &str = "\
Examples:
  ascertain continue
      Resume the latest run
  ascertain continue --max-time 5min v1.2
      Measure for five more minutes in the run with the label v1.2";

/// Go on with a run from its evidence: what is undecided is measured further
///
/// The run's error budget stays what it was: continuing spends nothing, where starting anew would. Tables, gates
/// and exit codes are those of the command that started it: `compare --fail-if slower` fails as it would have.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The run's folder, its name, a unique beginning or end of its name, or its label; without one, the latest of
    /// this program's
    run: Option<PathBuf>,
    /// Time for the continuation; without it, as much as the run had
    #[arg(long, value_name = "TIME", value_parser = duration)]
    max_time: Option<Duration>,
    /// Trials of each lane in all; without it, as many as the run had
    #[arg(long, value_name = "N", value_parser = count)]
    max_trials: Option<u64>,
    /// Verdicts that fail, instead of those that the run said: refuted (exit code 1), undecided (3), nothing
    #[arg(long, value_parser = one_of(FAIL_ON), value_delimiter = ',')]
    fail_on: Option<Vec<Option<GatedVerdict>>>,
    /// Values of environment variables that the run did not record: `A=1 B='x y'`
    #[arg(long, value_name = "NAME=VALUE …", value_parser = variables)]
    env: Vec<Variables>,
    /// Carry out the command lines of a run that you did not record on this machine, without asking
    #[arg(long, short)]
    yes: bool,
    /// Folder of runs to look in, instead of ~/.local/state/ascertain/runs
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    evidence: Option<PathBuf>,
    #[command(flatten)]
    display: Display,
    /// Say below the answers what they rest on
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
    let (request, gate) =
        Request::of_recorded(&header).map_or_else(|| of_first_version(&header), |found| (found, None));
    let fail_on = args.fail_on.as_deref().map(fail_on);
    let env = args.env.iter().flatten().filter_map(|(name, value)| Some((name.clone(), value.clone()?))).collect();
    let going_on = Continue { folder, max_time: args.max_time, max_trials: args.max_trials, fail_on, gate, env };
    let plan = going_on.plan(&header);
    let purpose = request.purpose(&plan);
    let carry_out = |observer: &mut dyn Observer| {
        let registry = ascertain_experiments::registry();
        let context = RunContext { registry, evidence: None, ..RunContext::new(observer) };
        going_on.carry_out(request, context).map_err(|error| match error {
            Error::Command(CommandError::MissingValue(name)) => {
                anyhow!("the run did not record the value of {name}: give it again with --env {name}=VALUE")
            }
            error => error.into(),
        })
    };
    session::with_observer(&plan, &purpose, &args.exports, (&args.display, args.explain), carry_out)
}

/// Shows what a run from elsewhere would carry out, and asks for leave.
fn agree(folder: &Path, header: &Header) -> anyhow::Result<()> {
    let lines = ascertain::carried_out(&header.plan);
    let shown: String = lines.iter().map(|line| format!("  {}\n", escape_controls(line))).collect();
    let run = folder.display();
    output::note(&format!("{run} was not recorded by you on this machine. To continue it carries out:\n{shown}"));
    let mut answer = String::new();
    if io::stdin().is_terminal() {
        output::note("Carry this out? [y/N]");
        io::stdin().read_line(&mut answer)?;
    }
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => bail!("nothing was carried out; give --yes to agree to these lines"),
    }
}

/// What a run of the first version was asked for, as far as its command line says. A line that this version does not
/// understand leaves no gate.
fn of_first_version(header: &Header) -> (Request, Option<Gate>) {
    let line = &header.command_line;
    let (use_case, found) = match header.plan.commands.first().map(|set| set.id.as_str()) {
        Some(compare::USE_CASE) => {
            (compare::USE_CASE, options(line).map(|args: compare::Args| (args.without_plan(), args.fail_if)))
        }
        Some(slo::USE_CASE) => (slo::USE_CASE, options(line).map(|args: slo::Args| (args.without_plan(), None))),
        _ if header.plan.tables.is_empty() => {
            (check::USE_CASE, options(line).map(|args: check::Args| (args.without_plan(), None)))
        }
        _ => (run::USE_CASE, options(line).map(|args: run::Args| (args.without_plan(), None))),
    };
    found.unwrap_or_else(|| {
        output::note("the command line of this run is not one of this version: no gate is taken from it");
        (Request::new(use_case), None)
    })
}

/// The options of a subcommand in a recorded command line: `["ascertain", "compare", "--fail-if", …]`.
fn options<A: clap::Args>(line: &[String]) -> Option<A> {
    let matches = A::augment_args(clap::Command::new("ascertain")).try_get_matches_from(line.iter().skip(1)).ok()?;
    A::from_arg_matches(&matches).ok()
}

/// The latest run whose experiments are in this program.
fn latest(below: &Path) -> anyhow::Result<PathBuf> {
    for folder in runs::all(below).into_iter().rev() {
        let header = evidence::read_header(&folder)?;
        let Some(id) = missing(&header) else { return Ok(folder) };
        output::note(&format!(
            "passing over {}: `{id}` is not an experiment of this program; a bench of your own runs anew",
            runs::name(&folder)
        ));
    }
    bail!("there is no run in {} that this program could go on with; name the folder of one", below.display())
}

/// An experiment of the run that this program has not, or has with other metrics.
fn missing(header: &Header) -> Option<&str> {
    let is_here = |id: &str| {
        let shipped = ascertain_experiments::registry().iter().find(|experiment| experiment.spec().id == id);
        let then = header.experiments.iter().find(|spec| spec.id == id);
        let is_shipped = shipped.zip(then).is_some_and(|(now, then)| now.spec().metrics == then.metrics);
        is_shipped || header.plan.commands.iter().any(|set| set.id == id)
    };
    header.experiments.iter().map(|spec| spec.id.as_str()).find(|id| !is_here(id))
}
