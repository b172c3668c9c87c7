use ascertain_engine::claim::Judging;
use ascertain_engine::outcome::{AskedTest, ClaimResult};
use ascertain_engine::recorded::RecordedRun;

use super::evidence::evidence;
use super::paired::paired;
use super::rate::density;
use super::values::values;
use super::{Picture, names};

/// The pictures of a claim, by its index: the path of the evidence to its threshold; the paired ratios or differences
/// in the order measured, with their bound; for a rate where it lies, beside the one that is claimed, and the values
/// that the predicate speaks of.
///
/// None for a claim without chance in it, or of which nothing was measured.
pub fn of_claim(run: &RecordedRun, claim: usize) -> Vec<Picture> {
    let claims = &run.outcome.claims;
    let (Some(result), Some(path)) = (claims.get(claim), run.paths.get(claim)) else { return Vec::new() };
    if result.asked.judging == Judging::Exact {
        return Vec::new();
    }
    let slug = &names::slugs(claims.iter().map(|claim| claim.id.as_str()))[claim];
    let id = |kind: &str| format!("{slug}-{kind}");
    let rate = if is_about_a_rate(result) { density(result, id("rate")) } else { None };
    let pictures = [
        evidence(result, path, id("evidence")),
        paired(result, path, id("ratios")),
        rate,
        values(run, result, path, id("values")),
    ];
    pictures.into_iter().flatten().collect()
}

/// Whether the rate says more than the median ratio does.
fn is_about_a_rate(claim: &ClaimResult) -> bool {
    let is_ratio = matches!(claim.asked.tests.as_slice(), [AskedTest::Versus { .. }]);
    claim.asked.judging == Judging::Rate && !(is_ratio && claim.rate_claimed == 0.5)
}

/// The claim in a few words, for a picture's description.
pub(super) fn said(claim: &ClaimResult) -> &str {
    // What an order says is what it asks.
    let is_statement = claim.asked.judging != Judging::Order && !claim.says.is_empty();
    if is_statement { &claim.says } else { &claim.id }
}

/// What a verdict for and one against the claim are called.
pub(super) fn directions(claim: &ClaimResult) -> [&'static str; 2] {
    if claim.asked.judging == Judging::Order { ["faster", "slower"] } else { ["holds", "refuted"] }
}
