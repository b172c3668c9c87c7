//! `ascertain continue`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::bail;
use ascertain_engine::evidence::{self, Header, Writer};
use ascertain_engine::outcome::Outcome;
use ascertain_engine::run::{Recording, Run};
use ascertain_report::exports::Purpose;
use ascertain_report::layout::Layout;
use ascertain_report::terminal::Style;

use super::{check, compare, report, run, slo};
use crate::exit::{self, Code, FailOn};
use crate::exports::Exports;
use crate::options::{Display, duration};
use crate::output::{self, Asks};
use crate::{runs, session};

/// Go on with a run from its evidence: what is undecided is measured further
///
/// The run's error budget stays what it was: continuing spends nothing, where starting anew would. Tables, gates
/// and exit codes are those of the command that started it: `compare --fail-if slower` fails as it would have.
#[derive(clap::Args)]
pub struct Args {
    /// The run's folder, or its name, or a beginning or end that only its name has; without one, the latest of
    /// this program's
    run: Option<PathBuf>,
    /// Time for the continuation; without it, as much as the run had
    #[arg(long, value_name = "TIME", value_parser = duration)]
    max_time: Option<Duration>,
    /// Trials of each lane in all; without it, as many as the run had
    #[arg(long, value_name = "N")]
    max_trials: Option<u64>,
    /// Verdicts that fail, instead of those that the run said: refuted (exit code 1), undecided (3), nothing
    #[arg(long, value_enum, value_delimiter = ',')]
    fail_on: Option<Vec<FailOn>>,
    /// Folder of runs to look in, instead of ~/.local/state/ascertain/runs
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    evidence: Option<PathBuf>,
    #[command(flatten)]
    display: Display,
    #[command(flatten)]
    exports: Exports,
}

pub fn execute(args: &Args) -> anyhow::Result<Code> {
    let below = args.evidence.clone().unwrap_or_else(evidence::runs_folder);
    let folder = match &args.run {
        Some(run) => runs::find(Some(run), &below)?,
        None => latest(&below)?,
    };
    let (writer, recorded) = Writer::resume(&folder)?;
    let mut plan = recorded.header.plan.clone();
    plan.config.max_time = args.max_time.unwrap_or(plan.config.max_time);
    if args.max_trials.is_some() {
        // It takes the place of `compare -r`, too.
        (plan.config.max_trials, plan.config.exact_trials) = (args.max_trials, None);
    }
    let started = Started::read(&recorded.header);
    if let Started::Compare(Some(args)) = &started {
        // Runs of earlier versions have it in their command line alone.
        plan.config.gate = args.gate();
    }
    if matches!(started, Started::Compare(_)) && args.fail_on.is_some() {
        bail!("--fail-on is for claims; this run compares commands, and its --fail-if stays what it was");
    }
    let recording = Recording::Continue(Box::new((writer, recorded)));
    session::carry_out_with(&plan, recording, &args.exports, started.purpose(), &args.display, |run| {
        output::outcome(run, &plan.tables, &args.display, started.asks(), |outcome, style| {
            started.printed(run, outcome, style)
        })?;
        // One that stands there is of the run as it was.
        if run.unkept.is_none() && (started.has_report() || folder.join("report.html").is_file()) {
            report::write(&folder, args.display.quiet)?;
        }
        Ok(match &args.fail_on {
            Some(gates) => exit::code(run, gates),
            None => started.code(run),
        })
    })
}

/// What started a run, as its command line says. A line that this version does not understand leaves no gate.
enum Started {
    Compare(Option<compare::Args>),
    Slo(Option<slo::Args>),
    Check(Option<check::Args>),
    Run(Option<run::Args>),
}

impl Started {
    fn read(header: &Header) -> Started {
        let line = &header.command_line;
        match header.plan.commands.first().map(|set| set.id.as_str()) {
            Some("compare") => Started::Compare(options(line)),
            Some("slo") => Started::Slo(options(line)),
            _ if header.plan.tables.is_empty() => Started::Check(options(line)),
            _ => Started::Run(options(line)),
        }
    }

    fn purpose(&self) -> Purpose {
        match self {
            Started::Compare(Some(args)) => args.purpose(),
            _ => Purpose::default(),
        }
    }

    fn asks(&self) -> Asks {
        match self {
            Started::Compare(_) | Started::Run(_) => Asks::Metrics,
            Started::Slo(_) | Started::Check(_) => Asks::Verdicts,
        }
    }

    fn printed(&self, run: &Run, outcome: &Outcome, style: &Style) -> String {
        match self {
            Started::Compare(Some(args)) => args.printed(run, style),
            Started::Compare(None) => output::compared(outcome, &Layout::default(), String::new(), style),
            Started::Slo(Some(args)) => args.printed(run, style),
            Started::Slo(None) => output::slo(outcome, String::new(), style),
            Started::Check(_) => output::checked(outcome, style),
            Started::Run(_) => output::measured(outcome, style),
        }
    }

    /// Whether the command makes a report without being asked.
    fn has_report(&self) -> bool {
        matches!(self, Started::Check(_) | Started::Run(_))
    }

    fn code(&self, run: &Run) -> Code {
        match self {
            Started::Compare(Some(args)) => args.code(run),
            Started::Slo(Some(args)) => args.code(run),
            Started::Check(Some(args)) => args.code(run),
            Started::Run(Some(args)) => args.code(run),
            _ => {
                output::note("the command line of this run is not one of this version: no gate is taken from it");
                exit::code(run, &[])
            }
        }
    }
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
