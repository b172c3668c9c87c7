//! Tests that runs keep to their error probability and to their limits of trials and time.

use std::error::Error as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ascertain_engine::claim::{Bound, Claim, Judging};
use ascertain_engine::experiment::{Experiment, TargetError, Trial};
use ascertain_engine::finding::{Least, Reason};
use ascertain_engine::outcome::{Outcome, Verdict};
use ascertain_engine::plan::{Config, Plan, Table};
use ascertain_engine::run::{Observer, Outlook, Progress, Recording, Silent};
use ascertain_sys::interrupt::Stop;

use crate::common::{Scripted, arm, noisy, outcome, plan, run, take, versus, with_margin};

#[test]
fn claims_that_can_not_fit_are_deferred_with_the_time_they_need() {
    fn slow(_: &str, _: &Trial) -> Result<f64, TargetError> {
        take(Duration::from_millis(20));
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
    let [Reason::TooLong { needed_ns, trials: 15, .. }] = outcome.claims[1].reasons[..] else { panic!("{outcome:?}") };
    assert_eq!((needed_ns / 1e6).round(), 15.0 * 20.0);
}

/// An observer that keeps the predictions ([`Outlook`]) and the progress of a run.
#[derive(Default)]
struct OutlookRecorder {
    outlooks: Vec<Outlook>,
    least: Vec<(u64, Option<u64>)>,
    /// The time limit in the last progress report.
    max_time: Duration,
}

impl Observer for OutlookRecorder {
    fn outlook(&mut self, outlook: &Outlook) {
        assert_eq!(self.max_time, outlook.max_time, "the progress below it has the same limit");
        self.outlooks.push(outlook.clone());
    }

    fn progress(&mut self, progress: &Progress) {
        self.least.push((progress.trials, progress.least));
        self.max_time = progress.max_time;
    }
}

fn recorded(experiment: &Scripted, claims: Vec<Claim>, config: Config) -> (Outcome, OutlookRecorder) {
    let (registry, mut recorder): ([&dyn Experiment; 1], _) = ([experiment], OutlookRecorder::default());
    let run = run(&plan(claims, config), &registry, Recording::None, &Default::default(), &mut recorder);
    (run.unwrap().outcome, recorder)
}

/// Returns a value with which the candidate wins every pair. Each measurement takes 50 ms, so a pair takes 100 ms.
fn slowly(variant: &str, _: &Trial) -> Result<f64, TargetError> {
    take(Duration::from_millis(50));
    Ok(if variant == "fast" { 1.0 } else { 2.0 })
}

fn order() -> Vec<Claim> {
    vec![versus("order", "fast", "slow", Bound::AtLeast(1.0), Judging::Order)]
}

/// Returns a value with which the candidate wins every pair, by a factor between 2 and 8. Each measurement takes 5 ms,
/// so a pair takes 10 ms.
fn quickly(variant: &str, trial: &Trial) -> Result<f64, TargetError> {
    take(Duration::from_millis(5));
    Ok(if variant == "fast" { 1.0 } else { 2.0 + (trial.number % 7) as f64 })
}

#[test]
fn a_comparison_goes_on_for_a_narrow_interval_while_there_is_time_for_it() {
    let trials = |precision: Option<f64>, precision_time: Option<Duration>| {
        let experiment = Scripted::new(&["fast", "slow"], quickly);
        let config = Config { precision, precision_time, max_time: Duration::from_secs(30), ..Config::default() };
        let outcome = outcome(&experiment, &plan(order(), config));
        assert_eq!(outcome.claims[0].verdict, Verdict::Holds);
        assert_eq!(outcome.claims[0].decided.map(|decided| decided.trials), Some(14), "the verdict is the same");
        (outcome.claims[0].trials, outcome.claims[0].ratio_low.is_some())
    };
    let second = Some(Duration::from_secs(1));
    assert_eq!(trials(None, second).0, 14, "the first answer ends it");
    // The ratios vary so much that the interval stays wide for a long time.
    assert_eq!(trials(Some(1e-9), second), (100, true), "the time ends it");
    let (wide, has_interval) = trials(Some(0.9), second);
    assert!((15..100).contains(&wide) && has_interval, "{wide}");
    // If the time limit for narrow intervals is reached before there is an answer, the answer then ends the run at
    // once.
    assert_eq!(trials(Some(1e-9), Some(Duration::from_millis(50))).0, 14);
}

#[test]
fn a_single_claim_that_can_not_fit_is_deferred_after_one_trial() {
    let experiment = Scripted::new(&["fast", "slow"], slowly);
    let claim = versus("one", "fast", "slow", Bound::AtLeast(1.0), Judging::Rate);
    let config = Config { max_time: Duration::from_millis(300), ..Config::default() };
    let (outcome, recorder) = recorded(&experiment, vec![claim], config);
    assert_eq!((outcome.claims[0].verdict, outcome.claims[0].trials), (Verdict::Deferred, 1));
    let [Reason::TooLong { needed_ns, trials: 14, .. }] = outcome.claims[0].reasons[..] else { panic!("{outcome:?}") };
    assert_eq!((needed_ns / 1e6).round(), 14.0 * 100.0);
    assert_eq!(recorder.outlooks, [], "nothing is waited for");
}

/// A claim that would take too long is not deferred if the table needs the same trials anyway.
#[test]
fn a_claim_on_a_tables_arms_is_not_deferred() {
    let experiment = Scripted::new(&["fast", "slow"], slowly);
    let arms = ["fast", "slow"].map(arm);
    for (table_trials, verdict) in [(14, Verdict::Undecided), (13, Verdict::Deferred)] {
        let claim = versus("one", "fast", "slow", Bound::AtLeast(1.0), Judging::Rate);
        let max_time = Duration::from_millis(350);
        let config = Config { max_time, table_trials: Some(table_trials), ..Config::default() };
        let table = Table { experiment: experiment.spec().id.clone(), arms: arms.to_vec() };
        let plan = Plan { tables: vec![table], ..plan(vec![claim], config) };
        assert_eq!(outcome(&experiment, &plan).claims[0].verdict, verdict);
    }
}

/// A comparison that cannot be decided in time is measured nevertheless, because its figures are useful without a
/// verdict.
#[test]
fn a_comparison_says_what_it_takes_and_uses_the_time_there_is() {
    let experiment = Scripted::new(&["fast", "slow"], slowly);
    let config = Config { max_time: Duration::from_millis(350), ..Config::default() };
    for longest_time in [None, Some(Duration::from_millis(400))] {
        let (outcome, recorder) = recorded(&experiment, order(), Config { longest_time, ..config.clone() });
        let [Outlook { least, allowed, max_time, is_longer: false }] = recorder.outlooks[..] else {
            panic!("{:?}", recorder.outlooks)
        };
        let claim = &outcome.claims[0];
        assert_eq!((least.trials, max_time), (14, config.max_time));
        assert_eq!((least.takes_ns.unwrap() / 1e6).round(), 14.0 * 100.0);
        // The fourth pair begins within the time limit, and a fifth does not.
        assert_eq!((claim.trials, allowed), (4, 4));
        assert_eq!((claim.verdict, claim.successes), (Verdict::Undecided, 4));
        assert!(matches!(
            claim.reasons[..],
            [Reason::TooEarly { least: Least { trials: 14, .. }, most_trials: None, .. }]
        ));
        // The least number of trials is reported before the first pair ends.
        assert!(recorder.least.contains(&(0, Some(14))), "{:?}", recorder.least);
    }
}

/// Claims about the same arms share their trials. Claims about other arms need further trials.
#[test]
fn all_claims_name_the_same_time_of_the_run() {
    let experiment = Scripted::new(&["fast", "slow", "c", "d"], slowly);
    let config = Config { max_time: Duration::from_millis(900), ..Config::default() };
    let times = |claims: Vec<Claim>| {
        let (outcome, _) = recorded(&experiment, claims, config.clone());
        let time = |reason: &Reason| match reason {
            Reason::TooEarly { run_ns, .. } | Reason::TooLong { run_ns, .. } => run_ns.map(|ns| (ns / 1e6).round()),
            _ => panic!("{reason:?}"),
        };
        outcome.claims.iter().map(|claim| time(&claim.reasons[0])).collect::<Vec<_>>()
    };
    let same_arms = || vec![order().remove(0), versus("rate", "fast", "slow", Bound::AtLeast(1.0), Judging::Rate)];
    let of_same = times(same_arms());
    // Two claims share the error, so each needs fifteen pairs.
    assert_eq!(of_same, [Some(15.0 * 100.0); 2]);
    let others = versus("others", "c", "d", Bound::AtLeast(1.0), Judging::Order);
    let of_all = times([same_arms(), vec![others]].concat());
    assert!(of_all[0] >= Some(30.0 * 100.0) && of_all.iter().all(|time| *time == of_all[0]), "{of_all:?}");
}

#[test]
fn a_comparison_takes_the_time_that_it_needs_where_it_may() {
    let experiment = Scripted::new(&["fast", "slow"], slowly);
    let longest_time = Some(Duration::from_secs(3600));
    let config = Config { max_time: Duration::from_millis(350), longest_time, ..Config::default() };
    let (outcome, recorder) = recorded(&experiment, order(), config.clone());
    let [Outlook { max_time, is_longer: true, .. }] = recorder.outlooks[..] else { panic!("{:?}", recorder.outlooks) };
    // The first pair, and 1.25 times the time of the other thirteen.
    assert_eq!(max_time.as_millis(), 100 + 1625);
    assert_eq!((outcome.claims[0].verdict, outcome.claims[0].trials), (Verdict::Holds, 14));
    // If the number of trials is limited to fewer than a verdict needs, more time would not help, so the run is not
    // extended.
    let (outcome, recorder) = recorded(&experiment, order(), Config { max_trials: Some(2), ..config });
    assert_eq!((outcome.claims[0].trials, recorder.outlooks.len()), (2, 0));
    assert!(matches!(outcome.claims[0].reasons[..], [Reason::TooEarly { most_trials: Some(2), .. }]));
}

/// Trials are called pairs only if all claims compare two arms. A table of two arms without a claim is not a
/// comparison.
#[test]
fn trials_are_pairs_where_two_are_compared() {
    struct Pairs(Vec<bool>);
    impl Observer for Pairs {
        fn progress(&mut self, progress: &Progress) {
            self.0.push(progress.is_comparison);
        }
    }
    let experiment = Scripted::new(&["fast", "slow"], noisy);
    let table = Table { experiment: experiment.spec().id.clone(), arms: vec![arm("fast"), arm("slow")] };
    for (claims, are_pairs) in [(order(), true), (Vec::new(), false)] {
        let config = Config { max_trials: Some(5), table_trials: Some(5), ..Config::default() };
        let (plan, mut pairs) = (Plan { tables: vec![table.clone()], ..plan(claims, config) }, Pairs(Vec::new()));
        run(&plan, &[&experiment], Recording::None, &Default::default(), &mut pairs).unwrap();
        assert!(!pairs.0.is_empty() && pairs.0.iter().all(|is_pair| *is_pair == are_pairs), "{:?}", pairs.0);
    }
}

/// If a table never has enough trials, a claim nevertheless gets its turn after a few trials. The table continues when
/// the claim is decided.
#[test]
fn a_table_and_a_claim_take_turns() {
    static TABLED: AtomicU64 = AtomicU64::new(0);
    fn slow(_: &str, _: &Trial) -> Result<f64, TargetError> {
        take(Duration::from_millis(1));
        TABLED.fetch_add(1, Ordering::Relaxed);
        Ok(1.0)
    }
    /// An observer that stops the run after the claim is decided and the table has got another trial.
    struct Ends(Stop, Option<u64>);
    impl Observer for Ends {
        fn progress(&mut self, progress: &Progress) {
            let tabled = TABLED.load(Ordering::Relaxed);
            let is_decided = progress.closed.iter().sum::<usize>() == progress.claims;
            if is_decided && tabled > *self.1.get_or_insert(tabled) {
                self.0.request();
            }
        }
    }
    let mut table = Scripted::new(&["slow"], slow);
    table.spec.id = "table".into();
    let quick = Scripted::new(&["quick"], |_, _| Ok(1.0));
    let claims = vec![quick.predicate("quick", "quick", "time <= 2 ns", 0.5)];
    let tables = vec![Table { experiment: "table".into(), arms: vec![arm("slow")] }];
    let config = Config { max_time: Duration::from_secs(3600), table_trials: Some(1_000_000), ..Config::default() };
    let (registry, stop): ([&dyn Experiment; 2], _) = ([&table, &quick], Stop::new().unwrap());
    let plan = Plan { tables, ..plan(claims, config) };
    let outcome = run(&plan, &registry, Recording::None, &stop, &mut Ends(stop.clone(), None)).unwrap().outcome;
    assert_eq!(outcome.claims[0].verdict, Verdict::Holds, "{:?}", outcome.claims[0]);
    assert!(outcome.interrupted, "the table goes on");
}

#[test]
fn errors_are_shared_and_kept_to() {
    let claims = || {
        let claim = |id: &str, error| Claim { error, ..versus(id, "a", "b", Bound::AtLeast(1.0), Judging::Rate) };
        vec![claim("own", Some(0.01)), claim("x", None), claim("y", None)]
    };
    let shared = ascertain_engine::share_error(&claims(), 0.05).unwrap();
    assert_eq!(shared[0], 0.01);
    assert!((shared.iter().sum::<f64>() - 0.05).abs() < 1e-15);
    assert!(ascertain_engine::share_error(&claims(), 0.001).unwrap_err().to_string().contains("add up to 0.01"));
    assert!(ascertain_engine::share_error(&claims(), 0.0).is_err());
}

#[test]
fn shares_that_add_up_to_the_whole_do_so_whatever_rounding_makes_of_it() {
    let claim = |error| Claim { error, ..versus("own", "a", "b", Bound::AtLeast(1.0), Judging::Rate) };
    let ten = vec![claim(Some(0.0001)); 10];
    assert!(ten.iter().filter_map(|claim| claim.error).sum::<f64>() > 0.001, "the test needs a sum that is rounded up");
    assert!(ascertain_engine::share_error(&ten, 0.001).is_ok());
    assert!(ascertain_engine::share_error(&[ten, vec![claim(None)]].concat(), 0.001).is_err());
    assert!(ascertain_engine::share_error(&vec![claim(Some(0.0001)); 11], 0.001).is_err());
}

#[test]
fn a_plan_that_can_not_be_carried_out_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let runs = folder.path().join("runs");
    let variants: Vec<String> = (0..18).map(|number| number.to_string()).collect();
    let names: Vec<&str> = variants.iter().map(String::as_str).collect();
    let experiment = Scripted::new(&names, noisy);
    let claim = |id: &str| versus(id, "1", "0", Bound::AtLeast(1.0), Judging::Rate);
    let pairs = (0..9).map(|pair| versus("", names[2 * pair], names[2 * pair + 1], Bound::AtLeast(1.0), Judging::Rate));
    let mut wide = claim("wide");
    wide.asked.tests = pairs.flat_map(|pair| pair.asked.tests).collect();
    let bad = [
        (Claim { error: Some(0.5), ..claim("dear") }, "add up to 0.5"),
        (Claim { rate: 1.0, ..claim("sure") }, "claim `sure`"),
        (with_margin(claim("broad"), 0.6), "claim `broad`"),
        (wide, "claim `wide` needs 18 arms"),
        (Claim { experiment: "absent".into(), ..claim("lost") }, "no experiment `absent`"),
    ];
    for (claim, message) in bad {
        let recording = Recording::New {
            runs: runs.clone(),
            command_line: Vec::new(),
            render: Default::default(),
            label: None,
            revision: None,
            known: None,
        };
        let registry: [&dyn Experiment; 1] = [&experiment];
        let error = run(&plan(vec![claim], Config::default()), &registry, recording, &Default::default(), &mut Silent)
            .unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
        assert!(error.source().is_none(), "the message is complete, so there is no source");
        assert!(!runs.exists());
    }
}

fn alone(config: Config) -> Outcome {
    fn slow(variant: &str, trial: &Trial) -> Result<f64, TargetError> {
        take(Duration::from_millis(1));
        noisy(variant, trial)
    }
    let experiment = Scripted::new(&["slow"], slow);
    let tables = vec![Table { experiment: "scripted".into(), arms: vec![arm("slow")] }];
    outcome(&experiment, &Plan { tables, ..plan(Vec::new(), config) })
}

#[test]
fn an_arm_without_claims_takes_as_many_trials_as_asked() {
    let n = |config| alone(Config { table_trials: Some(30), max_time: Duration::MAX, ..config }).points[0].n;
    assert_eq!(n(Config { exact_trials: Some(50), ..Config::default() }), 50);
    assert_eq!(n(Config { exact_trials: Some(1), ..Config::default() }), 1);
    assert_eq!(n(Config { max_trials: Some(50), ..Config::default() }), 30);
    assert_eq!(n(Config { max_trials: Some(7), ..Config::default() }), 7);
    assert_eq!(n(Config::default()), 30);
}

#[test]
fn exactly_so_many_trials_are_taken_whatever_is_decided() {
    let experiment = Scripted::new(&["slow", "fast", "even"], noisy);
    let order = |id: &str| versus(id, id, "slow", Bound::AtLeast(1.0), Judging::Order);
    for trials in [1, 2, 100] {
        let config = Config { exact_trials: Some(trials), max_time: Duration::MAX, ..Config::default() };
        let outcome = outcome(&experiment, &plan(vec![order("fast"), order("even")], config));
        assert!(outcome.claims.iter().all(|claim| claim.trials == trials));
        assert!(outcome.points.iter().all(|point| point.n == trials));
    }
}

#[test]
fn a_run_that_goes_on_until_its_time_is_up_judges_every_trial() {
    let experiment = Scripted::new(&["slow", "fast"], noisy);
    let claims = || vec![versus("fast", "fast", "slow", Bound::AtLeast(1.0), Judging::Order)];
    let config = Config { max_trials: Some(500), max_time: Duration::MAX, ..Config::default() };
    let decided = outcome(&experiment, &plan(claims(), config.clone())).claims.remove(0);
    assert!(decided.trials < 500, "{decided:?}");
    let whole = outcome(&experiment, &plan(claims(), Config { until_time_is_up: true, ..config })).claims.remove(0);
    assert_eq!((whole.trials, whole.decided.map(|decided| decided.trials)), (500, Some(decided.trials)));
}

/// A trial has at most sixteen arms; the others are measured in another lane, with the reference.
#[test]
fn many_arms_are_measured_in_several_lanes() {
    let names: Vec<String> = (0..40).map(|number| number.to_string()).collect();
    let experiment = Scripted::new(&names.iter().map(String::as_str).collect::<Vec<_>>(), |variant, trial| {
        Ok(100.0 + variant.parse::<f64>().unwrap() * 10.0 + (trial.seed % 5) as f64)
    });
    let claims = names[1..].iter().map(|name| versus(name, name, "0", Bound::AtLeast(1.0), Judging::Order)).collect();
    let outcome = outcome(&experiment, &plan(claims, Config::default()));
    assert!(outcome.claims.iter().all(|claim| claim.verdict == Verdict::Refuted));
}

#[test]
fn no_trial_starts_after_the_time_is_up() {
    let config = Config { max_time: Duration::from_millis(50), table_trials: Some(1000), ..Config::default() };
    // The wait before the first trial exceeds the time limit, and so does the warm-up.
    assert_eq!(alone(config.clone()).points[0].n, 50);
    assert_eq!(alone(Config { gap: Some(Duration::from_secs(1000)), ..config.clone() }).points[0].n, 0);
    assert_eq!(alone(Config { warmup_trials: u64::MAX, ..config }).points[0].n, 0);
    let never = alone(Config { max_time: Duration::ZERO, table_trials: Some(1000), ..Config::default() });
    assert!(matches!(never.left_out[0].reason, Reason::TimeUp { .. }), "never a silent skip");
}
