//! Tests of the conclusions of runs on a scripted experiment.

use std::cell::Cell;

use ascertain_engine::claim::{Bound, Judging};
use ascertain_engine::experiment::{TargetError, Trial};
use ascertain_engine::finding::{Reason, Unlike};
use ascertain_engine::outcome::{Decision, Verdict};
use ascertain_engine::plan::Config;

use crate::common::{Scripted, noisy, outcome, plan, versus};

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
    assert_eq!(order.decisive().successes, order.decisive().trials);
    assert!((faster.error - 0.001 / 3.0).abs() < 1e-12, "an even share");
    // If the claim is true in every trial, `ln(1/error) / ln 2` = 11.6 trials are the minimum. The mixture needs a few
    // more.
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
fn a_time_out_is_a_time_above_its_limit() {
    fn script(variant: &str, trial: &Trial) -> Result<f64, TargetError> {
        Ok(if variant == "hangs" && trial.number.is_multiple_of(2) { f64::INFINITY } else { 10.0 })
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
    assert_eq!((hangs.arm.variant.as_str(), hangs.max, hangs.mean), ("hangs", None, None));
    assert_eq!((hangs.censored > 0, hangs.limit), (true, Some(30.0)));
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
fn a_set_that_is_not_finished_is_not_judged() {
    let experiment = Scripted::new(&["even"], noisy);
    let mut claim = experiment.predicate("set", "even", "time <= 105 ns", 0.5);
    claim.look_every = 50;
    let config = Config { max_trials: Some(120), ..Config::default() };
    let outcome = outcome(&experiment, &plan(vec![claim], config));
    let result = &outcome.claims[0];
    assert_eq!((result.verdict, result.trials, outcome.points[0].n), (Verdict::Undecided, 100, 120));
    assert_eq!(result.rate, Some(result.successes as f64 / 100.0));
    assert!(matches!(result.reasons[..], [Reason::UnfinishedSet { measured: 20, .. }]), "{:?}", result.reasons);
}

/// If the trials change so much that no single value fits all of them, there is no interval. An answer that later
/// trials contradict is withdrawn.
#[test]
fn trials_that_are_not_alike_have_no_interval() {
    fn turning(variant: &str, trial: &Trial) -> Result<f64, TargetError> {
        Ok(if (variant == "a") == (trial.number < 100) { 100.0 } else { 101.0 })
    }
    let experiment = Scripted::new(&["a", "b"], turning);
    let conclude = |margin| {
        let config = Config { margin, exact_trials: Some(1000), ..Config::default() };
        let order = versus("order", "b", "a", Bound::AtLeast(1.0), Judging::Order);
        outcome(&experiment, &plan(vec![order], config)).claims.remove(0)
    };
    let result = conclude(None);
    assert_eq!(result.decision, Some(Decision::Undecided), "the first verdict is withdrawn");
    let withdrawn = |reason: &Reason| matches!(reason, Reason::Withdrawn { decision: Some(Decision::Slower), .. });
    assert!(result.reasons.iter().all(withdrawn) && result.decided.is_some(), "{:?}", result.reasons);
    assert_eq!((result.rate_low, result.rate_high), (None, None));
    assert_eq!((result.ratio_low, result.ratio_high), (None, None));
    let is_lost = |sign: &Unlike| matches!(sign, Unlike::NoneFits { .. } | Unlike::Left { .. });
    assert!(result.unlike.iter().any(is_lost), "{:?}", result.unlike);
    assert_eq!(conclude(Some(0.02)).decision, Some(Decision::Same));
    assert_eq!(conclude(Some(0.001)).decision, Some(Decision::Undecided));
}

/// If there is no difference, chance decides which command wins. False verdicts stay within the error, even if every
/// trial is looked at, the machine drifts, and the first command of a trial always wins.
#[test]
fn comparisons_of_equals_are_rarely_decided() {
    thread_local! {
        static LAST: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
    }
    fn tiring(_: &str, trial: &Trial) -> Result<f64, TargetError> {
        let (number, measured) = LAST.get();
        let measured = if number == trial.number { measured + 1 } else { 1 };
        LAST.set((trial.number, measured));
        Ok((1000 + trial.number + measured) as f64)
    }
    let experiment = Scripted::new(&["a", "b", "c"], tiring);
    let runs = 200;
    let mut decided = [0, 0];
    for seed in 0..runs {
        LAST.set((u64::MAX, 0));
        let order = |id: &str| versus(id, id, "a", Bound::AtLeast(1.0), Judging::Order);
        let config = Config { error: 0.1, max_trials: Some(120), ..Config::default() };
        let mut plan = plan(vec![order("b"), order("c")], config);
        plan.config.seed = seed;
        let claims = outcome(&experiment, &plan).claims;
        for (count, claim) in decided.iter_mut().zip(claims) {
            assert!(claim.trials == 120 || claim.decision != Some(Decision::Undecided));
            *count += u32::from(claim.decision != Some(Decision::Undecided));
        }
    }
    // The probability of a false answer is at most 5 % in each run. With exactly 5 %, at least 22 of 200 runs are false
    // with a probability of 1 in 2,000.
    assert!(decided.iter().all(|&count| count < 22), "{decided:?} of {runs}");
}

/// Simulates a machine on which a command is faster if it was also the last command of the previous trial. The outcomes
/// are then not independent, and the answer must report this.
#[test]
fn what_reaches_into_the_next_trial_is_said() {
    thread_local! {
        static BEFORE: Cell<Option<&'static str>> = const { Cell::new(None) };
    }
    fn warm(variant: &str, trial: &Trial) -> Result<f64, TargetError> {
        let me = if variant == "a" { "a" } else { "b" };
        let is_warm = BEFORE.replace(Some(me)) == Some(me);
        // Otherwise the time is random.
        let chance = trial.seed.rotate_left(if variant == "a" { 0 } else { 32 }) % 1000;
        Ok(if is_warm { 1000.0 } else { 2000.0 + chance as f64 })
    }
    let conclude = |script| {
        let experiment = Scripted::new(&["a", "b"], script);
        let order = versus("order", "b", "a", Bound::AtLeast(1.0), Judging::Order);
        let config = Config { exact_trials: Some(400), ..Config::default() };
        outcome(&experiment, &plan(vec![order], config)).claims.remove(0)
    };
    let result = conclude(warm);
    assert!(
        result.interferes && result.unlike.iter().any(|sign| matches!(sign, Unlike::Interferes { .. })),
        "{result:?}"
    );
    let by_chance = |variant: &str, trial: &Trial| {
        Ok(100.0 + (trial.seed.rotate_left(if variant == "a" { 0 } else { 32 }) % 1000) as f64)
    };
    assert!(!conclude(by_chance).interferes);
}
