//! Runs on a scripted experiment: verdicts, budgets, failures, what is left out, continuing.
#![allow(missing_docs)]

mod common;

use std::time::Duration;

use ascertain::claim::{Bound, Claim, Judging};
use ascertain::evidence::{self, Writer};
use ascertain::experiment::{Experiment, TargetError, Trial};
use ascertain::outcome::{ClaimResult, Decision, Outcome, Verdict};
use ascertain::plan::{Config, Plan, Table};
use ascertain::run::{Recording, Silent, run};
use common::{Scripted, arm, versus};

fn plan(claims: Vec<Claim>, config: Config) -> Plan {
    Plan { claims, tables: Vec::new(), commands: Vec::new(), config: Config { seed: 7, ..config } }
}

fn outcome(experiment: &Scripted, plan: &Plan) -> Outcome {
    let registry: [&dyn Experiment; 1] = [experiment];
    run(plan, &registry, Recording::None, &mut Silent).unwrap().outcome
}

fn noisy(variant: &str, trial: &Trial) -> Result<f64, TargetError> {
    // `slow` takes 10 % longer than `fast`; the noise of a trial is shared by its arms and far larger.
    let noise = 1.0 + (trial.seed % 1000) as f64;
    Ok(match variant {
        "fast" => 100.0 * noise,
        "slow" => 110.0 * noise,
        "even" => 105.0 + (trial.seed % 2) as f64,
        _ => 105.0 + 1.0 - (trial.seed % 2) as f64,
    })
}

#[test]
fn pairs_decide_where_noise_is_shared() {
    let experiment = Scripted::new(&["slow", "fast"], noisy);
    let claims = vec![
        versus("faster", "fast", "slow", Bound::AtLeast(1.05), Judging::Rate),
        versus("twice", "fast", "slow", Bound::AtLeast(2.0), Judging::Rate),
        versus("order", "fast", "slow", Bound::AtLeast(1.0), Judging::Order),
    ];
    let outcome = outcome(&experiment, &plan(claims, Config::default()));
    let [faster, twice, order] = outcome.claims.as_slice() else { panic!() };
    assert_eq!((faster.verdict, twice.verdict), (Verdict::Holds, Verdict::Refuted));
    assert_eq!(order.decision, Some(Decision::Faster));
    assert!((order.ratio.unwrap() - 1.1).abs() < 1e-9);
    assert!(order.ratio_low.unwrap() > 1.0, "verdict and interval are one event");
    assert!((faster.error - 0.001 / 3.0).abs() < 1e-12, "an even share");
    // Straight successes: ln(1/error) / ln 2 would be 11.6, and the mixture needs a few more.
    assert!(faster.trials < 25, "{}", faster.trials);
}

#[test]
fn what_does_not_differ_is_undecided_at_the_budget() {
    let experiment = Scripted::new(&["even", "odd"], noisy);
    let order = versus("order", "even", "odd", Bound::AtLeast(1.0), Judging::Order);
    let config = Config { max_trials: Some(500), ..Config::default() };
    let outcome = outcome(&experiment, &plan(vec![order], config));
    assert_eq!(outcome.claims[0].decision, Some(Decision::Undecided));
    assert_eq!(outcome.claims[0].trials, 500);
}

#[test]
fn ties_are_dropped_and_counted() {
    fn tied(_: &str, _: &Trial) -> Result<f64, TargetError> {
        Ok(5.0)
    }
    let experiment = Scripted::new(&["a", "b"], tied);
    let order = versus("order", "b", "a", Bound::AtLeast(1.0), Judging::Order);
    let config = Config { exact_trials: Some(40), ..Config::default() };
    let result = &outcome(&experiment, &plan(vec![order], config)).claims[0];
    assert_eq!((result.trials, result.ties, result.successes), (40, 40, 0));
    assert_eq!((result.decision, result.rate), (Some(Decision::Undecided), None));
    assert_eq!((result.ratio_low, result.ratio_high), (Some(1.0), Some(1.0)));
}

#[test]
fn a_margin_says_same() {
    let experiment = Scripted::new(&["slow", "fast"], noisy);
    let order = || versus("order", "fast", "slow", Bound::AtLeast(1.0), Judging::Order);
    let decide = |margin| {
        let config = Config { margin: Some(margin), ..Config::default() };
        outcome(&experiment, &plan(vec![order()], config)).claims[0].decision
    };
    assert_eq!(decide(0.2), Some(Decision::Same));
    assert_eq!(decide(0.05), Some(Decision::Faster));
}

#[test]
fn a_time_out_is_an_infinite_time() {
    fn script(variant: &str, trial: &Trial) -> Result<f64, TargetError> {
        Ok(if variant == "hangs" && trial.number % 2 == 0 { f64::INFINITY } else { 10.0 })
    }
    let experiment = Scripted::new(&["hangs", "works"], script);
    let claims = vec![
        experiment.predicate("often", "hangs", "time <= 20 ns", 0.9),
        versus("order", "hangs", "works", Bound::AtLeast(1.0), Judging::Order),
    ];
    let outcome = outcome(&experiment, &plan(claims, Config::default()));
    assert_eq!(outcome.claims[0].verdict, Verdict::Refuted);
    assert_eq!(outcome.claims[1].decision, Some(Decision::Slower));
    let hangs = &outcome.points[0];
    assert_eq!((hangs.variant.as_str(), hangs.max, hangs.mean), ("hangs", None, None));
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
    assert!(outcome.claims[0].reason.as_ref().unwrap().contains("out of luck"));
    assert_eq!(outcome.claims[1].verdict, Verdict::Holds);
    assert_eq!(outcome.left_out.len(), 1);
}

#[test]
fn a_wrong_answer_is_an_error_and_never_a_time() {
    let experiment = Scripted { wrong: &["fast"], ..Scripted::new(&["slow", "fast"], noisy) };
    let claim = versus("claim", "fast", "slow", Bound::AtLeast(1.0), Judging::Rate);
    let outcome = outcome(&experiment, &plan(vec![claim], Config::default()));
    assert_eq!(outcome.claims[0].verdict, Verdict::Failed);
    assert!(outcome.claims[0].reason.as_ref().unwrap().contains("wrong answer: 42"));
    assert!(outcome.points.iter().all(|point| point.n == 0));
}

#[test]
fn what_the_machine_lacks_is_said() {
    let experiment = Scripted { missing: &["fast"], ..Scripted::new(&["slow", "fast"], noisy) };
    let claim = versus("claim", "fast", "slow", Bound::AtLeast(1.0), Judging::Rate);
    let tables = vec![Table { experiment: "scripted".into(), arms: vec![arm("slow"), arm("fast")] }];
    let config = Config { table_trials: Some(5), ..Config::default() };
    let plan = Plan { tables, ..plan(vec![claim], config) };
    let outcome = outcome(&experiment, &plan);
    assert_eq!(outcome.claims[0].verdict, Verdict::Unavailable);
    assert_eq!(outcome.claims[0].reason.as_deref(), Some("fast: needs a unicorn"));
    assert_eq!(outcome.left_out[0].variant, "fast");
    assert_eq!(outcome.points.iter().find(|p| p.variant == "slow").unwrap().n, 5);
}

#[test]
fn claims_that_can_not_fit_are_deferred_with_the_time_they_need() {
    fn slow(_: &str, _: &Trial) -> Result<f64, TargetError> {
        std::thread::sleep(Duration::from_millis(20));
        Ok(1.0)
    }
    let experiment = Scripted::new(&["a", "b", "c", "d"], slow);
    let claims = vec![
        versus("one", "a", "b", Bound::AtLeast(1.0), Judging::Rate),
        experiment.predicate("two", "c", "time <= 2 ns", 0.5),
    ];
    let config = Config { max_time: Duration::from_millis(200), ..Config::default() };
    let outcome = outcome(&experiment, &plan(claims, config));
    assert_eq!(outcome.claims[1].verdict, Verdict::Deferred);
    assert!(outcome.claims[1].reason.as_ref().unwrap().contains("its shortest possible verdict takes"));
}

#[test]
fn sets_of_trials_are_judged_at_their_end() {
    let experiment = Scripted::new(&["slow"], noisy);
    let mut claim = experiment.predicate("set", "slow", "time > 0 ns", 0.5);
    claim.look_every = 50;
    let result = &outcome(&experiment, &plan(vec![claim], Config::default())).claims[0];
    assert_eq!((result.verdict, result.trials), (Verdict::Holds, 50));
}

#[test]
fn errors_are_shared_and_kept_to() {
    let claims = || {
        let claim = |id: &str, error| Claim { error, ..versus(id, "a", "b", Bound::AtLeast(1.0), Judging::Rate) };
        vec![claim("own", Some(0.01)), claim("x", None), claim("y", None)]
    };
    let shared = ascertain::share_error(&claims(), 0.05).unwrap();
    assert_eq!(shared[0], 0.01);
    assert!((shared.iter().sum::<f64>() - 0.05).abs() < 1e-15);
    assert!(ascertain::share_error(&claims(), 0.001).unwrap_err().to_string().contains("add up to 0.01"));
    assert!(ascertain::share_error(&claims(), 0.0).is_err());
}

/// A run that is cut in two and continued says what one run would have said.
#[test]
fn continuing_is_as_good_as_going_on() {
    let folder = tempfile::tempdir().unwrap();
    let experiment = Scripted::new(&["slow", "fast"], |variant, trial| {
        let coin = trial.seed % 10 < 6;
        Ok(if (variant == "fast") == coin { 100.0 } else { 110.0 })
    });
    let registry: [&dyn Experiment; 1] = [&experiment];
    let claim = || versus("order", "fast", "slow", Bound::AtLeast(1.0), Judging::Order);
    let recording = || Recording::New { runs: folder.path().into(), command_line: vec!["test".into()] };

    let whole = run(&plan(vec![claim()], Config::default()), &registry, recording(), &mut Silent).unwrap();
    let trials = whole.outcome.claims[0].trials;
    assert!(trials > 40, "{trials}: the test wants a verdict that takes long");

    let config = Config { max_trials: Some(40), ..Config::default() };
    let first = run(&plan(vec![claim()], config), &registry, recording(), &mut Silent).unwrap();
    assert_eq!(first.outcome.claims[0].verdict, Verdict::Undecided);
    let (writer, recorded) = Writer::resume(first.folder.as_ref().unwrap()).unwrap();
    let longer = Plan { config: Config { max_trials: None, ..recorded.header.plan.config.clone() }, ..recorded.header.plan.clone() };
    let second = run(&longer, &registry, Recording::Continue(Box::new((writer, recorded))), &mut Silent).unwrap();

    let strip = |result: &ClaimResult| ClaimResult { unlike: Vec::new(), ..result.clone() };
    assert_eq!(strip(&second.outcome.claims[0]), strip(&whole.outcome.claims[0]));
    let header = evidence::read_header(second.folder.as_ref().unwrap()).unwrap();
    assert_eq!(header.outcome.unwrap().claims[0].trials, trials);
}

/// Under "no difference" the coin decides who wins: false verdicts stay within the error although every
/// trial is looked at, and although the machine drifts.
#[test]
fn comparisons_of_equals_are_rarely_decided() {
    fn drifting(variant: &str, trial: &Trial) -> Result<f64, TargetError> {
        // Which arm is measured first is the coin; here the seed plays it.
        let first = trial.seed % 2 == 0;
        Ok(1000.0 + trial.number as f64 + if (variant == "a") == first { 0.0 } else { 1.0 })
    }
    let experiment = Scripted::new(&["a", "b"], drifting);
    let runs = 400;
    let decided = (0..runs).filter(|&seed| {
        let order = versus("order", "b", "a", Bound::AtLeast(1.0), Judging::Order);
        let config = Config { error: 0.05, max_trials: Some(300), ..Config::default() };
        let mut plan = plan(vec![order], config);
        plan.config.seed = seed;
        outcome(&experiment, &plan).claims[0].decision != Some(Decision::Undecided)
    });
    let decided = decided.count();
    // At most 5 % are; 33 of 400 would be reached by chance once in 1,000 at exactly 5 %.
    assert!(decided <= 33, "{decided} of {runs}");
}
