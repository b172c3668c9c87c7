//! Tables and sentences for a terminal.
//!
//! Functions return text; whether it may have colour, and how wide it is, the caller decides. Names of
//! commands and variants are shown harmlessly: nothing in them reaches the terminal as an escape.

#[cfg(feature = "claims")]
mod claims;
#[cfg(feature = "claims")]
mod points;
#[cfg(feature = "html")]
mod prose;
mod table;

use std::io::{self, IsTerminal};

use ascertain_engine::outcome::{ClaimResult, Outcome, TestSpec};
use ascertain_sys::terminal;
use unicode_width::UnicodeWidthStr;

use crate::counters;
use crate::figure::Figure;
use crate::finding;
use crate::grid;
use crate::judgement::Judgement;
pub use crate::layout::Shown;
use crate::layout::TableLayout;
use crate::sentence::{self, marked};
use crate::text::{NO_BREAK, capitalised, parted, plain, shortened, unbroken_quantities};
pub use crate::text::{escape_controls, escape_controls_in_lines};
#[cfg(feature = "claims")]
pub use claims::{answer, check_table, checked};
#[cfg(feature = "claims")]
pub use points::{points_screen, points_table, slo};
#[cfg(feature = "html")]
pub use prose::prose;

/// How to draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether words like `holds` and `refuted` have colours. They say the same without.
    pub color: bool,
    /// The width in columns.
    pub width: usize,
}

impl Default for Style {
    /// 80 columns without colour.
    fn default() -> Self {
        Style { color: false, width: 80 }
    }
}

/// Whether the terminal knows nothing but text: no colours, and no way back along the line.
pub(crate) fn is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb")
}

/// Narrower than this, tables are as wide as this all the same.
const LEAST_WIDTH: usize = 40;
/// Narrower than this there is room for text, and little for what sets it out.
const NARROW: usize = 60;

impl Style {
    /// For standard output: as wide as the terminal or `COLUMNS` says, else 100 columns, and with colour as asked,
    /// else on a terminal that has any unless `NO_COLOR` is set.
    pub fn of_stdout(color: Option<bool>) -> Style {
        let no_color = || std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let color = color.unwrap_or_else(|| io::stdout().is_terminal() && !is_dumb() && !no_color());
        let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        // Where output goes through a pager, what else there is of the terminal knows how wide that is.
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

    /// The text wrapped at spaces, each line ended. A word that is longer than the line stays whole.
    pub fn paragraph(self, text: &str) -> String {
        wrapped(text, self.columns())
    }

    /// The same as one of several: a little to the right, and what is wrapped a little more.
    pub fn item(self, text: &str) -> String {
        // An id that reached over the end of the line would be broken, and could not be copied.
        let [first, rest] = if self.width < NARROW { ["", " "] } else { ["  ", "    "] };
        let lines = wrapped(text, self.columns() - rest.len() as u16);
        format!("{first}{}\n", lines.trim_end().replace('\n', &format!("\n{rest}")))
    }

    /// A word in the colour that it has, or plain.
    pub(crate) fn word(self, word: &str) -> String {
        match color_of(word).filter(|_| self.color) {
            Some(code) => format!("\x1b[{code}m{word}\x1b[0m"),
            None => word.to_string(),
        }
    }

    /// A paragraph that begins with this word, if with any, which has its colour.
    fn sentence(self, text: &str, verdict: Option<&str>) -> String {
        let wrapped = self.paragraph(text);
        match verdict.and_then(|word| Some((word, wrapped.strip_prefix(word)?))) {
            Some((word, rest)) => self.word(word) + rest,
            None => wrapped,
        }
    }
}

/// The text in lines of at most so many columns. A word that is longer stays whole, since an id or a path that is
/// broken can't be copied; the terminal shows what is left of it on its next line.
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

/// Blue and orange would be told apart by everybody, but terminals have no orange: blue and red are.
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

/// The table of `compare`: for each command, or function, its median time with interval, least and greatest, user
/// and system time, peak memory or throughput, how many trials, how many times as fast as the reference it is, with
/// interval, and the answer.
pub fn compare_table(outcome: &Outcome, layout: &TableLayout, style: &Style) -> String {
    style.table(&grid::compared(outcome, layout, "Interval"))
}

/// Which level of the parameters is the best for each command, and which come next, a paragraph each; empty where no
/// parameter has several levels.
pub fn best_levels(outcome: &Outcome, layout: &TableLayout, style: &Style) -> String {
    grid::scan::best_levels(outcome, layout).iter().map(|sentences| style.paragraph(&plain(sentences))).collect()
}

/// What was counted of each command beside that, how it compares with the reference's, and what could not be counted;
/// empty where nothing was asked for.
pub fn counters_table(outcome: &Outcome, layout: &TableLayout, style: &Style) -> String {
    let notes: String = counters::notes(outcome).iter().map(|note| style.paragraph(&plain(note))).collect();
    parted([style.table(&counters::grid(outcome, layout)), notes])
}

/// What was asked for and not measured to the end, a paragraph a reason.
pub fn left_out(outcome: &Outcome, style: &Style) -> String {
    sentence::left_out(outcome).iter().map(|sentence| style.paragraph(sentence)).collect()
}

/// Each claim's verdict as a sentence, and what speaks against its trials being alike. With more than one claim each
/// has its name before it, unless it says itself which commands it is about.
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

/// What the answers rest on, a paragraph each; empty where there is none.
pub fn explained(outcome: &Outcome, style: &Style) -> String {
    let said = sentence::explained(outcome);
    let paragraphs: String = said.iter().map(|sentence| style.item(sentence)).collect();
    if said.is_empty() { paragraphs } else { format!("What this rests on:\n{paragraphs}") }
}

/// The sentence, with long names shortened where it takes more than two lines, but for conditions.
fn brief(claim: &ClaimResult, sentence: &str, style: &Style) -> String {
    let opening = marked::opening(claim);
    let whole = style.sentence(&plain(sentence), opening);
    if whole.lines().count() <= 2 {
        return whole;
    }
    let conditions = claim.asked.tests.iter().filter_map(|test| match test {
        TestSpec::Predicate { predicate, .. } => Some(predicate.as_str()),
        TestSpec::Versus { .. } => None,
    });
    style.sentence(&plain(&shortened(sentence, &conditions.collect::<Vec<_>>())), opening)
}

/// What threatens a run's results, in a line or two; empty when nothing does. What follows from each, the report
/// says.
pub fn threats(outcome: &Outcome, style: &Style) -> String {
    let facts: Vec<String> = outcome.threats.iter().map(finding::threat_fact).collect();
    if facts.is_empty() { String::new() } else { style.paragraph(&format!("Careful: {}.", facts.join("; "))) }
}

/// What `judge` prints: the verdict as a sentence, and the intervals.
pub fn judgement(judgement: &Judgement, style: &Style) -> String {
    let Judgement { rate, rate_low, rate_high, credible_low, credible_high, rate_claimed, .. } = judgement;
    let share = Figure::of_share(*rate, *rate_low, *rate_high, *rate_claimed);
    let credible = Figure::of_share(*rate, *credible_low, *credible_high, *rate_claimed);
    let mut text = style.sentence(&judgement.sentence(), Some(&capitalised(judgement.verdict.word())));
    if rate.is_some() {
        text += &style.paragraph(&format!("Rate: {share}, {}.", judgement.of_interval()));
    }
    if credible_low.is_some() || credible_high.is_some() {
        let note = "equal-tailed, outside of the error budget";
        text += &style.paragraph(&format!("Credible interval: {} ({note}).", credible.range));
    }
    text
}
