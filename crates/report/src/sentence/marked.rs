//! The sentences of a claim, with names still marked: see [`crate::text::quoted`].

use ascertain_engine::claim::Judging;
use ascertain_engine::outcome::{ClaimResult, Decided, Verdict};

use super::order;
use crate::clause::{ClaimFigure, Clause, rate_figure};
use crate::figure::{chance, exact_percent};
use crate::finding;
use crate::text::{ended, harmless};

/// The verdict and the reason.
pub fn claim(claim: &ClaimResult) -> String {
    let sentence = match (claim.verdict, claim.asked.judging) {
        (Verdict::Unavailable, _) => return with_reason("Unavailable: this machine can't measure it", claim),
        (Verdict::Failed, _) => return with_reason("Failed", claim),
        (Verdict::Deferred, _) => return with_reason("Deferred", claim),
        (Verdict::Undecided, _) if claim.trials == 0 => return with_reason("Undecided: no trial was finished", claim),
        (_, Judging::Order) => order::sentence(claim),
        (Verdict::Undecided, _) => undecided(claim),
        (_, Judging::Exact) => exact(claim),
        (_, Judging::Rate) => judged(claim),
    };
    match finding::reasons(claim) {
        Some(reason) => format!("{sentence} {}", ended(&capitalised(&reason))),
        None => sentence,
    }
}

/// What speaks against the trials being alike.
pub fn warning(claim: &ClaimResult) -> Option<String> {
    let signs: Vec<String> =
        claim.unlike.iter().map(|sign| harmless(finding::unlike(sign).trim().trim_end_matches('.'))).collect();
    let so = match claim.verdict {
        _ if claim.interferes => {
            "The verdict takes it that a coin decides each trial; intervals need trials that are alike."
        }
        Verdict::Holds | Verdict::Refuted => {
            "The verdict stands for the trials that gave it; intervals need trials that are alike."
        }
        _ => "Intervals need trials that are alike.",
    };
    (!signs.is_empty()).then(|| format!("Careful: {}. {so}", signs.join("; ")))
}

fn with_reason(opening: &str, claim: &ClaimResult) -> String {
    match finding::reasons(claim) {
        Some(reason) => format!("{opening}: {}", ended(&reason)),
        None => format!("{opening}."),
    }
}

fn judged(claim: &ClaimResult) -> String {
    let Clause { subject, complement } = Clause::of(&claim.asked);
    let holds = claim.verdict == Verdict::Holds;
    let opening = if holds { "Holds" } else { "Refuted" };
    let only = if holds { "" } else { "only " };
    let seen = in_trials(claim, claim.decisive(), only);
    let so = if at_median(claim).is_some() { String::new() } else { format!(", so {}", time_share(claim, holds)) };
    format!("{opening}: {subject} was {complement} {seen}{}{so}; {}.", figure_clause(claim), wrong(claim))
}

fn undecided(claim: &ClaimResult) -> String {
    let Clause { subject, complement } = Clause::of(&claim.asked);
    let seen = in_trials(claim, claim.judged(), "");
    let question = match at_median(claim) {
        Some(_) => String::new(),
        None => format!(" whether at least {}", of_the_time(claim.rate_claimed)),
    };
    let why = match claim.decided {
        // The reason that follows says why the answer was withdrawn.
        Some(_) => String::new(),
        None => format!(": too little to tell at error {}{question}", chance(claim.error)),
    };
    format!("Undecided: {subject} was {complement} {seen}{}{why}.", figure_clause(claim))
}

fn exact(claim: &ClaimResult) -> String {
    let Clause { subject, complement } = Clause::of(&claim.asked);
    let (opening, is) = match claim.verdict {
        Verdict::Holds => ("Holds", "is"),
        _ => ("Refuted", "is not"),
    };
    let figure = ClaimFigure::of(claim).map_or_else(String::new, |figure| format!(" ({})", figure.clause));
    format!("{opening}: {subject} {is} {complement}{figure}; it is the same in every trial, so it was checked once.")
}

/// "in 17 of 18 trials", "in all 18 trials", "in none of 18 trials", "in 17 of the first 18 trials".
fn in_trials(claim: &ClaimResult, of: Decided, only: &str) -> String {
    let first = if of.trials < claim.trials { "the first " } else { "" };
    let seen = match (of.successes, of.trials.saturating_sub(of.ties)) {
        (1, 1) if first.is_empty() => "in the only trial".into(),
        (0, 1) if first.is_empty() && claim.unknown == 0 => "in 0 of 1 trial".into(),
        (s, n) if s == n => format!("in all {}{n} trials", if first.is_empty() { "" } else { "of the first " }),
        (0, n) => format!("in none of {first}{n} trials"),
        (s, n) => format!("in {only}{s} of {first}{n} trials"),
    };
    // Also those after the verdict.
    if claim.unknown > 0 { format!("{seen} ({} left open)", claim.unknown) } else { seen }
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

/// The figure at the median, where that decides the claim.
fn at_median(claim: &ClaimResult) -> Option<ClaimFigure> {
    ClaimFigure::of(claim).filter(|_| claim.rate_claimed == 0.5 && claim.asked.margin.is_none())
}

/// ", at the median 6.1 times (5.9 to 6.3)", or ", 99.07 % (97.3 to 99.96)" where it is about another rate.
fn figure_clause(claim: &ClaimResult) -> String {
    match (at_median(claim), claim.rate) {
        (Some(figure), _) => format!(", {}", figure.clause),
        (None, None) => String::new(),
        (None, Some(_)) => format!(", {}", rate_figure(claim)),
    }
}

pub(super) fn wrong(claim: &ClaimResult) -> String {
    format!("wrong with a chance of at most {}", chance(claim.error))
}

pub(crate) fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
