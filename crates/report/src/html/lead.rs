//! The answer of a run at the top of the page, and notices about trials that are missing from the evidence.

use std::collections::BTreeSet;

use ascertain_engine::claim::{Hypothesis, Judging, Test};
use ascertain_engine::experiment::Arm;
use ascertain_engine::outcome::{ClaimResult, Decision, Outcome, Verdict};
use ascertain_engine::plan::UseCase;
use ascertain_engine::recorded::{ClaimPath, RecordedRun};

use super::claim::{anchors, heading, sentence};
use super::markup::Html;
use crate::amount::{self, Wording};
use crate::clause::{self, ArmComparison, ClaimFigure, Clause, joined};
use crate::fastest;
use crate::figure::{error_in_words, exact_percent};
use crate::grid::{self, left_open};
use crate::pictures::forests;
use crate::sentence::marked::{self, Sides, of_whose};
use crate::standing::furthest_first;
use crate::suite;
use crate::tails;
use crate::text::{capitalised, counted, escape_controls, grouped, listed, plain, quoted};

/// The answer of a run, in words.
pub(super) struct Answer {
    /// The headline. It is short enough for the `<title>` of the page.
    pub headline: Html,
    /// The headline as plain text.
    pub title: String,
    /// The sentences below the headline, with the error probability of the answer.
    pub lead: Option<Html>,
}

impl Answer {
    /// Creates the answer of a run. `purpose` is the headline of a run without claims.
    pub fn new(run: &RecordedRun, purpose: &str) -> Answer {
        let outcome = &run.outcome;
        let compared: Vec<ArmComparison> = outcome.claims.iter().filter_map(ArmComparison::new).collect();
        let error = error_in_words(run.header.plan.config.error);
        let with_tails =
            |lead: String| [lead].into_iter().chain(tails::sentences(outcome)).collect::<Vec<_>>().join(" ");
        let said = |headline: String, lead: String| Answer {
            headline: Html::sentence(&headline),
            title: plain(&headline).replace('`', ""),
            lead: (!lead.is_empty()).then(|| Html::sentence(&lead)),
        };
        // The answer of a suite is the title of its first picture.
        let suite =
            outcome.suites.first().and_then(|suite| Some((suite, forests(suite, "answer").into_iter().next()?)));
        if let Some((suite, picture)) = suite.filter(|_| run.header.plan.use_case == UseCase::Run) {
            let lead = suite::sentences(suite, outcome).into_iter().next().unwrap_or_default();
            return said(picture.plot.title, lead);
        }
        match (compared.as_slice(), outcome.claims.as_slice()) {
            (_, []) => said(purpose.into(), String::new()),
            ([one], [_]) => {
                let (headline, lead) = of_two(one, outcome);
                said(headline, with_tails(lead))
            }
            ([_, ..], all) if compared.len() == all.len() => {
                let sure = format!("The chance that any of these answers is wrong is at most {error}.");
                let headline = fastest::headline(outcome).filter(|_| !is_reference_fastest(&compared));
                said(
                    headline.unwrap_or_else(|| headline_of_several(&compared)),
                    with_tails(format!("{} {sure}", of_several(&compared, outcome))),
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

/// Returns the three refuted claims whose measured values are farthest from the claimed ones, each with its anchor.
/// Anchors begin with `prefix`. Empty if the run has at most eight claims, because a reader can look at all of them.
pub(super) fn furthest<'a>(claims: &'a [ClaimResult], prefix: &str) -> Vec<(String, &'a ClaimResult)> {
    const SHOWN: usize = 3;
    const MANY: usize = 8;
    // A comparison has no claimed value, so a slower command does not miss one.
    let is_missed = |claim: &ClaimResult| claim.verdict == Verdict::Refuted && claim.asked.judging != Judging::Order;
    let anchors = anchors(claims, prefix);
    let in_order = furthest_first(claims).into_iter().map(|index| (anchors[index].clone(), &claims[index]));
    let refuted = in_order.filter(|(_, claim)| is_missed(claim));
    refuted.take(if claims.len() > MANY { SHOWN } else { 0 }).collect()
}

/// Returns the claimed and the measured value in words. For example: "`b` at least 1.2 times as fast as `a`" and "8.3
/// times as long". For a rate: "25 to 50 ms in at least 90 % of the trials" and "in 0 of 143 trials, with a median time
/// of 8.2 ms".
pub(super) fn claimed_and_measured(claim: &ClaimResult) -> (String, String) {
    let is_exact = claim.asked.judging == Judging::Exact;
    let figure = ClaimFigure::new(claim).filter(|_| is_exact || claim.rate_claimed == 0.5);
    let often = match claim.rate_claimed {
        _ if figure.is_some() => String::new(),
        rate => format!(" in at least {} of the trials", exact_percent(rate)),
    };
    let here = match (claim.asked.tests.as_slice(), figure, grid::median(claim)) {
        ([Test::Versus { .. }], Some(figure), _) => format!("{}{}", figure.figure.value, of_whose(claim)),
        ([Test::Predicate { measure: Some(measure), .. }], Some(figure), _) => {
            format!("{} {}", escape_controls(&measure.metric), joined(&figure.figure))
        }
        ([Test::Predicate { measure: Some(measure), .. }], None, Some(median)) => {
            format!("{}, with a median {} of {median}", successes_in_words(claim), clause::metric_name(measure))
        }
        _ => successes_in_words(claim),
    };
    (format!("{}{often}", condition(&claim.asked)), here)
}

/// Returns the number of successes in words: "in 0 of 143 trials".
fn successes_in_words(claim: &ClaimResult) -> String {
    let all = counted(claim.trials.saturating_sub(claim.ties), "trial");
    format!("in {} of {all}{}", claim.successes, left_open(claim))
}

/// Returns the condition that a trial must meet to count as a success, in words.
fn condition(asked: &Hypothesis) -> String {
    match asked.tests.as_slice() {
        [Test::Predicate { predicate, conditions, .. }] => match clause::between(conditions) {
            Some(range) => escape_controls(&range),
            None => quoted(predicate),
        },
        _ => {
            let Clause { subject, complement } = Clause::new(asked);
            format!("{subject} {complement}")
        }
    }
}

/// Returns the headline and the sentence below it for a comparison of two arms. For example "`new` is faster than
/// `old`: it was 1.26 times as fast", and "Median 1.9 ms against 2.4 ms …".
fn of_two(comparison: &ArmComparison, outcome: &Outcome) -> (String, String) {
    let ArmComparison { claim, measure, candidate, reference } = comparison;
    let sides = Sides::new(*comparison);
    let Sides { candidate: one, baseline: other, wording: Wording { in_metric, is_better, .. }, .. } = &sides;
    let [of_one, of_other] = [candidate, reference].map(|arm| median(comparison, arm, outcome));
    let medians = format!("Median {of_one} against {of_other}");
    let mut range = String::new();
    let headline = match comparison.decision() {
        Some(decision @ (Decision::Faster | Decision::Slower)) => {
            let agrees = marked::agrees(claim, decision == Decision::Faster);
            match amount::size(claim, measure).filter(|_| agrees) {
                Some(size) => {
                    range = if size.range.is_empty() { range } else { format!(". Difference: {}", size.range) };
                    format!("{}: {}", sides.relation(decision), size.value)
                }
                None => sides.relation(decision) + in_metric,
            }
        }
        Some(Decision::Undecided) => match sides.difference_below() {
            Some(found) => capitalised(&found),
            None => {
                let headline = format!("Undecided whether {one} or {other} {is_better}{in_metric}");
                return (headline, format!("{medians}. {}", marked::claim(claim)));
            }
        },
        Some(decision) => sides.by_interval(decision),
        None => return (format!("{one} and {other} were not compared"), marked::claim(claim)),
    };
    let error = error_in_words(claim.error);
    (headline, format!("{medians}{range}. The chance that the answer is wrong is at most {error}."))
}

/// Returns whether all comparisons have the same reference.
fn has_one_reference(compared: &[ArmComparison]) -> bool {
    compared.iter().all(|one| one.reference == compared[0].reference)
}

/// Returns whether all comparisons have the same reference, and this reference is faster than each candidate.
fn is_reference_fastest(compared: &[ArmComparison]) -> bool {
    has_one_reference(compared) && compared.iter().all(|one| one.decision() == Some(Decision::Slower))
}

/// Returns the headline for several comparisons: "2 of 3 are faster than `old`". If all candidates are slower: "`old`
/// is faster than the other 3".
fn headline_of_several(compared: &[ArmComparison]) -> String {
    let reference = quoted(&compared[0].reference.to_string());
    let whose = if has_one_reference(compared) { reference } else { "their reference".into() };
    let better = compared.iter().filter(|one| one.decision() == Some(Decision::Faster)).count();
    let Wording { is_better, are_better, in_metric, .. } = Wording::new(compared[0].measure);
    let headline = match (better, compared.len()) {
        (0, others) if is_reference_fastest(compared) => format!("{whose} {is_better} than the other {others}"),
        (0, 2) => format!("Neither {is_better} than {whose}"),
        (0, others) => format!("None of {others} {is_better} than {whose}"),
        (1, others) => format!("1 of {others} {is_better} than {whose}"),
        (better, others) => format!("{better} of {others} {are_better} than {whose}"),
    };
    headline + &in_metric
}

/// Returns the sentences below the headline for several comparisons: the best median, the median of the reference, and
/// the commands grouped by answer. If the commands have different references, they were measured at different
/// parameters. Their medians are not comparable then, and the best median is left out.
fn of_several(compared: &[ArmComparison], outcome: &Outcome) -> String {
    // If all arms are levels of a single command, the headline names the command and the sentences only the levels.
    let are_levels = compared.iter().all(|one| one.candidate.variant == one.reference.variant);
    let name = |arm: &Arm| quoted(&if are_levels { arm.point.to_string() } else { arm.to_string() });
    let (opening, whose) = match has_one_reference(compared) {
        true => (best_median(compared, &name, outcome), "the"),
        false => ("Each command is compared with the reference that has the same parameters.".to_string(), "its"),
    };
    let Wording { better, worse, equal, not_worse, not_better, .. } = Wording::without_is(compared[0].measure);
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
        let of_group = compared.iter().filter(|one| one.decision() == decision);
        let names: Vec<String> = of_group.map(|one| name(one.candidate)).collect();
        (!names.is_empty()).then(|| format!("{words}: {}", listed(&names, MOST_NAMES)))
    });
    let groups = capitalised(&groups.collect::<Vec<_>>().join("; "));
    format!("{opening} {groups}.")
}

/// The largest number of names that are listed for an answer.
const MOST_NAMES: usize = 4;

/// Returns a sentence that names the arm with the best median.
fn best_median(compared: &[ArmComparison], name: &dyn Fn(&Arm) -> String, outcome: &Outcome) -> String {
    let first = &compared[0];
    let arms = compared.iter().map(|one| one.candidate).chain([first.reference]);
    let [of_reference, reference] = [median(first, first.reference, outcome), name(first.reference)];
    match first.best_median(arms, outcome) {
        Some(arm) if arm == first.reference => {
            format!("The reference {reference} has the best median, {of_reference}.")
        }
        Some(arm) => {
            let of_best = median(first, arm, outcome);
            format!("{} has the best median, {of_best}; the reference {reference} has {of_reference}.", name(arm))
        }
        None => "No command has a known median.".into(),
    }
}

/// Returns the number of claims by verdict, and the error probability: "62 are refuted; 7 are undecided: they need more
/// time; 6 can't be measured here. The chance …".
fn of_claims(claims: &[ClaimResult], error: &str) -> String {
    let said = |verdict, one: &str, many: &str| {
        let is_it = |claim: &&ClaimResult| claim.verdict == verdict && !claim.drifted;
        let count = claims.iter().filter(is_it).count();
        (count > 0).then(|| if count == 1 { format!("1 {one}") } else { format!("{count} {many}") })
    };
    let parts = [
        said(Verdict::Refuted, "is refuted", "are refuted"),
        said(Verdict::Undecided, "is undecided: it needs more time", "are undecided: they need more time"),
        said(Verdict::Unavailable, "can’t be measured here", "can’t be measured here"),
        said(Verdict::Failed, "failed while it was measured", "failed while they were measured"),
        said(Verdict::Deferred, "did not fit in the time limit", "did not fit in the time limit"),
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
        1 => " The values of 1 claim changed during the run or its trials affected each other, so its interval is less reliable."
            .into(),
        count => format!(
            " The values of {count} claims changed during the run or their trials affected each other, so their intervals are \
             less reliable."
        ),
    };
    format!("{rest}The chance that even one of these verdicts is wrong about its trials is at most {error}.{unlike}")
}

fn median(comparison: &ArmComparison, arm: &Arm, outcome: &Outcome) -> String {
    let summary = comparison.summary(arm, outcome);
    summary.map_or_else(|| "unknown".into(), |point| grid::points::plain(point, point.median))
}

/// Returns a notice if the evidence of a run has fewer trials than its verdicts were computed from. The reason is that
/// rows were lost or removed after the run had ended. `None` if the evidence is complete.
///
/// If trials are missing, the page still shows the verdicts that the run recorded, but its pictures show only the
/// remaining trials.
pub fn missing_trials(run: &RecordedRun) -> Option<String> {
    if run.outcome.windows.is_some() {
        // A long measurement records only a part of its observations, and the page says which.
        return None;
    }
    let judged: Vec<(&ClaimResult, &ClaimPath)> = run
        .outcome
        .claims
        .iter()
        .zip(&run.paths)
        .filter(|(claim, path)| missing_of_claim(claim, path).is_some())
        .collect();
    let what = match judged.as_slice() {
        [] => format!("the tables count more trials of {} than the evidence has", quote(&incomplete_arm(run)?)),
        [(claim, path), rest @ ..] => {
            let more = match rest.len() {
                0 => String::new(),
                1 => ", and trials of 1 more verdict are missing".to_string(),
                more => format!(", and trials of {more} more verdicts are missing"),
            };
            format!(
                "the verdict on {} counts {} trials, but the evidence has {}{more}",
                quote(&claim.id),
                grouped(claim.trials),
                grouped(path.trials.len() as u64)
            )
        }
    };
    Some(format!(
        "The evidence of this run is incomplete: {what}. Verdicts and tables are as the run wrote them when it ended, \
         and can't be checked; pictures show the remaining trials."
    ))
}

/// Returns a notice for one claim if the evidence lacks some of the trials that its verdict was computed from.
pub(super) fn missing_of_claim(claim: &ClaimResult, path: &ClaimPath) -> Option<String> {
    let (recorded, judged) = (path.trials.len() as u64, claim.trials);
    (recorded < judged).then(|| {
        let (recorded, judged) = (grouped(recorded), grouped(judged));
        format!("The evidence has only {recorded} of the {judged} trials of this verdict, so it can’t be checked.")
    })
}

fn quote(name: &str) -> String {
    crate::text::plain(&crate::text::quoted(name))
}

/// Returns the experiment and the variant of an arm whose summary counts more trials than the evidence has.
fn incomplete_arm(run: &RecordedRun) -> Option<String> {
    let short = run.outcome.points.iter().find(|point| {
        let of_point = run.series.iter().filter(|series| {
            series.experiment == point.experiment && series.metric == point.metric && series.arm == point.arm
        });
        let trials: BTreeSet<u64> = of_point.flat_map(|series| series.trials.iter().copied()).collect();
        (trials.len() as u64) < point.n
    });
    short.map(|point| format!("{} {}", point.experiment, point.arm.variant))
}
