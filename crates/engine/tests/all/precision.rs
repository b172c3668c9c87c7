//! Tests that trials continue after the answers, until the intervals are narrow or the time limit for this is reached.

use std::time::Duration;

use ascertain_engine::claim::{Bound, Claim, Judging};
use ascertain_engine::experiment::{TargetError, Trial};
use ascertain_engine::outcome::{Decision, Outcome, PointSummary};
use ascertain_engine::plan::{Config, Plan, Table};

use crate::common::{Scripted, arm, outcome, plan, take, versus};

/// Advances the test's clock by 1 ms, and returns a value. The values of `slow` are 25 to 40 % larger than those of
/// `fast`. `alike` has the same mean as `fast`.
fn varied(variant: &str, trial: &Trial) -> Result<f64, TargetError> {
    take(Duration::from_millis(1));
    let noise = (trial.seed % 1000) as f64 / 1000.0;
    let of_other = (trial.seed / 1000 % 1000) as f64 / 1000.0;
    Ok(match variant {
        "fast" => 100.0 + 10.0 * noise,
        "alike" => 100.0 + 10.0 * of_other,
        _ => 140.0 - 3.0 * noise,
    })
}

fn order(candidate: &str) -> Claim {
    versus(candidate, candidate, "fast", Bound::AtLeast(1.0), Judging::Order)
}

/// Returns the outcome of a run that waits until ratios and medians have this precision, but at most for this time.
fn precise(claims: Vec<Claim>, arms: &[&str], precision: f64, precision_time_ms: u64) -> Outcome {
    let table_trials = claims.is_empty().then_some(5);
    let config = Config {
        max_trials: Some(3000),
        precision: Some(precision),
        median_precision: Some(precision),
        precision_time: Some(Duration::from_millis(precision_time_ms)),
        table_trials,
        ..Config::default()
    };
    let tables = vec![Table { experiment: "scripted".into(), arms: arms.iter().copied().map(arm).collect() }];
    outcome(&Scripted::new(arms, varied), &Plan { tables, ..plan(claims, config) })
}

/// Returns half of the width of the median's interval, divided by its middle.
fn precision(point: &PointSummary) -> f64 {
    let (low, high) = (point.median_low.unwrap(), point.median_high.unwrap());
    (high - low) / (high + low)
}

#[test]
fn trials_go_on_until_ratio_and_medians_are_known_well_enough() {
    let plain = outcome(&Scripted::new(&["fast", "slow"], varied), &plan(vec![order("slow")], Config::default()));
    let mut trials = vec![plain.claims[0].trials];
    for wanted in [0.02, 0.01, 0.005] {
        let outcome = precise(vec![order("slow")], &["fast", "slow"], wanted, 1_000_000);
        let claim = &outcome.claims[0];
        assert_eq!((claim.decision, claim.decided), (plain.claims[0].decision, plain.claims[0].decided));
        let (low, high) = (claim.ratio_low.unwrap(), claim.ratio_high.unwrap());
        assert!((high - low) / (high + low) <= wanted, "{wanted}: {low} to {high}");
        assert!(outcome.points.iter().all(|point| precision(point) <= wanted), "{wanted}: {:?}", outcome.points);
        assert!(outcome.points.iter().all(|point| point.n == claim.trials), "the same trials are behind all figures");
        assert!(!claim.undiagnosed, "{wanted}: enough to see whether they are alike");
        trials.push(claim.trials);
    }
    assert!(trials.is_sorted() && trials[0] < trials[1] && trials[3] < 3000, "{trials:?}");
}

#[test]
fn intervals_that_stay_wide_end_by_their_time() {
    let outcome = precise(vec![order("slow")], &["fast", "slow"], 1e-9, 120);
    let claim = &outcome.claims[0];
    assert_eq!((claim.trials, claim.decision), (60, Some(Decision::Slower)), "two arms of 1 ms each in 120 ms");
}

/// The time for narrow intervals does not limit the time for answers: a claim without an answer stays open.
#[test]
fn an_open_claim_goes_on_when_that_time_is_up() {
    let outcome = precise(vec![order("slow"), order("alike")], &["fast", "slow", "alike"], 1e-9, 90);
    let [slow, alike] = &outcome.claims[..] else { panic!("{outcome:?}") };
    assert_eq!((slow.decision, alike.decision), (Some(Decision::Slower), Some(Decision::Undecided)));
    assert_eq!((slow.trials, alike.trials), (3000, 3000));
}

#[test]
fn an_arm_that_is_measured_alone_goes_on_until_its_median_is_known() {
    for (wanted, precision_time_ms, expected) in [(1e-9, 40, 40), (0.5, 40, 9)] {
        let outcome = precise(Vec::new(), &["fast"], wanted, precision_time_ms);
        assert_eq!(outcome.points[0].n, expected, "±{wanted}");
    }
    assert!(precision(&precise(Vec::new(), &["fast"], 0.01, 1_000_000).points[0]) <= 0.01);
}
