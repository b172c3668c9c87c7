//! Tables and sentences for a terminal. The functions return text in the colours and width of a [`Style`]. Control
//! characters in names of commands and variants are already escaped.

#[cfg(feature = "claims")]
mod claims;
#[cfg(feature = "claims")]
mod points;
#[cfg(feature = "html")]
mod prose;
mod table;

use std::io::{self, IsTerminal};

use ascertain_engine::claim::Test;
use ascertain_engine::outcome::{ClaimResult, Outcome};
use ascertain_sys::terminal;
use unicode_width::UnicodeWidthStr;

use crate::amount;
use crate::counters;
use crate::finding;
use crate::grid;
use crate::options::TableLayout;
use crate::sentence::{self, marked};
use crate::tails;
use crate::text::{NO_BREAK, plain, shortened, unbroken_quantities};
pub use crate::text::{escape_controls, escape_controls_in_lines, parted};
#[cfg(feature = "claims")]
pub use claims::{answer, check_table, checked};
#[cfg(feature = "claims")]
pub use points::{points_screen, points_table, slo};
#[cfg(feature = "html")]
pub use prose::prose;

/// The colours and the width of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// `true` to colour words such as `holds` and `refuted`. The text is the same with and without colours.
    pub color: bool,
    /// The width of the output in columns.
    pub width: usize,
}

impl Default for Style {
    /// Returns a style of 80 columns without colours.
    fn default() -> Self {
        Style { color: false, width: 80 }
    }
}

/// Returns whether the terminal (`TERM=dumb`) has no colours and can't move its cursor.
pub(crate) fn is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb")
}

/// The smallest width of the output, in columns. It also applies to terminals that are narrower.
const LEAST_WIDTH: usize = 40;
/// An output with fewer columns than this is narrow: lists have less indentation, and ids of claims have their own
/// lines.
const NARROW: usize = 60;

impl Style {
    /// Returns the style for standard output. The width is `COLUMNS`, or the width of the terminal, or 100 columns. If
    /// `color` is `None`, colours are on if standard output is a terminal with colours and `NO_COLOR` is not set.
    pub fn of_stdout(color: Option<bool>) -> Style {
        let no_color = || std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let color = color.unwrap_or_else(|| io::stdout().is_terminal() && !is_dumb() && !no_color());
        let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        // If standard output is a pipe to a pager, standard error or standard input may still be the terminal.
        let of_terminal = || {
            terminal::columns(io::stdout())
                .or_else(|| terminal::columns(io::stderr()))
                .or_else(|| terminal::columns(io::stdin()))
        };
        Style {
            color,
            width: columns.or_else(|| of_terminal().map(usize::from)).unwrap_or(100).clamp(LEAST_WIDTH, 160),
        }
    }

    fn columns(self) -> u16 {
        self.width.clamp(LEAST_WIDTH, 1000) as u16
    }

    /// Wraps the text at spaces to the width of the style, with a newline after each line. A word longer than a line is
    /// not broken.
    pub fn paragraph(self, text: &str) -> String {
        wrapped(text, self.columns())
    }

    /// Returns each sentence as a paragraph, with names between backticks.
    pub(crate) fn paragraphs(self, sentences: &[String]) -> String {
        sentences.iter().map(|sentence| self.paragraph(&plain(sentence))).collect()
    }

    /// Returns a wrapped text as an item of a list. All lines are indented; the lines after the first have a larger
    /// indent.
    pub fn item(self, text: &str) -> String {
        // On a narrow terminal, an indent would break long ids over two lines, and a broken id can't be copied.
        let [first, rest] = if self.width < NARROW { ["", " "] } else { ["  ", "    "] };
        let lines = wrapped(text, self.columns() - rest.len() as u16);
        format!("{first}{}\n", lines.trim_end().replace('\n', &format!("\n{rest}")))
    }

    /// Returns a word in its colour, if it has one and the style has colours.
    pub(crate) fn word(self, word: &str) -> String {
        match color_of(word).filter(|_| self.color) {
            Some(code) => format!("\x1b[{code}m{word}\x1b[0m"),
            None => word.to_string(),
        }
    }

    /// Returns the text as a paragraph. If its first word is `verdict`, that word is coloured.
    pub(crate) fn sentence(self, text: &str, verdict: Option<&str>) -> String {
        let wrapped = self.paragraph(text);
        match verdict.and_then(|word| Some((word, wrapped.strip_prefix(word)?))) {
            Some((word, rest)) => self.word(word) + rest,
            None => wrapped,
        }
    }
}

/// Wraps the text to a width in columns. A longer word is not broken, because a broken id or path can't be copied.
fn wrapped(text: &str, columns: u16) -> String {
    let text = unbroken_quantities(&escape_controls(text));
    let mut lines = vec![String::new()];
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        match lines.last_mut().filter(|line| line.is_empty() || line.width() + 1 + word.width() <= usize::from(columns))
        {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) => *line += &format!(" {word}"),
            None => lines.push(word.to_string()),
        }
    }
    lines.iter().map(|line| line.replace(NO_BREAK, " ") + "\n").collect()
}

/// Returns the colour of a word: blue for good answers and red for bad ones, because most colour-blind people can
/// distinguish these. Blue and orange would be better, but terminals have no orange.
fn color_of(word: &str) -> Option<&'static str> {
    match word.to_ascii_lowercase().as_str() {
        "holds" | "faster" | "less" | "fewer" => Some("1;34"),
        "refuted" | "slower" | "more" | "failed" => Some("1;31"),
        "holds, but changed" | "refuted, but changed" => Some("1;35"),
        word if word.starts_with("undecided") => Some("33"),
        "unavailable" | "deferred" | "reference" => Some("2"),
        _ => None,
    }
}

/// Returns the table of `compare`, with a row for each command or function. It has the median with interval and range,
/// user and system time, and peak memory or throughput. The number of trials follows, then the difference from the
/// reference with its interval, and the answer. A line below the table explains the two kinds of intervals.
pub fn compare_table(outcome: &Outcome, layout: &TableLayout, style: &Style) -> String {
    let [narrow, table] = [false, true].map(|has_units| style.table(&grid::compared_with(outcome, layout, has_units)));
    // If the table fits only without the units of intervals, each row with units would become a paragraph.
    let table = if narrow.lines().count() < table.lines().count() { narrow } else { table };
    let has_interval = |claim: &ClaimResult| claim.ratio_low.is_some() && claim.ratio_high.is_some();
    if !outcome.claims.iter().any(has_interval) {
        return table;
    }
    let note = format!(
        "Decide by the answer and the {}. The 95 % intervals are only for orientation.",
        amount::interval_name(&outcome.claims)
    );
    parted([table, style.paragraph(&note)])
}

/// Returns a paragraph for each command about the parameter values with the best medians; empty if no parameter has
/// several values.
pub fn best_levels(outcome: &Outcome, layout: &TableLayout, style: &Style) -> String {
    style.paragraphs(&grid::scan::best_levels(outcome, layout))
}

/// Returns the table of the counters of each command and their comparison with the reference, then notes about counters
/// that are not available. Empty if no counters were requested.
pub fn counters_table(outcome: &Outcome, layout: &TableLayout, style: &Style) -> String {
    parted([style.table(&counters::grid(outcome, layout)), style.paragraphs(&counters::notes(outcome))])
}

/// Returns a sentence for each tail that the run compared, or for a faster arm whose tail looks worse; empty if there
/// are none.
pub fn tails(outcome: &Outcome, style: &Style) -> String {
    style.paragraphs(&tails::sentences(outcome))
}

/// Returns a paragraph for each reason why requested arms were not measured, or only in part.
pub fn left_out(outcome: &Outcome, style: &Style) -> String {
    style.paragraphs(&sentence::left_out(outcome))
}

/// Returns the verdict of each claim as a sentence, with a warning if its trials are not alike. If there are several
/// claims, the name of the claim is first, unless its sentence names the commands.
pub fn sentences(outcome: &Outcome, style: &Style) -> String {
    let is_named = |claim: &ClaimResult| outcome.claims.len() > 1 && claim.decision.is_none();
    let (texts, shared) = marked::claims(&outcome.claims);
    let paragraphs = outcome.claims.iter().zip(&texts).map(|(claim, text)| {
        let name = if is_named(claim) { style.paragraph(&claim.id) } else { String::new() };
        let warning = sentence::warning(claim).map_or_else(String::new, |warning| style.paragraph(&warning));
        name + &brief(claim, text, style) + &warning
    });
    let few = sentence::undiagnosed(&outcome.claims);
    let below = shared.into_iter().chain(few).map(|sentence| style.paragraph(&sentence));
    paragraphs.chain(below).collect::<Vec<_>>().join("\n")
}

/// Returns the assumptions behind the answers, each as a paragraph; empty if there are none.
pub fn explained(outcome: &Outcome, style: &Style) -> String {
    let said = sentence::explained(outcome);
    let paragraphs: String = said.iter().map(|sentence| style.item(sentence)).collect();
    if said.is_empty() { paragraphs } else { format!("Assumptions and errors:\n{paragraphs}") }
}

/// Returns the sentence of a claim as a paragraph. If the paragraph has more than two lines, long names are shortened,
/// except those in the conditions of the claim.
fn brief(claim: &ClaimResult, sentence: &str, style: &Style) -> String {
    let opening = marked::opening(claim);
    let whole = style.sentence(&plain(sentence), opening);
    if whole.lines().count() <= 2 {
        return whole;
    }
    let conditions = claim.asked.tests.iter().filter_map(|test| match test {
        Test::Predicate { predicate, .. } => Some(predicate.as_str()),
        Test::Versus { .. } => None,
    });
    style.sentence(&plain(&shortened(sentence, &conditions.collect::<Vec<_>>())), opening)
}

/// The height of a plot in lines, so that two plots fit on a screen.
#[cfg(feature = "plot")]
const PLOT_LINES: usize = 20;

/// Draws a plot as characters in the width of the style.
#[cfg(feature = "plot")]
pub fn plot(plot: &ascertain_plot::Plot, style: &Style) -> String {
    ascertain_plot::text::render(plot, style.width, PLOT_LINES, style.color)
}

/// Draws a forest plot as characters in the width of the style, with a line for each row.
#[cfg(feature = "plot")]
pub fn forest(plot: &ascertain_plot::Plot, style: &Style) -> String {
    /// Lines for the title, the legend, the axis and its label.
    const AROUND: usize = 7;
    let rows = match &plot.y.scale {
        ascertain_plot::Scale::Names(names) => names.len(),
        _ => PLOT_LINES,
    };
    ascertain_plot::text::render(plot, style.width, rows + AROUND, style.color)
}

/// Returns a paragraph with the threats to the results of a run; empty if there are none. The consequences of the
/// threats are described only in the report.
pub fn threats(outcome: &Outcome, style: &Style) -> String {
    let facts = finding::threat_facts(&outcome.threats);
    if facts.is_empty() { String::new() } else { style.paragraph(&format!("Careful: {}.", facts.join("; "))) }
}
