//! Sentences about the fastest of several functions or commands at each input, and about comparisons that are not
//! decided yet.

use ascertain_engine::experiment::{Arm, Point};
use ascertain_engine::outcome::{Decision, Outcome};

use crate::clause::{ArmComparison, adjective};
use crate::figure::exact_percent;
use crate::grid::is_judged;
use crate::text::{distinct, gathered, plain, quoted};

/// The fastest arm among those that were compared at one input.
struct Fastest<'a> {
    experiment: &'a str,
    at: &'a Point,
    arm: &'a Arm,
    /// The other arms that are not yet shown to be slower than this arm, each with the reason.
    open: Vec<(&'a Arm, OpenReason)>,
}

/// The reason why an arm is not shown to be faster than another one.
#[derive(Clone, Copy, PartialEq)]
enum OpenReason {
    /// The two arms are equal. If the comparison has a margin, they are equal within this margin.
    Same(Option<f64>),
    Undecided,
    NotCompared,
}

/// Returns the comparisons of arms by time.
fn comparisons(outcome: &Outcome) -> Vec<ArmComparison<'_>> {
    let comparisons = outcome.claims.iter().filter_map(ArmComparison::new);
    comparisons.filter(|comparison| adjective(comparison.measure).1 == "faster").collect()
}

/// Returns the comparison of these two arms, whichever of them is the reference. `None` if they were not compared.
fn between<'c, 'a>(one: &Arm, other: &Arm, comparisons: &[&'c ArmComparison<'a>]) -> Option<&'c ArmComparison<'a>> {
    let is_it = |both: [&Arm; 2]| both == [one, other] || both == [other, one];
    comparisons.iter().copied().find(|comparison| is_it([comparison.candidate, comparison.reference]))
}

/// Returns the interval of a ratio of two times: the time of `third` divided by the time of the other arm in the
/// comparison. `None` if an end of the interval is unknown, or if the comparison was not judged.
fn ratio_to(third: &Arm, comparison: &ArmComparison) -> Option<[f64; 2]> {
    let ArmComparison { claim, reference, .. } = comparison;
    let [low, high] = [claim.ratio_low?, claim.ratio_high?];
    let ratio = if third == *reference { [low, high] } else { [1.0 / high, 1.0 / low] };
    is_judged(claim).then_some(ratio)
}

/// Returns whether `one` is shown to be faster than `other`. If the two were not compared, a third arm that was
/// compared with both can show it. For this, the intervals of the ratios to the third arm must be further apart than
/// the margin. The result is wrong only if one of these comparisons is wrong.
fn is_faster(one: &Arm, other: &Arm, comparisons: &[&ArmComparison]) -> bool {
    if let Some(direct) = between(one, other, comparisons) {
        return match direct.decision() {
            Some(Decision::Faster) => direct.candidate == one,
            Some(Decision::Slower) => direct.reference == one,
            _ => false,
        };
    }
    let mut thirds = comparisons.iter().flat_map(|comparison| [comparison.candidate, comparison.reference]);
    let is_faster_by = |third: &Arm| {
        let (first, second) = (between(one, third, comparisons)?, between(other, third, comparisons)?);
        let ([least, _], [_, most]) = (ratio_to(third, first)?, ratio_to(third, second)?);
        Some(least > most * (1.0 + first.claim.asked.margin.unwrap_or(0.0)))
    };
    thirds.any(|third| is_faster_by(third) == Some(true))
}

/// Returns the fastest arm for each input (the levels that compared arms share) of each experiment, in the order of the
/// comparisons.
fn all(outcome: &Outcome) -> Vec<Fastest<'_>> {
    let comparisons = comparisons(outcome);
    let at_one_point = comparisons.iter().filter(|comparison| comparison.candidate.point == comparison.reference.point);
    let by_input = gathered(at_one_point.map(|one| ((one.claim.experiment.as_str(), &one.candidate.point), one)));
    let fastest = by_input.into_iter().filter_map(|((experiment, at), comparisons)| {
        let arms = distinct(comparisons.iter().flat_map(|one| [one.reference, one.candidate]));
        let open = |arm: &Arm| -> Vec<(&Arm, OpenReason)> {
            let others = arms.iter().filter(|other| **other != arm && !is_faster(arm, other, &comparisons));
            others.map(|other| (*other, why_open(arm, other, &comparisons))).collect()
        };
        let shown = arms.iter().copied().find(|arm| open(arm).is_empty());
        let arm = shown.or_else(|| comparisons[0].best_median(arms.iter().copied(), outcome))?;
        Some(Fastest { experiment, at, arm, open: open(arm) })
    });
    fastest.collect()
}

fn why_open(one: &Arm, other: &Arm, comparisons: &[&ArmComparison]) -> OpenReason {
    match between(one, other, comparisons).map(|comparison| comparison.claim) {
        None => OpenReason::NotCompared,
        Some(claim) if claim.decision == Some(Decision::Same) => OpenReason::Same(claim.asked.margin),
        Some(_) => OpenReason::Undecided,
    }
}

/// Returns the name of an arm without the levels of the input, which all arms at this input share.
fn name(arm: &Arm, at: &Point) -> String {
    let point = arm.point.only(|factor, level| at.get(factor) != Some(level) || arm.shows(factor));
    quoted(&Arm { variant: arm.variant.clone(), point }.to_string())
}

/// Returns which arms are the fastest: "`hash` is the fastest", or "`hash` and `tree` are the fastest". If comparisons
/// are not decided: "`hash` is the fastest so far".
fn finding(fastest: &Fastest) -> String {
    let first = name(fastest.arm, fastest.at);
    let same: Vec<String> = match fastest.open.iter().all(|(_, why)| matches!(why, OpenReason::Same(_))) {
        true => fastest.open.iter().map(|(arm, _)| name(arm, fastest.at)).collect(),
        false => return format!("{first} is the fastest so far"),
    };
    match same.split_last() {
        None => format!("{first} is the fastest"),
        Some((last, [])) => format!("{first} and {last} are the fastest"),
        Some((last, between)) => format!("{first}, {} and {last} are the fastest", between.join(", ")),
    }
}

/// Returns the fastest arm for a headline: "`hash` is the fastest". If the fastest arm depends on the input, the
/// headline names the inputs: "`hash` is the fastest at n=10, `tree` at n=1000". `None` if at some input no arm is
/// shown to be the fastest, or if there are too many inputs to name.
pub(crate) fn headline(outcome: &Outcome) -> Option<String> {
    const MOST_INPUTS: usize = 3;
    let all = all(outcome);
    let (first, others) = all.split_first().filter(|_| all.iter().all(|fastest| fastest.open.is_empty()))?;
    let input = |fastest: &Fastest| quoted(&fastest.at.to_string());
    let other = |other: &Fastest| format!(", {} at {}", name(other.arm, other.at), input(other));
    match others.len() {
        _ if others.iter().all(|other| finding(other) == finding(first)) => Some(finding(first)),
        ..MOST_INPUTS => {
            Some(format!("{} at {}{}", finding(first), input(first), others.iter().map(other).collect::<String>()))
        }
        _ => None,
    }
}

/// Returns a sentence for each input with the fastest arm and the undecided comparisons. Empty if at most two arms were
/// compared at each input, because the sentence of the comparison already has the answer.
///
/// ```text
/// `hash` is the fastest at `n=10`.
/// `hash` is the fastest so far at `n=1000`; open: `tree` (undecided), `list` (not compared with it).
/// ```
pub fn sentences(outcome: &Outcome) -> Vec<String> {
    let comparisons = comparisons(outcome);
    let has_several = |fastest: &&Fastest| {
        let is_there = |one: &&ArmComparison| {
            (one.claim.experiment.as_str(), &one.candidate.point) == (fastest.experiment, fastest.at)
        };
        comparisons.iter().filter(is_there).count() > 1
    };
    all(outcome).iter().filter(has_several).map(|fastest| plain(&sentence(fastest))).collect()
}

fn sentence(fastest: &Fastest) -> String {
    let Fastest { at, open, .. } = fastest;
    let input = if at.0.is_empty() { String::new() } else { format!(" at {}", quoted(&at.to_string())) };
    let within = |margin: Option<f64>| {
        margin.map_or_else(|| "the same".to_string(), |margin| format!("the same within {}", exact_percent(margin)))
    };
    let finding = format!("{}{input}", finding(fastest));
    if open.iter().all(|(_, why)| matches!(why, OpenReason::Same(_))) {
        return match open.first() {
            Some((_, OpenReason::Same(margin @ Some(_)))) => format!("{finding}, {}.", within(*margin)),
            _ => format!("{finding}."),
        };
    }
    let open = open.iter().map(|(arm, why)| match why {
        OpenReason::Same(margin) => format!("{} ({})", name(arm, at), within(*margin)),
        OpenReason::Undecided => format!("{} (undecided)", name(arm, at)),
        OpenReason::NotCompared => format!("{} (not compared with it)", name(arm, at)),
    });
    format!("{finding}; open: {}.", open.collect::<Vec<_>>().join(", "))
}
