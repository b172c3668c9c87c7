//! Each verdict as one plain sentence.
//!
//! A sentence says what was seen, what follows from it, and how sure that is, in two lines where names are short.
//! What follows is about the rate while it was measured: a verdict does not speak of other times or machines.
//! METHODOLOGY.md says so once, so that sentences need not.

use ascertain_engine::claim::Judging;
use ascertain_engine::experiment::Better;
use ascertain_engine::outcome::{Basis, ClaimResult, ClaimSpec, Measure, Outcome, TestSpec, Verdict};
use ascertain_engine::unit::Unit;

use crate::clause::{Clause, arm_label};
use crate::figure::{exact_percent, odds};
use crate::text::plain;

pub(crate) mod left_out;
pub(crate) mod marked;

/// The verdict on a claim as one plain sentence, and the reason where there is one. Names are between
/// backticks.
///
/// ```text
/// Holds: `kahan` was at least 8 times as fast as `naive` in 17 of 18 trials, at the median 9.1 times
/// (8.9 to 9.3); wrong with a chance of at most 0.00003.
/// ```
pub fn claim(claim: &ClaimResult) -> String {
    plain(&marked::claim(claim))
}

/// What a ratio does whose trials ended with its verdict. None for a run that went on, and where no ratio is said.
pub fn overshoot(claims: &[ClaimResult]) -> Option<&'static str> {
    let stopped = |claim: &ClaimResult| {
        let is_by_trials = claim.asked.judging != Judging::Exact && claim.basis != Some(Basis::Interval);
        let is_ratio = claim.ratio.is_some() && claim.asked.is_comparison();
        is_by_trials && is_ratio && claim.decided.is_some_and(|decided| decided.trials == claim.trials)
    };
    claims.iter().any(stopped).then_some(OVERSHOOT)
}

const OVERSHOOT: &str = "A ratio whose trials ended with the verdict is on average a little too far on the verdict's \
                         side, since that comes sooner where it happens to be.";

/// What answers rest on, for who asks: METHODOLOGY.md in a few sentences, of those alone that a run has.
pub fn explained(outcome: &Outcome) -> Vec<String> {
    let judged: Vec<&ClaimResult> = outcome.claims.iter().filter(|claim| claim.trials > 0).collect();
    let is_any = |is_it: &dyn Fn(&ClaimResult) -> bool| judged.iter().any(|claim| is_it(claim));
    let is_order = |claim: &ClaimResult| claim.asked.judging == Judging::Order;
    let is_from_interval = |claim: &ClaimResult| is_order(claim) && claim.asked.margin.is_some();
    let is_rate = |claim: &ClaimResult| claim.asked.judging == Judging::Rate;
    let paragraphs = [
        (is_any(&|claim| is_order(claim) && !is_from_interval(claim)), COIN.to_string()),
        (is_any(&|claim| claim.basis == Some(Basis::Magnitudes)), MAGNITUDES.to_string()),
        (is_any(&is_from_interval), INTERVAL.to_string()),
        (is_any(&is_rate), RATE.to_string()),
        (is_any(&|claim| is_order(claim) || claim.ratio.is_some()), ALIKE.to_string()),
    ];
    let said = paragraphs.into_iter().filter_map(|(is_so, paragraph)| is_so.then_some(paragraph));
    let overshoot = overshoot(&outcome.claims).map(str::to_string);
    said.chain(overshoot).chain(judged.first().map(|claim| budget(claim, outcome.claims.len()))).collect()
}

const COIN: &str = "In each trial chance drew the order. If neither were faster, each pair would be won like a coin \
                    that is tossed, whatever the machine does meanwhile: so the chance of a wrong answer is exact, \
                    however often one looks. “Faster” means: wins more often than it loses.";
const MAGNITUDES: &str = "The sizes of the differences count too: pairs whose difference has come to mean something \
                          count more. The chance of an answer if the two do not differ is as exact. The direction is \
                          that of the majority of the pairs.";
const INTERVAL: &str = "With a margin the answer is read from the ratio's interval. That takes trials to be alike, \
                        and is not exact by randomisation; without --margin an answer is.";
const RATE: &str = "A rate is that of the trials that were measured, on this machine and at this time: its verdict \
                    needs nothing else. To expect it of other trials, these must be alike.";
const ALIKE: &str = "A ratio is the median of the trials' own ratios. Its interval holds at every moment at once, and \
                     takes trials to be alike; where they are seen not to be, a line says so.";

/// How the error is shared out.
fn budget(claim: &ClaimResult, claims: usize) -> String {
    let each = if claims > 1 { "each answer has its share of it" } else { "this answer has all of it" };
    format!(
        "--error bounds the chance that any answer of a run is wrong; {each}, {}. Going on with a run costs none of \
         it; running anew until it pleases does.",
        odds(claim.error)
    )
}

/// What speaks against the trials being alike and what that means for the reader; `None` where nothing
/// does.
pub fn warning(claim: &ClaimResult) -> Option<String> {
    marked::warning(claim).as_deref().map(plain)
}

/// That a comparison was answered from too few pairs to see whether they are alike; `None` where there were enough.
pub fn undiagnosed(claims: &[ClaimResult]) -> Option<String> {
    let answered = claims.iter().filter(|claim| claim.undiagnosed && claim.asked.judging == Judging::Order);
    let pairs = answered.filter(|claim| matches!(claim.verdict, Verdict::Holds | Verdict::Refuted));
    let most = pairs.map(|claim| claim.trials).max()?;
    let pairs = if most == 1 { "pair is" } else { "pairs are" };
    Some(format!(
        "{most} {pairs} too few to check for lasting disturbances, such as a slow core that only one side had: add \
         --min-runs 40."
    ))
}

/// In how many claims a verdict came from too few trials to see whether they are alike; `None` where there are none.
pub(crate) fn undiagnosed_claims(claims: &[ClaimResult]) -> Option<String> {
    let decided = claims.iter().filter(|claim| matches!(claim.verdict, Verdict::Holds | Verdict::Refuted));
    let few = decided.filter(|claim| claim.undiagnosed && claim.asked.judging == Judging::Rate).count();
    let of_claims = match few {
        0 => return None,
        1 if claims.len() == 1 => "There were".to_string(),
        1 => "For 1 claim there were".to_string(),
        few => format!("For {few} claims there were"),
    };
    Some(format!("{of_claims} too few trials to see whether they are alike; this takes 40."))
}

/// What a claim that must hold at this rate tests, a line each: the sentence that must be true, its metric and its
/// arms, and how often it must be true.
///
/// ```text
/// test: `kahan (accumulators=4)` is at least 8 times as fast as `naive (accumulators=1)`
///   metric: time, in ns; lower is better
///   candidate: kahan (accumulators=4 type=f32)
///   baseline: naive (accumulators=1 type=f32)
/// judged: true in at least 50 % of the trials
/// ```
pub fn test(asked: &ClaimSpec, rate: f64) -> Vec<String> {
    let mut lines: Vec<String> = asked.tests.iter().flat_map(|test| of_test(test, asked)).collect();
    lines.push(format!("judged: {}", judged(asked, rate)));
    lines
}

fn of_test(test: &TestSpec, asked: &ClaimSpec) -> Vec<String> {
    let Clause { subject, complement } = Clause::of(&ClaimSpec { tests: vec![test.clone()], ..asked.clone() });
    let mut lines = vec![format!("test: {}", plain(&format!("{subject} is {complement}")))];
    match test {
        TestSpec::Versus { measure, candidate, baseline, .. } => lines.extend([
            metric(measure),
            format!("  candidate: {}", arm_label(&candidate.variant, &candidate.point)),
            format!("  baseline: {}", arm_label(&baseline.variant, &baseline.point)),
        ]),
        TestSpec::Predicate { arm, measure, .. } => {
            lines.extend(measure.as_ref().map(metric));
            lines.push(format!("  arm: {}", arm_label(&arm.variant, &arm.point)));
        }
    }
    lines
}

/// "  metric: throughput, in B/s, higher is better".
fn metric(measure: &Measure) -> String {
    let unit = if measure.unit == Unit::One { String::new() } else { format!(", in {}", measure.unit) };
    let better = match measure.better {
        Better::Lower => "lower",
        Better::Higher => "higher",
    };
    format!("  metric: {}{unit}; {better} is better", measure.metric)
}

fn judged(asked: &ClaimSpec, rate: f64) -> String {
    let all = if asked.tests.len() > 1 { "all of them true" } else { "true" };
    let margin = asked.margin.map_or_else(String::new, |margin| format!(", give or take {}", exact_percent(margin)));
    match asked.judging {
        Judging::Rate => format!("{all} in at least {} of the trials{margin}", exact_percent(rate)),
        Judging::Exact => format!("{all} of the one value that every trial has, checked once"),
        Judging::Order => format!("which of the two is faster more often{margin}"),
    }
}

/// What was asked for and has no figures, or not all of them, a sentence a reason.
///
/// ```text
/// Unavailable here (needs neon, which this CPU lacks): `naive-neon`, `dot-neon`.
/// Failed while it was measured (ended with exit code 3): `kahan` at `elements=4`.
/// ```
pub fn left_out(outcome: &Outcome) -> Vec<String> {
    left_out::of_outcome(outcome).iter().map(|sentence| plain(sentence)).collect()
}
