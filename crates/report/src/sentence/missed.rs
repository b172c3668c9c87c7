//! What was claimed, and what came of it instead, for who reads that alone.

use ascertain_engine::claim::Judging;
use ascertain_engine::outcome::{ClaimResult, ClaimSpec, TestSpec};

use super::marked::of_whose;
use crate::clause::{self, ClaimFigure, Clause};
use crate::figure::exact_percent;
use crate::grid::left_open;
use crate::text::{counted, escape_controls, quoted};

/// "`b` at least 1.2 times as fast as `a`" and "0.12x as fast, so it takes 8.3 times as long as `a`"; "25 to 50 ms in at
/// least 90 % of the trials" and "in 0 of 143 trials, with a median time of 8.2 ms".
pub(crate) fn missed(claim: &ClaimResult) -> [String; 2] {
    let is_exact = claim.asked.judging == Judging::Exact;
    let figure = ClaimFigure::of(claim).filter(|_| is_exact || claim.rate_claimed == 0.5);
    let often = match claim.rate_claimed {
        _ if figure.is_some() => String::new(),
        rate => format!(" in at least {} of the trials", exact_percent(rate)),
    };
    let here = match (claim.asked.tests.as_slice(), figure, claim.median) {
        ([TestSpec::Versus { .. }], Some(figure), _) => format!("{}{}", figure.figure.value, of_whose(claim)),
        (_, Some(figure), _) => figure.short,
        ([TestSpec::Predicate { measure: Some(measure), .. }], None, Some(median)) => {
            format!("{}, with a median {} of {}", seen(claim), clause::named(measure), measure.unit.human(median))
        }
        _ => seen(claim),
    };
    [format!("{}{often}", asked(&claim.asked)), here]
}

/// "in 0 of 143 trials".
fn seen(claim: &ClaimResult) -> String {
    let all = counted(claim.trials.saturating_sub(claim.ties), "trial");
    format!("in {} of {all}{}", claim.successes, left_open(claim))
}

/// What must be true of a trial.
fn asked(asked: &ClaimSpec) -> String {
    match asked.tests.as_slice() {
        [TestSpec::Predicate { predicate, .. }] => match clause::between(predicate) {
            Some(range) => escape_controls(&range),
            None => quoted(predicate),
        },
        _ => {
            let Clause { subject, complement } = Clause::of(asked);
            format!("{subject} {complement}")
        }
    }
}
