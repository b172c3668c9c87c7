//! Output of the command. Data goes to standard output, everything else to standard error.

use std::io::{self, Write};

use anyhow::Context;
use ascertain_report::alphabet::Alphabet;
use ascertain_report::formats::Report;
pub use ascertain_report::progress::note;

use crate::options::{Display, Format};

/// Writes text to standard output.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // The reader has closed the pipe. This is not an error, and does not change the exit code.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("can't write to standard output"),
    }
}

/// Prints a text for people on standard output. Replaces characters that the locale can't show.
pub fn print_for_people(text: &str) -> anyhow::Result<()> {
    print(&Alphabet::from_environment().shown(text))
}

/// Prints a report in the requested format.
pub fn report(report: &impl Report, display: &Display) -> anyhow::Result<()> {
    match display.format {
        Format::Json => print(&report.json()),
        Format::Csv => print(&report.csv()),
        Format::Markdown => print(&report.markdown()),
        Format::Table if display.quiet => Ok(()),
        Format::Table => print_for_people(&report.text(&display.style())),
    }
}

/// Prints a note if `--plot` is given with a format that can't contain a plot.
pub fn note_undrawn(wanted: bool, format: Format) {
    if wanted && format != Format::Table {
        note("--plot is ignored, because only a table can have a plot; use `ascertain report --svg` for a picture");
    }
}
