//! Tests of the sequential tests by betting. However often you look, the chance of a false rejection is at most α. The
//! tests compute this chance exactly, by dynamic programming over samples and exceedances. Exact p-values far from α
//! are decided soon. The confidence sequence method stops after the number of samples that its article gives.

use ascertain_stats::{
    BettingDecision, BettingTest, Error, Tally, Verdict, betting_log_wealth, csm_interval, csm_verdict, log_level,
};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use statrs::distribution::{Binomial, DiscreteCDF};

/// The probabilities of the results of a test after a limited number of samples.
#[derive(Debug, Default)]
struct Fate {
    rejected: f64,
    futile: f64,
    undecided: f64,
    expected_samples: f64,
}

/// Computes the probabilities of the results of a test, by dynamic programming over the tallies that are still
/// undecided. `rate` is the chance that the next sample is an exceedance, given the tally.
fn fate(alpha: f64, samples: u64, rate: impl Fn(Tally) -> f64) -> Fate {
    let mut fate = Fate::default();
    // The numbers of exceedances at which the test is still undecided, in ascending order, each with its probability.
    let mut open: Vec<(u64, f64)> = vec![(0, 1.0)];
    let mut edges = Edges { alpha, reject_from: Vec::new(), futile_below: Vec::new() };
    for trials in 1..=samples {
        fate.expected_samples += open.iter().map(|(_, probability)| probability).sum::<f64>();
        let mut next: Vec<(u64, f64)> = Vec::new();
        for (successes, probability) in open {
            let rate = rate(Tally { trials: trials - 1, successes });
            for (successes, probability) in
                [(successes, probability * (1.0 - rate)), (successes + 1, probability * rate)]
            {
                match edges.decision(trials, successes) {
                    Some(BettingDecision::Rejected) => fate.rejected += probability,
                    Some(BettingDecision::Futile) => fate.futile += probability,
                    None => match next.last_mut() {
                        Some((last, sum)) if *last == successes => *sum += probability,
                        _ => next.push((successes, probability)),
                    },
                }
            }
        }
        open = next;
    }
    fate.undecided = open.iter().map(|(_, probability)| probability).sum();
    fate
}

/// The numbers of samples at which the wealth reaches 1/α and α/1000, computed from the wealth alone.
struct Edges {
    alpha: f64,
    reject_from: Vec<u64>,
    futile_below: Vec<u64>,
}

impl Edges {
    fn decision(&mut self, trials: u64, successes: u64) -> Option<BettingDecision> {
        while self.reject_from.len() as u64 <= successes {
            let count = self.reject_from.len() as u64;
            let first = |from: u64, wanted: f64| {
                (from.max(count)..).find(|&t| log_wealth(t, count, self.alpha) >= wanted).unwrap()
            };
            let reject = first(self.reject_from.last().copied().unwrap_or(0), -self.alpha.ln());
            let futile = first(self.futile_below.last().copied().unwrap_or(0), (self.alpha * 1e-3).ln());
            self.reject_from.push(reject);
            self.futile_below.push(futile);
        }
        if trials >= self.reject_from[successes as usize] {
            return Some(BettingDecision::Rejected);
        }
        (trials < self.futile_below[successes as usize]).then_some(BettingDecision::Futile)
    }
}

fn log_wealth(trials: u64, successes: u64, alpha: f64) -> f64 {
    betting_log_wealth(Tally { trials, successes }, alpha).unwrap()
}

/// Under the null hypothesis the rank of the data among the samples is uniform (Pólya's urn).
#[test]
fn a_true_null_is_rejected_with_at_most_alpha() {
    for (alpha, samples) in [(0.05, 4000), (0.2, 2000), (0.01, 8000)] {
        let fate = fate(alpha, samples, |tally| (tally.successes as f64 + 1.0) / (tally.trials as f64 + 2.0));
        assert!(fate.rejected <= alpha, "{fate:?} at {alpha}");
        // The bound is nearly reached. The difference is due to p-values between 0.9 α and α, and to tests that are
        // still undecided.
        assert!(fate.rejected > 0.9 * alpha, "{fate:?} at {alpha}");
        assert!(fate.undecided < alpha, "{fate:?} at {alpha}");
    }
}

#[test]
fn true_p_values_are_decided_soon() {
    let decided = |p: f64, samples| fate(0.05, samples, |_| p);
    let tiny = decided(1e-4, 1000);
    assert!(tiny.expected_samples < 51.0 && tiny.rejected > 0.999_99, "{tiny:?}");
    let small = decided(0.02, 3000);
    assert!(small.expected_samples < 130.0 && small.rejected > 0.9999, "{small:?}");
    let large = decided(0.5, 1000);
    assert!(large.expected_samples < 12.0 && large.futile > 0.999_999, "{large:?}");
    // A rejection of a p-value above α is wrong, and must be rare.
    assert!(decided(0.1, 3000).rejected < 0.01);
}

/// The running test must decide when the wealth alone does, and its p-value must be one over the greatest wealth.
#[test]
fn the_running_test_agrees_with_the_wealth() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(11);
    for (alpha, p) in [(0.05, 0.03), (0.05, 0.06), (0.01, 0.004), (0.5, 0.4), (0.9, 0.7)] {
        let mut edges = Edges { alpha, reject_from: Vec::new(), futile_below: Vec::new() };
        let mut test = BettingTest::new(alpha).unwrap();
        let mut peak = 0.0_f64;
        let mut decision = None;
        for _ in 0..3000 {
            let exceeds = random.random_bool(p);
            let verdict = test.observe(exceeds);
            let Tally { trials, successes } = test.tally();
            decision = decision.or_else(|| edges.decision(trials, successes));
            assert_eq!(verdict, decision, "{alpha} {p}: {successes} of {trials}");
            peak = peak.max(test.log_wealth());
            let p_value = test.p_value();
            assert!(p_value >= (-peak).exp() && p_value <= (-peak).exp() * (1.0 + 1e-14), "{p_value} {peak}");
            assert!(p_value >= 0.9 * alpha);
        }
    }
}

/// Compares the wealth with another implementation of the binomial distribution. The wealth must be below the exact
/// value.
#[test]
fn the_wealth_is_the_binomial_tail_over_c() {
    for alpha in [0.05, 0.01, 0.5] {
        let c = 0.9 * alpha;
        for trials in [0_u64, 1, 7, 50, 300, 2000] {
            for successes in [0_u64, 1, 2, 5, 20, 100] {
                if successes > trials {
                    continue;
                }
                let exact = (Binomial::new(c, trials + 1).unwrap().sf(successes) / c).ln();
                let wealth = log_wealth(trials, successes, alpha);
                let is_near = (wealth - exact).abs() < 1e-8 * (1.0 + exact.abs());
                // Values so small that `statrs` returns 0 are not compared.
                assert!(is_near || exact < -25.0, "{successes} of {trials} at {alpha}: {wealth} {exact}");
            }
        }
    }
    assert!(log_wealth(0, 0, 0.05).abs() < 1e-10, "the wealth is still 1");
}

#[test]
fn arguments_that_say_nothing_are_refused() {
    for alpha in [0.0, 1.0, -0.1, f64::NAN] {
        assert!(matches!(BettingTest::new(alpha), Err(Error::ErrorProbability { .. })), "{alpha}");
    }
    assert!(betting_log_wealth(Tally { trials: 1, successes: 2 }, 0.05).is_err());
}

/// The article on the confidence sequence method compares fill rates with the thresholds 0.005 and 0.01 and an error of
/// 1e-9. Its program spends a third of the error on each threshold, and a third on the interval. It stopped after 2,967
/// reshuffles, none of which was an exceedance.
#[test]
fn the_confidence_sequence_method_stops_after_the_sources_2967_reshuffles() {
    let share = 1e-9 / 3.0;
    let stops = |rate: f64| {
        (1..)
            .find(|&trials| csm_verdict(Tally { trials, successes: 0 }, rate, share).unwrap() == Some(Verdict::Refuted))
    };
    assert_eq!(stops(0.01), Some(2967));
    assert!(stops(0.005) > Some(2967), "the lower threshold did not stop it");
    assert!(log_level(Tally { trials: 2966, successes: 0 }, 0.01) > share.ln());
}

/// The verdict must reject exactly the rates outside the interval.
#[test]
fn csm_verdict_and_interval_are_one_event() {
    for (trials, successes) in
        [(0, 0), (1, 0), (1, 1), (7, 3), (100, 0), (100, 1), (2967, 0), (5000, 260), (4000, 3972), (300, 300)]
    {
        let tally = Tally { trials, successes };
        for error in [0.05, 0.001, 1e-9 / 3.0] {
            let interval = csm_interval(tally, error).unwrap();
            let share = successes as f64 / trials.max(1) as f64;
            assert!(interval.contains(share), "{tally:?} {interval:?}");
            for (end, outward, verdict) in
                [(interval.low, -1e-9, Verdict::Holds), (interval.high, 1e-9, Verdict::Refuted)]
            {
                // 0 and 1 are not bounds, and near 1 a double is too coarse to test a rate next to the end.
                if end == 0.0 || end > 0.999_999 {
                    continue;
                }
                let step = outward * end.min(1.0 - end);
                let beyond = end + step;
                assert_eq!(csm_verdict(tally, beyond, error).unwrap(), Some(verdict), "{tally:?} {error} {beyond}");
                let within = end - step;
                assert_eq!(csm_verdict(tally, within, error).unwrap(), None, "{tally:?} {error} {within}");
            }
        }
    }
    assert!(csm_interval(Tally { trials: 1, successes: 2 }, 0.05).is_err());
    assert!(csm_interval(Tally::default(), 1.0).is_err());
}
