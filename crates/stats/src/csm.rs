//! The confidence sequence method: Robbins' criterion, safely rounded, and the confidence sequence that belongs to it.

use crate::deviance::{excess, log_binomial};
use crate::error::{check_error, check_rate};
use crate::rate::Rate;
use crate::{Error, Interval, Tally, Verdict};

/// Up to here the textbook sum is evaluated with directed rounding; above it the terms cancel too much.
const DIRECT_UP_TO: u64 = 1_000_000;

/// A lower bound of ln √(2π), 0.918938533204672741….
const LN_SQRT_TAU_DOWN: f64 = 0.918_938_533_204_672_6;

/// The relative outward padding of the deviance form, twice the error that [`log_binomial`] allows for.
const PADDING: f64 = 8e-15;

/// The level of Robbins' criterion, `ln[C(n,s) p^s (1−p)^(n−s) (n+1)]`, never below the exact value.
///
/// `tally` holds `n` trials and `s` successes; `rate` is `p`, the double as given. NaN where the rate is not within (0,
/// 1), or the tally has more successes than trials or more than 2^53 trials.
///
/// If trials succeed with probability `p`, each given the past, the chance that the level ever gets down to `ln ε` is
/// at most `ε` however often one looks (Robbins, *Statistical Methods Related to the Law of the Iterated Logarithm*,
/// 1970; Lai, *On Confidence Sequences*, 1976). So a level that low says that the rate is not `p`, and then the
/// observed rate lies on the true rate's side of `p` but for a chance of `ε` (Ding, Gandy and Hahn, *A simple method
/// for implementing Monte Carlo tests*, 2020). At `s = n p` the level is never below 0.
///
/// Up to 10^6 trials: Robbins' two bounds of the factorial, each rounding in the safe direction, and a compensated
/// summation that rounds up. That is above the exact value by less than `1/(144 k²)` for each of the two counts `k`, of
/// successes and of failures, where both are above 1, and by 2e-15 of the magnitudes summed. Beyond: Loader's deviance
/// form ([`log_binomial`]) padded by its error bound, at most 1e-6 above the exact value while that is above -10^7, and
/// 2e-14 of it below, where a double itself is hardly finer.
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

/// The verdict of the confidence sequence method on "the rate is at least `rate`", if the tally allows one.
///
/// It is there when [`log_level`] is at most `ln error`: *holds* when the observed rate is above `rate`, *refuted* when
/// it is below. A caller that looks after every trial and keeps the first verdict is wrong with probability at most
/// `error`. The method is stateless and a later tally may be above the level again: latching is the caller's.
///
/// # Errors
///
/// A rate or an error outside (0, 1), and more successes than trials.
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

/// The sum of the logarithms, every step rounded up.
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

/// `ln C(n,s)` or a little more, by Robbins' bounds: with `S(k) = ln√(2π) + (k+½) ln k − k`,
/// `S(k) + 1/(12k+1) < ln k! < S(k) + 1/(12k)`.
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

/// The deviance form and its error bound. The constant part covers the logarithm of the trials and the additions.
fn padded_log_level(tally: Tally, rate: f64) -> f64 {
    let log_probability = log_binomial(tally.trials as f64, tally.successes as f64, rate);
    log_probability + libm::log((tally.trials + 1) as f64) + PADDING * (4.0 + log_probability.abs())
}

/// An upper bound of a logarithm from its computed value: four steps, where libraries promise three or less.
fn up(logarithm: f64) -> f64 {
    (0..4).fold(logarithm, |x, _| x.next_up())
}

/// The lower bound that goes with [`up`].
fn down(logarithm: f64) -> f64 {
    -up(-logarithm)
}

/// Kahan's summation rounded up. Only where the compensation joins the next term does anything get lost (Shewchuk,
/// *Adaptive Precision Floating-Point Arithmetic*, 1997), so only that addition needs a direction.
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

/// The least double that is not below `a + b`: Knuth's two-sum tells whether rounding went down.
fn add_up(a: f64, b: f64) -> f64 {
    let sum = a + b;
    let b_part = sum - a;
    let lost = (a - (sum - b_part)) + (b - b_part);
    if lost > 0.0 { sum.next_up() } else { sum }
}

/// No rate with log-odds further out is looked at.
const FURTHEST: f64 = 700.0;

/// The log-odds of an end are found to this much, to the outside.
const STEP: f64 = 1e-12;

/// The rates that the confidence sequence method does not reject at this tally: where [`log_level`] is above
/// `ln error`.
///
/// Outside of it [`csm_verdict`](crate::csm_verdict) says *holds* (below) or *refuted* (above): verdict and interval
/// are one event. Ends are rounded outward; one that nothing bounds is 0 or 1.
///
/// # Guarantee
///
/// The chance that the true rate is *ever* outside is at most `error`, both ends together and however often one looks
/// (Lai, *On Confidence Sequences*, 1976).
///
/// # Errors
/// [`Error::ErrorProbability`] and those of [`Tally::new`].
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
    // Half a trial of each kind more: inside of the interval, and not at 0 or 1.
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

    /// The values that the article "The Confidence Sequence Method: a computer-age test for statistical SLOs" shows.
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
