//! The sentences of a claim, with names still marked: see [`crate::text::quoted`].

use ascertain::claim::Judging;
use ascertain::experiment::Arm;
use ascertain::outcome::{ClaimResult, LeftOut, Verdict};

use super::order;
use crate::clause::{ClaimFigure, Clause};
use crate::figure::{Figure, chance, exact_percent};
use crate::text::{ended, harmless, quoted};

/// The verdict and the reason.
pub fn claim(claim: &ClaimResult) -> String {
    let sentence = match (claim.verdict, claim.asked.judging) {
        (Verdict::Unavailable, _) => return with_reason("Unavailable: this machine can't measure it", claim),
        (Verdict::Failed, _) => return with_reason("Failed", claim),
        (Verdict::Deferred, _) => {
            return with_reason("Deferred: its shortest possible verdict does not fit in the time given", claim);
        }
        (Verdict::Undecided, _) if claim.trials == 0 => return with_reason("Undecided: no trial was finished", claim),
        (_, Judging::Order) => order::sentence(claim),
        (Verdict::Undecided, _) => undecided(claim),
        (_, Judging::Exact) => exact(claim),
        (_, Judging::Rate) => judged(claim),
    };
    match &claim.reason {
        Some(reason) => format!("{sentence} {}", ended(&capitalised(reason))),
        None => sentence,
    }
}

/// What speaks against the trials being alike.
pub fn warning(claim: &ClaimResult) -> Option<String> {
    let signs: Vec<String> = claim.unlike.iter().map(|sign| harmless(sign.trim().trim_end_matches('.'))).collect();
    (!signs.is_empty()).then(|| {
        format!(
            "Careful: {}. The verdict stands for the trials that were measured; its intervals, and what it \
             says of other trials, would need trials that are alike.",
            signs.join("; ")
        )
    })
}

/// Why an arm has no figures.
pub fn left_out(arm: &LeftOut) -> String {
    let name = Arm { variant: arm.variant.clone(), point: arm.at.clone() };
    format!(
        "Not measured to the end: {} of {}: {}",
        quoted(&name.to_string()),
        quoted(&arm.experiment),
        ended(&arm.reason)
    )
}

fn with_reason(opening: &str, claim: &ClaimResult) -> String {
    match &claim.reason {
        Some(reason) => format!("{opening}: {}", ended(reason)),
        None => format!("{opening}."),
    }
}

fn judged(claim: &ClaimResult) -> String {
    let Clause { subject, complement } = Clause::of(&claim.asked);
    let holds = claim.verdict == Verdict::Holds;
    let opening = if holds { "Holds" } else { "Refuted" };
    let only = if holds { "" } else { "only " };
    let seen = in_trials(claim.successes, counted(claim), only);
    let so = time_share(claim, holds);
    format!(
        "{opening}: {subject} was {complement} {seen}{}, so while it was measured this was true {so}, {}{}.",
        rate_clause(claim),
        wrong(claim),
        figure_clause(claim)
    )
}

fn undecided(claim: &ClaimResult) -> String {
    let Clause { subject, complement } = Clause::of(&claim.asked);
    let seen = in_trials(claim.successes, counted(claim), "");
    format!(
        "Undecided: {subject} was {complement} {seen}{}, too little to tell at error {} whether, while it was \
         measured, this was true at least {}{}.",
        rate_clause(claim),
        chance(claim.error),
        of_the_time(claim.rate_claimed),
        figure_clause(claim)
    )
}

fn exact(claim: &ClaimResult) -> String {
    let Clause { subject, complement } = Clause::of(&claim.asked);
    let (opening, is) = match claim.verdict {
        Verdict::Holds => ("Holds", "is"),
        _ => ("Refuted", "is not"),
    };
    let figure = figure_clause(claim);
    format!("{opening}: {subject} {is} {complement}; there is no chance in this, so it was checked once{figure}.")
}

/// The trials that count: those that were not ties.
pub(crate) fn counted(claim: &ClaimResult) -> u64 {
    claim.trials.saturating_sub(claim.ties)
}

/// "in 17 of 18 trials", "in all 18 trials", "in none of 18 trials".
fn in_trials(successes: u64, trials: u64, only: &str) -> String {
    match (successes, trials) {
        (1, 1) => "in the only trial".into(),
        (0, 1) => "not in the only trial".into(),
        (s, n) if s == n => format!("in all {n} trials"),
        (0, n) => format!("in none of {n} trials"),
        (s, n) => format!("in {only}{s} of {n} trials"),
    }
}

/// What a decided claim says of the rate: "at least half of the time".
fn time_share(claim: &ClaimResult, holds: bool) -> String {
    let claimed = claim.rate_claimed;
    match (claim.asked.margin, holds) {
        (None, true) => format!("at least {}", of_the_time(claimed)),
        (None, false) => format!("less than {}", of_the_time(claimed)),
        (Some(margin), true) => format!("more than {}", with_margin(claimed, claimed - margin, "less", margin)),
        (Some(margin), false) => format!("less than {}", with_margin(claimed, claimed + margin, "plus", margin)),
    }
}

fn with_margin(claimed: f64, bound: f64, sign: &str, margin: f64) -> String {
    let [claimed, margin] = [claimed, margin].map(exact_percent);
    format!("{} ({claimed} {sign} the margin of {margin})", of_the_time(bound))
}

fn of_the_time(rate: f64) -> String {
    if rate == 0.5 { "half of the time".into() } else { format!("{} of the time", exact_percent(rate)) }
}

/// ", a rate of 99.07 % (97.3 to 99.96)", where the rate is what the claim is about: not beside a ratio.
fn rate_clause(claim: &ClaimResult) -> String {
    if ClaimFigure::of(claim).is_some() && claim.rate_claimed == 0.5 {
        return String::new();
    }
    let figure = Figure::of_share(claim.rate, claim.rate_low, claim.rate_high, claim.rate_claimed);
    if claim.rate.is_none() { String::new() } else { format!(", a rate of {figure}") }
}

fn figure_clause(claim: &ClaimResult) -> String {
    ClaimFigure::of(claim).map_or_else(String::new, |figure| format!("; {}", figure.clause))
}

pub(super) fn wrong(claim: &ClaimResult) -> String {
    format!("wrong with a chance of at most {}", chance(claim.error))
}

pub(crate) fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
