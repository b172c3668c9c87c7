//! The `ascertain` command: puts performance claims on trial.

mod cmd;
mod exit;
mod exports;
mod options;
mod output;
mod progress;
mod session;

use std::process::ExitCode;

use ascertain_sys::interrupt;
use clap::error::ErrorKind;
use clap::{Parser, Subcommand};

/// Puts performance claims on trial: randomised, paired trials that stop as soon as the evidence
/// suffices, and are wrong at most a stated fraction of the time.
#[derive(Parser)]
#[command(name = "ascertain", version, propagate_version = true, max_term_width = 100, after_help = exit::help())]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Compare(cmd::compare::Args),
    Slo(cmd::slo::Args),
    Check(cmd::check::Args),
    Run(cmd::run::Args),
    Continue(cmd::resume::Args),
    List(cmd::list::Args),
    Explain(cmd::explain::Args),
    Report(cmd::report::Args),
    Judge(cmd::judge::Args),
    Permute(cmd::permute::Args),
    Power(cmd::power::Args),
    CalibrateHere(cmd::calibrate_here::Args),
    History(cmd::history::Args),
    Barrierd(cmd::barrierd::Args),
    Completions(cmd::completions::Args),
    Man(cmd::man::Args),
}

fn main() -> ExitCode {
    let command = match Cli::try_parse() {
        Ok(cli) => cli.command,
        Err(error) => return wrong_usage(&error),
    };
    let done = match &command {
        Command::Compare(args) => cmd::compare::execute(args),
        Command::Slo(args) => cmd::slo::execute(args),
        Command::Check(args) => cmd::check::execute(args),
        Command::Run(args) => cmd::run::execute(args),
        Command::Continue(args) => cmd::resume::execute(args),
        Command::List(args) => cmd::list::execute(args),
        Command::Explain(args) => cmd::explain::execute(args),
        Command::Report(args) => cmd::report::execute(args),
        Command::Judge(args) => cmd::judge::execute(args),
        Command::Permute(args) => cmd::permute::execute(args),
        Command::Power(args) => cmd::power::execute(args),
        Command::CalibrateHere(args) => cmd::calibrate_here::execute(args),
        Command::History(args) => cmd::history::execute(args),
        Command::Barrierd(args) => cmd::barrierd::execute(args),
        Command::Completions(args) => cmd::completions::execute::<Cli>(args),
        Command::Man(args) => cmd::man::execute::<Cli>(args),
    };
    match done {
        Ok(code) => code.into(),
        Err(error) => {
            output::note(&format!("error: {error:#}"));
            // What was interrupted stays so, whatever failed while it ended.
            let code = if interrupt::requested() { exit::Code::Interrupted } else { exit::Code::Usage };
            code.into()
        }
    }
}

/// What was typed is part of the message, and must not steer a terminal either. Help has its colours.
fn wrong_usage(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            error.exit()
        }
        _ => {
            output::note(error.render().to_string().trim_end());
            exit::Code::Usage.into()
        }
    }
}
