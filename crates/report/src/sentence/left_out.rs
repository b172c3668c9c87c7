//! What is said of arms beside their figures: why those that were asked for have none, or not all, and what sessions
//! said of theirs. One sentence each.

use ascertain_engine::experiment::{Arm, Level};
use ascertain_engine::finding::Reason;
use ascertain_engine::outcome::{Absence, ArmRemark, ClaimResult, LeftOut, Outcome, PointSummary, TestSpec};

use crate::finding;
use crate::text::{escape_controls, gathered, quoted};

/// The sentences of a run that has ended.
pub fn of_outcome(outcome: &Outcome) -> Vec<String> {
    of_outcome_where(outcome, |_| true)
}

/// Those of a run whose claims are shown with their reasons: a failure that one of these tells is not told again.
pub fn unsaid(outcome: &Outcome) -> Vec<String> {
    let is_said = |left_out: &LeftOut| {
        let tells = |claim: &ClaimResult, reason: &Reason| match reason {
            // A claim on one arm need not name it.
            Reason::Failed { arm: None, .. } => {
                claim.asked.tests.iter().flat_map(TestSpec::arms).any(|arm| left_out.is_of(&claim.experiment, arm))
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

/// How something failed, whichever arm it was.
fn failure(reason: &Reason) -> Option<(bool, &str)> {
    match reason {
        Reason::Failed { is_wrong, how, .. } => Some((*is_wrong, how)),
        _ => None,
    }
}

/// Those of some experiments.
pub fn of_outcome_where(outcome: &Outcome, is_wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let arms = outcome.points.iter().map(|point| {
        let arm = Arm { variant: point.variant.clone(), point: point.at.clone() };
        Known { experiment: &point.experiment, arm, has_values: point.n > 0 }
    });
    let left_out: Vec<&LeftOut> = outcome.left_out.iter().filter(|left_out| is_wanted(&left_out.experiment)).collect();
    let remarks = outcome.remarks.iter().filter(|one| is_wanted(&one.experiment)).map(|one| remark(one, outcome));
    remarks.chain(sentences(&left_out, &arms.collect::<Vec<_>>())).collect()
}

/// "`watch`: all 4 servers say so, the last of them after 12 s." The point stands beside a variant that was
/// measured at several.
fn remark(ArmRemark { experiment, variant, at, remark }: &ArmRemark, outcome: &Outcome) -> String {
    let is_other = |other: &&PointSummary| (&other.experiment, &other.variant) == (experiment, variant);
    let differs = |factor: &String, level: &Level| {
        outcome.points.iter().filter(is_other).any(|other| other.at.get(factor) != Some(level))
    };
    let name = Arm { variant: variant.clone(), point: at.only(differs) }.to_string();
    format!("{}: {}.", quoted(&name), escape_controls(&finding::remark(remark)))
}

/// An arm that the run is about.
struct Known<'a> {
    experiment: &'a str,
    arm: Arm,
    has_values: bool,
}

/// Arms that are left out for one reason.
struct Group<'a> {
    experiment: &'a str,
    opening: &'static str,
    reason: String,
    arms: Vec<Arm>,
}

fn sentences(left_out: &[&LeftOut], known: &[Known]) -> Vec<String> {
    let mut groups: Vec<Group> = Vec::new();
    for &left_out in left_out {
        let LeftOut { experiment, variant, at, absence, reason } = left_out;
        let arm = Arm { variant: variant.clone(), point: at.clone() };
        let has_values = known.iter().any(|known| known.has_values && left_out.is_of(known.experiment, &known.arm));
        let opening = opening(*absence, has_values);
        let reason = escape_controls(finding::reason(reason).trim().trim_end_matches('.'));
        let is_alike =
            |group: &Group| group.experiment == experiment && group.opening == opening && group.reason == reason;
        match groups.iter_mut().find(|group| is_alike(group)) {
            Some(group) => group.arms.push(arm),
            None => groups.push(Group { experiment, opening, reason, arms: vec![arm] }),
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
        (Absence::Unsaid, _) => "Not measured to the end",
    }
}

impl Group<'_> {
    /// "Unavailable here (needs neon, which this CPU lacks): `naive-neon`, `dot-neon`." What tells the arms apart
    /// stands beside them; what all of them have, once; and what all arms of the run have, not at all.
    fn sentence(&self, known: &[Known], is_one: bool) -> String {
        let rivals = known.iter().filter(|known| known.experiment == self.experiment).map(|known| &known.arm);
        let rivals: Vec<&Arm> = rivals.filter(|arm| self.arms.iter().any(|own| own.variant == arm.variant)).collect();
        let all = || self.arms.iter().chain(rivals.iter().copied());
        let first = &self.arms[0];
        // Not all arms have a level of each.
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

/// The arm with some of its factors.
fn with_factors(arm: &Arm, is_wanted: impl Fn(&String) -> bool) -> Arm {
    Arm { variant: arm.variant.clone(), point: arm.point.only(|factor, _| is_wanted(factor)) }
}
