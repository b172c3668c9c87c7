//! Sentences about the tails of compared arms: which arm was beyond a threshold more often.

use ascertain_engine::experiment::Better;
use ascertain_engine::outcome::{ClaimResult, Decision, Outcome, TailDecision, TailHint, TailResult};
use ascertain_engine::unit::Unit;

use crate::clause::{ArmComparison, arm_names, in_metric};
use crate::figure::{Figure, error_in_words, exact_percent, percent};
use crate::grid::is_judged;
use crate::sentence::marked;
use crate::text::{grouped, quoted};

/// Returns a sentence for each tail that the run compared, and one for each faster arm whose tail looks worse. Names
/// are marked as in [`crate::text::quoted`].
pub(crate) fn sentences(outcome: &Outcome) -> Vec<String> {
    outcome.claims.iter().flat_map(of_claim).collect()
}

/// Returns the sentence of a claim, followed by the sentences about its tails.
pub(crate) fn after_sentence(claim: &ClaimResult) -> String {
    [marked::claim(claim)].into_iter().chain(of_claim(claim)).collect::<Vec<_>>().join(" ")
}

fn of_claim(claim: &ClaimResult) -> Vec<String> {
    let Some(comparison) = ArmComparison::new(claim).filter(|_| is_judged(claim) && claim.trials > 0) else {
        return Vec::new();
    };
    let tails = claim.tails.iter().map(|tail| sentence(&comparison, tail));
    tails.chain(claim.tail_hint.iter().map(|found| hint(&comparison, found))).collect()
}

/// Returns the sentence about one tail.
///
/// Example: "Tail 99 %: `b` was above the threshold more often than `a` in these trials (2.9 % against 0.4 %;
/// thresholds 8.1 to 8.4 ms; error at most 0.034 %)."
fn sentence(comparison: &ArmComparison, tail: &TailResult) -> String {
    let (candidate, reference) = names(comparison);
    let (beyond, metric) = (beyond(comparison), in_metric(comparison.measure));
    let [ours, theirs] = [tail.candidate_beyond, tail.reference_beyond].map(|count| share(count, tail.pairs));
    let thresholds = thresholds(comparison.measure.unit, tail);
    let level = format!("Tail {}", exact_percent(tail.level));
    let often = match tail.decision {
        TailDecision::MoreOften => "more often",
        TailDecision::LessOften => "less often",
        TailDecision::Undecided if tail.pairs == 0 => {
            let [needed, measured] = [tail.pairs_before, comparison.claim.trials].map(grouped);
            return format!(
                "{level}: undecided. The level counts from pair {needed} on, and {measured} were measured."
            );
        }
        TailDecision::Undecided => {
            let why = match tail.is_withdrawn {
                true => format!("no answer after {}: the pairs after the first answer contradict it", pairs(tail)),
                false => format!("undecided after {}", pairs(tail)),
            };
            return format!(
                "{level}: {why}. {candidate} was {beyond} the threshold in {ours} of them, {reference} in \
                 {theirs}{metric} ({thresholds})."
            );
        }
    };
    let error = error_in_words(tail.error);
    format!(
        "{level}: {candidate} was {beyond} the threshold {often} than {reference}{metric} in these trials ({ours} against \
         {theirs}; {thresholds}; error at most {error})."
    )
}

/// Returns the hint that the faster arm has a tail that looks worse, with the option that tests this.
fn hint(comparison: &ArmComparison, found: &TailHint) -> String {
    let (candidate, reference) = names(comparison);
    let is_candidate = comparison.claim.decision == Some(Decision::Faster);
    let (faster, slower) = if is_candidate { (candidate, reference) } else { (reference, candidate) };
    let [ours, theirs] = [found.faster_beyond, found.slower_beyond].map(|count| share(count, found.pairs));
    let threshold = comparison.measure.unit.human(found.threshold);
    let (beyond, level) = (beyond(comparison), exact_percent(found.level).replace(" %", ""));
    format!(
        "The tail of {faster} looks worse: it was {beyond} {threshold} in {ours} of the pairs, and {slower} in {theirs}. \
         Test this with `--tail {level}`."
    )
}

fn names(comparison: &ArmComparison) -> (String, String) {
    let (candidate, reference) = arm_names(comparison.candidate, comparison.reference);
    (quoted(&candidate), quoted(&reference))
}

fn beyond(comparison: &ArmComparison) -> &'static str {
    if comparison.measure.better == Better::Lower { "above" } else { "below" }
}

fn share(count: u64, pairs: u64) -> String {
    percent(count as f64 / pairs as f64)
}

fn pairs(tail: &TailResult) -> String {
    let pairs = format!("{} {}", grouped(tail.pairs), if tail.pairs == 1 { "pair" } else { "pairs" });
    match tail.unknown {
        0 => pairs,
        unknown => format!("{pairs} ({} cut off)", grouped(unknown)),
    }
}

/// Returns the thresholds in words: "thresholds 8.1 to 8.4 ms", or "threshold 8.100 ms" if all are equal.
fn thresholds(unit: Unit, tail: &TailResult) -> String {
    let (Some(low), Some(high)) = (tail.threshold_low, tail.threshold_high) else { return "no threshold".into() };
    if low == high {
        return format!("threshold {}", unit.human(low));
    }
    let range = Figure::of_unit(unit, Some(high), Some(low), Some(high)).range;
    let symbol = unit.prefix(high).1;
    // If the ends are far apart, each already has its own unit.
    let is_whole = symbol.is_empty() || range.ends_with(symbol);
    format!("thresholds {range}{}", if is_whole { String::new() } else { format!(" {symbol}") })
}
