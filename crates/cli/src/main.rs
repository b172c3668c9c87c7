//! The `ascertain` command, which tests performance claims.

mod cmd;
mod errors;
mod exit;
mod exports;
mod help;
mod measure;
mod options;
mod output;
#[cfg(test)]
mod reference;
mod suggestions;
mod transfer;
#[cfg(test)]
#[path = "../tests/all/typed.rs"]
mod typed;

use std::process::ExitCode;

use ascertain_sys::{cpu_level, interrupt, threads};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

/// Test performance claims with randomised, paired trials
///
/// A run stops as soon as the evidence suffices. The chance of a wrong verdict is at most the error that you state.
#[derive(Parser)]
#[command(name = "ascertain", version, propagate_version = true, max_term_width = 100, after_help = exit::help())]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// The subcommands, in the order of [`help::GROUPS`].
#[derive(Subcommand)]
enum Command {
    Compare(cmd::compare::Args),
    Slo(cmd::slo::Args),
    Check(cmd::check::Args),
    Run(cmd::run::Args),
    Judge(cmd::judge::Args),
    Permute(cmd::permute::Args),
    Power(cmd::power::Args),
    Cost(cmd::cost::Args),
    Pyperf(cmd::pyperf::Args),
    Continue(cmd::continue_run::Args),
    Report(cmd::report::Args),
    Series(cmd::series::Args),
    History(cmd::history::Args),
    Clean(cmd::clean::Args),
    CalibrateHere(cmd::calibrate_here::Args),
    List(cmd::list::Args),
    Explain(cmd::explain::Args),
    Put(cmd::put::Args),
    Get(cmd::get::Args),
    Ls(cmd::ls::Args),
    Listen(cmd::listen::Args),
    Fsmonitor(cmd::fsmonitor::Args),
    Barrierd(cmd::barrierd::Args),
    Completions(cmd::completions::Args),
    Man(cmd::man::Args),
}

/// Stack size of the thread that executes the command, in bytes. The main thread's stack may be smaller, because
/// `ulimit -s` sets its size.
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
    let arguments = help::grouped(Cli::command()).try_get_matches();
    let cli = match arguments.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => return wrong_usage(error),
    };
    if let Err(error) = cpu_level::forced() {
        output::note(&format!("error: {error}"));
        return exit::USAGE.into();
    }
    let ending = match &cli.command {
        Command::Compare(args) => cmd::compare::execute(args),
        Command::Slo(args) => cmd::slo::execute(args),
        Command::Check(args) => cmd::check::execute(args),
        Command::Run(args) => cmd::run::execute(args),
        Command::Judge(args) => cmd::judge::execute(args),
        Command::Permute(args) => cmd::permute::execute(args),
        Command::Power(args) => cmd::power::execute(args),
        Command::Cost(args) => cmd::cost::execute(args),
        Command::Pyperf(args) => cmd::pyperf::execute(args),
        Command::Continue(args) => cmd::continue_run::execute(args),
        Command::Report(args) => cmd::report::execute(args),
        Command::Series(args) => cmd::series::execute(args),
        Command::History(args) => cmd::history::execute(args),
        Command::Clean(args) => cmd::clean::execute(args),
        Command::CalibrateHere(args) => cmd::calibrate_here::execute(args),
        Command::List(args) => cmd::list::execute(args),
        Command::Explain(args) => cmd::explain::execute(args),
        Command::Put(args) => cmd::put::execute(args),
        Command::Get(args) => cmd::get::execute(args),
        Command::Ls(args) => cmd::ls::execute(args),
        Command::Listen(args) => cmd::listen::execute(args),
        Command::Fsmonitor(args) => cmd::fsmonitor::execute(args),
        Command::Barrierd(args) => cmd::barrierd::execute(args),
        Command::Completions(args) => cmd::completions::execute(args, Cli::command()),
        Command::Man(args) => cmd::man::execute(args, Cli::command()),
    };
    match ending {
        Ok(ending) => exit::code(ending).into(),
        Err(error) => {
            let code = exit::of_error(&error);
            output::note(&format!("error: {:#}", errors::with_option(error)));
            code.into()
        }
    }
}

/// Prints a usage error. Escapes control characters, because the message contains the user's input. Help and version
/// are printed by clap, which adds colours.
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

/// Adds suggestions to a usage error: for names that other tools use, and for command lines without `compare` or `--`.
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
        // The subcommand is missing before a command, as in a command line for hyperfine.
        ErrorKind::InvalidSubcommand if is_root && subcommand.contains(' ') => {
            vec!["`ascertain compare` compares commands".into()]
        }
        ErrorKind::InvalidSubcommand if is_root => suggestions::for_name(&subcommand, &cli),
        _ => Vec::new(),
    };
    if !tips.is_empty() {
        // Remove clap's own suggestions, which are only similar in spelling. The usage line may contain such a
        // suggestion, so remove that line too.
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

    /// Returns all subcommands below this command, with their full names, such as `history prune`.
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
                // Remove the parts that only a shell understands.
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

    /// Placeholders in the commands of the documents, each with the text that replaces it before the command is parsed.
    const PLACEHOLDERS: [(&str, &str); 6] = [
        ("COMMAND", "compare"),
        ("S/N", "1/2"),
        ("ALPHA", "98%"),
        ("EPS", "0.001"),
        (" --true P", " --true 99%"),
        ("--max-trials N", "--max-trials 9"),
    ];

    /// Parses the commands of README and the book. Reference pages need no test, because they are generated from the
    /// parser.
    #[test]
    fn each_command_in_the_documents_parses() {
        let typed = crate::typed::commands(&["docs", "docs/experiments"]);
        assert!(typed.len() > 100, "{}", typed.len());
        for one in typed {
            let line = PLACEHOLDERS.iter().fold(one.line.clone(), |line, (word, value)| line.replace(word, value));
            for part in line.split(" | ").flat_map(|part| part.split(" && ")) {
                // Drop assignments, `sudo` and redirections, and replace characters that a shell would interpret.
                let part = format!(" {}", part.split(" >").next().unwrap());
                let Some((_, arguments)) = part.split_once(" ascertain ") else { continue };
                let arguments = arguments.replace(['~', '*', '$'], "x");
                let words = split(&format!("ascertain {arguments}")).unwrap_or_else(|error| panic!("{one:?}: {error}"));
                let Err(error) = Cli::try_parse_from(&words) else { continue };
                // A sentence may name a command without its arguments.
                let is_fine = match error.kind() {
                    ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => true,
                    ErrorKind::MissingRequiredArgument => !one.is_block && !arguments.contains('-'),
                    _ => false,
                };
                assert!(is_fine, "{}: `{}`: {error}", one.document, one.line);
            }
        }
    }

    #[test]
    fn each_subcommand_is_in_a_group_of_the_help() {
        let names = |cli: &Command| -> Vec<String> { cli.get_subcommands().map(|one| one.get_name().into()).collect() };
        let grouped: Vec<&str> = help::GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        assert_eq!(grouped, names(&Cli::command()), "the groups of help.rs have the order of `Command`");
        let help = help::grouped(Cli::command()).render_help().to_string();
        assert!(help.contains("\nRuns:\n  continue        Continue a run from its evidence\n  report "), "{help}");
        // Many terminals are 80 columns wide, and clap does not wrap the groups.
        let (groups, _) = help.split_once("\nOptions:").unwrap();
        assert_eq!(groups.lines().find(|line| line.starts_with("  ") && line.len() > 80), None);
    }

    #[test]
    fn the_time_options_show_the_default_of_their_own_command() {
        let defaults = [
            ("compare", "30 s, or up to 5 min if the fewest trials take that long"),
            ("slo", "30 s, plus four times --spread"),
            ("check", "165 s"),
            ("run", "45 s for each experiment, 100 s for `runtimes`"),
            ("calibrate-here", "10 s"),
        ];
        let command = Cli::command();
        let mut found = 0;
        for subcommand in command.get_subcommands() {
            let help = subcommand.get_arguments().find(|arg| arg.get_id() == "max_time").and_then(|arg| arg.get_help());
            let Some(help) = help.map(ToString::to_string).filter(|help| help.contains("no new trial starts")) else {
                continue;
            };
            found += 1;
            let (_, own) = defaults.iter().find(|(name, _)| *name == subcommand.get_name()).unwrap();
            assert_eq!(help, format!("Time after which no new trial starts, such as `30s` or `2min` [default: {own}]"));
        }
        assert_eq!(found, defaults.len());
    }
}
