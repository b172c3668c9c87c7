//! The `ascertain` command: puts performance claims on trial.

mod cmd;
mod exit;
mod exports;
mod options;
mod output;
mod session;

use std::process::ExitCode;

use ascertain::Ending;
use ascertain_sys::{interrupt, threads};
use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Puts performance claims on trial: randomised, paired trials that stop as soon as the evidence
/// suffices, and are wrong at most a stated fraction of the time.
#[derive(Parser)]
#[command(name = "ascertain", version, propagate_version = true, max_term_width = 100, after_help = exit::help())]
struct Cli {
    #[command(subcommand)]
    command: cmd::Command,
}

/// Size of the stack that the commands need. `ulimit -s` can make the main thread's stack smaller.
const STACK_BYTES: usize = 4 << 20;

fn main() -> ExitCode {
    threads::run_with_stack(STACK_BYTES, execute).unwrap_or_else(|error| {
        output::note(&format!("error: could not start a thread: {error}"));
        exit::USAGE.into()
    })
}

fn execute() -> ExitCode {
    if let Err(error) = interrupt::let_large_writes_fail() {
        output::note(&format!("warning: {error}"));
    }
    let command = match Cli::try_parse() {
        Ok(cli) => cli.command,
        Err(error) => return wrong_usage(error),
    };
    match command.execute::<Cli>() {
        Ok(ending) => exit::code(ending).into(),
        Err(error) => {
            output::note(&format!("error: {error:#}"));
            // What was interrupted stays so, whatever failed while it ended.
            if interrupt::requested() { exit::code(Ending::Interrupted).into() } else { exit::USAGE.into() }
        }
    }
}

/// What was typed is part of the message, and must not steer a terminal either. Help has its colours.
fn wrong_usage(mut error: clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            error.exit()
        }
        kind => {
            let said = |kind| error.get(kind).map(ToString::to_string).unwrap_or_default();
            let is_command =
                !said(ContextKind::InvalidArg).starts_with('-') && said(ContextKind::Usage).contains(" -- ");
            let tip = match kind {
                ErrorKind::UnknownArgument if is_command => Some("put `--` before the command"),
                // Commands as hyperfine takes them, behind no subcommand.
                ErrorKind::InvalidSubcommand
                    if said(ContextKind::InvalidSubcommand).contains(' ')
                        && said(ContextKind::Usage).ends_with("ascertain <COMMAND>") =>
                {
                    Some("`ascertain compare` takes commands to compare")
                }
                _ => None,
            };
            if let Some(tip) = tip {
                error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
            }
            output::note(error.render().to_string().trim_end());
            exit::USAGE.into()
        }
    }
}
