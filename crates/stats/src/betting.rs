//! Sequential Monte Carlo tests by betting: is a p-value that can only be sampled at most `α`?
//!
//! A statistic of the data as they are is compared with the same statistic of data that the null hypothesis holds for
//! just as likely, such as a permutation of them. Whether a sample is at least as extreme as the data (an *exceedance*)
//! is a trial that succeeds at the rate `p`, the p-value. Under the null hypothesis `p` itself is uniform on (0, 1), or
//! larger where there are ties. So the outcomes seen there are a mixture of coins over all `p`, and the bet that `p` is
//! uniform on (0, c) instead multiplies its wealth by the ratio of the two likelihoods. After `t` samples with `L`
//! exceedances that is
//!
//! ```text
//!          (1/c) ∫₀^c p^L (1−p)^(t−L) dp     P(Beta(L+1, t−L+1) ≤ c)     1 − B(L; t+1, c)
//! W(t,L) = ───────────────────────────── =  ─────────────────────── =  ────────────────
//!             ∫₀^1 p^L (1−p)^(t−L) dp                  c                        c
//! ```
//!
//! with `B` the binomial distribution function. Under the null hypothesis the wealth can't be expected to grow (the
//! next sample exceeds with probability at least `(L+1)/(t+2)`, and an exceedance never gains), so that it *ever*
//! reaches `1/α` with probability at most `α`, however often one looks. It tends to `1/c` where `p < c` and to 0 where
//! `p > c`, which is why `c` has to be a little less than `α`.
//!
//! Fischer and Ramdas, *Sequential Monte Carlo testing by betting*, 2024; the bet is their binomial mixture strategy.

use crate::eprocess::log_threshold;
use crate::error::check_error;
use crate::incomplete_beta::BetaTail;
use crate::rate::Rate;
use crate::root::{Search, last_below_zero};
use crate::{Error, Tally};

/// `c/α`: nearer to 1 decides nearer to `α`, and later far below it. With 0.9 a p-value near 0 is decided at `α = 0.05`
/// after 50 samples without an exceedance, and one of 0.04 in the end with probability 0.99.
const BET: f64 = 0.9;

/// Below this share of `α` the wealth is no longer sensible to go on with: under the null hypothesis it comes back with
/// probability `α²/1000` at most, and where `p` is half of `α` one test in 10,000 ends here.
const FUTILE: f64 = 1e-3;

/// More than the error of a wealth's logarithm, and more than that in proportion to its parts.
const PADDING: f64 = 4e-12;
const RELATIVE_PADDING: f64 = 1e-14;

/// What a [`BettingTest`] came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BettingDecision {
    /// The null hypothesis is rejected at `α`: the wealth has reached `1/α`.
    Rejected,
    /// It is not, and going on would hardly change that: the wealth is next to nothing.
    Futile,
}

/// A running test of a null hypothesis at `α` by samples of its statistic.
///
/// # Guarantee
///
/// If the null hypothesis is true, it is ever rejected with probability at most `α`, and [`p_value`](Self::p_value) is
/// ever at most `x` with probability at most `x`, whoever looks and whenever they stop. The data and the samples must
/// be exchangeable under the null hypothesis, as random permutations of the data are, and ties count as exceedances.
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
    /// Samples, and exceedances among them.
    tally: Tally,
    /// With as many exceedances as now, the wealth suffices to reject from so many samples on.
    reject_from: u64,
    /// And with fewer samples than this it is futile.
    futile_below: u64,
    /// The greatest wealth before the last exceedance, as a logarithm. Between exceedances the wealth only grows.
    log_peak: f64,
    decision: Option<BettingDecision>,
}

impl BettingTest {
    /// A test that rejects wrongly with probability at most `alpha`.
    ///
    /// # Errors
    /// [`Error::ErrorProbability`], where it is not strictly between 0 and 1.
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

    /// Counts one sample. The decision so far, which latches.
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

    /// The decision, once there is one.
    pub fn decision(&self) -> Option<BettingDecision> {
        self.decision
    }

    /// Samples so far, and the exceedances among them, also after the decision.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// The natural logarithm of the wealth, as [`betting_log_wealth`].
    pub fn log_wealth(&self) -> f64 {
        log_wealth(self.tally, self.alpha)
    }

    /// The anytime-valid p-value: one over the greatest wealth so far, at most 1 and rounded up.
    ///
    /// As the wealth is at most `1/c`, it is never below 0.9 `α`: this bet answers whether `p ≤ α`, not how small `p`
    /// is.
    pub fn p_value(&self) -> f64 {
        let log_peak = self.log_peak.max(self.log_wealth());
        (libm::exp(-log_peak) * (1.0 + 4.0 * f64::EPSILON)).min(1.0)
    }

    /// Where the wealth, which grows with the samples, suffices and where it is futile at this number of exceedances.
    fn find_edges(&mut self) {
        let log_alpha = libm::log(self.alpha);
        self.reject_from = self.first_reaching(log_threshold(self.alpha), self.reject_from);
        self.futile_below = self.first_reaching(log_alpha + libm::log(FUTILE), self.futile_below);
    }

    /// The fewest samples with which the wealth is at least so much; about `before` with one exceedance less.
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

/// The natural logarithm of a [`BettingTest`]'s wealth after a tally of samples and exceedances, never above the exact
/// value.
///
/// # Errors
/// [`Error::ErrorProbability`] and those of [`Tally::new`].
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
