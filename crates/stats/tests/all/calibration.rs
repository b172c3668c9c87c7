//! False verdicts must not exceed the requested error however often you look, and true verdicts must come soon enough.
//! This is tested exactly, by dynamic programming, and by simulation of the judge itself.

use ascertain_stats::{Judge, Power, RateSequence, Tally, Verdict, expected_growth, power};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

#[test]
fn false_verdicts_are_at_most_the_error() {
    for error in [0.05, 0.001] {
        // The numbers of trials are large enough for both verdicts to occur.
        for (rate, trials) in [(0.5, 4000), (0.9, 4000), (0.99, 8000), (0.999, 20_000)] {
            let judge = Judge::new(rate, error).unwrap();
            let at_the_edge = power(&judge, rate, trials).unwrap();
            for share in [at_the_edge.holds, at_the_edge.refuted] {
                assert!(share <= error, "{at_the_edge:?} for {rate} and {error}");
                // The error is not far below the bound.
                assert!(share > 0.05 * error, "{at_the_edge:?} for {rate} and {error}");
            }
            let below = power(&judge, rate - 0.2 * (1.0 - rate), trials).unwrap();
            assert!(below.holds < at_the_edge.holds, "{below:?}");
            let above = power(&judge, rate + 0.2 * (1.0 - rate), trials).unwrap();
            assert!(above.refuted < at_the_edge.refuted, "{above:?}");
        }
    }
}

#[test]
fn each_direction_has_its_own_error() {
    let judge = Judge::with_errors(0.9, 0.1, 0.001).unwrap();
    let Power { holds, refuted, .. } = power(&judge, 0.9, 3000).unwrap();
    assert!((0.01..=0.1).contains(&holds), "{holds}");
    assert!(refuted <= 0.001, "{refuted}");
}

/// Wald's bound, ln(1/error)/KL, is the number of trials that a test needs if it knows the true rate.
#[test]
fn verdicts_come_within_1_4_of_the_fewest_trials_possible() {
    for (rate, true_rate, error) in [
        (0.5, 0.6, 0.05),
        (0.98, 0.995, 0.05),
        (0.99, 0.97, 0.01),
        (0.99, 0.999, 0.05),
        (0.5, 0.97, 0.0005),
        (0.5, 0.8, 0.0005),
        (0.5, 0.52, 0.01),
    ] {
        let fewest = (1.0f64 / error).ln() / expected_growth(rate, true_rate);
        let judge = Judge::new(rate, error).unwrap();
        let power = power(&judge, true_rate, (10.0 * fewest) as u64).unwrap();
        // Few runs take longer than the limit; each counts as 100 times the bound.
        assert!(power.undecided < 1e-6, "{power:?}");
        let ratio = (power.expected_trials + power.undecided * 100.0 * fewest) / fewest;
        assert!(ratio <= 1.4, "{ratio} from {rate} to {true_rate} at {error}");
    }
}

#[test]
fn probabilities_are_complete() {
    let judge = Judge::new(0.8, 0.01).unwrap();
    for trials in [0, 1, 10, 100, 1000] {
        let Power { holds, refuted, undecided, expected_trials } = power(&judge, 0.75, trials).unwrap();
        assert!((holds + refuted + undecided - 1.0).abs() < 1e-12);
        assert!(expected_trials <= trials as f64);
    }
    assert!(power(&judge, 0.0, 10).is_err() && power(&judge, f64::NAN, 10).is_err());
}

/// Simulates a judge and returns the same quantities as [`power`].
fn simulate(judge: &Judge, true_rate: f64, max_trials: u64, runs: u64) -> Power {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(20_261_121);
    let (mut holds, mut refuted, mut trials) = (0, 0, 0);
    for _ in 0..runs {
        let mut judge = judge.clone();
        while judge.tally().trials < max_trials && judge.verdict().is_none() {
            judge.observe(rng.random_bool(true_rate));
        }
        holds += u64::from(judge.verdict() == Some(Verdict::Holds));
        refuted += u64::from(judge.verdict() == Some(Verdict::Refuted));
        trials += judge.tally().trials;
    }
    let share = |count: u64| count as f64 / runs as f64;
    Power {
        holds: share(holds),
        refuted: share(refuted),
        undecided: share(runs - holds - refuted),
        expected_trials: share(trials),
    }
}

/// Returns five standard deviations of a share that was observed in this number of runs.
fn tolerance(probability: f64, runs: u64) -> f64 {
    5.0 * (probability * (1.0 - probability) / runs as f64).sqrt() + 1.0 / runs as f64
}

#[test]
fn simulated_judges_do_as_computed() {
    let runs = 2000;
    for (rate, true_rate, error, max_trials) in
        [(0.5, 0.5, 0.05, 1000), (0.9, 0.9, 0.05, 1000), (0.5, 0.6, 0.05, 300), (0.99, 0.98, 0.001, 1000)]
    {
        let judge = Judge::new(rate, error).unwrap();
        let computed = power(&judge, true_rate, max_trials).unwrap();
        let simulated = simulate(&judge, true_rate, max_trials, runs);
        for (one, other) in [
            (computed.holds, simulated.holds),
            (computed.refuted, simulated.refuted),
            (computed.undecided, simulated.undecided),
        ] {
            assert!((one - other).abs() <= tolerance(one, runs), "{computed:?} {simulated:?}");
        }
        let relative = simulated.expected_trials / computed.expected_trials;
        assert!((relative - 1.0).abs() < 0.1, "{computed:?} {simulated:?}");
    }
}

#[test]
fn a_margin_judge_is_wrong_at_most_so_often_and_decides() {
    let (rate, margin, error) = (0.9, 0.04, 0.05);
    let judge = Judge::with_margin(rate, margin, error).unwrap();
    let too_low = power(&judge, rate - margin, 4000).unwrap();
    assert!(too_low.holds <= error && too_low.refuted > 0.9, "{too_low:?}");
    let high_enough = power(&judge, rate + margin, 4000).unwrap();
    assert!(high_enough.refuted <= error && high_enough.holds > 0.9, "{high_enough:?}");
    let between = power(&judge, rate, 4000).unwrap();
    assert!(between.undecided < 0.01, "{between:?}");
}

/// The interval must miss the true rate no more often than promised, although it is checked after each trial.
#[test]
fn interval_sequences_cover() {
    let (error, true_rate, runs) = (0.1, 0.85, 150);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
    let mut misses = 0;
    for _ in 0..runs {
        let mut sequence = RateSequence::new(error / 2.0, error / 2.0).unwrap();
        let mut tally = Tally::default();
        for trial in 1..=1000 {
            tally.add(rng.random_bool(true_rate));
            if trial % 40 == 0 {
                sequence.update(tally);
            }
        }
        misses += u32::from(!sequence.interval().contains(true_rate));
    }
    assert!(f64::from(misses) <= error * f64::from(runs), "{misses} of {runs}");
}
