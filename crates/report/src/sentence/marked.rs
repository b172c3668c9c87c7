//! The sentences of a claim, with names still marked: see [`crate::text::quoted`].

use ascertain_engine::claim::{Effect, Judging};
use ascertain_engine::finding::Reason;
use ascertain_engine::outcome::{Broken, ClaimResult, Decided, Decision, Measure, TestSpec, Verdict};

use crate::amount::{self, Amount, Wording};
use crate::clause::{self, ClaimFigure, Clause, adjective, compared_names, in_metric, joined, named, rate_figure};
use crate::figure::{below, brief_odds, error_in_words, exact_percent};
use crate::finding;
use crate::grid;
use crate::text::{capitalised, counted, ended, escape_controls, quoted, with_names};

/// The verdict and the reason, and what was not real.
pub fn claim(claim: &ClaimResult) -> String {
    written(claim, beside_verdict(claim))
}

/// The sentences of several claims, and one for the certainty that all their answers share. Without a shared one, each
/// sentence has its own.
pub fn claims(claims: &[ClaimResult]) -> (Vec<String>, Option<String>) {
    let sentences: Vec<Sentence> = claims.iter().map(sentence).collect();
    let mut certainties = sentences.iter().filter_map(|sentence| sentence.certainty.as_deref());
    let shared = certainties.next().map(str::to_string);
    let (mut answers, mut is_shared) = (1, true);
    for other in certainties {
        (answers, is_shared) = (answers + 1, is_shared && Some(other) == shared.as_deref());
    }
    let shared = shared.filter(|_| is_shared && answers > 1);
    let text = |(claim, mut sentence): (&ClaimResult, Sentence)| {
        sentence.certainty = sentence.certainty.filter(|_| shared.is_none());
        written(claim, sentence.text())
    };
    let texts = claims.iter().zip(sentences).map(text).collect();
    (texts, shared.map(|shared| format!("Each answer: {shared}.")))
}

/// The claim's sentence up to its certainty, as a heading has it.
pub fn heading(claim: &ClaimResult) -> String {
    written(claim, sentence(claim).finding.trim_end_matches('.').into())
}

fn written(claim: &ClaimResult, said: String) -> String {
    let said = match opening(claim) {
        Some(opening) if said.is_empty() => format!("{opening}."),
        Some(opening) => format!("{opening}: {said}"),
        None => capitalised(&said),
    };
    emulated(claim).map_or_else(|| said.clone(), |emulated| format!("{said} {emulated}"))
}

/// The parts of what is said of a claim.
#[derive(Default)]
struct Sentence {
    /// The finding, without a full stop unless nothing else follows.
    finding: String,
    /// The bound of its error: "error at most 0.1 %".
    certainty: Option<String>,
    /// Sentences behind it, each with a space before it.
    more: String,
}

impl Sentence {
    /// A finding that no chance is in.
    fn plain(finding: String) -> Sentence {
        Sentence { finding, ..Sentence::default() }
    }

    fn text(&self) -> String {
        let certainty = match &self.certainty {
            None => String::new(),
            Some(certainty) if self.finding.ends_with(')') => format!("; {certainty}"),
            Some(certainty) => format!(" ({certainty})"),
        };
        let end = if self.finding.ends_with('.') && certainty.is_empty() { "" } else { "." };
        if self.finding.is_empty() { String::new() } else { format!("{}{certainty}{end}{}", self.finding, self.more) }
    }
}

/// That what was measured stands in for the real thing.
pub fn emulated(claim: &ClaimResult) -> Option<String> {
    let what = claim.emulated.as_ref().filter(|_| grid::is_judged(claim))?;
    Some(format!("Emulated here: {}; of a real one this says nothing.", escape_controls(what)))
}

/// The word that the sentence begins with: the verdict, unless what follows is the answer to a comparison.
pub fn opening(claim: &ClaimResult) -> Option<&'static str> {
    match claim.verdict {
        Verdict::Unavailable => Some("Unavailable"),
        Verdict::Failed => Some("Failed"),
        Verdict::Deferred => Some("Deferred"),
        Verdict::Undecided if claim.trials == 0 => Some("Undecided"),
        _ if claim.asked.judging == Judging::Order => None,
        Verdict::Undecided => Some("Undecided"),
        Verdict::Holds if claim.drifted => Some("Holds for these trials, but the rate changed during the run"),
        Verdict::Refuted if claim.drifted => Some("Refuted for these trials, but the rate changed during the run"),
        Verdict::Holds => Some("Holds"),
        Verdict::Refuted => Some("Refuted"),
    }
}

/// The sentence where the verdict stands beside it.
pub fn beside_verdict(claim: &ClaimResult) -> String {
    sentence(claim).text()
}

fn sentence(claim: &ClaimResult) -> Sentence {
    let [early, reasons] = finding::early_and_others(claim);
    let with_reason = |fact: &str| match &reasons {
        Some(reason) => Sentence::plain(format!("{fact}: {}", ended(reason))),
        None => Sentence::plain(fact.into()),
    };
    let mut sentence = match (claim.verdict, claim.asked.judging) {
        (Verdict::Unavailable, _) => return with_reason("this machine can't measure it"),
        (Verdict::Failed, _) => return Sentence::plain(reasons.map_or_else(String::new, |reason| ended(&reason))),
        (Verdict::Deferred, _) => return Sentence::plain(deferred(claim, reasons)),
        (Verdict::Undecided, _) if claim.trials == 0 => return with_reason("no trial was finished"),
        (Verdict::Undecided, _) if let Some(early) = early => Sentence::plain(too_early(claim, &early)),
        (_, Judging::Order) => order(claim),
        (Verdict::Undecided, _) => undecided(claim),
        (_, Judging::Exact) => Sentence::plain(exact(claim)),
        (_, Judging::Rate) => judged(claim),
    };
    if let Some(reason) = reasons {
        sentence.more += &format!(" {}", ended(&capitalised(&reason)));
    }
    sentence
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

fn judged(claim: &ClaimResult) -> Sentence {
    let Clause { subject, complement } = Clause::of(&claim.asked);
    let holds = claim.verdict == Verdict::Holds;
    let only = if holds { "" } else { "only " };
    let seen = in_trials(claim, claim.decisive(), only);
    let so = if at_median(claim).is_some() { String::new() } else { format!(", so {}", time_share(claim, holds)) };
    let broken = if holds { String::new() } else { broken(claim) };
    Sentence {
        finding: format!("{subject} was {complement} {seen}{}{so}", figure_clause(claim)),
        certainty: Some(certainty(claim)),
        more: format!("{broken}{}", median(claim)),
    }
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

fn undecided(claim: &ClaimResult) -> Sentence {
    let Clause { subject, complement } = Clause::of(&claim.asked);
    let seen = in_trials(claim, claim.judged(), "");
    let question = match at_median(claim) {
        Some(_) => String::new(),
        None => format!(" whether this is true at least {}", of_the_time(claim.rate_claimed)),
    };
    let why = match claim.decided {
        // The reason that follows says why the answer was withdrawn.
        Some(_) => String::new(),
        None => format!(". That is too little to tell{question} with an error of at most {}", brief_odds(claim.error)),
    };
    Sentence {
        finding: format!("{subject} was {complement} {seen}{}{why}", figure_clause(claim)),
        certainty: None,
        more: format!("{}{}", broken(claim), median(claim)),
    }
}

/// What it would take, and what was seen of it meanwhile.
fn deferred(claim: &ClaimResult, reasons: Option<String>) -> String {
    let why = reasons.map_or_else(String::new, |reason| with_names(&ended(&reason)));
    if claim.trials > 0 { format!("{why} So far {}", so_far(claim)) } else { why }
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
    format!("too early to tell{question}: {}. So far {so_far}", with_names(early.trim_end_matches('.')))
}

fn exact(claim: &ClaimResult) -> String {
    let Clause { subject, complement } = Clause::of(&claim.asked);
    let is = if claim.verdict == Verdict::Holds { "is" } else { "is not" };
    let figure =
        ClaimFigure::of(claim).map_or_else(String::new, |figure| format!(" ({}{})", figure.clause, of_whose(claim)));
    format!("{subject} {is} {complement}{figure}; it is the same in every trial, so it was checked once")
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

/// A ratio below 1 the other way round, since "0.12 times as fast" alone is hard to grasp: ", so it took 8.3 times as
/// long".
pub(crate) fn of_whose(claim: &ClaimResult) -> String {
    let [TestSpec::Versus { measure, scale: Effect::Ratio, .. }] = claim.asked.tests.as_slice() else {
        return String::new();
    };
    let is_less = |ratio: f64| ratio > 0.0 && ratio < 1.0;
    if !claim.ratio.is_some_and(is_less) {
        return String::new();
    }
    amount::size(claim, measure).map_or_else(String::new, |size| format!(", so {}", size.value))
}

/// The bound of an answer's error.
fn certainty(claim: &ClaimResult) -> String {
    format!("error at most {}", error_in_words(claim.error))
}

/// The two sides of a comparison, with their names ready to print.
struct Sides<'a> {
    measure: &'a Measure,
    candidate: String,
    baseline: String,
}

/// Whether `compare`'s command is faster than its reference.
fn order(claim: &ClaimResult) -> Sentence {
    let Some(sides) = sides(claim) else { return Sentence::plain(counts_of(claim, claim.judged(), "won")) };
    let decision = claim.decision.unwrap_or(Decision::Undecided);
    let margin = claim.asked.margin;
    match decision {
        Decision::Undecided => undecided_order(claim, &sides),
        Decision::Same => within(claim, &sides, margin),
        Decision::NotSlower => not_beyond(claim, &sides, false, margin),
        Decision::NotFaster => not_beyond(claim, &sides, true, margin),
        Decision::Faster => different(claim, &sides, true, margin),
        Decision::Slower => different(claim, &sides, false, margin),
    }
}

fn sides(claim: &ClaimResult) -> Option<Sides<'_>> {
    let (measure, candidate, baseline) = clause::ordered(claim)?;
    let (candidate, baseline) = compared_names(candidate, baseline);
    Some(Sides { measure, candidate: quoted(&candidate), baseline: quoted(&baseline) })
}

fn different(claim: &ClaimResult, sides: &Sides, faster: bool, margin: Option<f64>) -> Sentence {
    let counts = margin.is_none().then(|| counts_of(claim, claim.decisive(), if faster { "won" } else { "lost" }));
    // An interval that does not agree is said of behind it.
    let agrees_wholly = claim.ratio_low.is_none_or(|low| low >= 1.0) || claim.ratio_high.is_none_or(|high| high <= 1.0);
    let mut known = claim.clone();
    if !agrees_wholly {
        (known.ratio_low, known.ratio_high) = (None, None);
    }
    let size = amount::size(&known, sides.measure).filter(|_| agrees(claim, faster));
    let beyond = margin.map_or_else(String::new, |margin| format!(" by more than {}", exact_percent(margin)));
    let names_metric = size.as_ref().is_some_and(|size| size.value.starts_with("its "));
    let answer = plainly(sides, faster);
    let answer = if names_metric { answer } else { answer + &Wording::of(sides.measure).in_metric };
    let found = match (size.as_ref().map(joined), counts) {
        (Some(size), Some(counts)) if size.starts_with("it ") => format!("{size} and {counts}"),
        (Some(size), Some(counts)) => format!("{size}; it {counts}"),
        (Some(size), None) => size,
        (None, counts) => format!("it {}", counts.unwrap_or_else(|| counts_of(claim, claim.decisive(), "won"))),
    };
    Sentence {
        finding: format!("{answer}{beyond}: {found}"),
        certainty: Some(if margin.is_some() { if_alike(claim) } else { certainty(claim) }),
        more: if margin.is_none() { how_much(claim, sides, faster) } else { String::new() },
    }
}

/// The precisions that are recommended.
const PRECISIONS: [f64; 4] = [0.05, 0.02, 0.01, 0.005];

/// An interval on both sides of 1 beside an answer looks like a contradiction, and is none: " How much slower is not
/// settled yet (19 % longer to 17 % less time); add `--precision 2%`." The precision is one that leaves 1 out, if the
/// ratio is far enough from 1 for that.
fn how_much(claim: &ClaimResult, Sides { measure, .. }: &Sides, faster: bool) -> String {
    let (Some(ratio), Some(low), Some(high)) = (claim.ratio, claim.ratio_low, claim.ratio_high) else {
        return String::new();
    };
    if low >= 1.0 || high <= 1.0 {
        return String::new();
    }
    let end = |ratio: f64| amount::one_size(measure, ratio);
    let [near, far] = if faster { [low, high] } else { [high, low] };
    let better = if faster { adjective(measure).1 } else { clause::worse(measure) };
    let precision = PRECISIONS.into_iter().find(|precision| *precision < ratio.ln().abs());
    let way_out = precision.map_or_else(String::new, |precision| format!("; add `--precision {}%`", precision * 100.0));
    format!(" How much {better} is not settled yet ({} to {}){way_out}.", end(near), end(far))
}

/// Whether the ratio says so as well. Ties and skewed ratios can leave the median on the other side of 1: then only who
/// won is said.
pub(crate) fn agrees(claim: &ClaimResult, faster: bool) -> bool {
    let known = if faster { claim.ratio.or(claim.ratio_low) } else { claim.ratio };
    known.is_some_and(|ratio| if faster { ratio > 1.0 } else { ratio < 1.0 })
}

/// An answer from an interval needs more.
fn if_alike(claim: &ClaimResult) -> String {
    format!("{}, if trials are alike", certainty(claim))
}

fn plainly(Sides { measure, candidate, baseline }: &Sides, faster: bool) -> String {
    let Wording { better, worse, .. } = Wording::of(measure);
    format!("{candidate} {} {baseline}", if faster { better } else { worse })
}

fn within(claim: &ClaimResult, sides: &Sides, margin: Option<f64>) -> Sentence {
    let Sides { measure, candidate, baseline } = sides;
    let Wording { equal, in_metric, .. } = Wording::of(measure);
    let within = margin.map_or_else(String::new, |margin| format!(" within {}", exact_percent(margin)));
    by_interval(claim, sides, format!("{candidate} {equal} {baseline}{in_metric}{within}"))
}

/// A gate asked no more than that.
fn not_beyond(claim: &ClaimResult, sides: &Sides, faster: bool, margin: Option<f64>) -> Sentence {
    let Sides { measure, candidate, baseline } = sides;
    let Wording { not_better, not_worse, in_metric, .. } = Wording::of(measure);
    let is_not = if faster { not_better } else { not_worse };
    let by_more = margin.map_or_else(String::new, |margin| format!(" by more than {}", exact_percent(margin)));
    by_interval(claim, sides, format!("{candidate} {is_not} {baseline}{in_metric}{by_more}"))
}

/// An answer that was read from the interval, with that.
fn by_interval(claim: &ClaimResult, Sides { measure, .. }: &Sides, answer: String) -> Sentence {
    let size = amount::size(claim, measure);
    let size = size.map_or_else(String::new, |size| format!(": {}", joined(&size)));
    Sentence { finding: format!("{answer}{size}"), certainty: Some(if_alike(claim)), more: String::new() }
}

/// What a comparison asks.
fn question(claim: &ClaimResult, Sides { measure, .. }: &Sides) -> String {
    match claim.asked.margin {
        Some(margin) => format!("whether they differ by more than {}", exact_percent(margin)),
        None => format!("which {}", Wording::of(measure).is_better),
    }
}

/// "`b` won 3 of 3 pairs against `a`: it took 9 % less time (single pairs 8 to 12 %)".
fn order_so_far(claim: &ClaimResult, sides: &Sides) -> String {
    let Sides { measure, candidate, baseline } = sides;
    let counts = counts_of(claim, claim.judged(), "won");
    let size = amount::size(claim, measure);
    let size = size.map_or_else(String::new, |size| format!(": {}", joined(&size)));
    format!("{candidate} {counts} against {baseline}{}{size}", by_metric(measure))
}

/// What the pairs were won in, where it is not the time.
pub(crate) fn by_metric(measure: &Measure) -> String {
    Amount::of(measure).map_or_else(|| in_metric(measure), |amount| format!(" in {}", amount.noun()))
}

fn undecided_order(claim: &ClaimResult, sides: &Sides) -> Sentence {
    let Sides { measure, candidate, baseline } = sides;
    let counts = counts_of(claim, claim.judged(), "won");
    let found = format!("no difference found between {candidate} and {baseline}{}", by_metric(measure));
    let pairs = counted(claim.trials, "pair");
    if claim.ties == claim.trials && claim.decided.is_none() {
        return Sentence::plain(format!("{found}: {pairs}, and each was a tie"));
    }
    if let Some(most) = claim.difference_below {
        let finding = format!("{found}: if there is one, it is below {}; {candidate} {counts}", below(most));
        return Sentence { finding, certainty: Some(if_alike(claim)), more: String::new() };
    }
    // Ties of commands that were both stopped say nothing about a difference.
    let has_stopped = claim.reasons.iter().any(|reason| matches!(reason, Reason::BothStopped { .. }));
    let are_nearly_all_ties = claim.ties >= claim.trials - claim.trials / 10;
    if are_nearly_all_ties && !has_stopped && claim.decided.is_none() && claim.asked.margin.is_none() {
        return Sentence::plain(format!("{found}: {} of {pairs} were ties", claim.ties));
    }
    let so_far = order_so_far(claim, sides);
    let finding = match claim.decided {
        // The reason that follows says why the answer was withdrawn.
        Some(_) => so_far,
        None => format!("not yet clear {}: {so_far}", question(claim, sides)),
    };
    Sentence::plain(finding)
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
    let pairs = of.trials.saturating_sub(cut_off);
    if number == pairs && pairs > 1 {
        let first = if first.is_empty() { "" } else { "of the first " };
        return format!("{won_or_lost} all {first}{pairs} pairs{unknown}");
    }
    format!("{won_or_lost} {number} of {first}{}{ties}{unknown}", counted(pairs, "pair"))
}
