//! What the subcommands are, and which options they share.

use std::path::PathBuf;

use ascertain_engine::evidence;

use super::{compare, list, prune, trend};
use crate::exit::Code;
use crate::options::Display;

/// The runs there are; how a figure went from run to run; two runs side by side; which to delete
///
/// Without a subcommand: the latest runs.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Subcommand>,
    #[command(flatten)]
    list: list::Args,
}

#[derive(clap::Subcommand)]
enum Subcommand {
    /// The latest runs, as without a subcommand
    List(list::Args),
    Trend(trend::Args),
    Compare(compare::Args),
    Prune(prune::Args),
}

/// Options of every subcommand: where the runs are, and how what is said of them is shown.
#[derive(clap::Args)]
pub struct Shared {
    /// Folder of runs, instead of ~/.local/state/ascertain/runs
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    evidence: Option<PathBuf>,
    #[command(flatten)]
    pub display: Display,
}

impl Shared {
    /// The folder that has the runs.
    pub fn folder(&self) -> PathBuf {
        self.evidence.clone().unwrap_or_else(evidence::runs_folder)
    }
}

pub fn execute(args: &Args) -> anyhow::Result<Code> {
    match &args.command {
        None => list::execute(&args.list),
        Some(Subcommand::List(args)) => list::execute(args),
        Some(Subcommand::Trend(args)) => trend::execute(args),
        Some(Subcommand::Compare(args)) => compare::execute(args),
        Some(Subcommand::Prune(args)) => prune::execute(args),
    }
}
