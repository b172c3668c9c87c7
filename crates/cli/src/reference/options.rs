//! A page for each subcommand: its usage, examples, arguments and options, as clap knows them.

use std::fmt::Write as _;

use clap::{Arg, Command};

use super::{code, escaped, head, row};

/// The options that every command has. Because every command has them, the tables of options leave them out.
const EVERYWHERE: [&str; 2] = ["help", "version"];

/// Returns a reference page for each subcommand: its file name and its text.
pub fn pages(mut cli: Command) -> Vec<(String, String)> {
    cli.build();
    let page = |command: &Command| {
        let mut text = format!("# ascertain {}\n", command.get_name());
        describe(command, &mut text);
        for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
            let _ = write!(text, "\n## ascertain {} {}\n", command.get_name(), below.get_name());
            describe(below, &mut text);
        }
        (command.get_name().to_owned(), text)
    };
    cli.get_subcommands().filter(|command| command.get_name() != "help").map(page).collect()
}

/// Adds the description of a command below its heading.
fn describe(command: &Command, text: &mut String) {
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    let _ = write!(text, "\n{}\n", escaped(&with_full_stop(&about)));
    let usage = command.clone().render_usage().to_string();
    let _ = write!(text, "\n```text\n{}\n```\n", usage.trim_start_matches("Usage: "));
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    if let Some(examples) = help.strip_prefix("Examples:\n") {
        let _ = write!(text, "\nExamples:\n\n{}", examples_table(examples));
    }
    let mut headings: Vec<String> = Vec::new();
    let arguments: Vec<&Arg> = command
        .get_arguments()
        .filter(|arg| !arg.is_hide_set() && !EVERYWHERE.contains(&arg.get_id().as_str()))
        .collect();
    for arg in &arguments {
        let heading = heading_of(arg);
        if !headings.contains(&heading) {
            headings.push(heading);
        }
    }
    for heading in headings {
        let _ = write!(text, "\n**{heading}**\n\n{}", head(&["option", "meaning"]));
        for arg in arguments.iter().filter(|arg| heading_of(arg) == heading) {
            text.push_str(&row(&[&name(arg), &meaning(arg)]));
        }
    }
}

/// Adds a full stop to the first line of a help text. Clap expects this line without one.
fn with_full_stop(about: &str) -> String {
    let (first, rest) = about.split_once("\n\n").unwrap_or((about, ""));
    format!("{}\n\n{rest}", sentence(first)).trim_end().to_owned()
}

/// Returns a table of the examples. In `examples`, each command is followed by an indented line that explains it.
fn examples_table(examples: &str) -> String {
    let mut table = head(&["command", "use it to"]);
    let lines: Vec<&str> = examples.lines().collect();
    for pair in lines.chunks(2) {
        let explanation = pair.get(1).map_or("", |line| line.trim());
        let mut letters = explanation.chars();
        let first = letters.next().map(|c| c.to_lowercase().to_string()).unwrap_or_default();
        table += &row(&[&code(pair[0].trim()), &escaped(&(first + letters.as_str()))]);
    }
    table
}

fn heading_of(arg: &Arg) -> String {
    let own = if arg.is_positional() { "Arguments" } else { "Options" };
    arg.get_help_heading().unwrap_or(own).to_owned()
}

/// Returns the names of an option, followed by the names of its values: `-n`, `--command-name NAME`.
fn name(arg: &Arg) -> String {
    let takes_values = arg.get_action().takes_values();
    let values: Vec<&str> = arg.get_value_names().into_iter().flatten().map(|name| name.as_str()).collect();
    let values = values.join(" ");
    if arg.is_positional() {
        return code(&values);
    }
    let mut names: Vec<String> = arg.get_short().into_iter().map(|short| format!("`-{short}`")).collect();
    for long in arg.get_long().into_iter().chain(arg.get_visible_aliases().into_iter().flatten()) {
        names.push(match (takes_values && !values.is_empty(), arg.is_require_equals_set()) {
            (true, true) => format!("`--{long}[={values}]`"),
            (true, false) => format!("`--{long} {values}`"),
            (false, _) => format!("`--{long}`"),
        });
    }
    names.join(", ")
}

/// Returns the help text of an option as full sentences. The order is: its first paragraph, the default value, the
/// other paragraphs, and the accepted words.
fn meaning(arg: &Arg) -> String {
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let takes_values = arg.get_action().takes_values();
    let mut sentences = Vec::new();
    for (index, paragraph) in help.split("\n\n").enumerate() {
        let paragraph = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
        let (text, mut default) = match paragraph.split_once(" [default: ") {
            Some((text, default)) => (text.to_owned(), escaped(&default.replacen(']', "", 1))),
            None => (paragraph, String::new()),
        };
        if default.is_empty() && index == 0 && takes_values && !help.contains("[default: ") {
            let values = arg.get_default_values().iter().map(|value| code(&value.to_string_lossy()));
            default = values.collect::<Vec<_>>().join(", ");
        }
        let default = if default.is_empty() { default } else { format!(" (default: {default})") };
        sentences.push(sentence(&format!("{}{default}", escaped(&text))));
    }
    if takes_values {
        for word in arg.get_possible_values().iter().filter(|word| !word.is_hide_set()) {
            let help = word.get_help().map(|help| format!(": {}", escaped(&help.to_string()))).unwrap_or_default();
            sentences.push(sentence(&format!("{}{help}", code(word.get_name()))));
        }
    }
    sentences.join(" ")
}

/// Adds a full stop if there is none.
fn sentence(text: &str) -> String {
    format!("{text}{}", if text.ends_with(['.', ':', '?', '!']) { "" } else { "." })
}
