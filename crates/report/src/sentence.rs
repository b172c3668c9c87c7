//! Each verdict as one plain sentence.
//!
//! A sentence has the finding, its size and its certainty, in two lines if names are short. It is only about the trials
//! of the run, and a verdict does not extend to other times or machines. METHODOLOGY.md explains this, so the sentences
//! don't.

use ascertain_engine::claim::{Hypothesis, Judging, Measure, Test};
use ascertain_engine::experiment::Better;
use ascertain_engine::outcome::{Basis, ClaimResult, Outcome, Verdict};
use ascertain_engine::unit::Unit;

use crate::clause::{ArmComparison, Clause, arm_label};
use crate::figure::{error_in_words, exact_percent};
use crate::text::{counted, plain};

pub(crate) mod left_out;
pub(crate) mod marked;

/// Returns the verdict on a claim as one plain sentence, with the reason if there is one. Names are between backticks.
///
/// ```text
/// Holds: `kahan` was at least 8 times as fast as `naive` in 17 of 18 trials, at the median 9.1 times as fast
/// (8.9 to 9.3); error at most 0.003 %.
/// ```
pub fn claim(claim: &ClaimResult) -> String {
    plain(&marked::claim(claim))
}

/// Returns a note about a bias. If a run ends as soon as a verdict is known, the ratio is on average slightly too far
/// in the direction of the verdict. Returns `None` unless a claim about a ratio was decided by its last trial.
pub fn overshoot(claims: &[ClaimResult]) -> Option<&'static str> {
    let stopped = |claim: &ClaimResult| {
        let is_by_trials = claim.asked.judging != Judging::Exact && claim.basis != Some(Basis::Interval);
        let is_ratio = claim.ratio.is_some() && claim.asked.is_comparison();
        is_by_trials && is_ratio && claim.decided.is_some_and(|decided| decided.trials == claim.trials)
    };
    claims.iter().any(stopped).then_some(OVERSHOOT)
}

const OVERSHOOT: &str = "A run that ends with its verdict reports a ratio that is, on average, slightly too far in \
                         the direction of the verdict. The reason is that a run ends sooner if its ratio is by chance \
                         too far in this direction.";

/// Returns the assumptions behind the answers, as a summary of METHODOLOGY.md for the kinds of claims in this run.
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
    let answers = outcome.claims.iter().map(|claim| 1 + claim.tails.len()).sum();
    said.chain(overshoot).chain(judged.first().map(|claim| budget(claim, answers))).collect()
}

const COIN: &str = "The order within each pair was drawn at random. If neither were faster, each would win a pair with \
                    a chance of one half, whatever else the machine does. So the chance of a wrong answer is exact, \
                    however often the results are checked. “Faster” means: wins more pairs than it loses.";
const MAGNITUDES: &str = "The sizes of the differences count too. A pair counts more if one of the two won most of \
                          the earlier pairs with a similar difference. If the two do not differ, the chance of a \
                          wrong answer still stays within its bound. The answer names the one that won most pairs.";
const INTERVAL: &str = "With a margin, the answer is read from the interval of the ratio, which assumes that trials \
                        are alike. An answer without --margin does not need this assumption: the random order alone \
                        makes it exact.";
const RATE: &str = "A verdict on a rate is about the measured trials, on this machine and at this time. It assumes \
                    nothing about other trials: other trials have the same rate only if they are like the measured \
                    trials.";
const ALIKE: &str = "A ratio is the median of the ratios in the individual trials. Its interval is valid at every \
                     moment of the run, but assumes that trials are alike. If they do not seem to be alike, a warning \
                     is printed.";

/// Returns a sentence about the error probability of the run, and about that of each answer. `claims` is the number of
/// answers.
fn budget(claim: &ClaimResult, claims: usize) -> String {
    let each = if claims > 1 { "Each answer" } else { "The only answer of this run" };
    format!(
        "--error bounds the chance that any answer of a run is wrong. {each} is wrong with a chance of at most {}. \
         Continuing a run does not raise this chance, but repeating a run until you get the desired result does.",
        error_in_words(claim.error)
    )
}

/// Returns a warning that the trials of a claim are not alike (for example, because the rate changed), with the
/// consequence. `None` if they seem to be alike.
pub fn warning(claim: &ClaimResult) -> Option<String> {
    marked::warning(claim).as_deref().map(plain)
}

/// Returns a note that a decided comparison has too few pairs to detect lasting disturbances. An example is a slow core
/// that only one of the two arms used. `None` if there is no such comparison.
pub fn undiagnosed(claims: &[ClaimResult]) -> Option<String> {
    let answered = claims.iter().filter(|claim| claim.undiagnosed && claim.asked.judging == Judging::Order);
    let pairs = answered.filter(|claim| matches!(claim.verdict, Verdict::Holds | Verdict::Refuted));
    let most = pairs.max_by_key(|claim| claim.trials)?;
    // Only `compare` has the option. Benches of functions, whose metric is `time`, don't.
    let is_bench = ArmComparison::new(most).is_some_and(|comparison| comparison.measure.metric == "time");
    let (side, check) = match is_bench {
        true => ("function", "The check for that needs 40 pairs."),
        false => ("command", "`--min-runs 40` measures enough pairs to check for that."),
    };
    Some(format!(
        "{} are too few to notice a lasting disturbance, such as a slow core that only one {side} used. {check}",
        counted(most.trials, "pair")
    ))
}

/// Returns a note about decided claims that have too few trials to check whether the trials are alike. `None` if there
/// are no such claims.
pub(crate) fn undiagnosed_claims(claims: &[ClaimResult]) -> Option<String> {
    let decided = claims.iter().filter(|claim| matches!(claim.verdict, Verdict::Holds | Verdict::Refuted));
    let few = decided.filter(|claim| claim.undiagnosed && claim.asked.judging == Judging::Rate).count();
    let claims = match few {
        0 => return None,
        1 if claims.len() == 1 => "This claim has".to_string(),
        1 => "1 claim has".to_string(),
        few => format!("{few} claims have"),
    };
    Some(format!("{claims} too few trials to check that trials are alike (40 are needed)."))
}

/// Describes the test of a claim in lines of text: the condition on a trial, its metric and arms, and how often the
/// condition must be true.
///
/// ```text
/// test: `kahan (accumulators=4)` is at least 8 times as fast as `naive (accumulators=1)`
///   metric: time, in ns; lower is better
///   candidate: kahan (accumulators=4 type=f32)
///   baseline: naive (accumulators=1 type=f32)
/// judged: true in at least 50 % of the trials
/// ```
pub fn test(asked: &Hypothesis, rate: f64) -> Vec<String> {
    let mut lines: Vec<String> = asked.tests.iter().flat_map(|test| of_test(test, asked)).collect();
    lines.push(format!("judged: {}", judged(asked, rate)));
    lines
}

fn of_test(test: &Test, asked: &Hypothesis) -> Vec<String> {
    let Clause { subject, complement } = Clause::new(&Hypothesis { tests: vec![test.clone()], ..asked.clone() });
    let mut lines = vec![format!("test: {}", plain(&format!("{subject} is {complement}")))];
    match test {
        Test::Versus { measure, candidate, baseline, .. } => lines.extend([
            metric(measure),
            format!("  candidate: {}", arm_label(candidate)),
            format!("  baseline: {}", arm_label(baseline)),
        ]),
        Test::Predicate { arm, measure, .. } => {
            lines.extend(measure.as_ref().map(metric));
            lines.push(format!("  arm: {}", arm_label(arm)));
        }
    }
    lines
}

/// Returns the line that describes a metric: " metric: throughput, in B/s; higher is better".
fn metric(measure: &Measure) -> String {
    let unit = if measure.unit == Unit::One { String::new() } else { format!(", in {}", measure.unit) };
    let better = match measure.better {
        Better::Lower => "lower",
        Better::Higher => "higher",
    };
    format!("  metric: {}{unit}; {better} is better", measure.metric)
}

fn judged(asked: &Hypothesis, rate: f64) -> String {
    let all = if asked.tests.len() > 1 { "all of them true" } else { "true" };
    let margin =
        asked.margin.map_or_else(String::new, |margin| format!(", with a margin of {}", exact_percent(margin)));
    match asked.judging {
        Judging::Rate => format!("{all} in at least {} of the trials{margin}", exact_percent(rate)),
        Judging::Exact => format!("{all}, checked once, because the value is the same in every trial"),
        Judging::Order => format!("which of the two is faster more often{margin}"),
    }
}

/// Returns a sentence for each reason why requested arms were not measured, or only in part.
///
/// ```text
/// Unavailable here (needs neon, which this CPU lacks): `naive-neon`, `dot-neon`.
/// Failed while it was measured (ended with exit code 3): `kahan` at `elements=4`.
/// ```
pub fn left_out(outcome: &Outcome) -> Vec<String> {
    left_out::of_outcome(outcome).iter().map(|sentence| plain(sentence)).collect()
}
