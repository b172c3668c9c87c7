//! The sentences of a claim, with names still marked: see [`crate::text::quoted`].

use ascertain_engine::claim::{Effect, Judging};
use ascertain_engine::finding::Reason;
use ascertain_engine::outcome::{Basis, Broken, ClaimResult, Decided, Decision, Measure, TestSpec, Verdict};

use crate::amount::{self, Amount, Wording, apart, is_time};
use crate::clause::{self, ClaimFigure, Clause, adjective, compared_names, in_metric, joined, named, rate_figure};
use crate::figure::{Figure, brief_odds, exact_percent, odds};
use crate::finding;
use crate::grid;
use crate::text::{capitalised, counted, ended, escape_controls, quoted, with_names};

/// The verdict and the reason, and what was not real.
pub fn claim(claim: &ClaimResult) -> String {
    let said = beside_verdict(claim);
    let said = match opening(claim) {
        Some(opening) if said.is_empty() => format!("{opening}."),
        Some(opening) => format!("{opening}: {said}"),
        None => said,
    };
    emulated(claim).map_or_else(|| said.clone(), |emulated| format!("{said} {emulated}"))
}

/// That what was measured stands in for the real thing.
pub fn emulated(claim: &ClaimResult) -> Option<String> {
    let what = claim.emulated.as_ref().filter(|_| grid::is_judged(claim))?;
    Some(format!("Emulated here: {}; of a real one this says nothing.", escape_controls(what)))
}

/// The word that the sentence begins with: the verdict, unless what follows is the answer to a comparison.
pub fn opening(claim: &ClaimResult) -> Option<&'static str> {
    let is_open = claim.decision.is_none_or(|decision| decision == Decision::Undecided) && sides(claim).is_some();
    match claim.verdict {
        Verdict::Unavailable => Some("Unavailable"),
        Verdict::Failed => Some("Failed"),
        Verdict::Deferred => Some("Deferred"),
        Verdict::Undecided if claim.trials == 0 => Some("Undecided"),
        _ if claim.asked.judging == Judging::Order => is_open.then_some("Undecided"),
        Verdict::Undecided => Some("Undecided"),
        Verdict::Holds => Some("Holds"),
        Verdict::Refuted => Some("Refuted"),
    }
}

/// The sentence where the verdict stands beside it.
pub fn beside_verdict(claim: &ClaimResult) -> String {
    let [early, reasons] = finding::early_and_others(claim);
    let sentence = match (claim.verdict, claim.asked.judging) {
        (Verdict::Unavailable, _) => return with_reason("this machine can't measure it", reasons),
        (Verdict::Failed, _) => return reasons.map_or_else(String::new, |reason| ended(&reason)),
        (Verdict::Deferred, _) => return deferred(claim, reasons),
        (Verdict::Undecided, _) if claim.trials == 0 => return with_reason("no trial was finished", reasons),
        (Verdict::Undecided, _) if let Some(early) = early => too_early(claim, &early),
        (_, Judging::Order) => order(claim),
        (Verdict::Undecided, _) => undecided(claim),
        (_, Judging::Exact) => exact(claim),
        (_, Judging::Rate) => judged(claim),
    };
    match reasons {
        Some(reason) => format!("{sentence} {}", ended(&capitalised(&reason))),
        None => sentence,
    }
}

/// What speaks against the trials being alike.
pub fn warning(claim: &ClaimResult) -> Option<String> {
    let signs: Vec<String> =
        claim.unlike.iter().map(|sign| escape_controls(finding::unlike(sign).trim().trim_end_matches('.'))).collect();
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

fn with_reason(fact: &str, reasons: Option<String>) -> String {
    match reasons {
        Some(reason) => format!("{fact}: {}", ended(&reason)),
        None => format!("{fact}."),
    }
}

fn judged(claim: &ClaimResult) -> String {
    let Clause { subject, complement } = Clause::of(&claim.asked);
    let holds = claim.verdict == Verdict::Holds;
    let only = if holds { "" } else { "only " };
    let seen = in_trials(claim, claim.decisive(), only);
    let so = if at_median(claim).is_some() { String::new() } else { format!(", so {}", time_share(claim, holds)) };
    let broken = if holds { String::new() } else { broken(claim) };
    let (figure, wrong) = (figure_clause(claim), wrong(claim));
    format!("{subject} was {complement} {seen}{figure}{so}; {wrong}.{broken}{}", median(claim))
}

/// " What failed: `exit == 0` in 2 of 9 trials, `wall <= 20 ms` in 5." Where a predicate has one condition alone, that
/// is said.
fn broken(claim: &ClaimResult) -> String {
    match (claim.broken.as_slice(), claim.asked.tests.as_slice()) {
        ([], _) => return String::new(),
        ([one], [TestSpec::Predicate { predicate, .. }]) if one.condition == *predicate => return String::new(),
        _ => {}
    }
    let said = claim.broken.iter().enumerate().map(|(index, Broken { condition, trials, .. })| {
        let of = if index == 0 { format!(" of {} trials", claim.trials) } else { String::new() };
        format!("{} in {trials}{of}", quoted(condition))
    });
    format!(" What failed: {}.", said.collect::<Vec<_>>().join(", "))
}

/// " Its median time was 31.2 ms.": how far a predicate was from being true, or false.
fn median(claim: &ClaimResult) -> String {
    let [TestSpec::Predicate { measure: Some(measure), .. }] = claim.asked.tests.as_slice() else {
        return String::new();
    };
    grid::median(claim).map_or_else(String::new, |median| format!(" Its median {} was {median}.", named(measure)))
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
        None => format!(": too little to tell at error {}{question}", brief_odds(claim.error)),
    };
    let (figure, broken) = (figure_clause(claim), broken(claim));
    format!("{subject} was {complement} {seen}{figure}{why}.{broken}{}", median(claim))
}

/// What it would take, and what was seen of it meanwhile.
fn deferred(claim: &ClaimResult, reasons: Option<String>) -> String {
    let why = reasons.map_or_else(String::new, |reason| with_names(&ended(&reason)));
    if claim.trials > 0 { format!("{why} So far {}.", so_far(claim)) } else { why }
}

/// "`b` was at least twice as fast as `a` in the only trial, at the median 1.3 times as fast".
fn so_far(claim: &ClaimResult) -> String {
    let Clause { subject, complement } = Clause::of(&claim.asked);
    format!("{subject} was {complement} {}{}", in_trials(claim, claim.judged(), ""), figure_clause(claim))
}

/// What it would take comes before any figure, which says little yet.
fn too_early(claim: &ClaimResult, early: &str) -> String {
    let (question, so_far) = match (claim.asked.judging, sides(claim)) {
        (Judging::Order, Some(sides)) => (format!(" {}", question(claim, &sides)), order_so_far(claim, &sides)),
        _ => (String::new(), so_far(claim)),
    };
    format!("too early to tell{question}: {}. So far {so_far}.", with_names(early.trim_end_matches('.')))
}

fn exact(claim: &ClaimResult) -> String {
    let Clause { subject, complement } = Clause::of(&claim.asked);
    let is = if claim.verdict == Verdict::Holds { "is" } else { "is not" };
    let figure =
        ClaimFigure::of(claim).map_or_else(String::new, |figure| format!(" ({}{})", figure.clause, of_whose(claim)));
    format!("{subject} {is} {complement}{figure}; it is the same in every trial, so it was checked once.")
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
    format!("{seen}{}", grid::left_open(claim))
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

/// ", at the median 0.12 times as fast (0.11 to 0.13), so it takes 8.3 times as long as `b`", or ", 99.07 % (97.3 to
/// 99.96)" where it is about another rate.
fn figure_clause(claim: &ClaimResult) -> String {
    match (at_median(claim), claim.rate) {
        (Some(figure), _) => format!(", {}{}", figure.clause, of_whose(claim)),
        (None, None) => String::new(),
        (None, Some(_)) => format!(", {}", rate_figure(claim)),
    }
}

/// Which side of a ratio is how much of the other, since "0.12 times" alone does not say it.
pub(crate) fn of_whose(claim: &ClaimResult) -> String {
    let [TestSpec::Versus { measure, candidate, baseline, scale: Effect::Ratio, .. }] = claim.asked.tests.as_slice()
    else {
        return String::new();
    };
    let baseline = quoted(&clause::arm_names(candidate, baseline).1);
    amount::against(claim, measure, &baseline).map_or_else(String::new, |against| format!(", so {against}"))
}

fn wrong(claim: &ClaimResult) -> String {
    format!("wrong with a chance of at most {}", odds(claim.error))
}

/// The two sides of a comparison, with their names ready to print.
struct Sides<'a> {
    measure: &'a Measure,
    candidate: String,
    baseline: String,
}

/// Whether `compare`'s command is faster than its reference.
fn order(claim: &ClaimResult) -> String {
    let Some(sides) = sides(claim) else { return format!("{}.", counts_of(claim, claim.judged(), "won")) };
    let decision = claim.decision.unwrap_or(Decision::Undecided);
    match (decision, claim.asked.margin) {
        (Decision::Undecided, _) => undecided_order(claim, &sides),
        (Decision::Same, margin) => same(claim, &sides, margin),
        (Decision::NotSlower, margin) => not_beyond(claim, &sides, false, margin),
        (Decision::NotFaster, margin) => not_beyond(claim, &sides, true, margin),
        (Decision::Faster, margin) => different(claim, &sides, true, margin),
        (Decision::Slower, margin) => different(claim, &sides, false, margin),
    }
}

fn sides(claim: &ClaimResult) -> Option<Sides<'_>> {
    let (measure, candidate, baseline) = clause::ordered(claim)?;
    let (candidate, baseline) = compared_names(candidate, baseline);
    Some(Sides { measure, candidate: quoted(&candidate), baseline: quoted(&baseline) })
}

fn different(claim: &ClaimResult, sides: &Sides, faster: bool, margin: Option<f64>) -> String {
    let counts = counts_of(claim, claim.decisive(), if faster { "won" } else { "lost" });
    let how = match (margin, times(claim, sides).filter(|_| agrees(claim, faster))) {
        (None, Some(times)) => {
            format!("{times}{}, having {counts}; {}", in_time(claim, sides, faster), judged_by(claim))
        }
        (None, None) => format!("it {counts}; {}", judged_by(claim)),
        (Some(_), Some(times)) => format!("{times}{}; {}", in_time(claim, sides, faster), by_interval(claim)),
        (Some(_), None) => format!("it {counts}; {}", by_interval(claim)),
    };
    let beyond = margin.map_or_else(String::new, |margin| format!(" by more than {}", exact_percent(margin)));
    format!("{}{beyond}: {how}.{}", plainly(sides, faster), if margin.is_none() { how_much(claim) } else { "" })
}

/// An interval on both sides of 1 beside an answer looks like a contradiction, and is none.
fn how_much(claim: &ClaimResult) -> &'static str {
    match (claim.ratio, claim.ratio_low, claim.ratio_high) {
        (Some(_), Some(low), Some(high)) if low < 1.0 && high > 1.0 => {
            " That it is so is sure by now; by how much takes more pairs."
        }
        _ => "",
    }
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
    format!("{}, if trials are alike", wrong(claim))
}

/// ", so it takes 9 % longer (8 to 15 %)": the ratio as what it adds to the reference's time or leaves of it, where
/// that is a part of it, and ", so it takes 59 times as long (55 to 63)" where it is more. Where the interval is not
/// beyond 1, or there is none, that goes without it.
fn in_time(claim: &ClaimResult, Sides { measure, .. }: &Sides, faster: bool) -> String {
    if let Some(Figure { value, range, .. }) = amount::times_as_long(claim, measure, " times as long") {
        let is_beyond = claim.ratio_low.is_some() && claim.ratio_high.is_some_and(|high| high <= 1.0);
        return format!(", so it takes {value}{}", if is_beyond { format!(" ({range})") } else { String::new() });
    }
    // A lower end of 0 is that of time-outs, of which more is not known. Much faster says it by itself.
    let is_clear = |ratio: &f64| is_time(measure) && (0.5..2.0).contains(ratio) && claim.ratio_low != Some(0.0);
    let Some(ratio) = claim.ratio.filter(is_clear) else { return String::new() };
    let change = |ratio: f64| if faster { 1.0 - 1.0 / ratio } else { 1.0 / ratio - 1.0 };
    let [least, most] = if faster { [claim.ratio_low, claim.ratio_high] } else { [claim.ratio_high, claim.ratio_low] };
    let ends = least.map(change).zip(most.map(change)).filter(|(least, most)| *least > 0.0 && most.is_finite());
    let (least, most) = ends.unzip();
    let Figure { value, range, .. } = Figure::of_share(Some(change(ratio)), least, most, 0.0);
    let range = least.map_or_else(String::new, |_| format!(" ({range})"));
    format!(", so it takes {value} {}{range}", if faster { "less time" } else { "longer" })
}

/// "1.052 times as fast (1.047 to 1.058)".
fn times(claim: &ClaimResult, Sides { measure, .. }: &Sides) -> Option<String> {
    apart(claim, measure, &marks(claim)).as_ref().map(joined)
}

/// The ratios that separate the answers.
fn marks(claim: &ClaimResult) -> Vec<f64> {
    claim.asked.margin.map_or_else(|| vec![1.0], |margin| vec![1.0 / (1.0 + margin), 1.0, 1.0 + margin])
}

fn plainly(Sides { measure, candidate, baseline }: &Sides, faster: bool) -> String {
    let Wording { better, worse, in_metric, .. } = Wording::of(measure);
    format!("{candidate} {} {baseline}{in_metric}", if faster { better } else { worse })
}

fn same(claim: &ClaimResult, sides: &Sides, margin: Option<f64>) -> String {
    let Sides { measure, candidate, baseline } = sides;
    let Wording { equal, in_metric, .. } = Wording::of(measure);
    let within = margin.map_or_else(String::new, |margin| format!(" within {}", exact_percent(margin)));
    let times = times(claim, sides).map_or_else(String::new, |times| format!("{times}; "));
    format!("{candidate} {equal} {baseline}{in_metric}{within}: {times}{}.", by_interval(claim))
}

/// A gate asked no more than that.
fn not_beyond(claim: &ClaimResult, sides: &Sides, faster: bool, margin: Option<f64>) -> String {
    let Sides { measure, candidate, baseline } = sides;
    let Wording { not_better, not_worse, in_metric, .. } = Wording::of(measure);
    let is_not = if faster { not_better } else { not_worse };
    let by_more = margin.map_or_else(String::new, |margin| format!(" by more than {}", exact_percent(margin)));
    let times = times(claim, sides).map_or_else(String::new, |times| format!("{times}; "));
    format!("{candidate} {is_not} {baseline}{in_metric}{by_more}: {times}{}.", by_interval(claim))
}

/// What a comparison asks.
fn question(claim: &ClaimResult, Sides { measure, .. }: &Sides) -> String {
    match claim.asked.margin {
        Some(margin) => format!("how they compare within {}", exact_percent(margin)),
        None => format!("which {}", Wording::of(measure).is_better),
    }
}

/// "`b` won 3 of 3 pairs against `a`, and is 1.1 times as fast (too few trials for an interval)".
fn order_so_far(claim: &ClaimResult, sides: &Sides) -> String {
    let Sides { measure, candidate, baseline } = sides;
    let counts = counts_of(claim, claim.judged(), "won");
    let is = if Amount::of(measure).is_some() { "with" } else { "and is" };
    let times = times(claim, sides).map_or_else(String::new, |times| format!(", {is} {times}"));
    format!("{candidate} {counts} against {baseline}{}{times}", by_metric(measure))
}

/// What the pairs were won in, where it is not the time.
fn by_metric(measure: &Measure) -> String {
    Amount::of(measure).map_or_else(|| in_metric(measure), |amount| format!(" in {}", amount.noun()))
}

fn undecided_order(claim: &ClaimResult, sides: &Sides) -> String {
    let Sides { measure, candidate, baseline } = sides;
    let question = question(claim, sides);
    let times = match Amount::of(measure) {
        Some(amount) => amount.times(claim, baseline, &marks(claim)),
        None => {
            let as_fast = format!(" times as {} as {baseline}{}", adjective(measure).0, in_metric(measure));
            clause::times(claim, &as_fast, &marks(claim)).map(|times| format!("is {times}"))
        }
    };
    let (is, won) = match times {
        Some(times) => (format!("{candidate} {times},"), "having won"),
        None => (format!("against {baseline}{}, {candidate}", by_metric(measure)), "won"),
    };
    let counts = counts_of(claim, claim.judged(), won);
    match claim.decided {
        // The reason that follows says why the answer was withdrawn.
        Some(_) => format!("{is} {counts}."),
        None => format!("{is} {counts}: too little to tell at error {} {question}.", brief_odds(claim.error)),
    }
}

/// "won 41 of 43 pairs, 1 tie"; "won 20 of the first 20 pairs", where more were measured after the verdict. A pair that
/// was interrupted has no winner, and is said of apart.
fn counts_of(claim: &ClaimResult, of: Decided, won_or_lost: &str) -> String {
    let number = if won_or_lost == "lost" { clause::failures(of) } else { of.successes };
    let first = if of.trials < claim.trials { "the first " } else { "" };
    let ties = if of.ties > 0 { format!(", {}", counted(of.ties, "tie")) } else { String::new() };
    let is_cut_off = |found: &&Reason| matches!(found, Reason::LeftOpen { has_met_limit: false, .. });
    let cut_off = if claim.reasons.iter().any(|found| is_cut_off(&found)) { claim.unknown } else { 0 };
    // Also those after the verdict.
    let unknown = claim.unknown - cut_off;
    let unknown = if unknown > 0 { format!(", {unknown} left open") } else { String::new() };
    let pairs = counted(of.trials.saturating_sub(cut_off), "pair");
    format!("{won_or_lost} {number} of {first}{pairs}{ties}{unknown}")
}
