//! The `ascertain` command: puts performance claims on trial.

mod cmd;
mod exit;
mod exports;
mod options;
mod output;
mod session;
mod suggestions;

use std::process::ExitCode;

use ascertain::Ending;
use ascertain_sys::{interrupt, threads};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};

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
fn wrong_usage(error: clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            error.exit()
        }
        _ => {
            output::note(with_suggestions(error).render().to_string().trim_end());
            exit::USAGE.into()
        }
    }
}

/// Adds suggestions for names that other tools have, and for commands in a place where they are not expected.
fn with_suggestions(mut error: clap::Error) -> clap::Error {
    let text = |kind| error.get(kind).map(ToString::to_string).unwrap_or_default();
    let (argument, subcommand, usage) =
        (text(ContextKind::InvalidArg), text(ContextKind::InvalidSubcommand), text(ContextKind::Usage));
    let is_root = usage.ends_with("ascertain <COMMAND>");
    let cli = Cli::command();
    let of_usage = usage.split_whitespace().skip_while(|word| *word != "ascertain").nth(1);
    let command = of_usage.and_then(|name| cli.find_subcommand(name)).unwrap_or(&cli);
    let tips = match error.kind() {
        ErrorKind::UnknownArgument if argument.starts_with('-') => suggestions::for_name(&argument, command),
        ErrorKind::UnknownArgument if usage.contains(" -- ") => vec!["put `--` before the command".into()],
        // Commands as hyperfine takes them, behind no subcommand.
        ErrorKind::InvalidSubcommand if is_root && subcommand.contains(' ') => {
            vec!["`ascertain compare` compares commands".into()]
        }
        ErrorKind::InvalidSubcommand if is_root => suggestions::for_name(&subcommand, &cli),
        _ => Vec::new(),
    };
    if !tips.is_empty() {
        // Names that look alike are not what the user means, and the usage shows the option that looks most alike.
        error.remove(ContextKind::SuggestedSubcommand);
        if error.remove(ContextKind::SuggestedArg).is_some() {
            error.remove(ContextKind::Usage);
        }
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips.into_iter().map(Into::into).collect()));
    }
    error
}

#[cfg(test)]
mod tests {
    use ascertain_sys::process::split;
    use clap::Command;

    use super::*;

    /// All commands below this one, with their names: `history prune`.
    fn below(command: &Command, name: &str) -> Vec<(String, Command)> {
        let mut all = Vec::new();
        for command in command.get_subcommands() {
            let name = format!("{name} {}", command.get_name());
            all.extend(below(command, &name));
            all.push((name, command.clone()));
        }
        all
    }

    #[test]
    fn each_command_has_examples_that_parse() {
        let all = below(&Cli::command(), "ascertain");
        assert!(all.iter().any(|(name, _)| name == "ascertain history prune"));
        for (name, command) in all {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let lines = help.strip_prefix("Examples:\n").unwrap_or_else(|| panic!("{name} has no examples"));
            let (examples, explanations): (Vec<&str>, Vec<&str>) =
                lines.lines().partition(|line| !line.starts_with("      "));
            assert!(!examples.is_empty() && examples.len() == explanations.len(), "{name}: {lines}");
            // Many terminals are 80 columns wide.
            assert_eq!(lines.lines().find(|line| line.len() > 80), None, "{name}");
            for example in examples {
                // Without the parts that a shell would act on.
                let line = example.trim().trim_start_matches("sudo ").replace('~', "/home/user");
                let line = line.split(" | ").flat_map(|part| part.split(" >")).next().unwrap();
                assert!(line.starts_with(&name), "{name}: {example}");
                let words = split(line).unwrap_or_else(|error| panic!("{example}: {error}"));
                if let Err(error) = Cli::try_parse_from(words) {
                    panic!("{example}: {error}");
                }
            }
        }
    }

    #[test]
    fn the_time_options_show_the_default_of_their_own_command() {
        let defaults = [
            ("compare", "30 s, or up to 5 min if a verdict needs that"),
            ("slo", "30 s, plus four times --spread"),
            ("check", "165 s"),
            ("run", "45 s for each experiment"),
            ("calibrate-here", "10 s"),
        ];
        let command = Cli::command();
        let mut found = 0;
        for subcommand in command.get_subcommands() {
            let help = subcommand.get_arguments().find(|arg| arg.get_id() == "max_time").and_then(|arg| arg.get_help());
            let Some(help) = help.map(ToString::to_string).filter(|help| help.contains("Start no new trial")) else {
                continue;
            };
            found += 1;
            let (_, own) = defaults.iter().find(|(name, _)| *name == subcommand.get_name()).unwrap();
            assert_eq!(help, format!("Start no new trial after this time: `30s`, `2min` [default: {own}]"));
        }
        assert_eq!(found, defaults.len());
    }
}
