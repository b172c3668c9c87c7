//! Sequential Monte Carlo tests by betting. They decide whether a p-value is at most `α` if its exact value is unknown
//! and only samples can be drawn.
//!
//! The test computes a statistic of the observed data. Other data, such as a permutation of the observed data, are
//! equally likely under the null hypothesis. The statistic of such other data is called a *sample*. A sample that is at
//! least as extreme as the observed statistic is an *exceedance*. The probability that a sample is an exceedance is
//! `p`, the p-value.
//!
//! Under the null hypothesis `p` is itself uniform on (0, 1), or larger if there are ties. The outcomes are then a
//! mixture of coins over all `p`. The test bets that `p` is instead uniform on (0, c). After each sample, the wealth of
//! the bettor is the ratio of the two likelihoods. After `t` samples with `L` exceedances it is
//! ```text
//!          (1/c) ∫₀^c p^L (1−p)^(t−L) dp     P(Beta(L+1, t−L+1) ≤ c)     1 − B(L; t+1, c)
//! W(t,L) = ───────────────────────────── =  ─────────────────────── =  ────────────────
//!             ∫₀^1 p^L (1−p)^(t−L) dp                  c                        c
//! ```
//!
//! with `B` the binomial distribution function.
//!
//! Under the null hypothesis the wealth is not expected to grow: the next sample is an exceedance with probability at
//! least `(L+1)/(t+2)`, and an exceedance never increases the wealth. The probability that the wealth *ever* reaches
//! `1/α` is therefore at most `α`, however often you look. The wealth tends to `1/c` if `p < c` and to 0 if `p > c`,
//! which is why `c` must be slightly less than `α`.
//!
//! Fischer and Ramdas, *Sequential Monte Carlo testing by betting*, 2024; the bet is their binomial mixture strategy.

use crate::eprocess::log_threshold;
use crate::error::check_error;
use crate::incomplete_beta::BetaTail;
use crate::rate::Rate;
use crate::root::{Search, last_below_zero};
use crate::{Error, Tally};

/// The ratio `c/α`, where `c` is the greatest p-value on which the test bets, and `α` the level to decide. A ratio
/// closer to 1 can decide p-values closer to `α`, but decides those far below `α` later. With 0.9 and `α = 0.05`, a
/// p-value near 0 is decided after 50 samples without an exceedance. A p-value of 0.04 is eventually decided with
/// probability 0.99.
const BET: f64 = 0.9;

/// Limit on the bettor's wealth, as a share of `α`. The test ends as [futile](BettingDecision::Futile) if the wealth is
/// below this limit. Under the null hypothesis, a wealth below the limit would later reach `1/α` with probability at
/// most `α²/1000`. If `p` is half of `α`, one test in 10,000 ends as futile.
const FUTILE: f64 = 1e-3;

/// Absolute part of the error bound for the computed logarithm of the wealth. The relative part is
/// [`RELATIVE_PADDING`].
const PADDING: f64 = 4e-12;
/// Relative part of the error bound for the computed logarithm of the wealth. It is relative to the magnitudes of the
/// terms from which the logarithm is computed.
const RELATIVE_PADDING: f64 = 1e-14;

/// The result of a [`BettingTest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BettingDecision {
    /// The null hypothesis is rejected at `α`: the wealth has reached `1/α`.
    Rejected,
    /// The null hypothesis is not rejected. The wealth is so low that more samples would hardly change that.
    Futile,
}

/// A running test of a null hypothesis at `α`, from samples of its statistic.
///
/// # Guarantee
///
/// If the null hypothesis is true, the chance that it is ever rejected is at most `α`. For every `x`, the chance that
/// [`p_value`](Self::p_value) ever falls to `x` or below is at most `x`. Both bounds hold, however often you look and
/// whenever you stop. The data and the samples must be exchangeable under the null hypothesis, as random permutations
/// of the data are, and ties count as exceedances.
///
/// ```
/// use ascertain_stats::{BettingDecision, BettingTest};
/// let mut test = BettingTest::new(0.05)?;
/// let samples = (1..).find(|_| test.observe(false).is_some());
/// assert_eq!((samples, test.decision()), (Some(50), Some(BettingDecision::Rejected)));
/// assert!(test.p_value() <= 0.05);
/// # Ok::<(), ascertain_stats::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct BettingTest {
    alpha: f64,
    /// Number of samples, and of exceedances among them.
    tally: Tally,
    /// Smallest number of samples at which the test rejects, if no further exceedance occurs. The wealth then reaches
    /// `1/α`.
    reject_from: u64,
    /// Smallest number of samples at which the test is not futile, given the present number of exceedances. With fewer
    /// samples, the wealth is too low.
    futile_below: u64,
    /// The logarithm of the greatest wealth up to the last exceedance. Since then the wealth has only grown, so the
    /// greatest wealth so far is the larger of this wealth and the present one.
    log_peak: f64,
    decision: Option<BettingDecision>,
}

impl BettingTest {
    /// Creates a test that rejects a true null hypothesis with probability at most `alpha`.
    ///
    /// # Errors
    /// Returns [`Error::ErrorProbability`] if `alpha` is not strictly between 0 and 1.
    pub fn new(alpha: f64) -> Result<BettingTest, Error> {
        let alpha = check_error(alpha)?;
        let mut test = BettingTest {
            alpha,
            tally: Tally::default(),
            reject_from: 0,
            futile_below: 0,
            log_peak: 0.0,
            decision: None,
        };
        test.find_edges();
        Ok(test)
    }

    /// Counts one sample and returns the decision, or `None` as long as the test is undecided. A decision never
    /// changes.
    #[inline]
    pub fn observe(&mut self, exceeds: bool) -> Option<BettingDecision> {
        if exceeds {
            self.log_peak = self.log_peak.max(self.log_wealth());
        }
        self.tally.add(exceeds);
        if exceeds {
            self.find_edges();
        }
        if self.decision.is_none() {
            self.decision = match self.tally.trials {
                samples if samples >= self.reject_from => Some(BettingDecision::Rejected),
                samples if samples < self.futile_below => Some(BettingDecision::Futile),
                _ => None,
            };
        }
        self.decision
    }

    /// Returns the decision, or `None` as long as the test is undecided.
    pub fn decision(&self) -> Option<BettingDecision> {
        self.decision
    }

    /// Returns the number of samples and of exceedances, including those after the decision.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Returns the natural logarithm of the wealth, as [`betting_log_wealth`] does.
    pub fn log_wealth(&self) -> f64 {
        log_wealth(self.tally, self.alpha)
    }

    /// Returns the anytime-valid p-value: the reciprocal of the greatest wealth so far, at most 1 and rounded up.
    ///
    /// The wealth is at most `1/c`, so the p-value is never below 0.9 `α`. The bet answers whether `p ≤ α`, not how
    /// small `p` is.
    pub fn p_value(&self) -> f64 {
        let log_peak = self.log_peak.max(self.log_wealth());
        (libm::exp(-log_peak) * (1.0 + 4.0 * f64::EPSILON)).min(1.0)
    }

    /// Computes the limits `reject_from` and `futile_below` for the present number of exceedances. Both exist because
    /// the wealth grows with the number of samples.
    fn find_edges(&mut self) {
        let log_alpha = libm::log(self.alpha);
        self.reject_from = self.first_reaching(log_threshold(self.alpha), self.reject_from);
        self.futile_below = self.first_reaching(log_alpha + libm::log(FUTILE), self.futile_below);
    }

    /// Returns the smallest number of samples for which the logarithm of the wealth is at least `log_wanted`. The
    /// search starts near `before`, the result for one exceedance less.
    fn first_reaching(&self, log_wanted: f64, before: u64) -> u64 {
        let exceedances = self.tally.successes;
        let surplus = |samples: f64| {
            log_wealth(Tally { trials: samples as u64, successes: exceedances }, self.alpha) - log_wanted
        };
        let fewest = exceedances as f64;
        if surplus(fewest) >= 0.0 {
            return exceedances;
        }
        let between = 1.0 / (BET * self.alpha);
        let search = Search {
            low: fewest,
            value_at_low: f64::NAN,
            limit: Tally::MAX_TRIALS as f64,
            guess: before as f64 + between,
            give_or_take: between,
            step: 1.0,
        };
        last_below_zero(surplus, search) as u64 + 1
    }
}

/// Returns the natural logarithm of a [`BettingTest`]'s wealth after a tally of samples and exceedances. The result is
/// never above the exact value.
///
/// # Errors
/// Returns [`Error::ErrorProbability`] and the errors of [`Tally::new`].
///
/// ```
/// use ascertain_stats::{Tally, betting_log_wealth};
/// // No exceedance among 50: (1 − 0.955^51) / 0.045.
/// let wealth = betting_log_wealth(Tally::new(50, 0)?, 0.05)?.exp();
/// assert!((wealth - (1.0 - 0.955f64.powi(51)) / 0.045).abs() < 1e-9);
/// # Ok::<(), ascertain_stats::Error>(())
/// ```
pub fn betting_log_wealth(tally: Tally, alpha: f64) -> Result<f64, Error> {
    Ok(log_wealth(tally.checked()?, check_error(alpha)?))
}

fn log_wealth(tally: Tally, alpha: f64) -> f64 {
    let rate = Rate::new(BET * alpha);
    let (a, b) = (tally.successes as f64 + 1.0, tally.failures() as f64 + 1.0);
    let tail = BetaTail { a, b, rate, excess: rate.excess(a, b) };
    let (log_below, log_whole) = (tail.mirrored().log_upper(), tail.log_whole());
    let log_wealth = log_below - log_whole - libm::log(rate.success);
    log_wealth - PADDING - RELATIVE_PADDING * (log_below.abs() + log_whole.abs())
}
