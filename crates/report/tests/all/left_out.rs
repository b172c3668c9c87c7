//! What has no figures, or not all: one sentence a reason, alike in every form.

use ascertain_engine::experiment::Point;
use ascertain_engine::finding::Reason;
use ascertain_engine::outcome::{Absence, LeftOut, Outcome};
use ascertain_report::terminal::{self, Style};
use ascertain_report::{markdown, sentence};

use crate::common::check;

const NEON: &str = "needs neon, which this CPU lacks";

type Levels = &'static [(&'static str, u64)];
/// Experiment, variant, levels, trials, and why it is left out.
type Row = (&'static str, &'static str, Levels, u64, Option<(Absence, &'static str)>);

/// A run of these arms, of which those with a reason are left out.
fn outcome(arms: &[Row]) -> Outcome {
    let mut outcome = check();
    let template = outcome.points[0].clone();
    (outcome.points, outcome.left_out, outcome.claims) = (Vec::new(), Vec::new(), Vec::new());
    for (experiment, variant, levels, n, why) in arms {
        let at = levels.iter().fold(Point::default(), |point, (factor, level)| point.with(factor, *level));
        let (experiment, variant, n) = (experiment.to_string(), variant.to_string(), *n);
        let point = template.clone();
        outcome.points.push(ascertain_engine::outcome::PointSummary {
            experiment: experiment.clone(),
            variant: variant.clone(),
            at: at.clone(),
            n,
            ..point
        });
        if let Some((absence, reason)) = *why {
            outcome.left_out.push(LeftOut { experiment, variant, at, absence, reason: reason.to_string().into() });
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

/// A variant that lacks something at every point has its name alone; what all of them lack at one point says where.
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
        ("decimal", "old", &[], 0, Some((Absence::Unsaid, NEON))),
    ]);
    let said = [
        "Unavailable here (exit code 3): `lacks` of `sum`.",
        "Failed while it was measured (exit code 3): `later` of `sum`.",
        "Failed (exit code 3): `at-once` of `sum`.",
        "Not measured (the time was up): `late` of `sum`.",
        "Not measured to the end (needs neon, which this CPU lacks): `old` of `decimal`.",
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

/// Runs that were recorded before the kind was noted are read as before.
#[test]
fn older_evidence_says_less() {
    let old = r#"{"experiment": "sum", "variant": "x", "at": {}, "reason": "needs neon"}"#;
    assert_eq!(serde_json::from_str::<LeftOut>(old).unwrap().absence, Absence::Unsaid);
}

/// A claim's reason tells of the arm that it is about, and of no other that failed alike.
#[test]
fn a_claims_failure_does_not_hide_anothers() {
    let mut outcome = check();
    let claim = &mut outcome.claims[0];
    let reason = Reason::Failed { arm: None, is_wrong: false, line: None, how: "exit code 3".into() };
    claim.reasons = vec![reason.clone()];
    let own = claim.asked.tests[0].arms()[0].clone();
    let of = |variant: &str| LeftOut {
        experiment: claim.experiment.clone(),
        variant: variant.into(),
        at: own.point.clone(),
        absence: Absence::Failed,
        reason: reason.clone(),
    };
    outcome.left_out = vec![of(&own.variant), of("another")];
    let markdown = markdown::outcome(&outcome, &Default::default());
    assert!(markdown.contains("Failed (exit code 3): `another`"), "{markdown}");
}
