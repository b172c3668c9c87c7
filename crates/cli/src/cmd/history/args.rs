use super::{compare, list, prune, trend};
use crate::exit::Code;

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
    Trend(trend::Args),
    Compare(compare::Args),
    Prune(prune::Args),
}

pub fn execute(args: &Args) -> anyhow::Result<Code> {
    match &args.command {
        None => list::execute(&args.list),
        Some(Subcommand::Trend(args)) => trend::execute(args),
        Some(Subcommand::Compare(args)) => compare::execute(args),
        Some(Subcommand::Prune(args)) => prune::execute(args),
    }
}
