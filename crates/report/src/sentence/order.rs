//! The sentence of a comparison of two commands.

use ascertain_engine::outcome::{AskedTest, Basis, ClaimResult, Decided, Decision, Measure};

use super::marked::wrong;
use crate::clause::{self, adjective, compared_names, in_metric, worse};
use crate::figure::{chance, exact_percent};
use crate::text::quoted;

/// The two sides of a comparison, with their names ready to print.
struct Sides<'a> {
    measure: &'a Measure,
    candidate: String,
    baseline: String,
}

/// Whether `compare`'s command is faster than its reference.
pub(super) fn sentence(claim: &ClaimResult) -> String {
    let Some(sides) = sides(claim) else { return format!("{}.", counts_of(claim, claim.judged(), "won")) };
    let decision = claim.decision.unwrap_or(Decision::Undecided);
    match (decision, claim.asked.margin) {
        (Decision::Undecided, _) => undecided(claim, &sides),
        (Decision::Same, margin) => same(claim, &sides, margin),
        (Decision::NotSlower, margin) => not_beyond(claim, &sides, false, margin),
        (Decision::NotFaster, margin) => not_beyond(claim, &sides, true, margin),
        (Decision::Faster, margin) => different(claim, &sides, true, margin),
        (Decision::Slower, margin) => different(claim, &sides, false, margin),
    }
}

fn sides(claim: &ClaimResult) -> Option<Sides<'_>> {
    let [AskedTest::Versus { measure, candidate, baseline, .. }] = claim.asked.tests.as_slice() else { return None };
    let (candidate, baseline) = compared_names(candidate, baseline);
    Some(Sides { measure, candidate: quoted(&candidate), baseline: quoted(&baseline) })
}

fn different(claim: &ClaimResult, sides: &Sides, faster: bool, margin: Option<f64>) -> String {
    let counts = counts_of(claim, claim.decisive(), if faster { "won" } else { "lost" });
    let how = match (margin, times(claim, sides).filter(|_| agrees(claim, faster))) {
        (None, Some(times)) => format!("{times}, having {counts}; {}", judged_by(claim)),
        (None, None) => format!("it {counts}; {}", judged_by(claim)),
        (Some(_), Some(times)) => format!("{times}; {}", by_interval(claim)),
        (Some(_), None) => format!("it {counts}; {}", by_interval(claim)),
    };
    let beyond = margin.map_or_else(String::new, |margin| format!(" by more than {}", exact_percent(margin)));
    format!("{}{beyond}: {how}.", plainly(sides, faster))
}

/// What else than the count decided it, where it did, and how sure that is.
fn judged_by(claim: &ClaimResult) -> String {
    match claim.basis {
        Some(Basis::Magnitudes) => format!("judged by who won and by how much, {}", wrong(claim)),
        _ => wrong(claim),
    }
}

/// Whether the ratio says so as well. Ties and skewed ratios can leave the median on the other side of 1: then only who
/// won is said.
pub(crate) fn agrees(claim: &ClaimResult, faster: bool) -> bool {
    let known = if faster { claim.ratio.or(claim.ratio_low) } else { claim.ratio };
    known.is_some_and(|ratio| if faster { ratio > 1.0 } else { ratio < 1.0 })
}

/// What sets an answer from an interval apart.
fn by_interval(claim: &ClaimResult) -> String {
    format!("{} if trials are alike, not exact by randomisation", wrong(claim))
}

/// "1.052 times as fast (1.047 to 1.058)".
fn times(claim: &ClaimResult, Sides { measure, .. }: &Sides) -> Option<String> {
    clause::times(claim, &format!(" times as {}", adjective(measure).0), &marks(claim))
}

/// The ratios that separate the answers.
fn marks(claim: &ClaimResult) -> Vec<f64> {
    claim.asked.margin.map_or_else(|| vec![1.0], |margin| vec![1.0 / (1.0 + margin), 1.0, 1.0 + margin])
}

fn plainly(Sides { measure, candidate, baseline }: &Sides, faster: bool) -> String {
    let word = if faster { adjective(measure).1 } else { worse(measure) };
    format!("{candidate} is {word} than {baseline}{}", in_metric(measure))
}

fn same(claim: &ClaimResult, sides: &Sides, margin: Option<f64>) -> String {
    let Sides { measure, candidate, baseline } = sides;
    let (good, _) = adjective(measure);
    let within = margin.map_or_else(String::new, |margin| format!(" within {}", exact_percent(margin)));
    let times = times(claim, sides).map_or_else(String::new, |times| format!("{times}; "));
    format!("{candidate} is as {good} as {baseline}{}{within}: {times}{}.", in_metric(measure), by_interval(claim))
}

/// A gate asked no more than that.
fn not_beyond(claim: &ClaimResult, sides: &Sides, faster: bool, margin: Option<f64>) -> String {
    let Sides { measure, candidate, baseline } = sides;
    let word = if faster { adjective(measure).1 } else { worse(measure) };
    let by_more = margin.map_or_else(String::new, |margin| format!(" by more than {}", exact_percent(margin)));
    let times = times(claim, sides).map_or_else(String::new, |times| format!("{times}; "));
    format!("{candidate} is not {word} than {baseline}{}{by_more}: {times}{}.", in_metric(measure), by_interval(claim))
}

fn undecided(claim: &ClaimResult, sides: &Sides) -> String {
    let Sides { measure, candidate, baseline } = sides;
    let (_, better) = adjective(measure);
    let question = match claim.asked.margin {
        Some(margin) => format!("how they compare within {}", exact_percent(margin)),
        None => format!("which is {better}"),
    };
    let (good, _) = adjective(measure);
    let as_fast = format!(" times as {good} as {baseline}{}", in_metric(measure));
    let (is, won) = match clause::times(claim, &as_fast, &marks(claim)) {
        Some(times) => (format!("{candidate} is {times},"), "having won"),
        None => (format!("against {baseline}{}, {candidate}", in_metric(measure)), "won"),
    };
    let counts = counts_of(claim, claim.judged(), won);
    match claim.decided {
        // The reason that follows says why the answer was withdrawn.
        Some(_) => format!("Undecided: {is} {counts}."),
        None => format!("Undecided: {is} {counts}: too little to tell at error {} {question}.", chance(claim.error)),
    }
}

/// "won 41 of 43 pairs, 1 tie"; "won 20 of the first 20 pairs", where more were measured after the verdict.
fn counts_of(claim: &ClaimResult, of: Decided, won_or_lost: &str) -> String {
    let number = match won_or_lost {
        "lost" => of.trials.saturating_sub(of.ties).saturating_sub(of.unknown).saturating_sub(of.successes),
        _ => of.successes,
    };
    let first = if of.trials < claim.trials { "the first " } else { "" };
    let pairs = if of.trials == 1 { "pair" } else { "pairs" };
    let ties = match of.ties {
        0 => String::new(),
        1 => ", 1 tie".into(),
        ties => format!(", {ties} ties"),
    };
    // Also those after the verdict.
    let unknown = if claim.unknown > 0 { format!(", {} left open", claim.unknown) } else { String::new() };
    format!("{won_or_lost} {number} of {first}{} {pairs}{ties}{unknown}", of.trials)
}
