//! `ascertain completions`.

use ascertain::Ending;
use clap::CommandFactory;
use clap::builder::PossibleValuesParser;

use crate::output;

const EXAMPLES: &str = "\
Examples:
  ascertain completions bash >>~/.bash_completion
      Install completions for bash
  ascertain completions zsh >~/.zfunc/_ascertain
      Install completions for zsh, if ~/.zfunc is in its fpath
  ascertain completions fish >~/.config/fish/completions/ascertain.fish
      Install completions for fish";

/// Print a completion script for a shell; in bash and zsh it knows experiments and claims too
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The shell
    shell: clap_complete::Shell,
}

pub fn execute<C: CommandFactory>(args: &Args) -> anyhow::Result<Ending> {
    let experiments = || ascertain_experiments::registry().iter().map(|experiment| &*experiment.spec().id);
    // Clap wants names that stay, and this process ends after it has printed them.
    let claims = ascertain_experiments::shipped_claims()?.claims.into_iter().map(|claim| &*claim.id.leak());
    let ids = PossibleValuesParser::new(experiments().chain(claims));
    let experiments = PossibleValuesParser::new(experiments());
    // Only here: what the commands themselves say of a wrong id names the nearest.
    let mut command = C::command()
        .mut_subcommand("run", |run| run.mut_arg("experiments", |arg| arg.value_parser(experiments)))
        .mut_subcommand("explain", |explain| explain.mut_arg("id", |arg| arg.value_parser(ids)));
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "ascertain", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(Ending::Done)
}
