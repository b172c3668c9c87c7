//! What came of a run, before everything else, and what is missing of its rows.

use std::collections::BTreeSet;

use ascertain_engine::claim::Judging;
use ascertain_engine::experiment::{Arm, Better};
use ascertain_engine::outcome::{ClaimResult, ClaimSpec, Decision, Measure, Outcome, PointSummary, TestSpec, Verdict};
use ascertain_engine::recorded::{ClaimPath, RecordedRun};

use super::claim::{anchors, heading, sentence};
use super::markup::Html;
use crate::amount::{self, Wording};
use crate::clause::{self, ClaimFigure, Clause, compared_names, joined, ordered};
use crate::fastest;
use crate::figure::{below, brief_odds, exact_percent, one_in};
use crate::grid::{self, left_open};
use crate::sentence::marked::{self, of_whose};
use crate::standing::furthest_first;
use crate::text::{capitalised, counted, escape_controls, grouped, plain, quoted};

/// A command or function against the reference, as it was judged.
struct Compared<'a> {
    claim: &'a ClaimResult,
    measure: &'a Measure,
    candidate: &'a Arm,
    reference: &'a Arm,
    decision: Option<Decision>,
}

/// What came of a run.
pub(super) struct Answer {
    /// In so few words that it is the page's title.
    pub headline: Html,
    /// The same without markup.
    pub title: String,
    /// The rest of it, and how sure it is.
    pub lead: Option<Html>,
}

impl Answer {
    /// `purpose` is what the run was for, where nothing was asked.
    pub fn of(run: &RecordedRun, purpose: &str) -> Answer {
        let outcome = &run.outcome;
        let compared: Vec<Compared> = outcome.claims.iter().filter_map(compared).collect();
        let error = chance(run.header.plan.config.error);
        let said = |headline: String, lead: String| Answer {
            headline: Html::sentence(&headline),
            title: plain(&headline).replace('`', ""),
            lead: (!lead.is_empty()).then(|| Html::sentence(&lead)),
        };
        match (compared.as_slice(), outcome.claims.as_slice()) {
            (_, []) => said(purpose.into(), String::new()),
            ([one], [_]) => {
                let (headline, lead) = of_two(one, outcome);
                said(headline, lead)
            }
            ([_, ..], all) if compared.len() == all.len() => {
                let sure = format!("The chance that any of these answers is wrong is at most {error}.");
                let headline = fastest::headline(outcome).filter(|_| !is_reference_fastest(&compared));
                said(
                    headline.unwrap_or_else(|| headline_of_several(&compared)),
                    format!("{} {sure}", of_several(&compared, outcome)),
                )
            }
            (_, [one]) => {
                let (class, verdict) = (grid::class(one), grid::answer(one));
                Answer {
                    headline: Html(format!(
                        "<span class=\"{class}\">{}:</span> {}",
                        capitalised(verdict),
                        heading(one)
                    )),
                    ..said(purpose.into(), sentence(one))
                }
            }
            (_, all) => {
                let hold = all.iter().filter(|claim| claim.verdict == Verdict::Holds && !claim.drifted).count();
                let rest =
                    format!("of {} claims {} on this machine", all.len(), if hold == 1 { "holds" } else { "hold" });
                Answer {
                    headline: Html(format!("<span class=\"holds\">{hold}</span> {rest}")),
                    ..said(format!("{hold} {rest}"), of_claims(all, &error))
                }
            }
        }
    }
}

/// A refuted claim among those that are furthest from what was said.
pub(super) struct Furthest {
    pub anchor: String,
    pub heading: Html,
    pub is_emulated: bool,
    pub claimed: Html,
    pub here: Html,
}

/// The refuted claims that are furthest from what was said, where there are so many claims that one looks for them.
pub(super) fn furthest(claims: &[ClaimResult], prefix: &str) -> Vec<Furthest> {
    const SHOWN: usize = 3;
    const MANY: usize = 8;
    // Being slower than another command misses nothing that was said.
    let is_missed = |claim: &ClaimResult| claim.verdict == Verdict::Refuted && claim.asked.judging != Judging::Order;
    let anchors = anchors(claims, prefix);
    let in_order = furthest_first(claims).into_iter().map(|index| (&claims[index], anchors[index].clone()));
    let refuted = in_order.filter(|(claim, _)| is_missed(claim));
    let view = |(claim, anchor): (&ClaimResult, String)| {
        let [claimed, here] = missed(claim).map(|words| Html::sentence(&words));
        Furthest { anchor, heading: heading(claim), is_emulated: claim.emulated.is_some(), claimed, here }
    };
    refuted.take(if claims.len() > MANY { SHOWN } else { 0 }).map(view).collect()
}

/// "`b` at least 1.2 times as fast as `a`" and "0.12x as fast, so it takes 8.3 times as long as `a`"; "25 to 50 ms in
/// at least 90 % of the trials" and "in 0 of 143 trials, with a median time of 8.2 ms".
fn missed(claim: &ClaimResult) -> [String; 2] {
    let is_exact = claim.asked.judging == Judging::Exact;
    let figure = ClaimFigure::of(claim).filter(|_| is_exact || claim.rate_claimed == 0.5);
    let often = match claim.rate_claimed {
        _ if figure.is_some() => String::new(),
        rate => format!(" in at least {} of the trials", exact_percent(rate)),
    };
    let here = match (claim.asked.tests.as_slice(), figure, grid::median(claim)) {
        ([TestSpec::Versus { .. }], Some(figure), _) => format!("{}{}", figure.figure.value, of_whose(claim)),
        ([TestSpec::Predicate { measure: Some(measure), .. }], Some(figure), _) => {
            format!("{} {}", escape_controls(&measure.metric), joined(&figure.figure))
        }
        ([TestSpec::Predicate { measure: Some(measure), .. }], None, Some(median)) => {
            format!("{}, with a median {} of {median}", seen(claim), clause::named(measure))
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
        [TestSpec::Predicate { predicate, conditions, .. }] => match clause::between(conditions) {
            Some(range) => escape_controls(&range),
            None => quoted(predicate),
        },
        _ => {
            let Clause { subject, complement } = Clause::of(asked);
            format!("{subject} {complement}")
        }
    }
}

fn compared(claim: &ClaimResult) -> Option<Compared<'_>> {
    let (measure, candidate, reference) = ordered(claim)?;
    let decision = claim.decision.filter(|_| grid::is_judged(claim) && claim.trials > 0);
    Some(Compared { claim, measure, candidate, reference, decision })
}

/// "`new` is 1.26 times as fast as `old`", and "The median is 1.9 ms against 2.4 ms, …".
fn of_two(compared: &Compared, outcome: &Outcome) -> (String, String) {
    let Compared { claim, measure, candidate, reference, decision } = compared;
    let (one, other) = compared_names(candidate, reference);
    let [one, other] = [one, other].map(|name| quoted(&name));
    let wording = Wording::of(measure);
    let in_metric = &wording.in_metric;
    let medians = [candidate, reference].map(|arm| median(arm, measure, outcome));
    let [of_one, of_other] = medians.map(|median| median.unwrap_or_else(|| "unknown".into()));
    let medians = format!("Median {of_one} against {of_other}");
    let sure = format!("the chance that this is wrong is at most {}", chance(claim.error));
    let differs = |word: &str, faster: bool| {
        let headline = format!("{one} {word} {other}");
        let size = amount::size(claim, measure).filter(|_| marked::agrees(claim, faster));
        let Some(size) = size else { return (headline + in_metric, format!("{medians}; {sure}.")) };
        let range = if size.range.is_empty() { String::new() } else { format!(" ({})", size.range) };
        (format!("{headline}: {}", size.value), format!("{medians}{range}; {sure}."))
    };
    let by_margin =
        |words: &str| claim.asked.margin.map_or_else(String::new, |margin| format!("{words}{}", exact_percent(margin)));
    match decision {
        Some(Decision::Faster) => differs(&wording.better, true),
        Some(Decision::Slower) => differs(&wording.worse, false),
        Some(Decision::Same) => (
            format!("{one} {} {other}{in_metric}{}", wording.equal, by_margin(" within ")),
            format!("{medians}; {sure}."),
        ),
        Some(decision @ (Decision::NotSlower | Decision::NotFaster)) => {
            let is_not = if *decision == Decision::NotSlower { &wording.not_worse } else { &wording.not_better };
            (format!("{one} {is_not} {other}{in_metric}{}", by_margin(" by more than ")), format!("{medians}; {sure}."))
        }
        Some(Decision::Undecided) if let Some(most) = claim.difference_below => (
            format!(
                "No difference found between {one} and {other}{}: if there is one, it is below {}",
                marked::by_metric(measure),
                below(most)
            ),
            format!("{medians}; {sure}."),
        ),
        Some(Decision::Undecided) => (
            format!("Undecided whether {one} or {other} {}{in_metric}", wording.is_better),
            format!("Median {of_one} against {of_other}. {}", marked::claim(claim)),
        ),
        None => (format!("{one} and {other} were not compared"), marked::claim(claim)),
    }
}

fn has_one_reference(compared: &[Compared]) -> bool {
    compared.iter().all(|one| one.reference == compared[0].reference)
}

/// Returns whether all were compared with one reference, and are slower.
fn is_reference_fastest(compared: &[Compared]) -> bool {
    has_one_reference(compared) && compared.iter().all(|one| one.decision == Some(Decision::Slower))
}

/// "2 of 3 are faster than `old`"; of those that are all slower, "`old` is faster than the other 3".
fn headline_of_several(compared: &[Compared]) -> String {
    let [Compared { measure, reference, .. }, ..] = compared else { return String::new() };
    let is_shared = has_one_reference(compared);
    let whose = if is_shared { quoted(&reference.to_string()) } else { "their reference".into() };
    let better = compared.iter().filter(|compared| compared.decision == Some(Decision::Faster)).count();
    let Wording { is_better, are_better, in_metric, .. } = Wording::of(measure);
    let others = compared.len();
    let headline = match better {
        0 if is_reference_fastest(compared) => {
            format!("{whose} {is_better} than the other {others}")
        }
        0 if others == 2 => format!("Neither {is_better} than {whose}"),
        0 => format!("None of {others} {is_better} than {whose}"),
        1 => format!("1 of {others} {is_better} than {whose}"),
        _ => format!("{better} of {others} {are_better} than {whose}"),
    };
    headline + &in_metric
}

/// The best median, that of the reference, and who was found better or worse than that. Where parameters give each
/// its own reference, no median is the best.
fn of_several(compared: &[Compared], outcome: &Outcome) -> String {
    let [Compared { measure, reference, .. }, ..] = compared else { return String::new() };
    let name = |arm: &Arm| name_among(arm, compared);
    let is_shared = has_one_reference(compared);
    let (opening, whose) = match is_shared {
        true => (best_median(compared, measure, reference, outcome), "the"),
        false => ("Each is compared with the reference at its own parameters.".to_string(), "its"),
    };
    let Wording { better, worse, equal, not_worse, not_better, .. } = Wording::without_is(measure);
    let of_reference = |words: String| format!("{words} {whose} reference");
    let groups = [
        (Some(Decision::Faster), of_reference(better)),
        (Some(Decision::Slower), of_reference(worse)),
        (Some(Decision::Same), of_reference(equal)),
        (Some(Decision::NotSlower), of_reference(not_worse)),
        (Some(Decision::NotFaster), of_reference(not_better)),
        (Some(Decision::Undecided), "undecided".to_string()),
        (None, "not compared".to_string()),
    ];
    let groups = groups.into_iter().filter_map(|(decision, words)| {
        let of_group = compared.iter().filter(|compared| compared.decision == decision);
        let names: Vec<String> = of_group.map(|compared| name(compared.candidate)).collect();
        let more = names.len().saturating_sub(MOST_NAMES);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        (!names.is_empty()).then(|| format!("{words}: {}{more}", names[..names.len().min(MOST_NAMES)].join(", ")))
    });
    let groups = capitalised(&groups.collect::<Vec<_>>().join("; "));
    format!("{opening} {groups}.")
}

/// The name of an arm. The levels of a single command are named without it: the headline has the command.
fn name_among(arm: &Arm, compared: &[Compared]) -> String {
    let are_levels = compared.iter().all(|compared| compared.candidate.variant == compared.reference.variant);
    quoted(&if are_levels { arm.point.to_string() } else { arm.to_string() })
}

/// So many names are said of those with the same answer.
const MOST_NAMES: usize = 4;

/// Who of all has the best median.
fn best_median(compared: &[Compared], measure: &Measure, reference: &Arm, outcome: &Outcome) -> String {
    let arms = compared.iter().map(|compared| compared.candidate).chain([reference]);
    let known = arms.filter_map(|arm| Some((arm, point(arm, measure, outcome)?.median?)));
    let is_better = |one: f64, other: f64| if measure.better == Better::Lower { one < other } else { one > other };
    let best = known.reduce(|best, other| if is_better(other.1, best.1) { other } else { best });
    let name = |arm: &Arm| name_among(arm, compared);
    let median = |arm: &Arm| median(arm, measure, outcome).unwrap_or_else(|| "unknown".into());
    match best {
        Some((arm, _)) if arm == reference => {
            format!("The reference {} has the best median, {}.", name(arm), median(arm))
        }
        Some((arm, _)) => {
            let (of_best, of_reference) = (median(arm), median(reference));
            format!(
                "{} has the best median, {of_best}; the reference {} has {of_reference}.",
                name(arm),
                name(reference)
            )
        }
        None => "No command was measured to its end.".into(),
    }
}

/// "62 are refuted; for 7 the evidence did not suffice; 6 can't be measured here. The chance …".
fn of_claims(claims: &[ClaimResult], error: &str) -> String {
    let said = |verdict, one: &str, many: &str| {
        let is_it = |claim: &&ClaimResult| claim.verdict == verdict && !claim.drifted;
        let count = claims.iter().filter(is_it).count();
        (count > 0).then(|| if count == 1 { format!("1 {one}") } else { format!("{count} {many}") })
    };
    let parts = [
        said(Verdict::Refuted, "is refuted", "are refuted"),
        said(
            Verdict::Undecided,
            "is undecided: its time was too short to tell",
            "are undecided: their time was too short to tell",
        ),
        said(Verdict::Unavailable, "can’t be measured here", "can’t be measured here"),
        said(Verdict::Failed, "failed while it was measured", "failed while they were measured"),
        said(Verdict::Deferred, "would not have fitted in the time given", "would not have fitted in the time given"),
    ];
    let changed = match claims.iter().filter(|claim| claim.drifted).count() {
        0 => None,
        1 => Some("1 has a verdict for these trials, but its rate changed during the run".to_string()),
        count => Some(format!("{count} have a verdict for these trials, but their rates changed during the run")),
    };
    let parts: Vec<String> = parts.into_iter().chain([changed]).flatten().collect();
    let rest = if parts.is_empty() { String::new() } else { format!("{}. ", parts.join("; ")) };
    let unlike = match claims.iter().filter(|claim| !claim.unlike.is_empty()).count() {
        0 => String::new(),
        1 => " In one claim the trials were not alike, so its sizes are less reliable.".into(),
        count => format!(" In {count} claims the trials were not alike, so their sizes are less reliable."),
    };
    format!("{rest}The chance that even one of these verdicts is wrong about its trials is at most {error}.{unlike}")
}

/// A chance as people say it.
fn chance(error: f64) -> String {
    one_in(error).unwrap_or_else(|| brief_odds(error))
}

fn point<'a>(arm: &Arm, measure: &Measure, outcome: &'a Outcome) -> Option<&'a PointSummary> {
    let is_it = |metric: &str, variant: &str| metric == measure.metric && variant == arm.variant;
    outcome.points.iter().find(|point| is_it(&point.metric, &point.variant) && point.at == arm.point && point.n > 0)
}

fn median(arm: &Arm, measure: &Measure, outcome: &Outcome) -> Option<String> {
    point(arm, measure, outcome).map(|point| grid::points::plain(point, point.median))
}

/// What to say first of a run whose verdicts speak of more trials than its evidence has, since rows were lost or taken
/// away after it had ended. `None` where all are there.
///
/// Its verdicts are those that the run itself wrote; its pictures show what is left.
pub fn missing_trials(run: &RecordedRun) -> Option<String> {
    let judged: Vec<(&ClaimResult, &ClaimPath)> = run
        .outcome
        .claims
        .iter()
        .zip(&run.paths)
        .filter(|(claim, path)| missing_of_claim(claim, path).is_some())
        .collect();
    let what = match judged.as_slice() {
        [] => format!("the tables count more trials of {} than there are", quote(&incomplete_arm(run)?)),
        [(claim, path), rest @ ..] => {
            let more = match rest.len() {
                0 => String::new(),
                1 => ", and 1 more verdict lacks some of its own".to_string(),
                more => format!(", and {more} more verdicts lack some of theirs"),
            };
            format!(
                "of the {} trials that the verdict on {} speaks of, {} are there{more}",
                grouped(claim.trials),
                quote(&claim.id),
                grouped(path.trials.len() as u64)
            )
        }
    };
    Some(format!(
        "The evidence of this run is not whole: {what}. Verdicts and tables are as the run wrote them when it ended \
         and can't be checked against its rows; pictures show what is left."
    ))
}

/// The same of one claim.
pub(super) fn missing_of_claim(claim: &ClaimResult, path: &ClaimPath) -> Option<String> {
    let (recorded, judged) = (path.trials.len() as u64, claim.trials);
    (recorded < judged).then(|| {
        let (recorded, judged) = (grouped(recorded), grouped(judged));
        format!(
            "Of the {judged} trials that this verdict speaks of, {recorded} are in the evidence: it can’t be checked."
        )
    })
}

fn quote(name: &str) -> String {
    crate::text::plain(&crate::text::quoted(name))
}

/// An arm of which the summary counts more trials than were recorded.
fn incomplete_arm(run: &RecordedRun) -> Option<String> {
    let short = run.outcome.points.iter().find(|point| {
        let of_point = run.series.iter().filter(|series| {
            series.experiment == point.experiment
                && series.metric == point.metric
                && series.arm.variant == point.variant
                && series.arm.point == point.at
        });
        let trials: BTreeSet<u64> = of_point.flat_map(|series| series.trials.iter().copied()).collect();
        (trials.len() as u64) < point.n
    });
    short.map(|point| format!("{} {}", point.experiment, point.variant))
}
