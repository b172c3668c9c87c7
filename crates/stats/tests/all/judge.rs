//! After every trial, the running judge must return the same verdict as an evaluation at this tally. Once there is a
//! verdict, the judge must keep it.

use ascertain_stats::{Error, Judge, Tally, Verdict, log_e_holds, log_e_refuted, soonest_verdict, verdict};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Returns the verdict at one tally, with an error for each direction.
fn naive(tally: Tally, rate: f64, error_holds: f64, error_refuted: f64) -> Option<Verdict> {
    let holds = verdict(tally, rate, error_holds).unwrap();
    let refuted = verdict(tally, rate, error_refuted).unwrap();
    holds.filter(|&v| v == Verdict::Holds).or(refuted.filter(|&v| v == Verdict::Refuted))
}

fn errors() -> impl Strategy<Value = f64> {
    (0.3..12.0).prop_map(|nats: f64| (-nats).exp())
}

fn rates() -> impl Strategy<Value = f64> {
    (-6.0..6.0).prop_map(|log_odds: f64| 1.0 / (1.0 + (-log_odds).exp()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn the_kept_boundary_changes_no_verdict(
        rate in rates(), shift in -2.0..2.0, error_holds in errors(), error_refuted in errors(), seed: u64,
    ) {
        let log_odds: f64 = f64::ln(rate / (1.0 - rate)) + shift;
        let true_rate = 1.0 / (1.0 + (-log_odds).exp());
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut judge = Judge::with_errors(rate, error_holds, error_refuted).unwrap();
        for _ in 0..400 {
            let current = judge.observe(rng.random_bool(true_rate));
            prop_assert_eq!(current, naive(judge.tally(), rate, error_holds, error_refuted), "{:?}", judge.tally());
            if current.is_some() {
                break;
            }
        }
    }

    #[test]
    fn nor_does_it_where_the_tally_follows_the_boundary(rate in rates(), error in errors(), seed: u64) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut judge = Judge::new(rate, error).unwrap();
        for _ in 0..200 {
            let success_decides = judge.clone().observe(true).is_some();
            let failure_decides = judge.clone().observe(false).is_some();
            for (outcome, decides) in [(true, success_decides), (false, failure_decides)] {
                let mut next = judge.tally();
                next.add(outcome);
                prop_assert_eq!(verdict(next, rate, error).unwrap().is_some(), decides, "{:?}", next);
            }
            // Stays close to "holds" as long as possible: most outcomes are successes unless a success would decide.
            judge.observe(!success_decides && (failure_decides || rng.random_bool(0.95)));
            if judge.verdict().is_some() {
                break;
            }
        }
    }

    #[test]
    fn batches_are_looked_at_as_a_whole(rate in rates(), error in errors(), seed: u64) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut judge = Judge::new(rate, error).unwrap();
        for _ in 0..20 {
            let trials = rng.random_range(0..50u64);
            let batch = Tally::new(trials, rng.random_range(0..=trials)).unwrap();
            let current = judge.observe_batch(batch);
            prop_assert_eq!(current, verdict(judge.tally(), rate, error).unwrap());
            if current.is_some() {
                break;
            }
        }
    }

    /// For each verdict, the judge must agree with a second judge, which gets every unknown outcome as an outcome
    /// against that verdict.
    #[test]
    fn what_is_unknown_counts_against_both(rate in rates(), error_holds in errors(), error_refuted in errors(), seed: u64) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let true_rate = rng.random::<f64>();
        let mut judge = Judge::with_errors(rate, error_holds, error_refuted).unwrap();
        let (mut known, mut low, mut high) = (judge.clone(), Tally::default(), Tally::default());
        for _ in 0..150 {
            let current = if rng.random_bool(0.1) {
                low.add(false);
                high.add(true);
                judge.observe_unknown()
            } else {
                let success = rng.random_bool(true_rate);
                low.add(success);
                high.add(success);
                known.observe(success);
                judge.observe(success)
            };
            let holds = verdict(low, rate, error_holds).unwrap().filter(|&v| v == Verdict::Holds);
            let refuted = verdict(high, rate, error_refuted).unwrap().filter(|&v| v == Verdict::Refuted);
            prop_assert_eq!(current, holds.or(refuted), "{:?}", judge);
            // Without the trials that were cut off, the verdict must be the same or come earlier.
            prop_assert!(current.is_none() || current == known.verdict());
            prop_assert_eq!(judge.tally().trials + judge.unknown(), low.trials);
            prop_assert_eq!(judge.log_e_holds(), log_e_holds(low, rate));
            prop_assert_eq!(judge.log_e_refuted(), log_e_refuted(high, rate));
            if current.is_some() {
                break;
            }
        }
    }

    /// The contradiction must start at the first trial after which a judge of the opposite claim decides, for single
    /// trials and for batches.
    #[test]
    fn a_verdict_is_contradicted_by_the_opposite(rate in 0.05..0.95f64, error in errors(), in_batches: bool, seed: u64) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut judge = Judge::new(rate, error).unwrap();
        let first = rng.random_bool(0.5);
        while judge.observe(first).is_none() {}
        let current = judge.verdict();
        let mut is_contradicted = false;
        for _ in 0..200 {
            let success = rng.random_bool(if first { 0.02 } else { 0.98 });
            let outcome = Tally { trials: 1, successes: u64::from(success) };
            let still = if in_batches { judge.observe_batch(outcome) } else { judge.observe(success) };
            prop_assert_eq!(still, current);
            if !is_contradicted {
                is_contradicted = verdict(judge.tally(), rate, error).unwrap().is_some_and(|now| Some(now) != current);
            }
            prop_assert_eq!(judge.contradicted(), is_contradicted);
        }
    }

    #[test]
    fn no_verdict_is_sooner_than_the_soonest(rate in rates(), error_holds in errors(), error_refuted in errors()) {
        let soonest = soonest_verdict(rate, error_holds, error_refuted);
        prop_assume!(soonest < 10_000);
        let at = |trials: u64| {
            [trials, 0].map(|successes| naive(Tally { trials, successes }, rate, error_holds, error_refuted))
        };
        prop_assert!(at(soonest).iter().any(Option::is_some));
        prop_assert_eq!(at(soonest - 1), [None, None]);
    }
}

/// Tests the boundary at large numbers of trials, where the boundary is nearly straight and far from the mean.
#[test]
fn nor_does_it_after_many_trials() {
    for (rate, failures) in [(0.5, 100_000), (0.3, 1_000_000), (0.99, 5000), (0.02, 3_000_000)] {
        let undecided = |successes: u64| {
            let tally = Tally { trials: successes + failures, successes };
            verdict(tally, rate, 0.01).unwrap() != Some(Verdict::Holds)
        };
        let mean = (failures as f64 * rate / (1.0 - rate)) as u64;
        let (mut below, mut above) = (mean, 2 * mean);
        while above - below > 1 {
            let middle = below.midpoint(above);
            *(if undecided(middle) { &mut below } else { &mut above }) = middle;
        }
        let mut judge = Judge::new(rate, 0.01).unwrap();
        judge.observe_batch(Tally { trials: failures + below, successes: below });
        for _ in 0..600 {
            let decides = judge.clone().observe(true).is_some();
            let mut next = judge.tally();
            next.add(true);
            assert_eq!(verdict(next, rate, 0.01).unwrap().is_some(), decides, "{next:?} at {rate}");
            judge.observe(!decides);
        }
        assert_eq!(judge.verdict(), None);
    }
}

#[test]
fn a_verdict_latches_and_counting_goes_on() {
    let mut judge = Judge::new(0.5, 0.01).unwrap();
    while judge.observe(true).is_none() {}
    let decided_at = judge.decided_at().unwrap();
    assert_eq!(decided_at, judge.tally());
    for _ in 0..1000 {
        assert_eq!(judge.observe(false), Some(Verdict::Holds));
    }
    assert_eq!(judge.observe_batch(Tally::new(1000, 0).unwrap()), Some(Verdict::Holds));
    assert_eq!(judge.decided_at(), Some(decided_at));
    assert_eq!(judge.tally().trials, decided_at.trials + 2000);
    assert!(judge.log_e_refuted() > judge.log_e_holds());
    assert_eq!(verdict(judge.tally(), 0.5, 0.01), Ok(Some(Verdict::Refuted)));
}

#[test]
fn the_published_counts_hold() {
    assert_eq!(verdict(Tally::new(4000, 3972).unwrap(), 0.98, 0.001), Ok(Some(Verdict::Holds)));
}

#[test]
fn huge_batches_are_judged() {
    let trials = 1 << 48;
    let mut judge = Judge::new(0.5, 0.001).unwrap();
    assert_eq!(judge.observe_batch(Tally::new(trials, trials / 2).unwrap()), None);
    // The share of successes is slightly above a half, by one more success per million trials.
    let batch = Tally::new(trials, trials / 2 + (trials >> 20)).unwrap();
    assert_eq!(judge.observe_batch(batch), Some(Verdict::Holds));
}

#[test]
fn with_a_margin_there_is_always_an_end() {
    for (rate, margin, true_rate) in [(0.5, 0.1, 0.5), (0.9, 0.05, 0.9), (0.99, 0.005, 0.988), (0.2, 0.1, 0.25)] {
        for seed in 0..20 {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            let mut judge = Judge::with_margin(rate, margin, 0.001).unwrap();
            while judge.observe(rng.random_bool(true_rate)).is_none() {
                assert!(judge.tally().trials < 20_000, "{rate} ± {margin}");
            }
        }
    }
}

#[test]
fn a_margin_moves_each_direction_to_its_own_end() {
    let mut judge = Judge::with_margin(0.8, 0.1, 0.001).unwrap();
    let (low, high) = (0.8 - 0.1, 0.8 + 0.1);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
    loop {
        let current = judge.observe(rng.random_bool(0.8));
        let holds = verdict(judge.tally(), low, 0.001).unwrap() == Some(Verdict::Holds);
        let refuted = verdict(judge.tally(), high, 0.001).unwrap() == Some(Verdict::Refuted);
        assert_eq!(current.is_some(), holds || refuted);
        if current.is_some() {
            break;
        }
    }
    assert_eq!((judge.rate(), judge.margin()), (0.8, 0.1));
    for (successes, expected) in [(800_000, Verdict::Holds), (799_999, Verdict::Refuted)] {
        let mut judge = Judge::with_margin(0.8, 0.1, 0.001).unwrap();
        assert_eq!(judge.observe_batch(Tally::new(1_000_000, successes).unwrap()), Some(expected));
    }
}

/// If the true rate is within the margin, both hypotheses are rejected after enough trials, and either verdict is
/// right.
#[test]
fn within_a_margin_no_verdict_is_contradicted() {
    let mut judge = Judge::with_margin(0.5, 0.1, 0.001).unwrap();
    judge.observe_batch(Tally::new(10_000, 5000).unwrap());
    let verdict = judge.verdict();
    judge.observe_batch(Tally::new(100_000, 50_000).unwrap());
    assert!(judge.log_e_holds() > 100.0 && judge.log_e_refuted() > 100.0 && !judge.contradicted());
    assert_eq!(verdict, Some(Verdict::Holds));
    // The rate is now below the lower end.
    judge.observe_batch(Tally::new(100_000, 0).unwrap());
    assert_eq!((judge.verdict(), judge.contradicted()), (verdict, true));
}

#[test]
fn what_nothing_can_be_said_of_is_refused() {
    for rate in [0.0, 1.0, -0.1, 1.1, f64::NAN, f64::INFINITY] {
        assert!(matches!(Judge::new(rate, 0.1), Err(Error::Rate { .. })), "{rate}");
        assert!(matches!(verdict(Tally::default(), rate, 0.1), Err(Error::Rate { .. })), "{rate}");
        assert!(Judge::with_margin(rate, 0.1, 0.1).is_err(), "{rate}");
        assert_eq!(soonest_verdict(rate, 0.1, 0.1), u64::MAX);
    }
    for error in [0.0, 1.0, -0.1, f64::NAN] {
        assert!(matches!(Judge::with_errors(0.5, error, 0.1), Err(Error::ErrorProbability { .. })), "{error}");
        assert!(matches!(Judge::with_errors(0.5, 0.1, error), Err(Error::ErrorProbability { .. })), "{error}");
        assert!(matches!(Judge::with_margin(0.5, 0.1, error), Err(Error::ErrorProbability { .. })), "{error}");
    }
    for margin in [0.0, -0.1, 0.5, 0.3, 1e-30, f64::NAN] {
        assert!(matches!(Judge::with_margin(0.7, margin, 0.1), Err(Error::Margin { .. })), "{margin}");
    }
    assert_eq!(Tally::new(5, 6), Err(Error::SuccessesExceedTrials { trials: 5, successes: 6 }));
    assert_eq!(Tally::new(u64::MAX, 6), Err(Error::TooManyTrials { trials: u64::MAX }));
    let impossible = Tally { trials: 5, successes: 6 };
    assert_eq!(verdict(impossible, 0.5, 0.1), Err(Error::SuccessesExceedTrials { trials: 5, successes: 6 }));
}

#[test]
fn errors_say_what_to_do() {
    let text = Judge::new(98.0, 0.001).unwrap_err().to_string();
    assert!(text.contains("98") && text.contains("0.99"), "{text}");
    let text = Tally::new(3972, 4000).unwrap_err().to_string();
    assert!(text.contains("4000 successes in 3972 trials"), "{text}");
}

#[test]
fn what_is_no_tally_gets_no_verdict() {
    let mut judge = Judge::new(0.5, 0.1).unwrap();
    assert_eq!(judge.observe_batch(Tally { trials: 10, successes: 1000 }), None);
    let mut judge = Judge::new(0.5, 0.1).unwrap();
    assert_eq!(judge.observe_batch(Tally { trials: 1 << 60, successes: 1 << 60 }), None);
    let mut judge = Judge::new(0.5, 0.1).unwrap();
    judge.observe_unknown();
    assert_eq!(judge.observe_batch(Tally { trials: 1 << 53, successes: 1 << 53 }), None);
}
