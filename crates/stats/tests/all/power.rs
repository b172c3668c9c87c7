//! Compares the computed probabilities of a judge with those from all possible sequences of outcomes.

use ascertain_stats::{Judge, Power, Verdict, power, power_growth, soonest_verdict};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Computes the probabilities from every possible sequence of `trials` outcomes, weighted by its probability.
fn over_all_sequences(judge: &Judge, true_rate: f64, trials: u32) -> Power {
    let mut fate = Power { holds: 0.0, refuted: 0.0, undecided: 0.0, expected_trials: 0.0 };
    for outcomes in 0..1_u32 << trials {
        let mut judge = judge.clone();
        for trial in 0..trials {
            judge.observe(outcomes >> trial & 1 == 1);
        }
        let successes = outcomes.count_ones() as i32;
        let probability = true_rate.powi(successes) * (1.0 - true_rate).powi(trials as i32 - successes);
        match judge.verdict() {
            Some(Verdict::Holds) => fate.holds += probability,
            Some(Verdict::Refuted) => fate.refuted += probability,
            None => fate.undecided += probability,
        }
        fate.expected_trials += probability * judge.decided_at().map_or(f64::from(trials), |tally| tally.trials as f64);
    }
    fate
}

fn assert_alike(computed: Power, tried: Power) {
    let pairs = [
        (computed.holds, tried.holds),
        (computed.refuted, tried.refuted),
        (computed.undecided, tried.undecided),
        (computed.expected_trials, tried.expected_trials),
    ];
    for (one, other) in pairs {
        assert!((one - other).abs() < 1e-10, "{computed:?} {tried:?}");
    }
}

#[test]
fn power_counts_every_sequence() {
    let judges = [
        Judge::new(0.5, 0.3).unwrap(),
        Judge::with_errors(0.5, 0.1, 0.4).unwrap(),
        Judge::new(0.9, 0.05).unwrap(),
        Judge::with_margin(0.5, 0.2, 0.2).unwrap(),
        Judge::with_margin(0.6, 0.39, 0.6).unwrap(),
    ];
    for judge in &judges {
        for true_rate in [0.05, 0.5, 0.7, 0.98] {
            let growth = power_growth(judge, true_rate).unwrap();
            for (trials, grown) in (1..=12).zip(growth) {
                let tried = over_all_sequences(judge, true_rate, trials);
                assert_alike(power(judge, true_rate, trials.into()).unwrap(), tried);
                assert_alike(grown, tried);
            }
        }
    }
}

/// Compares the distribution of the deciding trial with simulated judges: each share must agree within five standard
/// deviations.
#[test]
fn simulated_verdicts_fall_when_computed() {
    let runs = 2000;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(20_261_121);
    for (judge, true_rate) in [
        (Judge::with_errors(0.5, 0.0005, 0.0005).unwrap(), 0.8),
        (Judge::new(0.98, 0.01).unwrap(), 0.9),
        (Judge::with_margin(0.7, 0.1, 0.01).unwrap(), 0.7),
    ] {
        for share in [0.5, 0.8, 0.95] {
            let growth = power_growth(&judge, true_rate).unwrap();
            let (trials, power) = (1..).zip(growth).find(|(_, power)| power.holds + power.refuted >= share).unwrap();
            let decides = |rng: &mut Xoshiro256PlusPlus| {
                let mut judge = judge.clone();
                (0..trials).any(|_| judge.observe(rng.random_bool(true_rate)).is_some())
            };
            let decided = (0..runs).filter(|_| decides(&mut rng)).count() as f64 / f64::from(runs);
            let deviation = (share * (1.0 - share) / f64::from(runs)).sqrt();
            let expected = power.holds + power.refuted;
            assert!((decided - expected).abs() < 5.0 * deviation, "{decided} by {trials}, not {expected}");
        }
    }
}

#[test]
fn it_grows_until_nothing_is_left() {
    let judge = Judge::new(0.5, 0.05).unwrap();
    let growth: Vec<Power> = power_growth(&judge, 0.9).unwrap().collect();
    for pair in growth.windows(2) {
        assert!(pair[0].holds <= pair[1].holds && pair[0].refuted <= pair[1].refuted);
        assert!(pair[1].undecided <= pair[0].undecided + 1e-14 && pair[0].expected_trials <= pair[1].expected_trials);
    }
    let last = growth.last().unwrap();
    assert!((last.holds + last.refuted - 1.0).abs() < 1e-12 && last.undecided < 1e-20, "{last:?}");
    assert_eq!(power(&judge, 0.9, u64::MAX).unwrap(), *last);
    assert_eq!(power(&judge, 0.9, 100).unwrap(), growth[99]);
}

#[test]
fn the_first_chance_of_a_verdict_is_at_the_soonest() {
    for (rate, error) in [(0.5, 0.0005), (0.98, 0.001), (0.1, 0.01)] {
        let judge = Judge::new(rate, error).unwrap();
        let before = power_growth(&judge, rate).unwrap().take_while(|power| power.holds + power.refuted == 0.0);
        assert_eq!(before.count() as u64 + 1, soonest_verdict(rate, error, error));
    }
}

#[test]
fn a_rate_beyond_the_ends_is_refused() {
    let judge = Judge::new(0.5, 0.05).unwrap();
    for true_rate in [0.0, 1.0, -0.1, 2.0, f64::NAN] {
        assert!(power_growth(&judge, true_rate).is_err() && power(&judge, true_rate, 1).is_err(), "{true_rate}");
    }
}
