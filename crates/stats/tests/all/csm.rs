//! Tests the guarantee of the confidence sequence method exactly, by dynamic programming, and the examples of the
//! article about the method.

use ascertain_stats::{Error, Tally, Verdict, csm_verdict, log_level};
use proptest::prelude::*;

fn tally(trials: u64, successes: u64) -> Tally {
    Tally { trials, successes }
}

/// Returns the exact probability of ever getting a verdict about `rate`, with a look after each of `trials` trials. The
/// trials succeed at that same rate, so every verdict is false.
///
/// The function keeps the probability of each number of successes among the runs without a verdict. The level has a
/// single peak in the number of successes, so verdicts remove runs at both ends.
fn false_verdicts(rate: f64, error: f64, trials: u64) -> f64 {
    let stops = |n, s| csm_verdict(tally(n, s), rate, error).unwrap().is_some();
    let mut stopped = 0.0;
    let mut fewest = 0;
    let mut running = std::collections::VecDeque::from([1.0]);
    for n in 1..=trials {
        running.push_back(0.0);
        let mut before = 0.0;
        for probability in &mut running {
            let now = *probability;
            *probability = now * (1.0 - rate) + before * rate;
            before = now;
        }
        while stops(n, fewest) {
            stopped += running.pop_front().unwrap();
            fewest += 1;
        }
        while stops(n, fewest + running.len() as u64 - 1) {
            stopped += running.pop_back().unwrap();
        }
    }
    stopped
}

#[test]
fn false_verdicts_under_continuous_looking_stay_below_the_error() {
    for rate in [0.5, 0.9, 0.99, 0.999] {
        for error in [0.05, 0.001] {
            let stopped = false_verdicts(rate, error, 10_000);
            assert!(stopped <= error, "{stopped} false at {rate} with {error}");
            assert!(stopped >= error / 100.0, "{stopped} false at {rate} with {error}, too few for a useful bound");
        }
    }
}

#[test]
fn the_published_comparison_of_fill_rates_stops_when_it_says() {
    // There are two thresholds, 0.005 and 0.01, and an error of 1e-9 in total: a third for each threshold, and a third
    // for the interval.
    let error = 1e-9 / 3.0;
    let decided = |n| [0.005, 0.01].map(|rate| csm_verdict(tally(n, 0), rate, error).unwrap());
    let first = (1..10_000).find(|&n| decided(n).iter().any(Option::is_some));
    assert_eq!(first, Some(2967));
    assert_eq!(decided(2967), [None, Some(Verdict::Refuted)]);
}

#[test]
fn verdicts_fall_on_the_side_of_the_observed_rate() {
    assert_eq!(csm_verdict(tally(4000, 3972), 0.98, 0.001), Ok(Some(Verdict::Holds)));
    assert_eq!(csm_verdict(tally(4000, 3860), 0.98, 0.001), Ok(Some(Verdict::Refuted)));
    assert_eq!(csm_verdict(tally(4000, 3920), 0.98, 0.001), Ok(None));
    assert_eq!(csm_verdict(tally(0, 0), 0.98, 0.999), Ok(None));
}

#[test]
fn what_is_no_rate_error_or_tally_is_refused() {
    for rate in [0.0, 1.0, -0.1, f64::NAN] {
        assert!(matches!(csm_verdict(tally(1, 1), rate, 0.1), Err(Error::Rate { .. })));
        assert!(log_level(tally(1, 1), rate).is_nan());
    }
    for error in [0.0, 1.0, f64::NAN] {
        assert!(matches!(csm_verdict(tally(1, 1), 0.5, error), Err(Error::ErrorProbability { .. })));
    }
    assert!(matches!(csm_verdict(tally(1, 2), 0.5, 0.1), Err(Error::SuccessesExceedTrials { .. })));
    assert!(log_level(tally(1, 2), 0.5).is_nan());
}

/// Trials of every size, with successes at the ends, anywhere, or near the mean.
fn tallies_at_a_rate() -> impl Strategy<Value = (Tally, f64)> {
    (0.0..48.0_f64, 1..1024_u32, 0..4_u8, 0.0..1.0_f64).prop_map(|(size, rate, kind, share)| {
        let (trials, rate) = (size.exp2() as u64, f64::from(rate) / 1024.0);
        let near = trials as f64 * rate + (share - 0.5) * 20.0 * (trials as f64 * rate * (1.0 - rate)).sqrt();
        let successes = match kind {
            0 => 0,
            1 => trials,
            2 => (trials as f64 * share) as u64,
            _ => near.max(0.0) as u64,
        };
        (tally(trials, successes.min(trials)), rate)
    })
}

proptest! {
    #[test]
    fn successes_at_p_are_failures_at_one_minus_p((tally, rate) in tallies_at_a_rate()) {
        let mirrored = Tally { trials: tally.trials, successes: tally.failures() };
        // 1 − rate is exact: the rate is a multiple of 1/1024.
        let (level, mirror) = (log_level(tally, rate), log_level(mirrored, 1.0 - rate));
        prop_assert!((level - mirror).abs() <= 1e-7 + 1e-13 * level.abs(), "{level} {mirror}");
    }

    /// With up to 30 trials, and rates that are multiples of 1/16, the criterion is a fraction of 120 bits.
    #[test]
    fn small_levels_are_not_below_the_exact_fraction(trials in 0..=29_u32, share in 0.0..=1.0_f64, sixteenths in 1..16_u32) {
        let successes = (f64::from(trials) * share) as u32;
        let level = log_level(tally(trials.into(), successes.into()), f64::from(sixteenths) / 16.0);
        let choose = (0..successes).fold(1, |product: u128, k| product * u128::from(trials - k) / u128::from(k + 1));
        let powers = u128::from(sixteenths).pow(successes) * u128::from(16 - sixteenths).pow(trials - successes);
        let exact = (f64::from(trials + 1) * choose as f64).ln() + (powers as f64).ln() - 16_f64.powi(trials as i32).ln();
        prop_assert!(level >= exact - 1e-13, "{level} {exact}");
        prop_assert!(level <= exact + 2.0 / 144.0, "{level} {exact}");
    }

    #[test]
    fn levels_have_one_peak_where_the_rate_is(trials in 2..3000_u64, rate in 0.001..0.999_f64) {
        // Robbins' bounds change the level by less than the difference between neighbouring tallies, except next to the
        // peak.
        let level = |successes| log_level(tally(trials, successes), rate);
        let mean = trials as f64 * rate;
        for s in 1..=trials {
            let rises = level(s) >= level(s - 1);
            if (s as f64) < mean - 1.0 {
                prop_assert!(rises, "{s}");
            }
            if s as f64 > mean + 2.0 {
                prop_assert!(!rises, "{s}");
            }
        }
    }
}
