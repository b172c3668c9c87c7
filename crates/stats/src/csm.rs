//! The confidence sequence method: Robbins' criterion with safe rounding, and its confidence sequence.

use crate::deviance::{excess, log_binomial};
use crate::double_double::DoubleDouble;
use crate::error::{check_error, check_rate};
use crate::rate::Rate;
use crate::{Error, Interval, Tally, Verdict};

/// Largest number of trials for which [`log_level`] is computed as a sum of logarithms with directed rounding. With
/// more trials the terms of this sum cancel too much.
const DIRECT_UP_TO: u64 = 1_000_000;

/// A lower bound of ln √(2π), 0.918938533204672741….
const LN_SQRT_TAU_DOWN: f64 = 0.918_938_533_204_672_6;

/// Relative padding that moves [`log_level`] in the deviance form to the safe side. It is twice the error that
/// [`log_binomial`] allows for.
const PADDING: f64 = 8e-15;

/// Returns the level of Robbins' criterion, `ln[C(n,s) p^s (1−p)^(n−s) (n+1)]`. The result is never below the exact
/// value.
///
/// `tally` has `n` trials and `s` successes; `rate` is `p`, which is exactly the value of the double. The result is NaN
/// if the rate is not within (0, 1), or if the tally has more successes than trials or more than 2^53 trials.
///
/// If each trial succeeds with probability `p`, given the past, the chance that the level ever falls to `ln ε` is at
/// most `ε`, however often you look. Such a low level therefore rejects the rate `p`. The true rate is then on the same
/// side of `p` as the observed rate, except with a chance of `ε`. At `s = n p` the level is never below 0.
///
/// Sources:
///
/// - The criterion: Robbins, *Statistical Methods Related to the Law of the Iterated Logarithm*, 1970.
/// - The bound for all looks at once: Lai, *On Confidence Sequences*, 1976.
/// - The conclusion about the side of `p`: Ding, Gandy and Hahn, *A simple method for implementing Monte Carlo tests*,
///   2020.
///
/// Up to 10^6 trials the function uses Robbins' two bounds of the factorial, each rounded in the safe direction, and a
/// compensated summation that rounds up. With at least two successes and two failures, the bounds make the result too
/// high by less than `1/(144 s²) + 1/(144 (n−s)²)`. Rounding adds 2e-15 of the summed magnitudes.
///
/// Beyond 10^6 trials it uses Loader's deviance form ([`log_binomial`]), padded by its error bound. If the exact value
/// is above -10^7, the result is at most 1e-6 too high. Otherwise it is too high by at most 2e-14 of the exact value,
/// which is close to the precision of a double.
///
/// ```
/// use ascertain_stats::{Tally, log_level};
/// let level = log_level(Tally { trials: 4000, successes: 3972 }, 0.98);
/// assert_eq!(level, -17.238559826956475); // exactly it is -17.2385685…
/// ```
pub fn log_level(tally: Tally, rate: f64) -> f64 {
    if tally.checked().is_err() || check_rate(rate).is_err() {
        return f64::NAN;
    }
    match tally.trials {
        0 => 0.0,
        1..=DIRECT_UP_TO => direct_log_level(tally, rate),
        _ => padded_log_level(tally, rate),
    }
}

/// Returns the verdict of the confidence sequence method on "the rate is at least `rate`", if the tally allows one.
///
/// There is a verdict if [`log_level`] is at most `ln error`: *holds* if the observed rate is above `rate`, *refuted*
/// if it is below. A caller that looks after every trial and keeps the first verdict is wrong with probability at most
/// `error`. The function is stateless, and for a later tally the level may be above `ln error` again. The caller must
/// therefore keep the first verdict.
///
/// # Errors
///
/// Fails for a rate or an error outside (0, 1), and for more successes than trials.
///
/// ```
/// use ascertain_stats::{Tally, Verdict, csm_verdict};
/// let verdict = csm_verdict(Tally { trials: 4000, successes: 3972 }, 0.98, 0.001)?;
/// assert_eq!(verdict, Some(Verdict::Holds));
/// # Ok::<(), ascertain_stats::Error>(())
/// ```
pub fn csm_verdict(tally: Tally, rate: f64, error: f64) -> Result<Option<Verdict>, Error> {
    tally.checked()?;
    check_rate(rate)?;
    check_error(error)?;
    if log_level(tally, rate) > down(libm::log(error)) {
        return Ok(None);
    }
    let above = excess(tally.trials as f64, tally.successes as f64, rate) > 0.0;
    Ok(Some(if above { Verdict::Holds } else { Verdict::Refuted }))
}

/// Returns the level of Robbins' criterion as the sum of its logarithms, with every step rounded up.
fn direct_log_level(tally: Tally, rate: f64) -> f64 {
    let failures = tally.trials - tally.successes;
    let mut sum = SumUp::default();
    sum.add(up(libm::log((tally.trials + 1) as f64)));
    sum.add(log_choose_up(tally.trials, tally.successes));
    if tally.successes > 0 {
        sum.add((tally.successes as f64 * up(libm::log(rate))).next_up());
    }
    if failures > 0 {
        sum.add((failures as f64 * up(libm::log1p(-rate))).next_up());
    }
    sum.total()
}

/// Returns `ln C(n,s)` or slightly more, by Robbins' bounds: with `S(k) = ln√(2π) + (k+½) ln k − k`, `S(k) + 1/(12k+1)
/// < ln k! < S(k) + 1/(12k)`.
fn log_choose_up(trials: u64, successes: u64) -> f64 {
    let failures = trials - successes;
    match successes.min(failures) {
        0 => return 0.0,
        1 => return up(libm::log(trials as f64)),
        _ => {}
    }
    let [n, s, f] = [trials, successes, failures].map(|count| count as f64);
    let mut sum = SumUp::default();
    sum.add(((n + 0.5) * up(libm::log(n))).next_up());
    sum.add(-LN_SQRT_TAU_DOWN);
    sum.add((-(s + 0.5) * down(libm::log(s))).next_up());
    sum.add((-(f + 0.5) * down(libm::log(f))).next_up());
    sum.add((1.0 / (12.0 * n)).next_up());
    sum.add((-1.0 / (12.0 * s + 1.0)).next_up());
    sum.add((-1.0 / (12.0 * f + 1.0)).next_up());
    sum.total()
}

/// Returns the level of Robbins' criterion in the deviance form, plus the bound of its error. The constant part of the
/// bound covers the logarithm of the trials and the additions.
fn padded_log_level(tally: Tally, rate: f64) -> f64 {
    let log_probability = log_binomial(tally.trials as f64, tally.successes as f64, rate);
    log_probability + libm::log((tally.trials + 1) as f64) + PADDING * (4.0 + log_probability.abs())
}

/// Returns an upper bound of a logarithm from its computed value, by adding four units in the last place. Libraries
/// promise an error of at most three units.
fn up(logarithm: f64) -> f64 {
    (0..4).fold(logarithm, |x, _| x.next_up())
}

/// Returns a lower bound of a logarithm from its computed value; see [`up`].
fn down(logarithm: f64) -> f64 {
    -up(-logarithm)
}

/// A running sum by Kahan's method, rounded up. Only the addition of the compensation to the next term is inexact, so
/// only that addition needs a direction of rounding (Shewchuk, *Adaptive Precision Floating-Point Arithmetic*, 1997).
#[derive(Default)]
struct SumUp {
    sum: f64,
    compensation: f64,
}

impl SumUp {
    fn add(&mut self, term: f64) {
        let term = add_up(term, self.compensation);
        let (large, small) = if self.sum.abs() >= term.abs() { (self.sum, term) } else { (term, self.sum) };
        self.sum = large + small;
        self.compensation = small - (self.sum - large);
    }

    fn total(self) -> f64 {
        add_up(self.sum, self.compensation)
    }
}

/// Returns the smallest double that is at least `a + b`. The exact rounding error, by Knuth's two-sum, shows whether
/// the plain addition rounded down.
fn add_up(a: f64, b: f64) -> f64 {
    let DoubleDouble { high: sum, low: lost } = DoubleDouble::sum(a, b);
    if lost > 0.0 { sum.next_up() } else { sum }
}

/// Limit of the search for the bounds of the interval: the largest magnitude of the log-odds that it tries.
const FURTHEST: f64 = 700.0;

/// Precision of the search for the log-odds of each bound of the interval. For log-odds with a magnitude above 1, it is
/// relative to this magnitude. The bounds are moved outward by up to this much.
const STEP: f64 = 1e-12;

/// Returns the rates that the confidence sequence method does not reject at this tally: those where [`log_level`] is
/// above `ln error`.
///
/// For rates below the interval [`csm_verdict`](crate::csm_verdict) returns *holds*, for rates above it *refuted*. The
/// verdict is therefore wrong only if the interval misses the true rate. Ends are rounded outward; an end without a
/// bound is 0 or 1.
///
/// # Guarantee
///
/// The chance that the true rate is *ever* outside is at most `error`, for both ends together and however often you
/// look (Lai, *On Confidence Sequences*, 1976).
///
/// # Errors
/// Returns [`Error::ErrorProbability`] and the errors of [`Tally::new`].
///
/// ```
/// use ascertain_stats::{Tally, csm_interval};
/// let interval = csm_interval(Tally::new(2967, 0)?, 1e-9 / 3.0)?;
/// assert!(interval.low == 0.0 && interval.high < 0.01);
/// # Ok::<(), ascertain_stats::Error>(())
/// ```
pub fn csm_interval(tally: Tally, error: f64) -> Result<Interval, Error> {
    let tally = tally.checked()?;
    let log_error = libm::log(check_error(error)?).next_down();
    if tally.trials == 0 {
        return Ok(Interval::ALL);
    }
    // Half a trial of each outcome is added, so that the start is inside the interval, and not at 0 or 1.
    let start = libm::log((tally.successes as f64 + 0.5) / (tally.failures() as f64 + 0.5));
    let is_kept = |log_odds: f64| log_level(tally, Rate::from_log_odds(log_odds).success) > log_error;
    let edge = |towards: f64| {
        let mut kept = start;
        let mut rejected = start + towards;
        while is_kept(rejected) {
            kept = rejected;
            rejected = start + 2.0 * (rejected - start);
            if rejected.abs() > FURTHEST {
                return None;
            }
        }
        while (rejected - kept).abs() > STEP * kept.abs().max(1.0) {
            let middle = 0.5 * (kept + rejected);
            *(if is_kept(middle) { &mut kept } else { &mut rejected }) = middle;
        }
        Some(Rate::from_log_odds(rejected))
    };
    Ok(Interval {
        low: if tally.successes == 0 { 0.0 } else { edge(-1.0).map_or(0.0, Rate::round_down) },
        high: if tally.failures() == 0 { 1.0 } else { edge(1.0).map_or(1.0, Rate::round_up) },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(trials: u64, successes: u64) -> f64 {
        log_level(Tally { trials, successes }, 0.98)
    }

    /// The values shown in the article "The Confidence Sequence Method: a computer-age test for statistical SLOs".
    #[test]
    fn agrees_bit_for_bit_with_the_published_values() {
        assert_eq!(level(10, 10), 2.1958681996231784);
        assert_eq!(level(100, 100), 2.5948497850893184);
        assert_eq!(level(1000, 995), -3.0115331544604658);
        assert_eq!(level(2000, 1984), -4.190687115879456);
        assert_eq!(level(4000, 3972), -17.238559826956475);
    }

    #[test]
    fn no_trials_say_nothing() {
        assert_eq!(level(0, 0), 0.0);
    }
}
