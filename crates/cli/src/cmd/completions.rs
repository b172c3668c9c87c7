//! `ascertain completions`.

use clap::CommandFactory;

use crate::exit::Code;
use crate::output;

/// Print a completion script for a shell
#[derive(clap::Args)]
pub struct Args {
    /// The shell
    shell: clap_complete::Shell,
}

pub fn execute<C: CommandFactory>(args: &Args) -> anyhow::Result<Code> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut C::command(), "ascertain", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(Code::Done)
}
