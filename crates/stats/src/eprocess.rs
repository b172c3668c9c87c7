//! Evidence against a rate: the mixture e-process behind every verdict and interval of this crate.
//!
//! # Formula
//!
//! Against "the true rate is at most p₀", after `s` successes and `f` failures,
//!
//! ```text
//! e_r = ∫ (p/p₀)^s ((1−p)/(1−p₀))^f π_r(p) dp,     π_r = Beta(r·p₀, r·(1−p₀)) truncated to [p₀, 1]
//!     = U(r·p₀ + s, r·(1−p₀) + f, p₀) / U(r·p₀, r·(1−p₀), p₀)
//! e   = (e_1 + e_10 + e_100) / 3
//! ```
//!
//! where `U` is the upper tail of a Beta distribution relative to `p₀^a (1−p₀)^b`. For the e-value against "at least
//! p₀", success and failure change places. No single `r` is good for every true rate. With `r = 100` alone, rejecting
//! p₀ takes long if the true rate is far from p₀. With `r = 1` alone, it takes long if the true rate is near p₀. The
//! mixture costs at most ln 3 compared with the best of the three.
//!
//! # Guarantee
//!
//! If the rate of each trial, given the past, is at most p₀, `e` is a non-negative supermartingale that starts at 1. By
//! Ville's inequality the chance that it *ever* reaches 1/ε is at most ε, however often you look. Looking only now and
//! then, or at batches, is also valid.
//!
//! Robbins, *Statistical methods related to the law of the iterated logarithm*, 1970; Howard, Ramdas, McAuliffe and
//! Sekhon, *Time-uniform, nonparametric, nonasymptotic confidence sequences*, 2021 (the one-sided beta-binomial
//! mixture).
//!
//! # Shape
//!
//! `ln e` is the logarithm of an integral of `exp(s·α + f·β)` with `α ≥ 0 ≥ β`. It therefore rises with each success,
//! falls with each failure, and is convex in `(s, f)`.

use crate::error::check_rate;
use crate::incomplete_beta::BetaTail;
use crate::rate::Rate;
use crate::{Tally, Verdict};

/// The values of `r`, one for each component of the mixture: the number of trials that the component's prior is worth.
const CONCENTRATIONS: [f64; 3] = [1.0, 10.0, 100.0];

/// Bound on the absolute error of the computed `ln e`. It is subtracted from each result, so that no result is above
/// the exact value.
const PADDING: f64 = 1e-11;

/// Bound on the error of the computed `ln e`, relative to its magnitude. It is subtracted like [`PADDING`].
const RELATIVE_PADDING: f64 = 8e-15;

/// Returns the natural logarithm of the e-value against "the true rate is at most `rate`", never above the exact value.
///
/// If the result is at least `ln(1/ε)`, that rate is rejected at error ε, so "the rate is at least `rate`" holds. See
/// the [guarantee](crate#guarantee): you may look after every trial. The result is at most `4e-11 + 2e-14·|result|`
/// below the exact value for the double `rate`, up to 2^53 trials. It is NaN if the rate is not within (0, 1), or if
/// the tally has more successes than trials.
///
/// ```
/// use ascertain_stats::{Tally, log_e_holds};
/// // Fifteen straight successes prove "at least half" at an error of 0.0005; fourteen do not.
/// let threshold = (1.0 / 0.0005f64).ln();
/// assert!(log_e_holds(Tally::new(15, 15)?, 0.5) >= threshold);
/// assert!(log_e_holds(Tally::new(14, 14)?, 0.5) < threshold);
/// # Ok::<(), ascertain_stats::Error>(())
/// ```
pub fn log_e_holds(tally: Tally, rate: f64) -> f64 {
    log_e(tally, rate, Verdict::Holds)
}

/// Returns the natural logarithm of the e-value against "the true rate is at least `rate`", never above the exact
/// value.
///
/// It is the mirror image of [`log_e_holds`]: failures raise it, successes lower it.
///
/// ```
/// use ascertain_stats::{Tally, log_e_refuted};
/// // Five failures in twenty trials refute "99 %".
/// assert!(log_e_refuted(Tally::new(20, 15)?, 0.99) > (1.0 / 0.001f64).ln());
/// # Ok::<(), ascertain_stats::Error>(())
/// ```
pub fn log_e_refuted(tally: Tally, rate: f64) -> f64 {
    log_e(tally, rate, Verdict::Refuted)
}

fn log_e(tally: Tally, rate: f64, verdict: Verdict) -> f64 {
    if tally.checked().is_err() || check_rate(rate).is_err() {
        return f64::NAN;
    }
    let (favourable, against) = verdict.counts(tally);
    Mixture::new(rate, verdict).log_e(favourable as f64, against as f64)
}

/// Returns the smallest `ln e` that rejects at this error, `ln(1/error)` rounded up.
pub(crate) fn log_threshold(error: f64) -> f64 {
    -libm::log(error) * (1.0 + f64::EPSILON)
}

/// The e-process against a rate in one direction, a mixture of three components. It holds the values that are the same
/// for all tallies.
#[derive(Clone, Debug)]
pub(crate) struct Mixture {
    /// The rate of *favourable* outcomes under the null hypothesis.
    rate: Rate,
    /// For each component, the logarithm `ln U` of its prior's scaled upper tail. The prior is truncated to this tail.
    log_priors: [f64; 3],
}

impl Mixture {
    /// Creates the e-process that gives this verdict on "the true rate is at least `rate`". `rate` is within (0, 1).
    pub fn new(rate: f64, verdict: Verdict) -> Mixture {
        let rate = match verdict {
            Verdict::Holds => Rate::new(rate),
            Verdict::Refuted => Rate::new(rate).mirrored(),
        };
        Mixture::above(rate)
    }

    /// Creates the e-process against "the true rate of favourable outcomes is at most `rate`".
    pub fn above(rate: Rate) -> Mixture {
        let log_priors = CONCENTRATIONS.map(|r| posterior(rate, r, 0.0, 0.0, 0.0).log_upper());
        Mixture { rate, log_priors }
    }

    /// Returns the rate of favourable outcomes under the null hypothesis.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Returns `ln e` after these counts of outcomes, never above the exact value. The counts may have fractions, but
    /// their sum must be exact as a double.
    pub fn log_e(&self, favourable: f64, against: f64) -> f64 {
        let log_mean = log_mean_exp(self.log_components(favourable, against));
        log_mean - PADDING - RELATIVE_PADDING * log_mean.abs()
    }

    /// Returns, for each component of the mixture, the logarithm of the e-value that it alone would give.
    fn log_components(&self, favourable: f64, against: f64) -> [f64; 3] {
        let excess = self.rate.excess(favourable, against);
        let mut components = self.log_priors;
        for (log_e, r) in components.iter_mut().zip(CONCENTRATIONS) {
            *log_e = posterior(self.rate, r, favourable, against, excess).log_upper() - *log_e;
        }
        components
    }
}

/// Returns the Beta posterior of the mixture's component `r` after these counts. `excess` is the number of favourable
/// outcomes beyond `n·rate`. The prior of this component has its mean at `rate`, so the posterior has the same excess.
fn posterior(rate: Rate, r: f64, favourable: f64, against: f64, excess: f64) -> BetaTail {
    BetaTail { a: r * rate.success + favourable, b: r * rate.failure + against, rate, excess }
}

fn log_mean_exp(logs: [f64; 3]) -> f64 {
    let greatest = logs.into_iter().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = logs.into_iter().map(|log| libm::exp(log - greatest)).sum();
    greatest + libm::log(sum / 3.0)
}

/// Returns the expected growth of `ln e` per trial, `KL(true_rate ‖ rate)` in nats, where `0 ln 0 = 0`.
///
/// No test that is wrong with probability at most ε decides in fewer than about `ln(1/ε) / KL` trials (Wald). If this
/// number is at least 13, the mixture here needs at most 1.4 times as many. The result is NaN unless `rate` is within
/// (0, 1) and `true_rate` within [0, 1].
///
/// ```
/// use ascertain_stats::expected_growth;
/// assert_eq!(expected_growth(0.98, 0.98), 0.0);
/// let trials = (1.0 / 0.05f64).ln() / expected_growth(0.98, 0.995);
/// assert!((364.0..367.0).contains(&trials));
/// ```
pub fn expected_growth(rate: f64, true_rate: f64) -> f64 {
    if check_rate(rate).is_err() || !(0.0..=1.0).contains(&true_rate) {
        return f64::NAN;
    }
    Rate::new(rate).deviance(true_rate, 1.0 - true_rate, true_rate - rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn straight_successes_to_say_at_least_half() {
        let threshold = log_threshold(0.0005);
        let mixture = Mixture::new(0.5, Verdict::Holds);
        let soonest =
            |component: usize| (1..100).find(|&n| mixture.log_components(f64::from(n), 0.0)[component] >= threshold);
        assert_eq!(soonest(0), Some(13), "r = 1");
        assert_eq!(soonest(1), Some(20), "r = 10");
        let soonest = (1..100).find(|&n| mixture.log_e(f64::from(n), 0.0) >= threshold);
        assert_eq!(soonest, Some(15), "the mixture");
    }
}
