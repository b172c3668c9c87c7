//! The sentence of a comparison of two commands.

use ascertain::experiment::Better;
use ascertain::outcome::{AskedTest, ClaimResult, Decision, Measure};
use ascertain::unit::Unit;

use super::marked::{counted, wrong};
use crate::clause::{adjective, arm_names, in_metric};
use crate::figure::{Figure, chance, exact_percent};
use crate::text::quoted;

/// The two sides of a comparison, with their names ready to print.
struct Sides<'a> {
    measure: &'a Measure,
    candidate: String,
    baseline: String,
}

/// Whether `compare`'s command is faster than its reference.
pub(super) fn sentence(claim: &ClaimResult) -> String {
    let Some(sides) = sides(claim) else { return format!("{}.", counts(claim)) };
    let decision = claim.decision.unwrap_or(Decision::Undecided);
    match (decision, claim.asked.margin) {
        (Decision::Undecided, _) => undecided(claim, &sides),
        (Decision::Same, margin) => same(claim, &sides, margin),
        (Decision::Faster, margin) => different(claim, &sides, true, margin),
        (Decision::Slower, margin) => different(claim, &sides, false, margin),
    }
}

fn sides(claim: &ClaimResult) -> Option<Sides<'_>> {
    let [AskedTest::Versus { measure, candidate, baseline, .. }] = claim.asked.tests.as_slice() else { return None };
    let (candidate, baseline) = arm_names(candidate, baseline);
    Some(Sides { measure, candidate: quoted(&candidate), baseline: quoted(&baseline) })
}

fn different(claim: &ClaimResult, sides: &Sides, faster: bool, margin: Option<f64>) -> String {
    let how_much = if faster { gain(claim, sides) } else { loss(claim, sides) };
    // Ties and skewed ratios can leave the median on the other side of 1: then only who won is said.
    let agrees = claim.ratio.is_some_and(|ratio| if faster { ratio > 1.0 } else { ratio < 1.0 && ratio > 0.0 });
    let opening = if agrees { how_much } else { plainly(sides, faster) };
    let counts = counts_of(claim, if faster { "won" } else { "lost" });
    match margin {
        None => format!("{opening}: it {counts}; {}.", wrong(claim)),
        Some(margin) => format!(
            "{opening}: that is beyond the margin of {}, {}; it {counts}. {INEXACT}",
            exact_percent(margin),
            wrong(claim)
        ),
    }
}

/// What sets an answer from an interval apart.
const INEXACT: &str =
    "Read from the ratio's interval, this takes trials to be alike: it is not exact by randomisation.";

/// "`B` is 1.052 times as fast as `A` (1.047 to 1.058)".
fn gain(claim: &ClaimResult, Sides { measure, candidate, baseline }: &Sides) -> String {
    let Figure { value, range } = Figure::new(claim.ratio, claim.ratio_low, claim.ratio_high, &[1.0]);
    let (good, _) = adjective(measure);
    format!("{candidate} is {value} times as {good} as {baseline}{} ({range})", in_metric(measure))
}

/// "`B` takes 1.052 times as long as `A` (1.047 to 1.058)": the ratio the other way round.
fn loss(claim: &ClaimResult, sides: &Sides) -> String {
    let invert = |ratio: Option<f64>| ratio.filter(|&ratio| ratio > 0.0).map(f64::recip);
    let [value, low, high] = [claim.ratio, claim.ratio_high, claim.ratio_low].map(invert);
    let much = match (sides.measure.unit, sides.measure.better) {
        (Unit::Nanosecond, Better::Lower) => "takes {} times as long as",
        (Unit::Byte, Better::Lower) => "takes {} times as much as",
        _ => return gain(claim, sides),
    };
    let Figure { value, range } = Figure::new(value, low, high, &[1.0]);
    let Sides { measure, candidate, baseline } = sides;
    format!("{candidate} {} {baseline}{} ({range})", much.replace("{}", &value), in_metric(measure))
}

fn plainly(Sides { measure, candidate, baseline }: &Sides, faster: bool) -> String {
    let (_, better) = adjective(measure);
    let word = match (faster, better) {
        (true, better) => better,
        (false, "faster") => "slower",
        (false, "smaller") => "larger",
        (false, _) => "worse",
    };
    format!("{candidate} is {word} than {baseline}{}", in_metric(measure))
}

fn same(claim: &ClaimResult, Sides { measure, candidate, baseline }: &Sides, margin: Option<f64>) -> String {
    let (good, _) = adjective(measure);
    let within = margin.map_or_else(String::new, |margin| format!(" within the margin of {}", exact_percent(margin)));
    format!(
        "{candidate} is as {good} as {baseline}{}{within}{}, {}; it {}. {INEXACT}",
        in_metric(measure),
        ratio_clause(claim, margin),
        wrong(claim),
        counts(claim)
    )
}

fn undecided(claim: &ClaimResult, Sides { measure, candidate, baseline }: &Sides) -> String {
    let (_, better) = adjective(measure);
    let margin = claim.asked.margin;
    let question = match margin {
        Some(margin) => format!("how they compare within the margin of {}", exact_percent(margin)),
        None => format!("which is {better}{}", in_metric(measure)),
    };
    format!(
        "Undecided: against {baseline}, {candidate} {}{}, too little to tell at error {} {question}.",
        counts(claim),
        ratio_clause(claim, margin),
        chance(claim.error)
    )
}

/// ": 1.002 times (0.991 to 1.013)".
fn ratio_clause(claim: &ClaimResult, margin: Option<f64>) -> String {
    let marks = margin.map_or_else(|| vec![1.0], |margin| vec![1.0 / (1.0 + margin), 1.0 + margin]);
    let Figure { value, range } = Figure::new(claim.ratio, claim.ratio_low, claim.ratio_high, &marks);
    claim.ratio.map_or_else(String::new, |_| format!(", with a ratio of {value} ({range})"))
}

fn counts(claim: &ClaimResult) -> String {
    counts_of(claim, "won")
}

/// "won 41 of 43 pairs, 1 tie".
fn counts_of(claim: &ClaimResult, won_or_lost: &str) -> String {
    let number = match won_or_lost {
        "won" => claim.successes,
        _ => counted(claim).saturating_sub(claim.successes),
    };
    let pairs = if claim.trials == 1 { "pair" } else { "pairs" };
    let ties = match claim.ties {
        0 => String::new(),
        1 => ", 1 tie".into(),
        ties => format!(", {ties} ties"),
    };
    format!("{won_or_lost} {number} of {} {pairs}{ties}", claim.trials)
}
