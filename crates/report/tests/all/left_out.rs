//! Tests about arms that were not measured, or only in part. All formats must have the same sentence for each reason.

use ascertain_engine::experiment::{Arm, Point};
use ascertain_engine::finding::Reason;
use ascertain_engine::outcome::{Absence, LeftOut, Outcome};
use ascertain_report::terminal::{self, Style};
use ascertain_report::{markdown, sentence};

use crate::common::{check, reason};

const NEON: &str = "needs neon, which this CPU lacks";

type Levels = &'static [(&'static str, u64)];
/// An arm: experiment, variant, levels, number of trials, and the reason if it was left out.
type Row = (&'static str, &'static str, Levels, u64, Option<(Absence, &'static str)>);

/// Creates the outcome of a run with these arms.
fn outcome(arms: &[Row]) -> Outcome {
    let mut outcome = check();
    let template = outcome.points[0].clone();
    (outcome.points, outcome.left_out, outcome.claims) = (Vec::new(), Vec::new(), Vec::new());
    for (experiment, variant, levels, n, why) in arms {
        let at = levels.iter().fold(Point::default(), |point, (factor, level)| point.with(factor, *level));
        let (experiment, arm) = (experiment.to_string(), Arm { variant: variant.to_string(), point: at });
        outcome.points.push(ascertain_engine::outcome::PointSummary {
            experiment: experiment.clone(),
            arm: arm.clone(),
            n: *n,
            ..template.clone()
        });
        if let Some((absence, words)) = *why {
            outcome.left_out.push(LeftOut { experiment, arm, absence, reason: reason(words) });
        }
    }
    outcome
}

#[test]
fn arms_that_lack_the_same_share_a_line() {
    let neon = Some((Absence::Unavailable, NEON));
    let outcome = outcome(&[
        ("sum", "naive", &[("elements", 4)], 9, None),
        ("sum", "naive-neon", &[("elements", 4)], 0, neon),
        ("sum", "c-gcc", &[("elements", 4)], 0, Some((Absence::Unavailable, "needs a C compiler."))),
        ("sum", "dot-neon", &[("elements", 4)], 0, neon),
    ]);
    let said = [
        "Unavailable here (needs neon, which this CPU lacks): `naive-neon`, `dot-neon`.",
        "Unavailable here (needs a C compiler): `c-gcc`.",
    ];
    assert_eq!(sentence::left_out(&outcome), said);
    let terminal = terminal::left_out(&outcome, &Style { color: false, width: 200 });
    let markdown = markdown::outcome(&outcome, &Default::default());
    for said in said {
        assert!(terminal.contains(said), "{terminal}");
        assert!(markdown.contains(said), "{markdown}");
    }
    for form in [terminal, markdown] {
        assert_eq!(form.matches(NEON).count(), 1, "{form}");
    }
}

/// If a variant was left out at every point, it is named without levels. If all variants were left out at one point,
/// that point is named.
#[test]
fn what_tells_arms_apart_is_said_and_no_more() {
    let lacks = |reason| Some((Absence::Unavailable, reason));
    let (small, large): (Levels, Levels) = (&[("n", 4), ("k", 1)], &[("n", 9), ("k", 1)]);
    let outcome = outcome(&[
        ("sum", "naive", small, 9, None),
        ("sum", "naive", large, 0, lacks("too large")),
        ("sum", "neon", small, 0, lacks(NEON)),
        ("sum", "neon", large, 0, lacks(NEON)),
        ("sum", "kahan", small, 9, None),
        ("sum", "kahan", large, 0, lacks("too large")),
        ("sum", "odd", small, 0, lacks("odd")),
        ("sum", "odd", large, 9, None),
        ("sum", "even", small, 9, None),
        ("sum", "even", large, 0, lacks("odd")),
    ]);
    let said = [
        "Unavailable here (too large): `naive`, `kahan` at `n=9`.",
        "Unavailable here (needs neon, which this CPU lacks): `neon`.",
        "Unavailable here (odd): `odd (n=4)`, `even (n=9)`.",
    ];
    assert_eq!(sentence::left_out(&outcome), said);
}

#[test]
fn a_failure_is_told_from_what_is_unavailable() {
    let failed = Some((Absence::Failed, "exit code 3"));
    let outcome = outcome(&[
        ("sum", "naive", &[], 9, None),
        ("sum", "lacks", &[], 0, Some((Absence::Unavailable, "exit code 3"))),
        ("sum", "later", &[], 5, failed),
        ("sum", "at-once", &[], 0, failed),
        ("sum", "late", &[], 0, Some((Absence::Deferred, "the time was up"))),
        ("decimal", "lacks", &[], 0, Some((Absence::Unavailable, NEON))),
    ]);
    let said = [
        "Unavailable here (exit code 3): `lacks` of `sum`.",
        "Failed while it was measured (exit code 3): `later` of `sum`.",
        "Failed (exit code 3): `at-once` of `sum`.",
        "Not measured (the time was up): `late` of `sum`.",
        "Unavailable here (needs neon, which this CPU lacks): `lacks` of `decimal`.",
    ];
    assert_eq!(sentence::left_out(&outcome), said);
}

#[test]
fn commands_have_their_levels_filled_in() {
    let failed = Some((Absence::Failed, "exit code 3"));
    let outcome = outcome(&[
        ("compare", "sort -n{n}", &[("n", 1)], 9, None),
        ("compare", "sort -n{n}", &[("n", 2)], 0, failed),
        ("compare", "sort -n{n}", &[("n", 3)], 0, failed),
    ]);
    assert_eq!(sentence::left_out(&outcome), ["Failed (exit code 3): `sort -n2`, `sort -n3`."]);
}

/// Two arms failed for the same reason. The reason of a claim about one of them must not hide the sentence about the
/// other.
#[test]
fn a_failure_of_one_claim_does_not_hide_that_of_another() {
    let mut outcome = check();
    let claim = &mut outcome.claims[0];
    let reason = Reason::Failed { arm: None, is_wrong: false, line: None, how: "exit code 3".into() };
    claim.reasons = vec![reason.clone()];
    let own = claim.asked.tests[0].arms()[0].clone();
    let of = |variant: &str| LeftOut {
        experiment: claim.experiment.clone(),
        arm: Arm { variant: variant.into(), point: own.point.clone() },
        absence: Absence::Failed,
        reason: reason.clone(),
    };
    outcome.left_out = vec![of(&own.variant), of("another")];
    let markdown = markdown::outcome(&outcome, &Default::default());
    assert!(markdown.contains("Failed (exit code 3): `another`"), "{markdown}");
}
