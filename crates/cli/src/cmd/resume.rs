//! `ascertain continue`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::bail;
use ascertain::evidence::{self, Writer};
use ascertain::outcome::Outcome;
use ascertain::plan::Plan;
use ascertain::run::Recording;
use ascertain_report::exports::Purpose;
use ascertain_report::terminal::Style;

use crate::exit::{self, Code, FailOn};
use crate::exports::Exports;
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
    /// Trials of each lane in all; without it, as many as the run had
    #[arg(long, value_name = "N")]
    max_trials: Option<u64>,
    /// Verdicts that fail: refuted (exit code 1), undecided (3), nothing. Commands' claims gate by default
    #[arg(long, value_enum, value_delimiter = ',')]
    fail_on: Option<Vec<FailOn>>,
    #[command(flatten)]
    display: Display,
    #[command(flatten)]
    exports: Exports,
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
    plan.config.max_trials = args.max_trials.or(plan.config.max_trials);
    let recording = Recording::Continue(Box::new((writer, recorded)));
    let run = session::carry_out_with(&plan, recording, &args.exports, Purpose::default(), args.display.quiet)?;
    let (asks, table) = printed_as(&plan);
    output::outcome(&run, &args.display, asks, table)?;
    let gates: &[FailOn] = match (&args.fail_on, asks) {
        (Some(gates), _) => gates,
        (None, Asks::Verdicts) if !plan.commands.is_empty() => &[FailOn::Refuted, FailOn::Undecided],
        (None, _) => &[],
    };
    Ok(exit::code(&run, gates))
}

/// What the command that started the run would have printed.
fn printed_as(plan: &Plan) -> (Asks, fn(&Outcome, &Style) -> String) {
    match plan.commands.first().map(|set| set.id.as_str()) {
        Some("compare") => (Asks::Metrics, output::compared),
        Some("slo") => (Asks::Verdicts, output::slo),
        _ if plan.tables.is_empty() => (Asks::Verdicts, output::checked),
        _ => (Asks::Metrics, output::measured),
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
