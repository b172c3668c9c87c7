//! Sentences about the fastest of several arms.

use ascertain_engine::claim::Test;
use ascertain_engine::experiment::{Arm, Point};
use ascertain_engine::outcome::{ClaimResult, Decision, Outcome, PointSummary};
use ascertain_engine::unit::Unit;
use ascertain_report::fastest::sentences;

use crate::common::{decided, functions, order, outcome, with_ratio};

fn at(n: u64) -> Point {
    Point::default().with("n", n)
}

/// Creates a comparison of two arms at the levels `at`, with this interval of the ratio.
fn pair([candidate, reference]: [&str; 2], at: &Point, decision: Decision, [low, high]: [f64; 2]) -> ClaimResult {
    let ratio = with_ratio(order(candidate, reference), (low + high) / 2.0, low, high);
    let mut claim = decided(ratio, decision, 50, 100, 0);
    claim.asked.margin = Some(0.01);
    if let Test::Versus { candidate, baseline, .. } = &mut claim.asked.tests[0] {
        (candidate.point, baseline.point) = (at.clone(), at.clone());
    }
    claim
}

/// Creates an outcome with these comparisons. The median of the first name is 1 ms, that of the second 2 ms, and so on.
fn with_medians(claims: Vec<ClaimResult>, names: &[&str], at: &Point) -> Outcome {
    let blank = functions().points.remove(0);
    let point = |(index, name): (usize, &&str)| PointSummary {
        experiment: "sum".into(),
        arm: Arm { variant: name.to_string(), point: at.clone() },
        metric: "wall".into(),
        unit: Unit::Nanosecond,
        median: Some((index + 1) as f64 * 1e6),
        ..blank.clone()
    };
    outcome(names.iter().enumerate().map(point).collect(), claims)
}

#[test]
fn the_reference_is_the_fastest_where_all_others_are_slower() {
    let slower = |name, n| pair([name, "hash"], &at(n), Decision::Slower, [0.1, 0.2]);
    let all = [10, 1000].map(|n| [slower("tree", n), slower("list", n)]).concat();
    let outcome = with_medians(all, &[], &at(10));
    assert_eq!(sentences(&outcome), ["`hash` is the fastest at `n=10`.", "`hash` is the fastest at `n=1000`."]);
}

#[test]
fn two_alone_need_no_such_sentence() {
    let claims = vec![pair(["tree", "hash"], &at(10), Decision::Slower, [0.1, 0.2])];
    assert!(sentences(&with_medians(claims, &[], &at(10))).is_empty());
}

#[test]
fn two_are_told_apart_by_their_ratios_to_a_third() {
    let none = Point::default();
    let than_list = |name, decision, ratios| pair([name, "list"], &none, decision, ratios);
    let names = ["hash", "tree", "list"];
    let open = "`hash` is the fastest so far; open: `tree` (not compared with it).";
    let shown = "`hash` is the fastest.";
    use Decision::{Faster, Slower};
    for (ratios, decision, expected) in [
        ([0.3, 0.4], Slower, shown),
        ([1.1, 1.9], Faster, shown),
        // The distance between the intervals is less than the margin, which is 1 %.
        ([1.1, 1.99], Faster, open),
        ([1.1, 2.0], Faster, open),
        ([1.1, f64::INFINITY], Faster, open),
    ] {
        let claims = vec![than_list("hash", Faster, [2.0, 2.2]), than_list("tree", decision, ratios)];
        assert_eq!(sentences(&with_medians(claims, &names, &none)), [expected], "{ratios:?}");
    }
    // The third arm may be the candidate of one comparison and the reference of the other.
    let claims = vec![pair(["list", "hash"], &none, Slower, [0.4, 0.5]), than_list("tree", Faster, [1.1, 1.9])];
    assert_eq!(sentences(&with_medians(claims.clone(), &names, &none)), [shown]);
    let mut lost = claims;
    lost[1].ratio_high = None;
    assert_eq!(sentences(&with_medians(lost, &names, &none)), [open]);
}

#[test]
fn what_is_open_has_its_reason() {
    let none = Point::default();
    let claims = vec![
        pair(["hash", "list"], &none, Decision::Faster, [1.1, 1.2]),
        pair(["tree", "list"], &none, Decision::Faster, [1.1, 1.2]),
        pair(["array", "list"], &none, Decision::Undecided, [0.9, 1.3]),
        pair(["tree", "hash"], &none, Decision::Same, [0.995, 1.005]),
    ];
    assert_eq!(
        sentences(&with_medians(claims.clone(), &["hash", "tree", "array", "list"], &none)),
        ["`hash` is the fastest so far; open: `tree` (the same within 1 %), `array` (not compared with it)."]
    );
    assert_eq!(
        sentences(&with_medians(claims[2..3].iter().chain(&claims[..1]).cloned().collect(), &["array", "list"], &none)),
        ["`array` is the fastest so far; open: `list` (undecided), `hash` (not compared with it)."]
    );
}

#[test]
fn several_may_be_the_fastest() {
    let none = Point::default();
    let same = |name| pair([name, "hash"], &none, Decision::Same, [0.995, 1.005]);
    let slower = pair(["list", "hash"], &none, Decision::Slower, [0.1, 0.2]);
    for (claims, expected) in [
        (vec![same("tree"), slower.clone()], "`hash` and `tree` are the fastest, the same within 1 %."),
        (vec![same("tree"), same("array"), slower], "`hash`, `tree` and `array` are the fastest, the same within 1 %."),
    ] {
        assert_eq!(sentences(&with_medians(claims, &["hash", "tree", "array", "list"], &none)), [expected]);
    }
}

#[test]
fn no_one_is_the_fastest_by_memory() {
    let mut claims: Vec<ClaimResult> =
        ["tree", "list"].map(|name| pair([name, "hash"], &at(10), Decision::Slower, [0.1, 0.2])).to_vec();
    for claim in &mut claims {
        if let Test::Versus { measure, .. } = &mut claim.asked.tests[0] {
            (measure.metric, measure.unit) = ("memory_peak".into(), Unit::Byte);
        }
    }
    assert!(sentences(&with_medians(claims, &[], &at(10))).is_empty());
}
