//! `ascertain completions`: prints a completion script for a shell.

use ascertain::Ending;
use clap::Command;
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

/// Print a completion script for a shell
///
/// In bash and zsh the script also completes the names of experiments and claims.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Shell for which to print the script
    shell: clap_complete::Shell,
}

pub fn execute(args: &Args, cli: Command) -> anyhow::Result<Ending> {
    let experiments = || ascertain_experiments::registry().into_iter().map(|experiment| &*experiment.spec().id);
    // Clap needs names with a static lifetime. Leaking memory is harmless here, because the process is about to end.
    let claims = ascertain_experiments::shipped_claims()?.claims.into_iter().map(|claim| &*claim.id.leak());
    let ids = PossibleValuesParser::new(experiments().chain(claims));
    let experiments = PossibleValuesParser::new(experiments());
    // Use the possible values only for completions: for a wrong id, the commands' own errors suggest the nearest id.
    let mut command = cli
        .mut_subcommand("run", |run| run.mut_arg("experiments", |arg| arg.value_parser(experiments)))
        .mut_subcommand("explain", |explain| explain.mut_arg("id", |arg| arg.value_parser(ids)));
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "ascertain", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(Ending::Done)
}
