//! Shows the subcommands in groups, in `ascertain --help`.

use std::fmt::Write as _;

use clap::Command;

/// The groups in which subcommands are listed: each with its heading and the names of its subcommands.
pub const GROUPS: &[(&str, &[&str])] = &[
    ("Measure", &["compare", "slo", "check", "run"]),
    ("Decide from data you have", &["judge", "permute", "power", "cost", "pyperf"]),
    ("Runs", &["continue", "report", "series", "history", "clean"]),
    ("This machine", &["calibrate-here", "list", "explain"]),
    ("Tools built on the same libraries", &["put", "get", "ls", "listen", "fsmonitor", "barrierd"]),
    ("Shell", &["completions", "man"]),
];

/// Sets a help template that lists the subcommands in [`GROUPS`]. Without a template, clap lists them all in one block.
pub fn grouped(cli: Command) -> Command {
    let styles = cli.get_styles();
    let (header, literal) = (*styles.get_header(), *styles.get_literal());
    let width = GROUPS.iter().flat_map(|(_, names)| *names).map(|name| name.len()).max().unwrap_or(0);
    let mut groups = String::new();
    for (heading, names) in GROUPS {
        let _ = writeln!(groups, "{header}{heading}:{header:#}");
        for name in *names {
            let about = cli.find_subcommand(name).and_then(Command::get_about).map(ToString::to_string);
            let _ = writeln!(groups, "  {literal}{name:width$}{literal:#}  {}", about.unwrap_or_default());
        }
        groups.push('\n');
    }
    let more = "`ascertain COMMAND --help` explains a command, with examples and all options.\n\n";
    let options = format!("{header}Options:{header:#}\n{{options}}{{after-help}}");
    cli.help_template(format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}{more}{options}"))
}
