//! A success rate together with its failure rate, so that neither loses digits when it is tiny.

use crate::deviance::{binomial_deviance, excess};

/// A rate of success strictly between 0 and 1. The smaller field is exact: `1 − p` is a double for a double `p ≥ ½`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rate {
    /// The probability of success.
    pub success: f64,
    /// The probability of failure, `1 − success`.
    pub failure: f64,
}

impl Rate {
    /// The rate that is exactly the double `success`.
    pub fn new(success: f64) -> Rate {
        Rate { success, failure: 1.0 - success }
    }

    /// The rate with this natural log-odds, to a few units in the last place of the smaller field.
    pub fn from_log_odds(log_odds: f64) -> Rate {
        let smaller = 1.0 / (1.0 + libm::exp(log_odds.abs()));
        if log_odds < 0.0 { Rate::new(smaller) } else { Rate::new(smaller).mirrored() }
    }

    /// The rate of success, rounded down where it is not the exact field.
    pub fn round_down(self) -> f64 {
        if self.success > 0.5 { self.success.next_down() } else { self.success }
    }

    /// The rate of success, rounded up where it is not the exact field.
    pub fn round_up(self) -> f64 {
        if self.success > 0.5 { self.success.next_up().min(1.0) } else { self.success }
    }

    /// The same rate where success and failure change names.
    pub fn mirrored(self) -> Rate {
        Rate { success: self.failure, failure: self.success }
    }

    /// `successes − n·p` of `n = successes + failures`, which are counts in steps such that `n` is exact.
    pub fn excess(self, successes: f64, failures: f64) -> f64 {
        let trials = successes + failures;
        if self.success <= self.failure {
            excess(trials, successes, self.success)
        } else {
            -excess(trials, failures, self.failure)
        }
    }

    /// `n · KL(successes/n ‖ p)` for counts that need not be whole; `excess` is `successes − n·p`.
    pub fn deviance(self, successes: f64, failures: f64, excess: f64) -> f64 {
        if self.success <= self.failure {
            binomial_deviance(successes, failures, self.success, excess)
        } else {
            binomial_deviance(failures, successes, self.failure, -excess)
        }
    }
}
