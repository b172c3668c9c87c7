//! What came of a run, before everything else, and what is missing of its rows.

use std::collections::BTreeSet;

use ascertain_engine::claim::Judging;
use ascertain_engine::experiment::{Arm, Better};
use ascertain_engine::outcome::{ClaimResult, Decision, Measure, Outcome, PointSummary, TestSpec, Verdict};
use ascertain_engine::recorded::{ClaimPath, RecordedRun};

use super::claim::grouped;
use super::markup::Html;
use crate::clause::{self, adjective, compared_names, worse};
use crate::figure::{chance, exact_percent};
use crate::grid;
use crate::sentence::marked;
use crate::text::quoted;

/// A command or function against the reference, as it was judged.
struct Compared<'a> {
    claim: &'a ClaimResult,
    measure: &'a Measure,
    candidate: &'a Arm,
    reference: &'a Arm,
    decision: Option<Decision>,
}

/// What was concluded and how sure it is, in one or two sentences; nothing where nothing was asked.
pub(super) fn lead(run: &RecordedRun) -> Option<Html> {
    let outcome = &run.outcome;
    let compared: Vec<Compared> = outcome.claims.iter().filter_map(compared).collect();
    let error = chance(run.header.plan.config.error);
    let sentence = match (compared.as_slice(), outcome.claims.as_slice()) {
        ([one], [_]) => format!("{}.", of_two(one, outcome)),
        ([_, ..], all) if compared.len() == all.len() => {
            let sure = format!("The chance that any of these answers is wrong is at most {error}.");
            format!("{} {sure}", of_several(&compared, outcome))
        }
        (_, []) => return None,
        (_, [one]) => marked::claim(one),
        (_, all) => of_claims(all, &error),
    };
    Some(Html::sentence(&sentence))
}

fn compared(claim: &ClaimResult) -> Option<Compared<'_>> {
    let [TestSpec::Versus { measure, candidate, baseline, .. }] = claim.asked.tests.as_slice() else { return None };
    let is_judged = matches!(claim.verdict, Verdict::Holds | Verdict::Refuted | Verdict::Undecided);
    let decision = claim.decision.filter(|_| is_judged && claim.trials > 0);
    let is_order = claim.asked.judging == Judging::Order;
    is_order.then_some(Compared { claim, measure, candidate, reference: baseline, decision })
}

/// "`new` is faster than `old`: median 1.9 ms against 2.4 ms, 1.26 times as fast (1.21 to 1.30); …".
fn of_two(compared: &Compared, outcome: &Outcome) -> String {
    let Compared { claim, measure, candidate, reference, decision } = compared;
    let (one, other) = compared_names(candidate, reference);
    let [one, other] = [one, other].map(|name| quoted(&name));
    let (medians, (good, better)) =
        ([candidate, reference].map(|arm| median(arm, measure, outcome)), adjective(measure));
    let [of_one, of_other] = medians.map(|median| median.unwrap_or_else(|| "unknown".into()));
    let sure = format!("the chance that this is wrong is at most {}", chance(claim.error));
    let differs = |word: &str, faster: bool| {
        let times =
            clause::times(claim, &format!(" times as {good}"), &[1.0]).filter(|_| marked::agrees(claim, faster));
        let times = times.map_or_else(String::new, |times| format!(", {times}"));
        format!("{one} is {word} than {other}: median {of_one} against {of_other}{times}; {sure}")
    };
    match decision {
        Some(Decision::Faster) => differs(better, true),
        Some(Decision::Slower) => differs(worse(measure), false),
        Some(Decision::Same) => {
            let within =
                claim.asked.margin.map_or_else(String::new, |margin| format!(" within {}", exact_percent(margin)));
            format!("{one} is as {good} as {other}{within}: median {of_one} against {of_other}; {sure}")
        }
        Some(decision @ (Decision::NotSlower | Decision::NotFaster)) => {
            let word = if *decision == Decision::NotSlower { worse(measure) } else { better };
            let by = claim
                .asked
                .margin
                .map_or_else(String::new, |margin| format!(" by more than {}", exact_percent(margin)));
            format!("{one} is not {word} than {other}{by}: median {of_one} against {of_other}; {sure}")
        }
        Some(Decision::Undecided) => {
            format!("Undecided which is {better}: {one} has a median of {of_one}, {other} of {of_other}")
        }
        None => marked::claim(claim).trim_end_matches('.').to_string(),
    }
}

/// The best median, that of the reference, and who was found better or worse than that. Where parameters give each
/// its own reference, no median is the best.
fn of_several(compared: &[Compared], outcome: &Outcome) -> String {
    let [Compared { measure, reference, .. }, ..] = compared else { return String::new() };
    let name = |arm: &Arm| quoted(&arm.to_string());
    let is_shared = compared.iter().all(|compared| compared.reference == *reference);
    let (opening, whose) = match is_shared {
        true => (best_median(compared, measure, reference, outcome), "the"),
        false => ("Each is compared with the reference at its own parameters.".to_string(), "its"),
    };
    let (good, better) = adjective(measure);
    let groups = [
        (Some(Decision::Faster), format!("{better} than {whose} reference")),
        (Some(Decision::Slower), format!("{} than {whose} reference", worse(measure))),
        (Some(Decision::Same), format!("as {good} as {whose} reference")),
        (Some(Decision::NotSlower), format!("not {} than {whose} reference", worse(measure))),
        (Some(Decision::NotFaster), format!("not {better} than {whose} reference")),
        (Some(Decision::Undecided), "undecided".to_string()),
        (None, "not compared".to_string()),
    ];
    let groups = groups.into_iter().filter_map(|(decision, words)| {
        let of_group = compared.iter().filter(|compared| compared.decision == decision);
        let names: Vec<String> = of_group.map(|compared| name(compared.candidate)).collect();
        (!names.is_empty()).then(|| format!("{words}: {}", names.join(", ")))
    });
    let groups = marked::capitalised(&groups.collect::<Vec<_>>().join("; "));
    format!("{opening} {groups}.")
}

/// Who of all has the best median.
fn best_median(compared: &[Compared], measure: &Measure, reference: &Arm, outcome: &Outcome) -> String {
    let arms = compared.iter().map(|compared| compared.candidate).chain([reference]);
    let known = arms.filter_map(|arm| Some((arm, point(arm, measure, outcome)?.median?)));
    let is_better = |one: f64, other: f64| if measure.better == Better::Lower { one < other } else { one > other };
    let best = known.reduce(|best, other| if is_better(other.1, best.1) { other } else { best });
    let name = |arm: &Arm| quoted(&arm.to_string());
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

/// "Of 62 claims 37 hold, 18 are refuted and 7 are without a verdict; …".
fn of_claims(claims: &[ClaimResult], error: &str) -> String {
    let count = |verdict| claims.iter().filter(|claim| claim.verdict == verdict).count();
    let (hold, refuted) = (count(Verdict::Holds), count(Verdict::Refuted));
    let open = claims.len() - hold - refuted;
    let [holds, is_refuted, are_open] = [(hold, "holds", "hold"), (refuted, "is", "are"), (open, "is", "are")]
        .map(|(count, one, many)| format!("{count} {}", if count == 1 { one } else { many }));
    format!(
        "Of {} claims {holds} here, {is_refuted} refuted, and {are_open} left without a verdict. The chance that any of \
         these verdicts is wrong is at most {error}.",
        claims.len()
    )
}

fn point<'a>(arm: &Arm, measure: &Measure, outcome: &'a Outcome) -> Option<&'a PointSummary> {
    let is_it = |metric: &str, variant: &str| metric == measure.metric && variant == arm.variant;
    outcome.points.iter().find(|point| is_it(&point.metric, &point.variant) && point.at == arm.point && point.n > 0)
}

fn median(arm: &Arm, measure: &Measure, outcome: &Outcome) -> Option<String> {
    point(arm, measure, outcome).map(|point| grid::plain(point, point.median))
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
        "The evidence of this run is not whole: {what}. Verdicts and tables are as the run wrote them when it ended and \
         can't be checked against its rows; pictures show what is left."
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
