//! Data goes to standard output, everything else to standard error.

use std::io::{self, Write};

use anyhow::Context;
use ascertain::{Done, Request, UseCase};
use ascertain_engine::outcome::{ClaimResult, Outcome, Verdict};
use ascertain_engine::run::Run;
use ascertain_report::layout::TableLayout;
use ascertain_report::pictures::for_terminal;
use ascertain_report::plot::text;
use ascertain_report::terminal::{self, Shown, Style};
use ascertain_report::{csv, sentence};

use crate::cmd::report;
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

/// Writes a line to standard error, with what could steer a terminal as escapes; nothing can be done when that is
/// closed.
pub fn note(text: &str) {
    let _ = writeln!(io::stderr(), "{}", terminal::escape_controls_in_lines(text));
}

/// The style of tables: colours as asked, as wide as the terminal.
pub fn style(display: &Display) -> Style {
    Style::of_stdout(match display.color {
        Color::Always => Some(true),
        Color::Never => Some(false),
        Color::Auto => None,
    })
}

/// Prints what came of a run as asked. In CSV, which has room for one table, those that ask for verdicts get the claims, and
/// the others the metrics. Where that leaves no room for why something failed, standard error has it. The report of many
/// claims is made without being asked for, and one that stands there is made anew.
pub fn done(done: &Done, display: &Display) -> anyhow::Result<()> {
    let Done { request, plan, run, .. } = done;
    let asks_verdicts = matches!(request.use_case, UseCase::Slo | UseCase::Check);
    let outcome = &run.outcome;
    let says_why = match display.format {
        Format::Table => !display.quiet,
        Format::Csv => asks_verdicts,
        Format::Json | Format::Markdown => true,
    };
    if !says_why {
        failures(run).iter().for_each(|failure| note(failure));
    }
    match display.format {
        Format::Json => print(&ascertain_report::json::outcome(outcome))?,
        Format::Csv if asks_verdicts => print(&csv::claims(outcome))?,
        Format::Csv => print(&csv::outcome(outcome))?,
        Format::Markdown => print(&ascertain_report::markdown::outcome(&outcome.asked_for(&plan.tables)))?,
        Format::Table if display.quiet => {}
        Format::Table => {
            print(&tables(request, run, &outcome.asked_for(&plan.tables), &style(display)))?;
        }
    }
    let Some(folder) = &run.folder else { return Ok(()) };
    let has_report = matches!(request.use_case, UseCase::Check | UseCase::Run);
    if run.unkept.is_none() && (has_report || folder.join("report.html").is_file()) {
        report::write(folder, display.quiet)?;
    }
    Ok(())
}

/// For people.
fn tables(request: &Request, run: &Run, outcome: &Outcome, style: &Style) -> String {
    let plots = || plots(run, request.plot, style);
    match request.use_case {
        UseCase::Compare => compared(&run.outcome, &request.layout, plots(), style),
        UseCase::Slo => slo(&run.outcome, plots(), style),
        UseCase::Check => terminal::checked(outcome, &request.shown, style),
        UseCase::Run => measured(outcome, &request.shown, style),
    }
}

/// Why a target failed, or why nothing was measured: said by claims, or, where none says it, of arms.
fn failures(run: &Run) -> Vec<String> {
    let outcome = &run.outcome;
    let is_empty = outcome.points.iter().all(|point| point.n == 0);
    if !run.target_failed && !is_empty {
        return Vec::new();
    }
    let says_why = |claim: &&ClaimResult| claim.verdict == Verdict::Failed || (is_empty && !claim.reasons.is_empty());
    let said: Vec<String> = outcome.claims.iter().filter(says_why).map(sentence::claim).collect();
    if said.is_empty() { sentence::left_out(outcome) } else { said }
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
        Format::Table => print(&table(value, &style(display))),
    }
}

/// What `compare` prints: the table, a sentence for each command, plots, and what threatens the result.
fn compared(outcome: &Outcome, layout: &TableLayout, plots: String, style: &Style) -> String {
    // A claim that failed has said why.
    let said = outcome.claims.iter().any(|claim| !claim.reasons.is_empty());
    let left_out = if said { String::new() } else { terminal::left_out(outcome, style) };
    parts(&[
        terminal::compare_table(outcome, layout, style),
        terminal::sentences(outcome, style),
        left_out,
        plots,
        terminal::threats(outcome, style),
    ])
}

/// What `slo` prints.
fn slo(outcome: &Outcome, plots: String, style: &Style) -> String {
    parts(&[terminal::slo(outcome, style), plots, terminal::threats(outcome, style)])
}

/// The plots of a run that has just ended, in characters, where they are wanted.
fn plots(run: &Run, wanted: bool, style: &Style) -> String {
    let plots = if wanted { for_terminal(&run.outcome, &run.observations) } else { Vec::new() };
    let drawn: Vec<String> =
        plots.iter().map(|plot| text::render(plot, style.width, PLOT_LINES, style.color)).collect();
    parts(&drawn)
}

/// Says that what was asked for by `--plot` has no place in such output.
pub fn note_undrawn(wanted: bool, display: &Display) {
    if wanted && display.format != Format::Table {
        note("--plot draws below tables only, not with this --format; `ascertain report --svg` prints pictures");
    }
}

/// Two of them fit on a screen.
const PLOT_LINES: usize = 20;

/// What `run` prints: the tables of what was asked for, and the claims.
fn measured(outcome: &Outcome, shown: &Shown, style: &Style) -> String {
    let claims = match outcome.claims.is_empty() {
        true => terminal::threats(outcome, style),
        false => terminal::checked(outcome, shown, style),
    };
    parts(&[terminal::points_table(outcome, style), claims])
}

fn parts(parts: &[String]) -> String {
    let said = parts.iter().filter(|part| !part.is_empty()).map(String::as_str);
    said.collect::<Vec<_>>().join("\n")
}
