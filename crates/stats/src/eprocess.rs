//! Evidence against a rate: the mixture e-process that every verdict and interval here comes from.
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
//! where `U` is the upper tail of a Beta distribution relative to `p₀^a (1−p₀)^b`. Against "at least p₀" success and
//! failure change places. No `r` serves everywhere: with `r = 100` alone a rate far from p₀ takes long, with `r = 1`
//! one near it does. The mixture costs at most ln 3 against the best of the three.
//!
//! # Guarantee
//!
//! Where the rate of each trial given the past is at most p₀, `e` is a non-negative supermartingale that starts at 1,
//! so by Ville's inequality the chance that it *ever* reaches 1/ε is at most ε, however often one looks. Looking only
//! now and then, or at batches, does no harm.
//!
//! Robbins, *Statistical methods related to the law of the iterated logarithm*, 1970; Howard, Ramdas, McAuliffe and
//! Sekhon, *Time-uniform, nonparametric, nonasymptotic confidence sequences*, 2021 (the one-sided beta-binomial
//! mixture).
//!
//! # Shape
//!
//! `ln e` is the logarithm of an integral of `exp(s·α + f·β)` with `α ≥ 0 ≥ β`, so it rises with each success, falls
//! with each failure, and is convex in `(s, f)`.

use crate::Tally;
use crate::error::check_rate;
use crate::incomplete_beta::BetaTail;
use crate::rate::Rate;

/// The prior trials that each component of the mixture is worth.
const CONCENTRATIONS: [f64; 3] = [1.0, 10.0, 100.0];

/// More than evaluation can be wrong by where little cancels: subtracted, so that no value is above the exact one.
const PADDING: f64 = 1e-11;

/// More than evaluation can be wrong by relative to the logarithm itself.
const RELATIVE_PADDING: f64 = 8e-15;

/// The natural logarithm of the e-value against "the true rate is at most `rate`", never above the exact value.
///
/// At least `ln(1/ε)` means: that rate is rejected at error ε, so "the rate is at least `rate`" holds. See the
/// [guarantee](crate#guarantee): one may look after every trial. The result is at most `4e-11 + 2e-14·|result|` below
/// the exact value for the double `rate`, up to 2^53 trials; it is NaN where the rate is not within (0, 1) or the tally
/// has more successes than trials.
///
/// ```
/// use ascertain_stats::{Tally, log_e_holds};
/// // Fifteen straight successes say "at least half" at an error of 0.0005; fourteen do not.
/// let threshold = (1.0 / 0.0005f64).ln();
/// assert!(log_e_holds(Tally::new(15, 15)?, 0.5) >= threshold);
/// assert!(log_e_holds(Tally::new(14, 14)?, 0.5) < threshold);
/// # Ok::<(), ascertain_stats::Error>(())
/// ```
pub fn log_e_holds(tally: Tally, rate: f64) -> f64 {
    log_e(tally, rate, Direction::Above)
}

/// The natural logarithm of the e-value against "the true rate is at least `rate`", never above the exact value.
///
/// The mirror image of [`log_e_holds`]: failures count for it, successes against it.
///
/// ```
/// use ascertain_stats::{Tally, log_e_refuted};
/// // Five failures in twenty trials are no "99 %".
/// assert!(log_e_refuted(Tally::new(20, 15)?, 0.99) > (1.0 / 0.001f64).ln());
/// # Ok::<(), ascertain_stats::Error>(())
/// ```
pub fn log_e_refuted(tally: Tally, rate: f64) -> f64 {
    log_e(tally, rate, Direction::Below)
}

fn log_e(tally: Tally, rate: f64, direction: Direction) -> f64 {
    if tally.checked().is_err() || check_rate(rate).is_err() {
        return f64::NAN;
    }
    let (favourable, against) = direction.counts(tally);
    Mixture::new(rate, direction).log_e(favourable as f64, against as f64)
}

/// The least logarithm of an e-value that rejects at `error`, rounded up.
pub(crate) fn log_threshold(error: f64) -> f64 {
    -libm::log(error) * (1.0 + f64::EPSILON)
}

/// On which side of a rate the true one is said to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Above it: successes are evidence.
    Above,
    /// Below it: failures are evidence.
    Below,
}

impl Direction {
    /// The outcomes for and against this direction.
    pub fn counts(self, tally: Tally) -> (u64, u64) {
        match self {
            Direction::Above => (tally.successes, tally.failures()),
            Direction::Below => (tally.failures(), tally.successes),
        }
    }
}

/// The mixture e-process in one direction, with what does not change while trials come in.
#[derive(Clone, Debug)]
pub(crate) struct Mixture {
    /// The null's rate of *favourable* outcomes.
    rate: Rate,
    /// `ln U` of each truncated prior.
    log_priors: [f64; 3],
}

impl Mixture {
    /// Evidence that the true rate of success lies in this direction of `rate`, which is within (0, 1).
    pub fn new(rate: f64, direction: Direction) -> Mixture {
        let rate = match direction {
            Direction::Above => Rate::new(rate),
            Direction::Below => Rate::new(rate).mirrored(),
        };
        Mixture::above(rate)
    }

    /// Evidence that the true rate of favourable outcomes is above `rate`.
    pub fn above(rate: Rate) -> Mixture {
        let log_priors = CONCENTRATIONS.map(|r| posterior(rate, r, 0.0, 0.0, 0.0).log_upper());
        Mixture { rate, log_priors }
    }

    /// The null's rate of favourable outcomes.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// `ln e`, never above the exact value. The counts need not be whole, but their sum must be a double.
    pub fn log_e(&self, favourable: f64, against: f64) -> f64 {
        let log_mean = log_mean_exp(self.log_components(favourable, against));
        log_mean - PADDING - RELATIVE_PADDING * log_mean.abs()
    }

    /// `ln e_r` for each component.
    fn log_components(&self, favourable: f64, against: f64) -> [f64; 3] {
        let excess = self.rate.excess(favourable, against);
        let mut components = self.log_priors;
        for (log_e, r) in components.iter_mut().zip(CONCENTRATIONS) {
            *log_e = posterior(self.rate, r, favourable, against, excess).log_upper() - *log_e;
        }
        components
    }
}

/// The Beta distribution that a component becomes. Centred on the rate, it has the data's own excess.
fn posterior(rate: Rate, r: f64, favourable: f64, against: f64, excess: f64) -> BetaTail {
    BetaTail { a: r * rate.success + favourable, b: r * rate.failure + against, rate, excess }
}

fn log_mean_exp(logs: [f64; 3]) -> f64 {
    let greatest = logs.into_iter().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = logs.into_iter().map(|log| libm::exp(log - greatest)).sum();
    greatest + libm::log(sum / 3.0)
}

/// The evidence that each trial is expected to add, `KL(true_rate ‖ rate)` in nats, where `0 ln 0 = 0`.
///
/// No test that is wrong with probability at most ε decides in fewer than about `ln(1/ε) / KL` trials (Wald); the
/// mixture here stays within 1.4 of it wherever it is 13 or more. NaN unless `rate` is within (0, 1) and `true_rate`
/// within [0, 1].
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
        let mixture = Mixture::new(0.5, Direction::Above);
        let soonest =
            |component: usize| (1..100).find(|&n| mixture.log_components(f64::from(n), 0.0)[component] >= threshold);
        assert_eq!(soonest(0), Some(13), "r = 1");
        assert_eq!(soonest(1), Some(20), "r = 10");
        let soonest = (1..100).find(|&n| mixture.log_e(f64::from(n), 0.0) >= threshold);
        assert_eq!(soonest, Some(15), "the mixture");
    }
}
