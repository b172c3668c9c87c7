//! Many claims on one screen: how many hold, which are refuted and by how much, and why others are open.

use ascertain_engine::finding::Remark;
use ascertain_engine::outcome::{ArmRemark, ClaimResult, Outcome, PointSummary, TestSpec, Verdict};
use unicode_width::UnicodeWidthStr;

use super::{NARROW, Style, left_out, sentences, threats};
use crate::clause::claimed;
use crate::layout::Shown;
use crate::sentence::undiagnosed_claims;
use crate::standing::{Count, distance, tally};
use crate::text::{counted, cut, escape_controls, gathered, parted, sorted};
use crate::{finding, grid};

/// So few claims are said in whole.
const FEW: usize = 6;
/// So many refuted claims have a line.
const MOST_LINES: usize = 20;
/// So many ids stand behind a reason.
const MOST_IDS: usize = 3;

/// What `check` prints: few claims, and those that are asked for by their verdict, each as a sentence; many on one
/// screen, which ends with the command that prints the sentences of the run, where one has kept it.
pub fn checked(outcome: &Outcome, shown: &Shown, report: Option<&str>, style: &Style) -> String {
    let is_asked = |claim: &&ClaimResult| shown.only.is_empty() || shown.only.contains(&claim.verdict);
    let asked: Vec<ClaimResult> = outcome.claims.iter().filter(is_asked).cloned().collect();
    let is_brief = asked.len() > FEW && shown.only.is_empty() && !shown.all;
    if is_brief {
        return screen(outcome, report, style);
    }
    let has_none = asked.is_empty() && !outcome.claims.is_empty();
    let none = if has_none { style.paragraph(&no_such(&shown.only)) } else { String::new() };
    let asked = Outcome { claims: asked, ..outcome.clone() };
    let end =
        if shown.all && !has_none { check_table(&asked, style) } else { style.paragraph(&counts(&outcome.claims)) };
    let few = undiagnosed_claims(&asked.claims).map_or_else(String::new, |sentence| style.paragraph(&sentence));
    let figures = left_out(&missing_figures(outcome), style);
    parted([none, sentences(&asked, style), deferred_table(&asked, style), few, figures, threats(outcome, style), end])
}

/// The outcome with nothing left out, and no remarks but those about figures that commands did not print.
fn missing_figures(outcome: &Outcome) -> Outcome {
    let is_missing = |one: &&ArmRemark| matches!(one.remark, Remark::NoFigure { .. });
    let remarks = outcome.remarks.iter().filter(is_missing).cloned().collect();
    Outcome { remarks, left_out: Vec::new(), ..outcome.clone() }
}

/// What came of a run in a few lines: few claims as sentences, many counted by their verdicts.
pub fn answer(outcome: &Outcome, style: &Style) -> String {
    match outcome.claims.len() {
        ..=FEW => sentences(outcome, style),
        _ => style.paragraph(&counts(&outcome.claims)),
    }
}

/// The table that `check` ends with: what is claimed, by whom, the source's figure, the figure here with
/// its interval, the verdict; and under it how many claims came to which verdict.
pub fn check_table(outcome: &Outcome, style: &Style) -> String {
    let table = style.table(&grid::claims(outcome));
    if table.is_empty() {
        "No claims.\n".into()
    } else {
        format!("{table}\n{}", style.paragraph(&counts(&outcome.claims)))
    }
}

/// "3 claims: 2 hold, 1 refuted."
fn counts(claims: &[ClaimResult]) -> String {
    if claims.is_empty() {
        return "There are no such claims.".into();
    }
    let said: Vec<String> = tally(claims.iter()).iter().map(Count::words).collect();
    format!("{}: {}.", counted(claims.len(), "claim"), said.join(", "))
}

/// "No claim has the verdict refuted or undecided."
fn no_such(verdicts: &[Verdict]) -> String {
    let words: Vec<&str> = verdicts.iter().map(|verdict| verdict.word()).collect();
    format!("No claim has the verdict {}.", words.join(" or "))
}

/// What was measured of claims before they were deferred: few trials tell more than none. Where there are more of an arm,
/// a table has them, and shows them.
fn deferred_table(outcome: &Outcome, style: &Style) -> String {
    let is_deferred = |claim: &&ClaimResult| claim.verdict == Verdict::Deferred && claim.trials > 0;
    let deferred: Vec<&ClaimResult> = outcome.claims.iter().filter(is_deferred).collect();
    let is_theirs = |point: &&PointSummary| {
        let of_claim = |claim: &&&ClaimResult| claim.experiment == point.experiment && point.n <= claim.trials;
        let mut arms = deferred.iter().filter(of_claim).flat_map(|claim| &claim.asked.tests).flat_map(TestSpec::arms);
        arms.any(|arm| (&arm.variant, &arm.point) == (&point.variant, &point.at))
    };
    let points = grid::in_tables(outcome).filter(is_theirs).map(|point| (point.experiment.as_str(), point));
    let tables = gathered(points);
    parted(
        tables
            .iter()
            .map(|(experiment, points)| style.table(&grid::experiment_table(experiment, points, &outcome.claims).1)),
    )
}

/// The claims of a run on one screen, and what threatens its results.
fn screen(outcome: &Outcome, report: Option<&str>, style: &Style) -> String {
    let claims = &outcome.claims;
    let of = |verdict| claims.iter().filter(move |claim| claim.verdict == verdict);
    let refuted = sorted(of(Verdict::Refuted).collect(), |claim| -distance(claim));
    let mut parts = vec![style.paragraph(&counts(claims))];
    if !refuted.is_empty() {
        parts.push(refuted_lines(&refuted, style));
    }
    for (verdict, heading) in [
        (Verdict::Failed, "Failed"),
        (Verdict::Undecided, "Undecided"),
        (Verdict::Deferred, "Deferred"),
        (Verdict::Unavailable, "Unavailable here"),
    ] {
        let by_reason = by_reason(of(verdict));
        if !by_reason.is_empty() {
            let lines = by_reason.iter().map(|(reason, claims)| style.item(&open_line(reason, claims)));
            parts.push(format!("{heading}:\n{}", lines.collect::<String>()));
        }
    }
    let unlike: Vec<&str> = claims.iter().filter(|claim| !claim.unlike.is_empty()).map(|claim| &*claim.id).collect();
    if !unlike.is_empty() {
        let reason = "Not all trials were alike, so sizes are less reliable";
        parts.push(style.paragraph(&format!("{}.", reason_line(reason, &unlike))));
    }
    parts.extend(undiagnosed_claims(claims).map(|sentence| style.paragraph(&sentence)));
    parts.push(threats(outcome, style));
    parts.extend(report.map(|report| {
        style.paragraph(&format!("`{report} --all` prints each verdict as a sentence, `--only refuted` those alone."))
    }));
    parted(parts)
}

/// A line each, as far as they fit on a screen: what it came to here, what was claimed, the id, and the sentence where
/// there is room for some of it. An id is never cut nor broken: where the line has no room for it, it has one of its
/// own.
fn refuted_lines(refuted: &[&ClaimResult], style: &Style) -> String {
    // Where the terminal is narrow, ids stand below, and what was claimed has the room beside what it came to.
    let mut lines: Vec<[String; 4]> = refuted.iter().take(MOST_LINES).map(|claim| cells(claim)).collect();
    let width =
        |lines: &[[String; 4]], column: usize| lines.iter().map(|cells| cells[column].width()).max().unwrap_or(0);
    let here = width(&lines, 0).max("here".len());
    let most_claimed = match style.width {
        narrow @ ..NARROW => narrow.saturating_sub(here + GAP.len()),
        width => {
            // As much as the ids leave that have room beside the least that is shown.
            let least = 2 * width / 9;
            let rooms = lines.iter().filter_map(|cells| width.checked_sub(here + cells[2].width() + 2 * GAP.len()));
            rooms.filter(|room| *room >= least).min().unwrap_or(MOST_CLAIMED)
        }
    };
    lines.iter_mut().for_each(|cells| cells[1] = cut(&cells[1], most_claimed.min(MOST_CLAIMED), '…'));
    let [claimed, id] = [width(&lines, 1).max("claimed".len()), width(&lines, 2)];
    let room = style.width.saturating_sub(here + claimed + id + 3 * GAP.len());
    let line = |cells: [&str; 4]| {
        let [here_cell, claimed_cell, id_cell, says] = cells;
        let lead = format!("{}{GAP}{}", padded(here_cell, here), padded(claimed_cell, claimed));
        let line = match () {
            () if room >= LEAST_ROOM => format!("{lead}{GAP}{}{GAP}{}", padded(id_cell, id), cut(says, room, '…')),
            () if id_cell.width() + lead.width() + GAP.len() <= style.width => format!("{lead}{GAP}{id_cell}"),
            () => format!(
                "{}\n{}{id_cell}",
                lead.trim_end(),
                &GAP[..style.width.saturating_sub(id_cell.width()).min(GAP.len())]
            ),
        };
        format!("{}\n", line.trim_end())
    };
    let mut text = format!("{}, the furthest first:\n", style.word("Refuted"));
    text += &line(["here", "claimed", "id", ""]);
    lines.iter().for_each(|cells| text += &line(cells.each_ref().map(String::as_str)));
    match refuted.len().saturating_sub(MOST_LINES) {
        0 => {}
        more => text += &style.paragraph(&format!("… and {more} more.")),
    }
    if refuted.iter().take(MOST_LINES).any(|claim| claim.emulated.is_some()) {
        text += &style.paragraph(&format!(
            "({EMULATED}: a link, a store or a provider of this program's own stood in; of a real one this says \
             nothing)"
        ));
    }
    text
}

const GAP: &str = "  ";
/// Whoever reads it must not take a stand-in for a provider.
const EMULATED: &str = "emulated";
/// Less of a sentence says nothing.
const LEAST_ROOM: usize = 24;
/// The longest figures.
const MOST_HERE: usize = 20;
const MOST_CLAIMED: usize = 32;

fn cells(claim: &ClaimResult) -> [String; 4] {
    // What it is a figure of, and its interval, are in the sentence.
    let here = grid::judged_briefly(claim).map_or_else(|| "-".into(), |figure| figure.value);
    // Apart from the id, which is copied.
    let id = if claim.emulated.is_some() { &format!("{}{GAP}{EMULATED}", claim.id) } else { &claim.id };
    let texts =
        [(here.as_str(), MOST_HERE), (&claimed(claim), usize::MAX), (id, usize::MAX), (&claim.says, usize::MAX)];
    texts.map(|(text, most)| cut(&escape_controls(text), most, '…'))
}

/// Why claims have no verdict, and which: those of a reason together, the most first.
fn by_reason<'a>(claims: impl Iterator<Item = &'a ClaimResult>) -> Vec<(String, Vec<&'a ClaimResult>)> {
    let by_reason = claims.map(|claim| {
        let said: Vec<String> = claim.reasons.iter().map(finding::kind).collect();
        let reason = if said.is_empty() { "too little evidence yet".into() } else { said.join("; ") };
        (reason, claim)
    });
    sorted(gathered(by_reason), |(_, claims)| -(claims.len() as f64))
}

/// A reason with the claims that have it, and what those take that did not fit.
fn open_line(reason: &str, claims: &[&ClaimResult]) -> String {
    let ids: Vec<&str> = claims.iter().map(|claim| claim.id.as_str()).collect();
    let line = reason_line(reason, &ids);
    let needed = finding::needed(claims.iter().flat_map(|claim| &claim.reasons));
    needed.map_or_else(|| line.clone(), |needed| format!("{line}; {needed}"))
}

fn reason_line(reason: &str, ids: &[&str]) -> String {
    let count = if ids.len() == 1 { String::new() } else { format!("{} claims, ", ids.len()) };
    let named = ids.iter().take(MOST_IDS).copied().collect::<Vec<_>>().join(", ");
    let more = match ids.len().saturating_sub(MOST_IDS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}: {count}{named}{more}", reason.trim_end_matches('.'))
}

fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}
