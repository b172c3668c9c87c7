//! Tests of the paths of claims to their verdicts.

use ascertain_engine::claim::{Bound, Claim, Judging};
use ascertain_engine::experiment::{TargetError, Trial};
use ascertain_engine::outcome::{ClaimResult, Decision, Verdict};
use ascertain_engine::plan::Config;
use ascertain_engine::recorded::{ClaimPath, EvidencePoint};
use ascertain_stats::{OrderJudge, Tally, log_e_holds, log_e_refuted};
use proptest::prelude::*;

use super::record_one;
use crate::common::{Scripted, noisy, plan, versus, with_margin};

/// Returns random times: 1 to 10 for `ten`, 1 to 3 for `coin`. All other variants take 2.
fn chance(variant: &str, trial: &Trial) -> Result<f64, TargetError> {
    Ok(match variant {
        "ten" => (trial.seed % 10 + 1) as f64,
        "coin" => (trial.seed / 16 % 3 + 1) as f64,
        _ => 2.0,
    })
}

/// Checks a path against the claim's result, with an independent calculation. `rates` are the rates that "holds" and
/// "refuted" reject; `None` for a comparison. Trials are evaluated in sets of `look_every`.
fn assert_path(path: &ClaimPath, result: &ClaimResult, rates: Option<(f64, f64)>, look_every: u64, error: f64) {
    assert_eq!((path.trials.len(), path.successes.len()), (result.trials as usize, result.trials as usize));
    assert_eq!(path.successes.iter().filter(|success| success.is_none()).count() as u64, result.ties);
    let threshold = (1.0 / error).ln();
    assert!(
        (path.log_threshold_holds - threshold).abs() < 1e-9 && path.log_threshold_refuted == path.log_threshold_holds
    );
    let (mut tally, mut decided_after) = (Tally::default(), None);
    let mut evidence = path.evidence.iter().peekable();
    let mut order = OrderJudge::new(error, error).unwrap();
    for (index, success) in path.successes.iter().enumerate() {
        let counted = index as u64 + 1;
        if let Some(success) = success {
            tally.trials += 1;
            tally.successes += u64::from(*success);
        }
        if counted.is_multiple_of(look_every) {
            let is_decided = match rates {
                Some(rates) => log_e_holds(tally, rates.0).max(log_e_refuted(tally, rates.1)) >= threshold,
                None => order.observe(path.statistics[index].ln()).is_some(),
            };
            let log_e = match rates {
                Some(rates) => (log_e_holds(tally, rates.0), log_e_refuted(tally, rates.1)),
                None => (order.log_e_holds(), order.log_e_refuted()),
            };
            if is_decided {
                decided_after = decided_after.or(Some(counted));
            }
            let point = evidence.next_if(|point| point.counted == counted);
            assert!(point.is_some() || counted > 128);
            if let Some(EvidencePoint { log_e_holds, log_e_refuted, .. }) = point {
                assert!((log_e_holds - log_e.0).abs() < 1e-8 && (log_e_refuted - log_e.1).abs() < 1e-8);
            }
        }
    }
    assert!(evidence.next().is_none() && path.evidence.len() <= 2_000);
    assert_eq!(path.decided_after, decided_after);
    assert_eq!(decided_after, result.decided.map(|decided| decided.trials));
    // An answer may be withdrawn.
    assert!(result.decided.is_some() || result.verdict == Verdict::Undecided);
    if let Some(last) = path.evidence.last() {
        assert_eq!((Some(last.log_e_holds), Some(last.log_e_refuted)), (result.log_e_holds, result.log_e_refuted));
        assert_eq!(last.counted, result.trials);
    }
    assert!(decided_after.is_none_or(|after| path.evidence.iter().any(|point| point.counted == after)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_path_is_what_its_outcomes_make_of_it(
        seed in any::<u64>(),
        rate in 0.05..0.95_f64,
        most in 1..10_u32,
        look_every in prop_oneof![Just(1_u64), 2..20_u64],
        trials in 1..300_u64,
        keeps_on in any::<bool>(),
    ) {
        let experiment = Scripted::new(&["ten", "coin", "two"], chance);
        let predicate = || experiment.predicate("", "ten", &format!("time <= {most} ns"), rate);
        let claims = vec![
            Claim { id: "rate".into(), look_every, ..predicate() },
            with_margin(Claim { id: "give or take".into(), look_every, ..predicate() }, 0.04),
            versus("ratio", "coin", "two", Bound::AtLeast(1.0), Judging::Rate),
            versus("order", "coin", "two", Bound::AtLeast(1.0), Judging::Order),
        ];
        let (max_trials, exact_trials) = if keeps_on { (None, Some(trials)) } else { (Some(trials), None) };
        let mut plan = plan(claims, Config { error: 0.04, max_trials, exact_trials, ..Config::default() });
        plan.config.seed = seed;
        let ran = record_one(&experiment, &plan);
        let read = ran.read();
        let [of_rate, of_margin, of_ratio, of_order] = &read.paths[..] else { panic!() };
        let claims = &read.outcome.claims;
        assert_path(of_rate, &claims[0], Some((rate, rate)), look_every, 0.01);
        assert_path(of_margin, &claims[1], Some((rate - 0.04, rate + 0.04)), look_every, 0.01);
        assert_path(of_ratio, &claims[2], Some((0.5, 0.5)), 1, 0.01);
        assert_path(of_order, &claims[3], None, 1, 0.005);
        prop_assert!(of_rate.statistics.is_empty());
        for path in [of_ratio, of_order] {
            prop_assert_eq!(path.statistics.len(), path.trials.len());
            for (success, statistic) in path.successes.iter().zip(path.statistics.iter()) {
                prop_assert_eq!(success.unwrap_or(true), *statistic >= 1.0);
            }
        }
    }
}

#[test]
fn what_is_not_judged_by_growing_evidence_has_none() {
    let experiment = Scripted::new(&["slow", "fast"], noisy);
    let order = versus("margin", "fast", "slow", Bound::AtLeast(1.0), Judging::Order);
    let claims = vec![versus("exact", "fast", "slow", Bound::AtLeast(1.05), Judging::Exact), with_margin(order, 0.2)];
    let read = record_one(&experiment, &plan(claims, Config { max_trials: Some(400), ..Config::default() })).read();
    let [exact, margin] = &read.paths[..] else { panic!() };
    assert_eq!((exact.decided_after, exact.successes.as_slice()), (Some(1), &[Some(true)][..]));
    assert_eq!(read.outcome.claims[1].decision, Some(Decision::Same));
    assert_eq!(margin.decided_after, Some(margin.trials.len() as u64));
    assert!((margin.statistics[0] - 1.1).abs() < 1e-9);
    assert!(exact.evidence.is_empty() && margin.evidence.is_empty());
}

/// A long path must keep the e-values after the first trial, the deciding trial and the last trial. Between these, the
/// e-values are stored at growing intervals.
#[test]
fn a_long_path_is_thinned() {
    let experiment = Scripted::new(&["ten"], chance);
    let claim = experiment.predicate("long", "ten", "time <= 6 ns", 0.56);
    let config = Config { exact_trials: Some(20_000), ..Config::default() };
    let read = record_one(&experiment, &plan(vec![claim], config)).read();
    let path = &read.paths[0];
    assert_path(path, &read.outcome.claims[0], Some((0.56, 0.56)), 1, 0.001);
    assert_eq!(path.trials.len(), 20_000);
    assert!(path.evidence.len() > 1_000, "{}", path.evidence.len());
    let gaps: Vec<u64> = path.evidence.windows(2).map(|pair| pair[1].counted - pair[0].counted).collect();
    assert!(gaps[..128].iter().all(|&gap| gap == 1) && gaps.iter().all(|&gap| gap <= 20_000 / 100));
    assert!(path.decided_after.is_some_and(|after| after > 300), "{:?}", path.decided_after);
}
