//! Data goes to standard output, everything else to standard error.

use std::io::{self, Write};

use anyhow::Context;
use ascertain_engine::outcome::Outcome;
use ascertain_engine::run::Run;
use ascertain_report::alphabet::Alphabet;
use ascertain_report::pictures::for_terminal;
use ascertain_report::plot::{Plot, text};
pub use ascertain_report::progress::note;
use ascertain_report::terminal::{self, Style};

use crate::options::{Color, Display, Format};

/// Writes text to standard output.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // The reader has seen enough; the exit code stays what it is.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("standard output"),
    }
}

/// Writes to standard output what is for people, in the characters that the locale has.
pub fn say(text: &str) -> anyhow::Result<()> {
    print(&Alphabet::of_environment().shown(text))
}

/// The style of tables: colours as asked, as wide as the terminal.
pub fn style(display: &Display) -> Style {
    Style::of_stdout(match display.color {
        Color::Always => Some(true),
        Color::Never => Some(false),
        Color::Auto => None,
    })
}

/// Prints below the answers what they rest on: beside data for programs, on standard error.
pub fn explained(outcome: &Outcome, display: &Display) -> anyhow::Result<()> {
    let text = terminal::explained(outcome, &style(display));
    match display.format {
        _ if text.is_empty() => Ok(()),
        Format::Table if !display.quiet => say(&format!("\n{text}")),
        _ => {
            note(text.trim_end());
            Ok(())
        }
    }
}

/// Prints a value as asked, given how it is said in JSON, CSV and Markdown, and to people.
pub fn formatted<T>(
    value: &T,
    display: &Display,
    [json, csv, markdown]: [fn(&T) -> String; 3],
    table: fn(&T, &Style) -> String,
) -> anyhow::Result<()> {
    match display.format {
        Format::Json => print(&json(value)),
        Format::Csv => print(&csv(value)),
        Format::Markdown => print(&markdown(value)),
        Format::Table if display.quiet => Ok(()),
        Format::Table => say(&table(value, &style(display))),
    }
}

/// The plots of a run that has just ended, in characters, where they are wanted.
pub fn plots(run: &Run, wanted: bool, style: &Style) -> String {
    let plots = if wanted { for_terminal(&run.outcome, &run.observations) } else { Vec::new() };
    parts(&plots.iter().map(|drawn| plot(drawn, style)).collect::<Vec<_>>())
}

/// A plot in characters.
pub fn plot(plot: &Plot, style: &Style) -> String {
    text::render(plot, style.width, PLOT_LINES, style.color)
}

/// Says that what was asked for by `--plot` has no place in such output.
pub fn note_undrawn(wanted: bool, display: &Display) {
    if wanted && display.format != Format::Table {
        note("--plot draws below tables only, not with this --format; `ascertain report --svg` prints pictures");
    }
}

/// Two of them fit on a screen.
const PLOT_LINES: usize = 20;

/// What there is of these, with an empty line between.
pub fn parts(parts: &[String]) -> String {
    let said = parts.iter().filter(|part| !part.is_empty()).map(String::as_str);
    said.collect::<Vec<_>>().join("\n")
}
