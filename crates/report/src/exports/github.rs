//! What GitHub shows of a job: its summary page, in Markdown, and annotations, which are lines of output
//! that its runner reads. Both are cut on purpose, saying so, before GitHub drops what is too long.

use ascertain_engine::claim::Judging;
use ascertain_engine::outcome::{ClaimResult, Verdict};

use super::results::{Mark, Results};
use crate::markdown;
use crate::sentence::marked;
use crate::text::{ended, escape_controls, plain, quoted, with_names};

/// The longest summary. GitHub takes 1 MiB of a step, and nothing of one that is longer: a quarter leaves
/// room for other commands of the step.
const SUMMARY_BYTES: usize = 256 << 10;
/// Failed claims that have a line above the tables.
const SUMMARY_FAILURES: usize = 50;
/// The annotations of a kind that GitHub makes of a step.
const ANNOTATIONS: usize = 10;
/// The longest message of an annotation, in characters: GitHub cuts at 4,096, and nobody reads so far.
const MESSAGE: usize = 1000;
/// The longest claim in front of its sentence, in characters.
const SAYS: usize = 200;
/// The longest title of an annotation, in characters; GitHub takes 255.
const TITLE: usize = 200;

/// `--export-github`: the failed claims, a line each, and everything that `--format markdown` says.
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
        text += "Not final: the run was still going on when this was written.\n\n";
    }
    if !failed.is_empty() && !markdown::has_sentences(outcome) {
        let item = |claim: &&ClaimResult| format!("- {}", markdown::paragraph(&named(claim)));
        text.extend(failed.iter().take(SUMMARY_FAILURES).map(item));
        if failed.len() > SUMMARY_FAILURES {
            text += &format!("- … and {} more\n", failed.len() - SUMMARY_FAILURES);
        }
        text += "\n";
    }
    text += &markdown::outcome(&outcome.asked_for(&results.purpose.tables), &results.purpose.layout);
    let machine = &outcome.machine;
    let said = format!("Run {}, seed {}, on {}, {}.", outcome.run_id, outcome.seed, machine.cpu_model, machine.kernel);
    cut_lines(&text, SUMMARY_BYTES) + "\n" + &markdown::paragraph(&escape_controls(&said))
}

/// The claim's sentence after its name and what it says, names marked; a comparison's names its commands itself.
fn named(claim: &ClaimResult) -> String {
    let sentence = marked::claim(claim);
    match claim.says.as_str() {
        _ if claim.asked.judging == Judging::Order => sentence,
        "" => format!("{}: {sentence}", quoted(&claim.id)),
        says => format!("{}: {} {sentence}", quoted(&claim.id), with_names(&ended(&cut(says, SAYS)))),
    }
}

/// The claims that count as failures, in their order.
fn failed<'a>(results: &Results<'a>) -> Vec<&'a ClaimResult> {
    let is_failed = |claim: &&ClaimResult| matches!(results.mark(claim), Mark::Failed | Mark::Broken);
    results.outcome.claims.iter().filter(is_failed).collect()
}

fn has_no_verdict(claim: &ClaimResult) -> bool {
    matches!(claim.verdict, Verdict::Undecided | Verdict::Deferred)
}

/// The lines that fit, and how many do not.
fn cut_lines(text: &str, most_bytes: usize) -> String {
    if text.len() <= most_bytes {
        return text.to_string();
    }
    let end = text[..text.floor_char_boundary(most_bytes)].rfind('\n').map_or(0, |newline| newline + 1);
    let (kept, rest) = text.split_at(end);
    format!("{kept}\n… and {} more lines, which GitHub would not show.\n", rest.lines().count())
}

/// `--annotate github`: a workflow command for each claim that failed, and for each that came to no verdict in its
/// time, with its place where it has one; of a comparison without `--fail-if` that is a notice. GitHub makes
/// annotations of the first ten of each kind: the tenth says how many more there are.
///
/// GitHub's runner reads them from standard output and standard error alike.
pub fn annotations(results: &Results) -> String {
    // A comparison that nothing depends on is no warning.
    let is_gated = |claim: &&ClaimResult| claim.asked.judging != Judging::Order || results.purpose.failing.is_some();
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
        lines += &format!("::{kind} title=Ascertain::… and {} more, which the output names\n", claims.len() - shown);
    }
    lines
}

fn annotation(kind: &str, claim: &ClaimResult, results: &Results) -> String {
    let place = results.purpose.places.get(&claim.id).map_or_else(String::new, |place| {
        format!(
            "file={},line={},col={},",
            property(&escape_controls(&place.file.to_string_lossy())),
            place.line,
            place.column
        )
    });
    let title = cut(&escape_controls(&format!("{}: {}", claim.id, crate::grid::answer(claim))), TITLE);
    format!("::{kind} {place}title={}::{}\n", property(&title), data(&cut(&plain(&named(claim)), MESSAGE)))
}

/// The message of a workflow command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// The value of a property of a workflow command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

fn cut(text: &str, most_characters: usize) -> String {
    match text.char_indices().nth(most_characters) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_string(),
    }
}
