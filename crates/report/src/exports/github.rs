//! Output for GitHub: the summary page of a job, in Markdown, and annotations (lines of output that GitHub's runner
//! interprets). GitHub drops output beyond its limits. The summary and the annotations are therefore kept within these
//! limits, and a note mentions the part that was left out.

use ascertain_engine::claim::Judging;
use ascertain_engine::outcome::{ClaimResult, Verdict};

use super::results::{Mark, Results};
use crate::markdown;
use crate::sentence::marked;
use crate::tails;
use crate::text::{ended, escape_controls, plain, quoted, with_names};

/// The length of the longest summary, in bytes. GitHub accepts 1 MiB per step and drops longer summaries. A quarter of
/// that leaves space for other commands of the step.
const SUMMARY_BYTES: usize = 256 << 10;
/// The largest number of failed claims that are listed, one per line, above the tables.
const SUMMARY_FAILURES: usize = 50;
/// The number of annotations of each kind that GitHub shows for a step.
const ANNOTATIONS: usize = 10;
/// The length of the longest message of an annotation, in characters. GitHub's limit is 4,096, which is too long to
/// read.
const MESSAGE: usize = 1000;
/// The length of the longest statement of a claim, in characters; a longer one is shortened.
const SAYS: usize = 200;
/// The length of the longest title of an annotation, in characters; GitHub's limit is 255.
const TITLE: usize = 200;

/// Returns the text for `--export-github`: a line for each failed claim, then the output of `--format markdown`.
pub(super) fn summary(results: &Results) -> String {
    let outcome = results.outcome;
    let failed = failed(results);
    let undecided = outcome.claims.iter().filter(|claim| has_no_verdict(claim)).count();
    let result = match (failed.len(), undecided, outcome.claims.as_slice()) {
        (.., []) => String::new(),
        (.., [one]) => format!(": {}", marked::heading(one)),
        (0, 0, all) => format!(": 0 of {} failed", all.len()),
        (0, open, all) => format!(": {open} of {} undecided", all.len()),
        (some, 0, all) => format!(": {some} of {} failed", all.len()),
        (some, open, all) => format!(": {some} of {} failed, {open} undecided", all.len()),
    };
    let mut text = format!("## {}\n", markdown::paragraph(&format!("Ascertain{result}")));
    if !results.is_final {
        text += "Not final: the run had not ended when this was written.\n\n";
    }
    if !failed.is_empty() && !markdown::has_sentences(outcome) {
        let item = |claim: &&ClaimResult| format!("- {}", markdown::paragraph(&with_name(claim)));
        text.extend(failed.iter().take(SUMMARY_FAILURES).map(item));
        if failed.len() > SUMMARY_FAILURES {
            text += &format!("- … and {} more\n", failed.len() - SUMMARY_FAILURES);
        }
        text += "\n";
    }
    text += &markdown::outcome(&outcome.asked_for(&results.plan.tables), &results.layout);
    let machine = &outcome.machine;
    let said = format!("Run {}, seed {}, on {}, {}.", outcome.run_id, outcome.seed, machine.cpu_model, machine.kernel);
    cut_lines(&text, SUMMARY_BYTES) + "\n" + &markdown::paragraph(&escape_controls(&said))
}

/// Returns the name and the statement of a claim, then its sentence. Names are marked as in [`quoted`]. A comparison
/// has only the sentence, because it names the commands.
fn with_name(claim: &ClaimResult) -> String {
    let sentence = tails::after_sentence(claim);
    match claim.says.as_str() {
        _ if claim.asked.judging == Judging::Order => sentence,
        "" => format!("{}: {sentence}", quoted(&claim.id)),
        says => format!("{}: {} {sentence}", quoted(&claim.id), with_names(&ended(&cut(says, SAYS)))),
    }
}

/// Returns the claims that count as failures, in the order of the outcome.
fn failed<'a>(results: &Results<'a>) -> Vec<&'a ClaimResult> {
    let is_failed = |claim: &&ClaimResult| matches!(results.mark(claim), Mark::Failed | Mark::Broken);
    results.outcome.claims.iter().filter(is_failed).collect()
}

fn has_no_verdict(claim: &ClaimResult) -> bool {
    matches!(claim.verdict, Verdict::Undecided | Verdict::Deferred)
}

/// Returns the first lines of a text, at most `most_bytes` long, then a note with the number of lines that were left
/// out.
fn cut_lines(text: &str, most_bytes: usize) -> String {
    if text.len() <= most_bytes {
        return text.to_string();
    }
    let end = text[..text.floor_char_boundary(most_bytes)].rfind('\n').map_or(0, |newline| newline + 1);
    let (kept, rest) = text.split_at(end);
    format!("{kept}\n… and {} more lines, which are over GitHub's limit.\n", rest.lines().count())
}

/// Returns the output of `--annotate github`. It has a workflow command (a line that GitHub's runner interprets) for
/// each claim that failed, is undecided or was deferred. If the claim is from a file, the command names the file and
/// the line. An undecided comparison without `--fail-if` is only a notice.
///
/// GitHub shows only ten annotations of each kind. If there are more, the tenth annotation contains their number. The
/// runner reads annotations from standard output and from standard error.
pub fn annotations(results: &Results) -> String {
    // Without `--fail-if`, a comparison has no answer that counts as a failure, so it gets no warning.
    let is_gated = |claim: &&ClaimResult| claim.asked.judging != Judging::Order || results.plan.config.gate.is_some();
    let (gated, free): (Vec<&ClaimResult>, Vec<&ClaimResult>) =
        results.outcome.claims.iter().filter(|claim| has_no_verdict(claim)).partition(is_gated);
    of_kind("error", &failed(results), results)
        + &of_kind("warning", &gated, results)
        + &of_kind("notice", &free, results)
}

fn of_kind(kind: &str, claims: &[&ClaimResult], results: &Results) -> String {
    let shown = if claims.len() > ANNOTATIONS { ANNOTATIONS - 1 } else { claims.len() };
    let mut lines: String = claims[..shown].iter().map(|claim| annotation(kind, claim, results)).collect();
    if shown < claims.len() {
        lines += &format!("::{kind} title=Ascertain::… and {} more; see the output\n", claims.len() - shown);
    }
    lines
}

fn annotation(kind: &str, claim: &ClaimResult, results: &Results) -> String {
    let place = results.place(claim).map_or_else(String::new, |place| {
        format!(
            "file={},line={},col={},",
            property(&escape_controls(&place.file.to_string_lossy())),
            place.line,
            place.column
        )
    });
    let title = cut(&escape_controls(&format!("{}: {}", claim.id, crate::grid::answer(claim))), TITLE);
    format!("::{kind} {place}title={}::{}\n", property(&title), data(&cut(&plain(&with_name(claim)), MESSAGE)))
}

/// Escapes a text for the message of a workflow command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes a text for the value of a property of a workflow command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

fn cut(text: &str, most_characters: usize) -> String {
    match text.char_indices().nth(most_characters) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_string(),
    }
}
