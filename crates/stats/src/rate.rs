//! A success rate together with its failure rate, so that neither loses digits if it is tiny.

use crate::deviance::{binomial_deviance, excess};

/// The rates of success and failure, both strictly between 0 and 1. The smaller one is exact, because `1 − p` is a
/// double for a double `p ≥ ½`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rate {
    /// The probability of success.
    pub success: f64,
    /// The probability of failure, `1 − success`.
    pub failure: f64,
}

impl Rate {
    /// Creates the rate that is exactly the double `success`.
    pub fn new(success: f64) -> Rate {
        Rate { success, failure: 1.0 - success }
    }

    /// Creates the rate whose natural log-odds, `ln(p / (1 − p))`, are given. The smaller field is right to a few units
    /// in its last place.
    pub fn from_log_odds(log_odds: f64) -> Rate {
        let smaller = 1.0 / (1.0 + libm::exp(log_odds.abs()));
        if log_odds < 0.0 { Rate::new(smaller) } else { Rate::new(smaller).mirrored() }
    }

    /// Returns the rate of success. It is rounded down, unless `success` is the exact one of the two fields.
    pub fn round_down(self) -> f64 {
        if self.success > 0.5 { self.success.next_down() } else { self.success }
    }

    /// Returns the rate of success. It is rounded up, unless `success` is the exact one of the two fields.
    pub fn round_up(self) -> f64 {
        if self.success > 0.5 { self.success.next_up().min(1.0) } else { self.success }
    }

    /// Returns the rate with success and failure exchanged.
    pub fn mirrored(self) -> Rate {
        Rate { success: self.failure, failure: self.success }
    }

    /// Returns `successes − n·p`, where `n = successes + failures` and `p` is the rate of success. The counts may have
    /// fractions, provided that `n` is exact.
    pub fn excess(self, successes: f64, failures: f64) -> f64 {
        let trials = successes + failures;
        if self.success <= self.failure {
            excess(trials, successes, self.success)
        } else {
            -excess(trials, failures, self.failure)
        }
    }

    /// Returns `n · KL(successes/n ‖ p)`, where `n = successes + failures` and `p` is the rate of success. The counts
    /// need not be whole; `excess` is `successes − n·p`.
    pub fn deviance(self, successes: f64, failures: f64, excess: f64) -> f64 {
        if self.success <= self.failure {
            binomial_deviance(successes, failures, self.success, excess)
        } else {
            binomial_deviance(failures, successes, self.failure, -excess)
        }
    }
}
