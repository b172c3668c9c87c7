//! What each subcommand prints.

use ascertain_engine::outcome::{ClaimResult, Outcome, Verdict};

use super::draw::Style;
use crate::figure::Figure;
use crate::finding;
use crate::grids;
use crate::judgement::Judgement;
use crate::layout::Layout;
use crate::sentence::{self, marked};
use crate::text::{plain, shortened};

/// The table that `check` ends with: what is claimed, by whom, the source's figure, the figure here with
/// its interval, the verdict; and under it how many claims came to which verdict.
pub fn check_table(outcome: &Outcome, style: &Style) -> String {
    let table = style.table(&grids::claims(outcome));
    if table.is_empty() {
        "No claims.\n".into()
    } else {
        format!("{table}\n{}", style.paragraph(&tally(&outcome.claims)))
    }
}

/// "2 hold, 1 refuted."
pub(super) fn tally(claims: &[ClaimResult]) -> String {
    let verdicts = [
        (Verdict::Holds, "hold"),
        (Verdict::Refuted, "refuted"),
        (Verdict::Undecided, "undecided"),
        (Verdict::Unavailable, "unavailable"),
        (Verdict::Failed, "failed"),
        (Verdict::Deferred, "deferred"),
    ];
    let count = |verdict| claims.iter().filter(|claim| claim.verdict == verdict).count();
    let counted = verdicts.map(|(verdict, word)| (count(verdict), word));
    let parts = counted.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}"));
    let all = match claims.len() {
        1 => "1 claim".into(),
        n => format!("{n} claims"),
    };
    format!("{all}: {}.", parts.collect::<Vec<_>>().join(", "))
}

/// The table of `compare`: for each command, or function, its median time with interval, least and greatest, user
/// and system time, peak memory or throughput, how many trials, how many times as fast as the reference it is, with
/// interval, and the answer.
pub fn compare_table(outcome: &Outcome, layout: &Layout, style: &Style) -> String {
    style.table(&grids::compared(outcome, layout, "Interval"))
}

/// The tables of `run`: for each experiment, what all of its arms share, and a row for each arm; then what was
/// asked for and not measured, by reason.
pub fn points_table(outcome: &Outcome, style: &Style) -> String {
    let tables = grids::points(outcome);
    let tables: Vec<String> =
        tables.iter().map(|(heading, grid)| format!("{}{}", style.paragraph(heading), style.table(grid))).collect();
    let parts = tables.into_iter().chain([left_out(outcome, style)]);
    parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

/// What was asked for and not measured to the end, a paragraph a reason.
pub fn left_out(outcome: &Outcome, style: &Style) -> String {
    sentence::left_out(outcome).iter().map(|sentence| style.paragraph(sentence)).collect()
}

/// Each claim's verdict as a sentence, and what speaks against its trials being alike. With more than one claim each
/// has its name before it, unless it says itself which commands it is about.
pub fn sentences(outcome: &Outcome, style: &Style) -> String {
    let is_named = |claim: &ClaimResult| outcome.claims.len() > 1 && claim.decision.is_none();
    let paragraphs = outcome.claims.iter().map(|claim| {
        let name = if is_named(claim) { style.paragraph(&claim.id) } else { String::new() };
        let warning = sentence::warning(claim).map_or_else(String::new, |warning| style.paragraph(&warning));
        name + &brief(&marked::claim(claim), style) + &warning
    });
    let overshoot = sentence::overshoot(&outcome.claims).map(|note| style.paragraph(note));
    paragraphs.chain(overshoot).collect::<Vec<_>>().join("\n")
}

/// The sentence, with long names shortened where it takes more than two lines.
fn brief(sentence: &str, style: &Style) -> String {
    let whole = style.sentence(&plain(sentence));
    if whole.lines().count() > 2 { style.sentence(&plain(&shortened(sentence))) } else { whole }
}

/// What `slo` prints: the verdict as a sentence, and what was measured.
pub fn slo(outcome: &Outcome, style: &Style) -> String {
    format!("{}\n{}", sentences(outcome, style), points_table(outcome, style))
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
    let mut text = style.sentence(&judgement.sentence());
    if rate.is_some() {
        text += &style.paragraph(&format!("Rate: {share}, {}.", judgement.of_interval()));
    }
    if credible_low.is_some() || credible_high.is_some() {
        let note = "equal-tailed, outside of the error budget";
        text += &style.paragraph(&format!("Credible interval: {} ({note}).", credible.range));
    }
    text
}
