//! One file a subcommand (`put` and `get` are in one), and the list of them.

mod barrierd;
mod calibrate_here;
mod check;
mod clean;
mod commands;
mod compare;
mod completions;
mod explain;
mod history;
mod judge;
mod list;
mod listen;
mod man;
mod moves;
mod parameters;
mod permute;
mod power;
mod printed;
pub mod report;
mod resume;
mod run;
mod slo;

use ascertain::{Done, Ending};
use clap::{CommandFactory, Subcommand};

use crate::options::Display;

/// In the order of `--help`.
#[derive(Subcommand)]
pub enum Command {
    Compare(compare::Args),
    Slo(slo::Args),
    Check(check::Args),
    Run(run::Args),
    Continue(resume::Args),
    List(list::Args),
    Explain(explain::Args),
    Report(report::Args),
    Judge(judge::Args),
    Permute(permute::Args),
    Power(power::Args),
    CalibrateHere(calibrate_here::Args),
    History(history::Args),
    Put(moves::Put),
    Get(moves::Get),
    Listen(listen::Args),
    Clean(clean::Args),
    Barrierd(barrierd::Args),
    Completions(completions::Args),
    Man(man::Args),
}

impl Command {
    /// Does it; `C` is the whole command line.
    pub fn execute<C: CommandFactory>(&self) -> anyhow::Result<Ending> {
        match self {
            Command::Compare(args) => compare::execute(args),
            Command::Slo(args) => slo::execute(args),
            Command::Check(args) => check::execute(args),
            Command::Run(args) => run::execute(args),
            Command::Continue(args) => resume::execute(args),
            Command::List(args) => list::execute(args),
            Command::Explain(args) => explain::execute(args),
            Command::Report(args) => report::execute(args),
            Command::Judge(args) => judge::execute(args),
            Command::Permute(args) => permute::execute(args),
            Command::Power(args) => power::execute(args),
            Command::CalibrateHere(args) => calibrate_here::execute(args),
            Command::History(args) => history::execute(args),
            Command::Put(args) => args.execute(),
            Command::Get(args) => args.execute(),
            Command::Listen(args) => listen::execute(args),
            Command::Clean(args) => clean::execute(args),
            Command::Barrierd(args) => barrierd::execute(args),
            Command::Completions(args) => completions::execute::<C>(args),
            Command::Man(args) => man::execute::<C>(args),
        }
    }
}

/// What prints a run of a use case, for its own subcommand and for `continue`.
pub fn printer(use_case: &str) -> fn(&Done, &Display) -> anyhow::Result<()> {
    match use_case {
        compare::USE_CASE => compare::print,
        slo::USE_CASE => slo::print,
        check::USE_CASE => check::print,
        calibrate_here::USE_CASE => calibrate_here::print,
        // Tables and claims say what came of anything, also of what another version can do.
        _ => run::print,
    }
}
