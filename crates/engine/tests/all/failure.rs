//! Tests of runs on a scripted experiment in which arms fail, give wrong answers, or are unavailable.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use ascertain_engine::claim::{Bound, Judging};
use ascertain_engine::experiment::{Better, Experiment, Metric, Point, TargetError, Trial};
use ascertain_engine::finding::{Reason, Unavailable};
use ascertain_engine::outcome::Verdict;
use ascertain_engine::plan::{Config, Plan, Table};
use ascertain_engine::result::RunResult;
use ascertain_engine::run::{Recording, Silent};
use ascertain_engine::unit::Unit;

use crate::common::{Scripted, arm, noisy, outcome, plan, run, take, versus};

fn run_of(experiment: &Scripted, plan: &Plan) -> RunResult {
    let registry: [&dyn Experiment; 1] = [experiment];
    run(plan, &registry, Recording::None, &Default::default(), &mut Silent).unwrap()
}

fn table(variants: &[&str]) -> Vec<Table> {
    vec![Table { experiment: "scripted".into(), arms: variants.iter().map(|variant| arm(variant)).collect() }]
}

/// Returns the reason for a claim whose arm `variant` is unavailable. `words` explain why the arm is unavailable.
fn lacks(variant: &str, words: &str) -> Reason {
    Reason::Unavailable { arm: Some(arm(variant)), lack: Unavailable::other(words) }
}

#[test]
fn one_arm_that_fails_takes_only_its_claims_along() {
    fn script(variant: &str, trial: &Trial) -> Result<f64, TargetError> {
        match (variant, trial.number) {
            ("breaks", 3..) => Err(TargetError::Failed("out of luck".into())),
            _ => noisy(variant, trial),
        }
    }
    let experiment = Scripted::new(&["slow", "fast", "breaks"], script);
    let claims = vec![
        versus("broken", "breaks", "slow", Bound::AtLeast(1.0), Judging::Rate),
        versus("whole", "fast", "slow", Bound::AtLeast(1.0), Judging::Rate),
    ];
    let outcome = outcome(&experiment, &plan(claims, Config::default()));
    assert_eq!(outcome.claims[0].verdict, Verdict::Failed);
    assert!(matches!(&outcome.claims[0].reasons[..], [Reason::Failed { how, .. }] if how == "out of luck"));
    assert_eq!(outcome.claims[1].verdict, Verdict::Holds);
    assert_eq!(outcome.left_out.len(), 1);
}

#[test]
fn a_wrong_answer_is_an_error_and_never_a_time() {
    let experiment = Scripted { is_right: |variant| variant != "fast", ..Scripted::new(&["slow", "fast"], noisy) };
    let claim = versus("claim", "fast", "slow", Bound::AtLeast(1.0), Judging::Rate);
    let outcome = outcome(&experiment, &plan(vec![claim], Config::default()));
    assert_eq!(outcome.claims[0].verdict, Verdict::Failed);
    let [Reason::Failed { is_wrong: true, how, .. }] = &outcome.claims[0].reasons[..] else { panic!("{outcome:?}") };
    assert_eq!(how, "42");
    assert!(outcome.points.iter().all(|point| point.n == 0));
}

#[test]
fn an_arm_whose_facts_can_not_be_had_is_set_aside() {
    let facts = |variant: &str| match variant {
        "fast" => Err(TargetError::Failed("it does not say".into())),
        _ => Ok(Point::default().with("mss_bytes", 1448)),
    };
    let experiment = Scripted { facts, ..Scripted::new(&["slow", "fast"], noisy) };
    let config = Config { table_trials: Some(5), ..Config::default() };
    let outcome = outcome(&experiment, &Plan { tables: table(&["slow", "fast"]), ..plan(vec![], config) });
    let [known] = &outcome.facts[..] else { panic!("{outcome:?}") };
    assert_eq!((known.arm.variant.as_str(), known.facts.to_string().as_str()), ("slow", "mss_bytes=1448"));
    assert_eq!(outcome.left_out[0].arm.variant, "fast");
    assert_eq!(outcome.points.iter().map(|point| point.n).collect::<Vec<_>>(), [5, 0]);
}

#[test]
fn what_the_machine_lacks_is_said() {
    let experiment = Scripted { missing: &["fast"], ..Scripted::new(&["slow", "fast"], noisy) };
    let claim = versus("claim", "fast", "slow", Bound::AtLeast(1.0), Judging::Rate);
    let config = Config { table_trials: Some(5), ..Config::default() };
    let plan = Plan { tables: table(&["slow", "fast"]), ..plan(vec![claim], config) };
    let outcome = outcome(&experiment, &plan);
    assert_eq!(outcome.claims[0].verdict, Verdict::Unavailable);
    assert_eq!(outcome.claims[0].reasons, [lacks("fast", "needs a unicorn")]);
    assert_eq!(outcome.left_out[0].arm.variant, "fast");
    assert_eq!(outcome.points.iter().find(|p| p.arm.variant == "slow").unwrap().n, 5);
}

/// An arm can be measured even if one of its metrics cannot be observed on this machine.
#[test]
fn a_claim_on_a_metric_that_the_machine_can_not_show_is_unavailable() {
    let mut experiment = Scripted { hidden: &[1], ..Scripted::new(&["slow", "fast"], noisy) };
    experiment.spec.metrics.push(Metric::new("depth", "", Unit::One, Better::Higher));
    let claims = vec![
        experiment.predicate("hidden", "fast", "time >= 0 ns and depth >= 2", 0.5),
        experiment.predicate("seen", "fast", "time >= 0 ns", 0.5),
        versus("whole", "fast", "slow", Bound::AtLeast(1.0), Judging::Rate),
    ];
    let outcome = outcome(&experiment, &plan(claims, Config::default()));
    assert_eq!(outcome.claims[0].verdict, Verdict::Unavailable);
    assert_eq!(outcome.claims[0].reasons, [lacks("fast", "needs a spyglass")]);
    assert_eq!([&outcome.claims[1], &outcome.claims[2]].map(|claim| claim.verdict), [Verdict::Holds; 2]);
    assert_eq!(outcome.left_out, [], "the arm is measured");
}

/// Tests `compare` with three commands. The second one fails after its claim was decided.
#[test]
fn a_failure_after_the_verdict_is_a_failure_all_the_same() {
    fn script(variant: &str, trial: &Trial) -> Result<f64, TargetError> {
        match (variant, trial.number) {
            ("fast", 50..) => Err(TargetError::Failed("out of luck".into())),
            _ => noisy(variant, trial),
        }
    }
    let experiment = Scripted::new(&["even", "fast", "odd"], script);
    let order = |id: &str| versus(id, id, "even", Bound::AtLeast(1.0), Judging::Order);
    let config = Config { max_trials: Some(100), ..Config::default() };
    let plan = Plan { tables: table(&["even", "fast", "odd"]), ..plan(vec![order("fast"), order("odd")], config) };
    let RunResult { outcome, target_failed, .. } = run_of(&experiment, &plan);
    assert_ne!(outcome.claims[0].verdict, Verdict::Failed);
    assert_eq!((outcome.claims[1].verdict, outcome.claims[1].trials), (Verdict::Undecided, 100));
    let failed = Reason::Failed { arm: None, is_wrong: false, line: None, how: "out of luck".into() };
    assert_eq!((outcome.left_out[0].arm.variant.as_str(), &outcome.left_out[0].reason), ("fast", &failed));
    assert!(target_failed);
}

#[test]
fn a_failure_of_an_arm_without_claims_is_told_from_what_the_machine_lacks() {
    let tabled = |experiment: &Scripted| {
        let config = Config { table_trials: Some(5), ..Config::default() };
        run_of(experiment, &Plan { tables: table(&["fast"]), ..plan(Vec::new(), config) })
    };
    let fails = tabled(&Scripted::new(&["fast"], |_, _| Err(TargetError::Failed("out of luck".into()))));
    let lacks = tabled(&Scripted { missing: &["fast"], ..Scripted::new(&["fast"], noisy) });
    assert_eq!((fails.target_failed, fails.outcome.left_out.len()), (true, 1));
    assert_eq!((lacks.target_failed, lacks.outcome.left_out.len()), (false, 1));
    assert!(!tabled(&Scripted::new(&["fast"], noisy)).target_failed);
}

/// If an arm's answer is found to be wrong, verdicts from its earlier times are withdrawn.
#[test]
fn a_wrong_answer_takes_the_verdict_back() {
    static TRIAL: AtomicU64 = AtomicU64::new(0);
    fn long(variant: &str, trial: &Trial) -> Result<f64, TargetError> {
        TRIAL.store(trial.number, Relaxed);
        // Verification takes a fiftieth of the time, so there are many verifications if trials are long.
        take(Duration::from_micros(300));
        noisy(variant, trial)
    }
    let is_right = |variant: &str| variant != "fast" || TRIAL.load(Relaxed) < 50;
    let experiment = Scripted { is_right, ..Scripted::new(&["slow", "fast", "even", "odd"], long) };
    let claims = vec![
        versus("faster", "fast", "slow", Bound::AtLeast(1.0), Judging::Rate),
        versus("shared", "even", "fast", Bound::AtLeast(1e6), Judging::Rate),
        versus("open", "even", "odd", Bound::AtLeast(1.0), Judging::Order),
    ];
    let config = Config { max_trials: Some(400), ..Config::default() };
    let all = table(&["slow", "fast", "even", "odd"]);
    let outcome = outcome(&experiment, &Plan { tables: all, ..plan(claims, config) });
    for claim in &outcome.claims[..2] {
        assert_eq!(claim.verdict, Verdict::Failed);
        assert!(matches!(claim.reasons[..], [Reason::Failed { is_wrong: true, .. }]));
        assert!(claim.trials > 0);
    }
    assert_eq!((outcome.claims[2].verdict, outcome.claims[2].trials), (Verdict::Undecided, 400));
    let n = |variant: &str| outcome.points.iter().find(|point| point.arm.variant == variant).unwrap().n;
    assert_eq!((n("fast"), n("even")), (0, 400), "a wrong answer has no time");
}
