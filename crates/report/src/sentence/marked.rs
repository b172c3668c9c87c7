//! The sentences about a claim, in which names are marked (see [`crate::text::quoted`]).

use ascertain_engine::claim::{Effect, Judging, Measure, Test};
use ascertain_engine::finding::Reason;
use ascertain_engine::outcome::{Broken, ClaimResult, Decided, Decision, Verdict};

use crate::amount::{self, Amount, Wording};
use crate::clause::{
    self, ArmComparison, ClaimFigure, Clause, compared_names, in_metric, joined, metric_name, rate_figure,
    with_interval_name,
};
use crate::figure::{below, error_in_words, exact_percent};
use crate::finding;
use crate::grid;
use crate::outlook;
use crate::text::{apart, capitalised, counted, ended, escape_controls, quoted, with_names};

/// Returns the sentence with the verdict, the reason for it, and a note if the measurement was emulated.
pub fn claim(claim: &ClaimResult) -> String {
    written(claim, beside_verdict(claim))
}

/// Returns the sentences of several claims. If all claims have the same error probability, the second item of the
/// result states it for all of them. Otherwise, each sentence states its own.
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

/// Returns the sentence of a claim without its error probability, for a heading.
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

/// The sentence of a claim in parts. They are separate because some texts leave out the error probability.
#[derive(Default)]
struct Sentence {
    /// The finding in words. It ends with a full stop only if no error probability follows.
    finding: String,
    /// The pairs that gave the answer, as a separate sentence without a full stop: "It lost all of the first 14 pairs;
    /// then the answer was certain". Empty if the finding has these pairs, or if there are none.
    pairs: String,
    /// The error probability in words: "error at most 0.1 %". `None` for a finding that has no error probability.
    certainty: Option<String>,
    /// Sentences that follow the error probability, each with a space before it.
    more: String,
}

impl Sentence {
    /// Creates a sentence without an error probability.
    fn plain(finding: String) -> Sentence {
        Sentence { finding, ..Sentence::default() }
    }

    fn text(&self) -> String {
        if self.finding.is_empty() {
            return String::new();
        }
        let facts = match self.pairs.as_str() {
            "" => self.finding.clone(),
            pairs => format!("{}. {pairs}", self.finding),
        };
        let certainty = match &self.certainty {
            None => String::new(),
            Some(certainty) if facts.ends_with(')') => format!("; {certainty}"),
            Some(certainty) => format!(" ({certainty})"),
        };
        let end = if facts.ends_with('.') && certainty.is_empty() { "" } else { "." };
        format!("{facts}{certainty}{end}{}", self.more)
    }
}

/// Returns a note if a claim was measured with an emulation instead of a real system; otherwise `None`.
pub fn emulated(claim: &ClaimResult) -> Option<String> {
    let what = claim.emulated.as_ref().filter(|_| grid::is_judged(claim))?;
    Some(format!("Emulated here: {}. A real one may differ.", escape_controls(what)))
}

/// Returns the first word of a claim's sentence: the verdict. `None` if the claim is a comparison, because its sentence
/// begins with the answer.
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

/// Returns the sentence of a claim without the verdict, to be shown next to the verdict.
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
        (Verdict::Undecided, _) if claim.trials == 0 => return with_reason("no trial was completed"),
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

/// Returns a warning if the trials of a claim are not alike, for example because the rate changed during the run.
/// `None` if they seem to be alike.
pub fn warning(claim: &ClaimResult) -> Option<String> {
    let signs: Vec<String> = claim
        .unlike
        .iter()
        .map(|sign| escape_controls(finding::unlike(sign, claim).trim().trim_end_matches('.')))
        .collect();
    let so = match claim.verdict {
        _ if claim.interferes => "The verdict and the intervals assume that trials do not affect each other.",
        Verdict::Holds | Verdict::Refuted => {
            "The verdict is valid for the trials that were measured, but the intervals are less reliable."
        }
        _ => "The intervals are less reliable.",
    };
    (!signs.is_empty()).then(|| format!("Careful: {}. {so}", signs.join("; ")))
}

fn judged(claim: &ClaimResult) -> Sentence {
    let Clause { subject, complement } = Clause::new(&claim.asked);
    let holds = claim.verdict == Verdict::Holds;
    let only = if holds { "" } else { "only " };
    let seen = in_trials(claim, claim.decisive(), only);
    let so = || format!(", so {}", time_share(claim, holds));
    let (figures, of_all) = match went_on(claim) {
        true => (so(), of_all_trials(claim)),
        false if at_median(claim).is_some() => (figure_clause(claim), String::new()),
        false => (format!("{}{}", figure_clause(claim), so()), String::new()),
    };
    let broken = if holds { String::new() } else { broken(claim) };
    Sentence {
        finding: format!("{subject} was {complement} {seen}{figures}"),
        certainty: Some(certainty(claim)),
        more: format!("{of_all}{broken}{}", median(claim)),
        ..Sentence::default()
    }
}

/// Returns whether trials were measured after the verdict.
fn went_on(claim: &ClaimResult) -> bool {
    claim.decisive().trials < claim.trials
}

/// Returns a sentence with the figures of all trials, for a claim whose verdict came before the last trial. An example
/// is " This was true in 1230 of all 1234 trials, 99.7 % (interval: 99.1 to 99.9 %)."
fn of_all_trials(claim: &ClaimResult) -> String {
    let judged = claim.judged();
    let counts = (judged.successes, judged.trials.saturating_sub(judged.ties));
    let [successes, all] = [counts.0, counts.1].map(apart);
    let seen = match counts {
        (s, n) if s == n => format!("in all {all} trials"),
        (0, _) => format!("in none of the {all} trials"),
        _ => format!("in {successes} of all {all} trials"),
    };
    format!(" This was true {seen}{}{}.", grid::left_open(claim), figure_clause(claim))
}

/// Returns a sentence about the conditions of the predicate that were not met: " Failed conditions: `exit == 0` in 2 of
/// 9 trials, `wall <= 20 ms` in 5." Empty if all were met, or if the predicate has only one condition.
fn broken(claim: &ClaimResult) -> String {
    match (claim.broken.as_slice(), claim.asked.tests.as_slice()) {
        ([], _) => return String::new(),
        ([one], [Test::Predicate { predicate, .. }]) if one.condition == *predicate => return String::new(),
        _ => {}
    }
    let said = claim.broken.iter().enumerate().map(|(index, Broken { condition, trials, .. })| {
        let all = if went_on(claim) { "all " } else { "" };
        let of = if index == 0 { format!(" of {all}{} trials", apart(claim.trials)) } else { String::new() };
        format!("{} in {}{of}", quoted(condition), apart(*trials))
    });
    let label = if claim.broken.len() == 1 { "Failed condition" } else { "Failed conditions" };
    format!(" {label}: {}.", said.collect::<Vec<_>>().join(", "))
}

/// Returns a sentence with the median of the predicate's metric: " Its median time was 31.2 ms."
fn median(claim: &ClaimResult) -> String {
    let [Test::Predicate { measure: Some(measure), .. }] = claim.asked.tests.as_slice() else {
        return String::new();
    };
    let of_all = if went_on(claim) { " in all trials" } else { "" };
    let metric = metric_name(measure);
    grid::median(claim).map_or_else(String::new, |median| format!(" Its median {metric}{of_all} was {median}."))
}

fn undecided(claim: &ClaimResult) -> Sentence {
    let Clause { subject, complement } = Clause::new(&claim.asked);
    let seen = in_trials(claim, claim.judged(), "");
    let question = match at_median(claim) {
        Some(_) => String::new(),
        None => format!(" whether this is true at least {}", of_the_time(claim.rate_claimed)),
    };
    let why = match claim.decided {
        // If the answer was withdrawn, the next sentence gives the reason.
        Some(_) => String::new(),
        None => format!(
            ". More trials are needed to decide{question} with an error of at most {}",
            error_in_words(claim.error)
        ),
    };
    Sentence {
        finding: format!("{subject} was {complement} {seen}{}{why}", figure_clause(claim)),
        more: format!("{}{}", broken(claim), median(claim)),
        ..Sentence::default()
    }
}

/// Returns a sentence for a deferred claim (one that was not measured to the end): the reason why it was deferred, and
/// the results so far. `reasons` is `None` if no reason is known.
fn deferred(claim: &ClaimResult, reasons: Option<String>) -> String {
    let why = reasons.map_or_else(String::new, |reason| with_names(&ended(&reason)));
    if claim.trials > 0 { format!("{why} So far {}", so_far(claim)) } else { why }
}

/// Returns the results so far as a clause: "`b` was at least twice as fast as `a` in the only trial, at the median 1.3
/// times as fast".
fn so_far(claim: &ClaimResult) -> String {
    let Clause { subject, complement } = Clause::new(&claim.asked);
    format!("{subject} was {complement} {}{}", in_trials(claim, claim.judged(), ""), figure_clause(claim))
}

/// Returns a sentence for a claim with too few trials. It begins with `early`, a text about the required number of
/// trials. The results so far follow, although they are not reliable yet.
fn too_early(claim: &ClaimResult, early: &str) -> String {
    let (question, so_far) = match (claim.asked.judging, sides(claim)) {
        (Judging::Order, Some(sides)) => (format!(" {}", sides.question()), sides.so_far()),
        _ => (String::new(), so_far(claim)),
    };
    format!("too early to tell{question}: {}. So far {so_far}", with_names(early.trim_end_matches('.')))
}

fn exact(claim: &ClaimResult) -> String {
    let Clause { subject, complement } = Clause::new(&claim.asked);
    let is = if claim.verdict == Verdict::Holds { "is" } else { "is not" };
    let figure =
        ClaimFigure::new(claim).map_or_else(String::new, |figure| format!(" ({}{})", figure.clause, of_whose(claim)));
    format!("{subject} {is} {complement}{figure}; it is the same in every trial, so it was checked once")
}

/// Returns the number of successful trials in words: "in 17 of 18 trials", "in all 18 trials", "in none of 18 trials".
/// If trials were measured after the verdict: "in 17 of the first 18 trials". `of` has the counts. If some but not all
/// trials succeeded, the text `only` is put before the number.
fn in_trials(claim: &ClaimResult, of: Decided, only: &str) -> String {
    let is_part = of.trials < claim.trials;
    let first = if is_part { "the first " } else { "" };
    let counts = (of.successes, of.trials.saturating_sub(of.ties));
    let [successes, all] = [counts.0, counts.1].map(apart);
    let seen = match counts {
        (1, 1) if !is_part => "in the only trial".into(),
        (0, 1) if !is_part && claim.unknown == 0 => "in 0 of 1 trial".into(),
        (1, 1) => "in the first trial".into(),
        (s, n) if s == n && is_part => format!("in all of {first}{all} trials"),
        (s, n) if s == n => format!("in all {all} trials"),
        (0, _) => format!("in none of {first}{all} trials"),
        _ => format!("in {only}{successes} of {first}{all} trials"),
    };
    let unknown = if is_part { String::new() } else { grid::left_open(claim) };
    format!("{seen}{unknown}")
}

/// Returns the rate that the verdict is about, in words. It is "at least half of the time" if the claim `holds`,
/// otherwise "less than half of the time".
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

/// Returns the median of a claim with its interval in words; `None` for a claim that is not about a median.
fn at_median(claim: &ClaimResult) -> Option<ClaimFigure> {
    ClaimFigure::new(claim).filter(|_| claim.rate_claimed == 0.5 && claim.asked.margin.is_none())
}

/// Returns the value of a claim as a clause: ", at the median it took 8.3 times as long (99.9 % interval: 7.7 to 9.1)".
/// For a claim about a rate, the clause has the rate: ", 99.07 % (interval: 97.3 to 99.96 %)".
fn figure_clause(claim: &ClaimResult) -> String {
    match (at_median(claim), claim.rate) {
        (Some(figure), _) => format!(", {}{}", figure.clause, of_whose(claim)),
        (None, None) => String::new(),
        (None, Some(_)) => format!(", {}", with_interval_name(claim, true, rate_figure(claim))),
    }
}

/// Returns a clause that restates a ratio below 1: after "0.12 times as fast" comes ", so it took 8.3 times as long".
/// Empty for other ratios, and if the sentence has the ratio in words such as "9.3 % longer".
pub(crate) fn of_whose(claim: &ClaimResult) -> String {
    let [Test::Versus { measure, scale: Effect::Ratio, .. }] = claim.asked.tests.as_slice() else {
        return String::new();
    };
    let is_less = |ratio: f64| ratio > 0.0 && ratio < 1.0;
    if !claim.ratio.is_some_and(is_less) || clause::is_in_words(claim) {
        return String::new();
    }
    amount::size(claim, measure).map_or_else(String::new, |size| format!(", so {}", size.value))
}

/// Returns the error probability of an answer in words: "error at most 0.1 %".
fn certainty(claim: &ClaimResult) -> String {
    format!("error at most {}", error_in_words(claim.error))
}

/// A comparison of two arms, with the names of the arms and the words for its sentence.
pub(crate) struct Sides<'a> {
    claim: &'a ClaimResult,
    measure: &'a Measure,
    pub candidate: String,
    pub baseline: String,
    pub wording: Wording,
}

/// Returns the sentence of a comparison: the answer, its error probability and the size of the difference.
fn order(claim: &ClaimResult) -> Sentence {
    let Some(sides) = sides(claim) else { return Sentence::plain(counts_of(claim, claim.judged(), "won")) };
    match claim.decision.unwrap_or(Decision::Undecided) {
        Decision::Undecided => sides.undecided(),
        decision @ (Decision::Faster | Decision::Slower) => sides.different(decision),
        decision => Sentence {
            finding: sides.by_interval(decision) + &sides.size(),
            certainty: Some(if_steady(claim, sides.measure)),
            ..Sentence::default()
        },
    }
}

fn sides(claim: &ClaimResult) -> Option<Sides<'_>> {
    ArmComparison::new(claim).map(Sides::new)
}

/// The values of `--precision` that a sentence may recommend, in descending order.
const PRECISIONS: [f64; 4] = [0.05, 0.02, 0.01, 0.005];

/// Longest measurement, in seconds, that fits in the default time limit of a comparison. A longer measurement needs
/// `--max-time`.
const SHORT_S: f64 = 24.0;

impl<'a> Sides<'a> {
    pub fn new(comparison: ArmComparison<'a>) -> Sides<'a> {
        let ArmComparison { claim, measure, candidate, reference } = comparison;
        let (candidate, baseline) = compared_names(candidate, reference);
        let [candidate, baseline] = [candidate, baseline].map(|name| quoted(&name));
        Sides { claim, measure, candidate, baseline, wording: Wording::new(measure) }
    }

    /// Returns how the candidate compares with the reference: "`b` is faster than `a`", "`b` is as fast as `a`".
    pub fn relation(&self, decision: Decision) -> String {
        let Sides { candidate, baseline, wording, .. } = self;
        let relation = match decision {
            Decision::Faster => &wording.better,
            Decision::Slower => &wording.worse,
            Decision::NotFaster => &wording.not_better,
            Decision::NotSlower => &wording.not_worse,
            Decision::Same | Decision::Undecided => &wording.equal,
        };
        format!("{candidate} {relation} {baseline}")
    }

    /// Returns an answer that was derived from the interval of the ratio, with its margin. Examples: "`b` is as fast as
    /// `a` within 3 %", or "`b` is not slower than `a` by more than 3 %".
    pub fn by_interval(&self, decision: Decision) -> String {
        let words = if decision == Decision::Same { "within" } else { "by more than" };
        self.relation(decision) + &self.wording.in_metric + &self.margin(words)
    }

    /// Returns the margin (the largest difference that counts as equal) after the given words: " by more than 3 %".
    /// Empty if there is no margin.
    fn margin(&self, words: &str) -> String {
        self.claim.asked.margin.map_or_else(String::new, |margin| format!(" {words} {}", exact_percent(margin)))
    }

    /// Returns the size of the difference as a clause: ": it took 9 % less time (8 to 10 %)".
    fn size(&self) -> String {
        amount::size(self.claim, self.measure).map_or_else(String::new, |size| format!(": {}", joined(&size)))
    }

    fn different(&self, decision: Decision) -> Sentence {
        let Sides { claim, measure, wording, .. } = self;
        let (faster, has_margin) = (decision == Decision::Faster, claim.asked.margin.is_some());
        let counts = (!has_margin).then(|| counts_of(claim, claim.decisive(), if faster { "won" } else { "lost" }));
        // If the interval includes 1, another sentence describes it.
        let agrees_wholly =
            claim.ratio_low.is_none_or(|low| low >= 1.0) || claim.ratio_high.is_none_or(|high| high <= 1.0);
        let mut known = (*claim).clone();
        if !agrees_wholly {
            (known.ratio_low, known.ratio_high) = (None, None);
        }
        let size = amount::size(&known, measure).filter(|_| agrees(claim, faster));
        let names_metric = size.as_ref().is_some_and(|size| size.value.starts_with("its "));
        let in_metric = if names_metric { "" } else { &wording.in_metric };
        // Pairs that were measured after the answer count for the size only, so the pairs before it have a sentence.
        let went_on = claim.decisive().trials < claim.trials;
        let (found, pairs) = match (size.as_ref().map(joined), counts) {
            (Some(size), Some(counts)) if went_on => (size, format!("It {counts}; then the answer was certain")),
            (Some(size), Some(counts)) if size.starts_with("it ") => (format!("{size} and {counts}"), String::new()),
            (Some(size), Some(counts)) => (format!("{size}; it {counts}"), String::new()),
            (Some(size), None) => (size, String::new()),
            (None, counts) => {
                let counts = counts.unwrap_or_else(|| counts_of(claim, claim.decisive(), "won"));
                (format!("it {counts}"), String::new())
            }
        };
        let more = match has_margin {
            true => String::new(),
            false if agrees_wholly && size.is_some() && went_on => {
                format!(" {} from all {} pairs.", amount::size_as_subject(claim, measure), claim.trials)
            }
            false if agrees_wholly && size.is_some() => String::new(),
            false => self.how_much(faster),
        };
        Sentence {
            finding: format!("{}{in_metric}{}: {found}", self.relation(decision), self.margin("by more than")),
            pairs,
            certainty: Some(if has_margin { if_steady(claim, measure) } else { certainty(claim) }),
            more,
        }
    }

    /// Returns a sentence about a ratio whose interval includes 1, although the pairs show which side is faster. It
    /// explains this apparent contradiction: " It is certainly slower, but by how much is not known yet (between 9.1 %
    /// less time and 25 % longer); add `--precision 5%` (about 8 s)." An interval with the recommended precision would
    /// exclude 1. No precision is recommended if the ratio is too close to 1.
    fn how_much(&self, faster: bool) -> String {
        let Sides { claim, measure, wording, .. } = self;
        let (Some(ratio), Some(low), Some(high)) = (claim.ratio, claim.ratio_low, claim.ratio_high) else {
            return String::new();
        };
        if low >= 1.0 || high <= 1.0 {
            return String::new();
        }
        let relation = if faster { &wording.better } else { &wording.worse };
        let relation = relation.trim_end_matches(" than");
        let certainly = match relation.strip_prefix("is ") {
            Some(adjective) => format!("is certainly {adjective}"),
            None => format!("certainly {relation}"),
        };
        let between = match low > 0.0 && high.is_finite() {
            true => format!(" (between {})", amount::both_sizes(measure, [low, high], " and ")),
            false => String::new(),
        };
        let precision = PRECISIONS.into_iter().find(|precision| *precision < ratio.ln().abs());
        let way_out = precision.map_or_else(String::new, |precision| {
            let needed_s = outlook::seconds_to(claim, precision);
            let max_time = needed_s.filter(|needed_s| *needed_s > SHORT_S);
            let max_time = max_time.map_or_else(String::new, |s| format!(" --max-time {}", outlook::allowance(s)));
            let about = needed_s.map_or_else(String::new, |s| format!(" ({})", outlook::about(s)));
            format!("; add `--precision {}%{max_time}`{about}", precision * 100.0)
        });
        let in_metric = &wording.in_metric;
        format!(" It {certainly}{in_metric}, but by how much is not known yet{between}{way_out}.")
    }

    /// Returns the question of a comparison: "which is faster", or "whether they differ by more than 3 %".
    fn question(&self) -> String {
        match self.claim.asked.margin {
            Some(_) => format!("whether they differ{}", self.margin("by more than")),
            None => format!("which {}", self.wording.is_better),
        }
    }

    /// Returns the results so far: "`b` won 3 of 3 pairs against `a`: it took 9 % less time (single pairs: 8 to 12 %)".
    fn so_far(&self) -> String {
        let Sides { claim, measure, candidate, baseline, .. } = self;
        let counts = counts_of(claim, claim.judged(), "won");
        format!("{candidate} {counts} against {baseline}{}{}", by_metric(measure), self.size())
    }

    fn no_difference(&self) -> String {
        format!("no difference found between {} and {}{}", self.candidate, self.baseline, by_metric(self.measure))
    }

    /// Returns a clause with the largest difference that is possible: "no difference found between `b` and `a`: if
    /// there is one, it is below 3 %". `None` if that is unknown.
    pub fn difference_below(&self) -> Option<String> {
        let most = self.claim.difference_below?;
        Some(format!("{}: if there is one, it is below {}", self.no_difference(), below(most)))
    }

    fn undecided(&self) -> Sentence {
        let Sides { claim, candidate, .. } = self;
        let pairs = counted(claim.trials, "pair");
        if claim.ties == claim.trials && claim.decided.is_none() {
            return Sentence::plain(format!("{}: {pairs}, and each was a tie", self.no_difference()));
        }
        if let Some(finding) = self.difference_below() {
            let more = format!(" {candidate} {}.", counts_of(claim, claim.judged(), "won"));
            let certainty = Some(if_steady(claim, self.measure));
            return Sentence { finding, certainty, more, ..Sentence::default() };
        }
        // If both commands of a pair were stopped at the time limit, their tie does not show that they are equal.
        let has_stopped = claim.reasons.iter().any(|reason| matches!(reason, Reason::BothStopped { .. }));
        let are_nearly_all_ties = claim.ties >= claim.trials - claim.trials / 10;
        if are_nearly_all_ties && !has_stopped && claim.decided.is_none() && claim.asked.margin.is_none() {
            return Sentence::plain(format!("{}: {} of {pairs} were ties", self.no_difference(), claim.ties));
        }
        Sentence::plain(match claim.decided {
            // If the answer was withdrawn, the next sentence gives the reason.
            Some(_) => self.so_far(),
            None => format!("not yet clear {}: {}", self.question(), self.so_far()),
        })
    }
}

/// Returns whether the median ratio has the direction of the answer: above 1 if `faster`, otherwise below 1. The two
/// can disagree if there are ties or if the ratios are skewed. The sentence then states only the counts.
pub(crate) fn agrees(claim: &ClaimResult, faster: bool) -> bool {
    let known = if faster { claim.ratio.or(claim.ratio_low) } else { claim.ratio };
    known.is_some_and(|ratio| if faster { ratio > 1.0 } else { ratio < 1.0 })
}

/// Returns a clause for an answer that was derived from the interval of the ratio. The clause has the error
/// probability, and the assumption that trials are alike: "error at most 0.1 %, if the speed did not drift during the
/// run".
fn if_steady(claim: &ClaimResult, measure: &Measure) -> String {
    let value = if clause::adjective(measure).0 == "fast" {
        "the speed".into()
    } else {
        Amount::new(measure).map_or_else(|| metric_name(measure), |amount| format!("the {}", amount.noun()))
    };
    format!("{}, if {value} did not drift during the run", certainty(claim))
}

/// Returns the metric of a comparison for the end of a clause: " in memory". Empty for time.
fn by_metric(measure: &Measure) -> String {
    Amount::new(measure).map_or_else(|| in_metric(measure), |amount| format!(" in {}", amount.noun()))
}

/// Returns the verb `won_or_lost` with the counts of pairs in `of`: "won 41 of 43 pairs, 1 tie". If pairs were measured
/// after the verdict: "won 41 of the first 43 pairs, 1 tie". An interrupted pair has no winner and is not counted;
/// another sentence mentions it.
fn counts_of(claim: &ClaimResult, of: Decided, won_or_lost: &str) -> String {
    let number = if won_or_lost == "lost" { clause::failures(of) } else { of.successes };
    let is_part = of.trials < claim.trials;
    let first = if is_part { "the first " } else { "" };
    let ties = if of.ties > 0 { format!(", {}", counted(of.ties, "tie")) } else { String::new() };
    let is_cut_off = |found: &&Reason| matches!(found, Reason::LeftOpen { has_met_limit: false, .. });
    let cut_off = if claim.reasons.iter().any(|found| is_cut_off(&found)) { claim.unknown } else { 0 };
    // Unlike the other counts, the number of pairs without a winner includes those after the verdict.
    let unknown = claim.unknown - cut_off;
    let unknown = if unknown > 0 { format!(", {unknown} left open") } else { String::new() };
    let pairs = of.trials.saturating_sub(cut_off);
    if number == pairs && pairs > 1 {
        let all = if is_part { "all of the first" } else { "all" };
        return format!("{won_or_lost} {all} {pairs} pairs{unknown}");
    }
    format!("{won_or_lost} {number} of {first}{}{ties}{unknown}", counted(pairs, "pair"))
}
