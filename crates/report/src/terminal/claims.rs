//! The summary of many claims on one screen. It has the number of claims with each verdict, the refuted claims with
//! their values, and the reasons why others have no verdict.

use ascertain_engine::claim::Test;
use ascertain_engine::finding::Remark;
use ascertain_engine::outcome::{ArmRemark, ClaimResult, Outcome, PointSummary, Verdict};
use unicode_width::UnicodeWidthStr;

use super::{NARROW, Style, compare_table, left_out, sentences, threats};
use crate::clause::claimed;
use crate::options::{Shown, TableLayout};
use crate::sentence::undiagnosed_claims;
use crate::standing::{Count, distance, tally};
use crate::text::{counted, cut, escape_controls, gathered, listed, parted, sorted};
use crate::{finding, grid};

/// The largest number of claims that are printed as whole sentences.
const FEW: usize = 6;
/// The largest number of refuted claims that are listed, with one line for each.
const MOST_LINES: usize = 20;
/// The largest number of claim ids that are listed for each reason.
const MOST_IDS: usize = 3;

/// Returns the output of `check`. It has a sentence for each claim if there are at most six claims, or if the user
/// requested all claims or certain verdicts. Otherwise it is a summary that fits on a screen. The summary ends with the
/// commands that print the sentences. These commands begin with the text `report`. If the evidence was not kept,
/// `report` is `None`.
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
    let is_comparison = !outcome.claims.is_empty() && outcome.claims.iter().all(|claim| claim.decision.is_some());
    let end = match shown.all && !has_none {
        true if is_comparison => compare_table(outcome, &TableLayout::default(), style),
        true => check_table(&asked, style),
        false if is_comparison => String::new(),
        false => style.paragraph(&counts(&outcome.claims)),
    };
    let few = undiagnosed_claims(&asked.claims).map_or_else(String::new, |sentence| style.paragraph(&sentence));
    let figures = left_out(&missing_figures(outcome), style);
    parted([none, sentences(&asked, style), deferred_table(&asked, style), few, figures, threats(outcome, style), end])
}

/// Returns a copy of the outcome, for sentences about metrics that commands did not print. The copy has only the
/// remarks about these metrics, and no arms that were left out.
fn missing_figures(outcome: &Outcome) -> Outcome {
    let is_missing = |one: &&ArmRemark| matches!(one.remark, Remark::NoFigure { .. });
    let remarks = outcome.remarks.iter().filter(is_missing).cloned().collect();
    Outcome { remarks, left_out: Vec::new(), ..outcome.clone() }
}

/// Returns the answer of a run in a few lines: a few claims as sentences, many claims as the number of claims by
/// verdict.
pub fn answer(outcome: &Outcome, style: &Style) -> String {
    match outcome.claims.len() {
        ..=FEW => sentences(outcome, style),
        _ => style.paragraph(&counts(&outcome.claims)),
    }
}

/// Returns the table of claims at the end of `check`, then the number of claims by verdict. The columns are statement,
/// source, the value of the source, the value measured here with its interval, and the verdict.
pub fn check_table(outcome: &Outcome, style: &Style) -> String {
    let table = style.table(&grid::claims(outcome));
    if table.is_empty() {
        "No claims.\n".into()
    } else {
        format!("{table}\n{}", style.paragraph(&counts(&outcome.claims)))
    }
}

/// Returns the number of claims by verdict: "3 claims: 2 hold, 1 refuted."
fn counts(claims: &[ClaimResult]) -> String {
    if claims.is_empty() {
        return "There are no such claims.".into();
    }
    let said: Vec<String> = tally(claims.iter()).iter().map(Count::words).collect();
    format!("{}: {}.", counted(claims.len(), "claim"), said.join(", "))
}

/// Returns a sentence that no claim has one of these verdicts: "No claim has the verdict refuted or undecided."
fn no_such(verdicts: &[Verdict]) -> String {
    let words: Vec<&str> = verdicts.iter().map(|verdict| verdict.word()).collect();
    format!("No claim has the verdict {}.", words.join(" or "))
}

/// Returns tables of the measurements for deferred claims, which have too few trials for a verdict. An arm is left out
/// if it has more trials than every deferred claim about it, because it was then measured for another claim.
fn deferred_table(outcome: &Outcome, style: &Style) -> String {
    let is_deferred = |claim: &&ClaimResult| claim.verdict == Verdict::Deferred && claim.trials > 0;
    let deferred: Vec<&ClaimResult> = outcome.claims.iter().filter(is_deferred).collect();
    let is_theirs = |point: &&PointSummary| {
        let of_claim = |claim: &&&ClaimResult| claim.experiment == point.experiment && point.n <= claim.trials;
        let mut arms = deferred.iter().filter(of_claim).flat_map(|claim| &claim.asked.tests).flat_map(Test::arms);
        arms.any(|arm| *arm == point.arm)
    };
    let points = grid::in_tables(outcome).filter(is_theirs).map(|point| (point.experiment.as_str(), point));
    let tables = gathered(points);
    parted(
        tables.iter().map(|(experiment, points)| style.table(&grid::experiment_table(experiment, points, outcome).1)),
    )
}

/// Returns a summary of many claims on one screen, with the threats to the results.
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
        let reason =
            "Values changed during the run, or trials affected each other. The intervals are therefore less reliable";
        parts.push(style.paragraph(&format!("{}.", reason_line(reason, &unlike))));
    }
    parts.extend(undiagnosed_claims(claims).map(|sentence| style.paragraph(&sentence)));
    parts.push(threats(outcome, style));
    parts.extend(report.map(|report| {
        style.paragraph(&format!(
            "`{report} --all` prints each verdict as a sentence. `{report} --only refuted` prints only the refuted \
             claims."
        ))
    }));
    parted(parts)
}

/// Returns a heading and a line for each refuted claim, up to [`MOST_LINES`]. A line has the measured value, the
/// claimed value, the id, and the beginning of the statement if there is space. An id is never shortened or broken. If
/// it does not fit, it is on the next line.
fn refuted_lines(refuted: &[&ClaimResult], style: &Style) -> String {
    // On a narrow terminal, ids are on separate lines. The claimed value then gets all the space beside the measured
    // value.
    let mut lines: Vec<[String; 4]> = refuted.iter().take(MOST_LINES).map(|claim| cells(claim)).collect();
    let width =
        |lines: &[[String; 4]], column: usize| lines.iter().map(|cells| cells[column].width()).max().unwrap_or(0);
    let here = width(&lines, 0).max("here".len());
    let most_claimed = match style.width {
        narrow @ ..NARROW => narrow.saturating_sub(here + GAP.len()),
        width => {
            // The width that the longest id leaves for the claimed value. An id that leaves too little is ignored,
            // because it is on a separate line.
            let least = 2 * width / 9;
            let rooms = lines.iter().filter_map(|cells| width.checked_sub(here + cells[2].width() + 2 * GAP.len()));
            rooms.filter(|room| *room >= least).min().unwrap_or(MOST_CLAIMED)
        }
    };
    let most_claimed = most_claimed.min(MOST_CLAIMED);
    let shortened = |claimed: &str| match claimed.split_once(" times as ") {
        // The adjective after "times" is left out, because the measured value beside it has the same adjective. If a
        // rate follows the adjective, the rate stays.
        Some((number, rest)) if claimed.width() > most_claimed => {
            let often = rest.split_once(" in ").map_or_else(String::new, |(_, rate)| format!(" in {rate}"));
            cut(&format!("{number} times{often}"), most_claimed)
        }
        _ => cut(claimed, most_claimed),
    };
    lines.iter_mut().for_each(|cells| cells[1] = shortened(&cells[1]));
    let [claimed, id] = [width(&lines, 1).max("claimed".len()), width(&lines, 2)];
    let room = style.width.saturating_sub(here + claimed + id + 3 * GAP.len());
    let line = |cells: [&str; 4]| {
        let [here_cell, claimed_cell, id_cell, says] = cells;
        let lead = format!("{}{GAP}{}", padded(here_cell, here), padded(claimed_cell, claimed));
        let line = match () {
            () if room >= LEAST_ROOM => format!("{lead}{GAP}{}{GAP}{}", padded(id_cell, id), cut(says, room)),
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
            "({EMULATED}: measured with this program's own link, store or provider; a real one may differ)"
        ));
    }
    text
}

const GAP: &str = "  ";
/// The word after the ids of claims that were measured with an emulation instead of a real system.
const EMULATED: &str = "emulated";
/// The smallest width for the beginning of a statement, in columns. If there is less space, the statement is left out.
const LEAST_ROOM: usize = 24;
/// The largest width of a measured value, in columns. A longer value is shortened.
const MOST_HERE: usize = 26;
const MOST_CLAIMED: usize = 32;

fn cells(claim: &ClaimResult) -> [String; 4] {
    // The interval is left out here, because the sentence of the claim has it.
    let here = grid::judged_briefly(claim).map_or_else(|| "-".into(), |figure| figure.value);
    // Spaces separate the word from the id, so that the id can be copied.
    let id = if claim.emulated.is_some() { &format!("{}{GAP}{EMULATED}", claim.id) } else { &claim.id };
    // The heading makes clear that the claimed percentage is a percentage of trials.
    let claimed = claimed(claim);
    let claimed = claimed.strip_suffix(" of trials").unwrap_or(&claimed);
    let texts = [(here.as_str(), MOST_HERE), (claimed, usize::MAX), (id, usize::MAX), (&claim.says, usize::MAX)];
    texts.map(|(text, most)| cut(&escape_controls(text), most))
}

/// Groups claims without a verdict by the reason. The largest group is first.
fn by_reason<'a>(claims: impl Iterator<Item = &'a ClaimResult>) -> Vec<(String, Vec<&'a ClaimResult>)> {
    let by_reason = claims.map(|claim| {
        let said: Vec<String> = claim.reasons.iter().map(finding::kind).collect();
        let reason = if said.is_empty() { "too little evidence yet".into() } else { said.join("; ") };
        (reason, claim)
    });
    sorted(gathered(by_reason), |(_, claims)| -(claims.len() as f64))
}

/// Returns a line with a reason and the ids of the claims that have no verdict for this reason. If claims did not fit
/// in the time limit, the line states how much time they need.
fn open_line(reason: &str, claims: &[&ClaimResult]) -> String {
    let ids: Vec<&str> = claims.iter().map(|claim| claim.id.as_str()).collect();
    let line = reason_line(reason, &ids);
    let needed = finding::needed(claims.iter().flat_map(|claim| &claim.reasons));
    needed.map_or_else(|| line.clone(), |needed| format!("{line}; {needed}"))
}

fn reason_line(reason: &str, ids: &[&str]) -> String {
    let count = if ids.len() == 1 { String::new() } else { format!("{} claims, ", ids.len()) };
    format!("{}: {count}{}", reason.trim_end_matches('.'), listed(ids, MOST_IDS))
}

fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}
