//! `ascertain continue`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::bail;
use ascertain::evidence::{self, Writer};
use ascertain::outcome::Outcome;
use ascertain::run::Recording;
use ascertain_report::terminal::Style;

use crate::exit::{self, Code, FailOn};
use crate::options::{Display, duration};
use crate::output::{self, Asks};
use crate::session;

/// Go on with a run from its evidence: what is undecided is measured further
///
/// The run's error budget stays what it was: continuing spends nothing, where starting anew would.
#[derive(clap::Args)]
pub struct Args {
    /// The run's folder, or its name below the folder of runs; without one, the latest
    run: Option<PathBuf>,
    /// Time for the continuation; without it, as much as the run had
    #[arg(long, value_name = "TIME", value_parser = duration)]
    max_time: Option<Duration>,
    /// Verdicts that fail: refuted (exit code 1), undecided (3), nothing
    #[arg(long, value_enum, value_delimiter = ',', default_value = "nothing")]
    fail_on: Vec<FailOn>,
    #[command(flatten)]
    display: Display,
}

pub fn execute(args: &Args) -> anyhow::Result<Code> {
    let folder = match &args.run {
        Some(run) if run.is_dir() => run.clone(),
        Some(run) => evidence::runs_folder().join(run),
        None => latest(&evidence::runs_folder())?,
    };
    let (writer, recorded) = Writer::resume(&folder)?;
    let mut plan = recorded.header.plan.clone();
    plan.config.max_time = args.max_time.unwrap_or(plan.config.max_time);
    let recording = Recording::Continue(Box::new((writer, recorded)));
    let run = session::carry_out_with(&plan, recording, args.display.quiet)?;
    output::outcome(&run.outcome, &args.display, Asks::Verdicts, table_of)?;
    Ok(exit::code(&run, &args.fail_on))
}

/// The table that the command which started the run would have printed.
fn table_of(outcome: &Outcome, style: &Style) -> String {
    let experiment = outcome.points.first().map(|point| point.experiment.as_str());
    match experiment {
        Some("compare") => output::compared(outcome, style),
        Some("slo") => output::slo(outcome, style),
        _ => output::checked(outcome, style),
    }
}

fn latest(runs: &Path) -> anyhow::Result<PathBuf> {
    let entries = std::fs::read_dir(runs).into_iter().flatten().flatten();
    // Names begin with the time.
    let newest = entries.map(|entry| entry.path()).filter(|path| path.join("run.json").is_file()).max();
    match newest {
        Some(run) => Ok(run),
        None => bail!("there is no run in {}; name the folder of one", runs.display()),
    }
}
