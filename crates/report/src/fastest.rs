//! Which of several functions or commands is the fastest at each input, and what speaks against it so far.

use ascertain_engine::experiment::{Arm, Better, Point};
use ascertain_engine::outcome::{ClaimResult, Decision, Measure, Outcome};

use crate::clause::{adjective, ordered};
use crate::figure::exact_percent;
use crate::grid::is_judged;
use crate::text::{gathered, plain, quoted};

/// The fastest of those that were compared at one input.
struct Fastest<'a> {
    experiment: &'a str,
    at: &'a Point,
    arm: &'a Arm,
    /// The others that it is not shown to be faster than.
    open: Vec<(&'a Arm, Open)>,
}

/// Why one is not shown to be faster than another.
#[derive(Clone, Copy, PartialEq)]
enum Open {
    /// They are the same within the margin.
    Same(Option<f64>),
    Undecided,
    NotCompared,
}

/// A comparison by time, with an answer or without.
struct Pair<'a> {
    claim: &'a ClaimResult,
    measure: &'a Measure,
    candidate: &'a Arm,
    reference: &'a Arm,
}

impl<'a> Pair<'a> {
    fn of(claim: &'a ClaimResult) -> Option<Pair<'a>> {
        let (measure, candidate, reference) = ordered(claim)?;
        (adjective(measure).1 == "faster").then_some(Pair { claim, measure, candidate, reference })
    }

    fn is_of(&self, one: &Arm, other: &Arm) -> bool {
        (self.candidate, self.reference) == (one, other) || (self.candidate, self.reference) == (other, one)
    }

    fn faster(&self) -> Option<&'a Arm> {
        match self.claim.decision.filter(|_| is_judged(self.claim)) {
            Some(Decision::Faster) => Some(self.candidate),
            Some(Decision::Slower) => Some(self.reference),
            _ => None,
        }
    }

    /// The interval of the ratio of `third`'s time to that of the other of the two; `None` if `third` is neither, or if
    /// an end is open.
    fn ratio_to(&self, third: &Arm) -> Option<[f64; 2]> {
        let [low, high] = [self.claim.ratio_low?, self.claim.ratio_high?];
        match third {
            _ if !is_judged(self.claim) => None,
            _ if third == self.reference => Some([low, high]),
            _ if third == self.candidate => Some([1.0 / high, 1.0 / low]),
            _ => None,
        }
    }
}

/// Returns whether `one` is shown to be faster than `other`: by a verdict, or if both were compared with a third and
/// their ratios to it have intervals that are further apart than the margin. These are at the errors of the two claims.
fn is_faster(one: &Arm, other: &Arm, pairs: &[&Pair]) -> bool {
    let pair = |one: &Arm, other: &Arm| pairs.iter().find(|pair| pair.is_of(one, other));
    if let Some(direct) = pair(one, other) {
        return direct.faster() == Some(one);
    }
    let thirds = pairs.iter().flat_map(|pair| [pair.candidate, pair.reference]);
    let is_faster_by = |third: &Arm| {
        let (first, second) = (pair(one, third)?, pair(other, third)?);
        let ([least, _], [_, most]) = (first.ratio_to(third)?, second.ratio_to(third)?);
        Some(least > most * (1.0 + first.claim.asked.margin.unwrap_or(0.0)))
    };
    thirds.into_iter().any(|third| is_faster_by(third) == Some(true))
}

/// The fastest at each input of each experiment, in the order of the comparisons.
fn of_outcome(outcome: &Outcome) -> Vec<Fastest<'_>> {
    let pairs: Vec<Pair> = outcome.claims.iter().filter_map(Pair::of).collect();
    let at_one_point = pairs.iter().filter(|pair| pair.candidate.point == pair.reference.point);
    let by_input = gathered(at_one_point.map(|pair| ((pair.claim.experiment.as_str(), &pair.candidate.point), pair)));
    let fastest = by_input.into_iter().filter_map(|((experiment, at), pairs)| {
        let arms = gathered(pairs.iter().flat_map(|pair| [pair.reference, pair.candidate]).map(|arm| (arm, ())));
        let arms: Vec<&Arm> = arms.into_iter().map(|(arm, _)| arm).collect();
        let open = |arm: &Arm| -> Vec<(&Arm, Open)> {
            let others = arms.iter().filter(|other| **other != arm && !is_faster(arm, other, &pairs));
            others.map(|other| (*other, why_open(arm, other, &pairs))).collect()
        };
        let shown = arms.iter().copied().find(|arm| open(arm).is_empty());
        let arm = shown.or_else(|| best_median(outcome, experiment, &arms, pairs[0].measure))?;
        Some(Fastest { experiment, at, arm, open: open(arm) })
    });
    fastest.collect()
}

fn why_open(one: &Arm, other: &Arm, pairs: &[&Pair]) -> Open {
    match pairs.iter().find(|pair| pair.is_of(one, other)) {
        None => Open::NotCompared,
        Some(pair) if pair.claim.decision == Some(Decision::Same) => Open::Same(pair.claim.asked.margin),
        Some(_) => Open::Undecided,
    }
}

fn best_median<'a>(outcome: &Outcome, experiment: &str, arms: &[&'a Arm], measure: &Measure) -> Option<&'a Arm> {
    let medians = arms.iter().filter_map(|arm| {
        let point = outcome.points.iter().find(|point| {
            point.metric == measure.metric && point.key.is_empty() && point.is_of(experiment, arm) && point.n > 0
        })?;
        Some((*arm, point.median?))
    });
    let is_better = |one: f64, other: f64| if measure.better == Better::Lower { one < other } else { one > other };
    medians.reduce(|best, next| if is_better(next.1, best.1) { next } else { best }).map(|(arm, _)| arm)
}

/// The arm's name without the levels that all at the input have.
fn name(arm: &Arm, at: &Point) -> String {
    let point = arm.point.only(|factor, level| at.get(factor) != Some(level) || arm.shows(factor));
    quoted(&Arm { variant: arm.variant.clone(), point }.to_string())
}

/// "`hash` is the fastest"; "`hash` is the fastest so far" where others are open; "`hash` and `tree` are the fastest".
fn finding(fastest: &Fastest) -> String {
    let first = name(fastest.arm, fastest.at);
    let same: Vec<String> = match fastest.open.iter().all(|(_, why)| matches!(why, Open::Same(_))) {
        true => fastest.open.iter().map(|(arm, _)| name(arm, fastest.at)).collect(),
        false => return format!("{first} is the fastest so far"),
    };
    match same.split_last() {
        None => format!("{first} is the fastest"),
        Some((last, [])) => format!("{first} and {last} are the fastest"),
        Some((last, between)) => format!("{first}, {} and {last} are the fastest", between.join(", ")),
    }
}

/// Which one is the fastest in one clause for a headline, if it is shown at every input: "`hash` is the fastest". With
/// different ones, the input stands with each: "`hash` is the fastest at n=10, `tree` at n=1000".
pub(crate) fn headline(outcome: &Outcome) -> Option<String> {
    const MOST_INPUTS: usize = 3;
    let all = of_outcome(outcome);
    if all.is_empty() || all.iter().any(|fastest| !fastest.open.is_empty()) {
        return None;
    }
    match all.as_slice() {
        [first, others @ ..] if others.iter().all(|other| finding(other) == finding(first)) => Some(finding(first)),
        [first, others @ ..] if others.len() < MOST_INPUTS => {
            let others =
                others.iter().map(|other| format!(", {} at {}", name(other.arm, other.at), quoted_input(other)));
            Some(format!("{} at {}{}", finding(first), quoted_input(first), others.collect::<String>()))
        }
        _ => None,
    }
}

fn quoted_input(fastest: &Fastest) -> String {
    quoted(&fastest.at.to_string())
}

/// Which one is the fastest, a sentence for each input, and what is open about it. Nothing where no more than two were
/// compared at any input: their own sentence has the answer.
///
/// ```text
/// `hash` is the fastest at `n=10`.
/// `hash` is the fastest so far at `n=1000`; open: `tree` (undecided), `list` (not compared with it).
/// ```
pub fn sentences(outcome: &Outcome) -> Vec<String> {
    let pairs = outcome.claims.iter().filter_map(Pair::of);
    let by_input = gathered(pairs.map(|pair| ((pair.claim.experiment.as_str(), &pair.candidate.point), ())));
    let has_several = |fastest: &&Fastest| {
        by_input.iter().any(|(input, pairs)| *input == (fastest.experiment, fastest.at) && pairs.len() > 1)
    };
    let all = of_outcome(outcome);
    all.iter().filter(has_several).map(|fastest| plain(&sentence(fastest))).collect()
}

fn sentence(fastest: &Fastest) -> String {
    let at = if fastest.at.0.is_empty() { String::new() } else { format!(" at {}", quoted_input(fastest)) };
    let margin = match fastest.open.first() {
        Some((_, Open::Same(Some(margin)))) => format!(", the same within {}", exact_percent(*margin)),
        _ => String::new(),
    };
    let finding_at = format!("{}{at}", finding(fastest));
    if fastest.open.iter().all(|(_, why)| matches!(why, Open::Same(_))) {
        return format!("{finding_at}{margin}.");
    }
    let open = fastest.open.iter().map(|(arm, why)| {
        let why = match why {
            Open::Same(margin) => {
                margin.map_or_else(|| "the same".into(), |margin| format!("the same within {}", exact_percent(margin)))
            }
            Open::Undecided => "undecided".into(),
            Open::NotCompared => "not compared with it".into(),
        };
        format!("{} ({why})", name(arm, fastest.at))
    });
    format!("{finding_at}; open: {}.", open.collect::<Vec<_>>().join(", "))
}
