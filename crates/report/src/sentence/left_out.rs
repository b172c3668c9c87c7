//! Sentences about arms (variants at certain levels). They give the reasons why requested arms were not measured, or
//! only in part. They also contain remarks about arms.

use ascertain_engine::claim::Test;
use ascertain_engine::experiment::{Arm, Level};
use ascertain_engine::finding::Reason;
use ascertain_engine::outcome::{Absence, ArmRemark, ClaimResult, LeftOut, Outcome, PointSummary};

use crate::finding;
use crate::text::{escape_controls, gathered, quoted};

/// Returns the sentences about the arms of all experiments of a run that has ended.
pub fn of_outcome(outcome: &Outcome) -> Vec<String> {
    of_outcome_where(outcome, |_| true)
}

/// Returns the sentences of [`of_outcome`], for output that also has the reasons for the results of claims. A failed
/// arm is left out if one of these reasons already describes its failure.
pub fn unsaid(outcome: &Outcome) -> Vec<String> {
    let is_said = |left_out: &LeftOut| {
        let tells = |claim: &ClaimResult, reason: &Reason| match reason {
            // If the claim is about a single arm, its reason does not name the arm.
            Reason::Failed { arm: None, .. } => {
                claim.asked.tests.iter().flat_map(Test::arms).any(|arm| left_out.is_of(&claim.experiment, arm))
            }
            Reason::Failed { arm: Some(arm), .. } => left_out.is_of(&claim.experiment, arm),
            _ => false,
        };
        let reasons = outcome.claims.iter().flat_map(|claim| claim.reasons.iter().map(move |reason| (claim, reason)));
        failure(&left_out.reason).is_some()
            && reasons
                .into_iter()
                .any(|(claim, reason)| failure(reason) == failure(&left_out.reason) && tells(claim, reason))
    };
    let left_out = outcome.left_out.iter().filter(|left_out| !is_said(left_out)).cloned().collect();
    of_outcome(&Outcome { left_out, ..outcome.clone() })
}

/// Returns whether the failure is a wrong answer, and a text about how the arm failed. `None` if the reason is not a
/// failure.
fn failure(reason: &Reason) -> Option<(bool, &str)> {
    match reason {
        Reason::Failed { is_wrong, how, .. } => Some((*is_wrong, how)),
        _ => None,
    }
}

/// Returns the sentences about the arms of some experiments: those whose id `is_wanted` accepts.
pub fn of_outcome_where(outcome: &Outcome, is_wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let arms = outcome.points.iter().map(|point| Known {
        experiment: &point.experiment,
        arm: point.arm.clone(),
        has_values: point.n > 0,
    });
    let left_out: Vec<&LeftOut> = outcome.left_out.iter().filter(|left_out| is_wanted(&left_out.experiment)).collect();
    let remarks = outcome.remarks.iter().filter(|one| is_wanted(&one.experiment)).map(|one| remark(one, outcome));
    remarks.chain(sentences(&left_out, &arms.collect::<Vec<_>>())).collect()
}

/// Returns a remark as a sentence: "`watch`: all 4 servers agree, the last one after 12 s." It names the levels of the
/// arm only if the variant was measured at several points.
fn remark(ArmRemark { experiment, arm, remark }: &ArmRemark, outcome: &Outcome) -> String {
    let is_other = |other: &&PointSummary| (&other.experiment, &other.arm.variant) == (experiment, &arm.variant);
    let differs = |factor: &String, level: &Level| {
        outcome.points.iter().filter(is_other).any(|other| other.arm.point.get(factor) != Some(level))
    };
    let name = Arm { variant: arm.variant.clone(), point: arm.point.only(differs) }.to_string();
    format!("{}: {}.", quoted(&name), escape_controls(&finding::remark(remark)))
}

/// An arm of the outcome; `has_values` is `true` if it has measurements.
struct Known<'a> {
    experiment: &'a str,
    arm: Arm,
    has_values: bool,
}

/// Arms of one experiment that were left out for the same reason.
struct Group<'a> {
    experiment: &'a str,
    opening: &'static str,
    reason: String,
    arms: Vec<Arm>,
}

fn sentences(left_out: &[&LeftOut], known: &[Known]) -> Vec<String> {
    let mut groups: Vec<Group> = Vec::new();
    for &left_out in left_out {
        let LeftOut { experiment, arm, absence, reason } = left_out;
        let has_values = known.iter().any(|known| known.has_values && left_out.is_of(known.experiment, &known.arm));
        let opening = opening(*absence, has_values);
        let reason = escape_controls(finding::reason(reason).trim().trim_end_matches('.'));
        let is_alike =
            |group: &Group| group.experiment == experiment && group.opening == opening && group.reason == reason;
        match groups.iter_mut().find(|group| is_alike(group)) {
            Some(group) => group.arms.push(arm.clone()),
            None => groups.push(Group { experiment, opening, reason, arms: vec![arm.clone()] }),
        }
    }
    let first = known.first().map(|known| known.experiment);
    let is_one = known.iter().all(|known| Some(known.experiment) == first);
    groups.iter().map(|group| group.sentence(known, is_one)).collect()
}

fn opening(absence: Absence, has_values: bool) -> &'static str {
    match (absence, has_values) {
        (Absence::Unavailable, _) => "Unavailable here",
        (Absence::Failed, true) => "Failed while it was measured",
        (Absence::Failed, false) => "Failed",
        (Absence::Deferred, _) => "Not measured",
    }
}

impl Group<'_> {
    /// Returns the sentence about a group of arms: "Unavailable here (needs neon, which this CPU lacks): `naive-neon`,
    /// `dot-neon`." Levels that all arms of the group share are named only once, other levels with their arm. Levels
    /// that all arms of the run share are not named. `known` has all arms of the run; the experiment is named unless
    /// the run has only one (`is_one`).
    fn sentence(&self, known: &[Known], is_one: bool) -> String {
        let rivals = known.iter().filter(|known| known.experiment == self.experiment).map(|known| &known.arm);
        let rivals: Vec<&Arm> = rivals.filter(|arm| self.arms.iter().any(|own| own.variant == arm.variant)).collect();
        let all = || self.arms.iter().chain(rivals.iter().copied());
        let first = &self.arms[0];
        // Arms of one group may have different factors.
        let factors = gathered(self.arms.iter().flat_map(|arm| &arm.point.0)).into_iter().map(|(factor, _)| factor);
        let hidden = factors.filter(|factor| !self.arms.iter().all(|arm| arm.shows(factor)));
        let varying = hidden.filter(|factor| all().any(|arm| arm.point.get(factor) != first.point.get(factor)));
        let (shared, apart): (Vec<&String>, Vec<&String>) =
            varying.partition(|factor| self.arms.iter().all(|arm| arm.point.get(factor) == first.point.get(factor)));
        let has_shared = |arm: &Arm| shared.iter().all(|factor| arm.point.get(factor) == first.point.get(factor));
        let mut names: Vec<String> = Vec::new();
        for arm in &self.arms {
            let mut same = rivals.iter().filter(|rival| rival.variant == arm.variant && has_shared(rival));
            let is_whole = same.all(|rival| self.arms.contains(rival));
            let name = with_factors(arm, |factor| arm.shows(factor) || (!is_whole && apart.contains(&factor)));
            let name = quoted(&name.to_string());
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let place = if is_one { String::new() } else { format!(" of {}", quoted(self.experiment)) };
        let at = with_factors(first, |factor| shared.contains(&factor)).point;
        let at = if at.0.is_empty() { String::new() } else { format!(" at {}", quoted(&at.to_string())) };
        format!("{} ({}): {}{place}{at}.", self.opening, self.reason, names.join(", "))
    }
}

/// Returns the arm with only those factors for which `is_wanted` returns `true`.
fn with_factors(arm: &Arm, is_wanted: impl Fn(&String) -> bool) -> Arm {
    Arm { variant: arm.variant.clone(), point: arm.point.only(|factor, _| is_wanted(factor)) }
}
