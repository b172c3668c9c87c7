//! Properties of the e-process at every tally and rate.

use ascertain_stats::{Tally, expected_growth, log_e_holds, log_e_refuted};
use proptest::prelude::*;

fn tally(trials: u64, successes: u64) -> Tally {
    Tally::new(trials, successes).unwrap()
}

/// Rates from near 0 to near 1, with uniformly distributed log-odds.
fn rates() -> impl Strategy<Value = f64> {
    (-14.0..14.0).prop_map(|log_odds: f64| 1.0 / (1.0 + (-log_odds).exp()))
}

/// Tallies with a few to a million trials.
fn tallies() -> impl Strategy<Value = Tally> {
    (0.0..6.0, 0.0..=1.0).prop_map(|(magnitude, share): (f64, f64)| {
        let trials = 10f64.powf(magnitude) as u64;
        tally(trials, (share * trials as f64) as u64)
    })
}

proptest! {
    #[test]
    fn more_successes_are_more_evidence(counts in tallies(), rate in rates()) {
        if counts.failures() == 0 {
            return Ok(());
        }
        let more = tally(counts.trials, counts.successes + 1);
        prop_assert!(log_e_holds(more, rate) >= log_e_holds(counts, rate) - 1e-11);
        prop_assert!(log_e_refuted(more, rate) <= log_e_refuted(counts, rate) + 1e-11);
    }

    #[test]
    fn success_and_failure_mirror_each_other(counts in tallies(), thousandths in 1..1024u32) {
        let rate = f64::from(thousandths) / 1024.0;
        let mirrored = tally(counts.trials, counts.failures());
        prop_assert_eq!(log_e_holds(counts, rate), log_e_refuted(mirrored, 1.0 - rate));
    }

    #[test]
    fn only_one_direction_has_evidence(counts in tallies(), rate in rates()) {
        prop_assert!(log_e_holds(counts, rate).min(log_e_refuted(counts, rate)) <= 0.0);
    }

    /// At the null rate the e-process is a martingale: its mean after the next trial equals its present value.
    #[test]
    fn at_the_claimed_rate_the_next_trial_adds_nothing_on_average(counts in tallies(), rate in rates()) {
        for log_e in [log_e_holds, log_e_refuted] {
            let now = log_e(counts, rate);
            let success = log_e(tally(counts.trials + 1, counts.successes + 1), rate);
            let failure = log_e(tally(counts.trials + 1, counts.successes), rate);
            let next = (rate * (success - now).exp() + (1.0 - rate) * (failure - now).exp()).ln();
            prop_assert!(next.abs() < 1e-10 + 3e-14 * now.abs(), "{} at {:?}", next, counts);
        }
    }

    /// The e-value falls as the null rate rises, as long as that rate is below the observed share. The rates that are
    /// not rejected are therefore an interval.
    #[test]
    fn evidence_falls_towards_the_observed_share(counts in tallies(), places in prop::collection::vec(0.0..1.0f64, 2)) {
        if counts.successes == 0 {
            return Ok(());
        }
        let share = counts.successes as f64 / counts.trials as f64;
        let low = (1e-9 / share).ln();
        let rate_at = |place: f64| share * (low * place).exp() * (1.0 - 1e-9);
        let (nearer, farther) = (places[0].min(places[1]), places[0].max(places[1]));
        prop_assert!(log_e_holds(counts, rate_at(nearer)) <= log_e_holds(counts, rate_at(farther)) + 1e-10);
    }
}

#[test]
fn evidence_falls_on_a_grid_of_rates_too() {
    for trials in [1, 2, 3, 5, 10, 30, 100, 1000, 10_000] {
        for share in [0.0, 0.01, 0.1, 0.5, 0.9, 0.99, 1.0] {
            let counts = tally(trials, (share * trials as f64) as u64);
            let mut last = f64::INFINITY;
            for step in -80..=80 {
                let rate = 1.0 / (1.0 + (-0.2 * f64::from(step)).exp());
                if rate * trials as f64 >= counts.successes as f64 {
                    break;
                }
                let log_e = log_e_holds(counts, rate);
                assert!(log_e <= last + 1e-10, "{counts:?} at {rate}");
                last = log_e;
            }
        }
    }
}

#[test]
fn without_trials_there_is_no_evidence() {
    for rate in [1e-9, 0.5, 0.999] {
        let log_e = log_e_holds(Tally::default(), rate);
        assert!(log_e <= 0.0 && log_e > -1e-10, "{log_e}");
    }
}

#[test]
fn what_is_no_tally_or_no_rate_has_no_evidence() {
    for rate in [0.0, 1.0, -0.5, 1.5, f64::NAN, f64::INFINITY] {
        assert!(log_e_holds(tally(10, 5), rate).is_nan(), "{rate}");
        assert!(log_e_refuted(tally(10, 5), rate).is_nan(), "{rate}");
        assert!(expected_growth(rate, 0.5).is_nan(), "{rate}");
    }
    let impossible = Tally { trials: 5, successes: 6 };
    assert!(log_e_holds(impossible, 0.5).is_nan());
    let too_many = Tally { trials: u64::MAX, successes: 6 };
    assert!(log_e_refuted(too_many, 0.5).is_nan());
    assert!(expected_growth(0.5, 1.1).is_nan());
}

#[test]
fn expected_growth_is_the_relative_entropy() {
    assert!((expected_growth(0.5, 1.0) - 2f64.ln()).abs() < 1e-15);
    assert!((expected_growth(0.5, 0.0) - 2f64.ln()).abs() < 1e-15);
    let by_hand = 0.6 * (0.6f64 / 0.5).ln() + 0.4 * (0.4f64 / 0.5).ln();
    assert!((expected_growth(0.5, 0.6) - by_hand).abs() < 1e-15);
    assert_eq!(expected_growth(0.123, 0.123), 0.0);
}
