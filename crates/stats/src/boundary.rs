//! The boundary of an e-process, stored so that most outcomes need no evaluation.
//!
//! After `s` favourable and `f` unfavourable outcomes, `ln e` is the logarithm of an integral of `exp(s·α − f·β)` over
//! a distribution of `(α, β) ≥ 0` ([`crate::log_e_holds`]). Let `x(f)` be the `s` at which `ln e` reaches its
//! threshold, which is above zero. `x(f)` need not be whole. Three facts follow:
//!
//! * `ln e` is convex in the two counts, so the tallies below the threshold are a convex set and `x` is concave;
//! * if favourable outcomes are no more frequent than at the null's rate `p`, no likelihood ratio in the integral is
//!   above 1. `ln e` is then at most zero, so `x(f) ≥ f·p/(1−p)`;
//! * the slope of `x` never rises, because `x` is concave. The slope is also never below `p/(1−p)`. If it ever were, it
//!   would remain so, and `x` would fall below the line `f·p/(1−p)` for large `f`.
//!
//! From one known point below the boundary, a line of slope `p/(1−p)` is therefore a lower bound for all greater `f`.
//! From two known points, their chord is a lower bound for the `f` between them.
//!
//! After each outcome, a judge needs up to three steps:
//!
//! 1. It compares the count of favourable outcomes with an integer: the bound at an earlier `f`. If the count is less,
//!    the threshold is not reached.
//! 2. Otherwise it computes the bound at the present `f`. If the count is below this bound, the threshold is not
//!    reached.
//! 3. Otherwise it evaluates the e-process. Only this step can find that the threshold is reached. If the threshold is
//!    not reached, the judge may draw a new bound.
//!
//! A new bound starts from a point below the boundary. If the tally is far from the boundary, a rough point is good
//! enough. If the count soon reaches the bound again, for example because it stays close to the boundary, the new bound
//! is a chord. The chord spans `2√f` unfavourable outcomes, over which the boundary hardly bends.

use crate::Tally;
use crate::eprocess::Mixture;
use crate::rate::Rate;
use crate::root::{Search, last_below_zero};

/// Bound on the error of a computed `ln e` near a threshold. The computed value may be too low by up to this bound, but
/// is never too high. If the computed value plus this bound is below the threshold, the exact value is therefore below
/// the threshold too.
const SLACK: f64 = 1e-9;

/// Precision of the search for a new point slightly below the boundary. It is a share of the distance between the tally
/// and the boundary.
const RELATIVE_FINENESS: f64 = 1.0 / 8.0;

/// The finest precision of the search for a new point slightly below the boundary, as a number of favourable outcomes.
const FINENESS: f64 = 1.0 / 1024.0;

/// Largest number of trials for which the search may use the precision [`FINENESS`]. Up to this number, a count plus a
/// multiple of [`FINENESS`] is an exact double.
const FINE_UP_TO: u64 = 1 << 40;

/// The tallies at which an e-process reaches its threshold. The e-process is the evidence for one of the two verdicts.
#[derive(Clone, Debug)]
pub(crate) struct Boundary {
    mixture: Mixture,
    threshold: f64,
    /// Lower bound on the number of favourable outcomes that reaches the threshold. Further unfavourable outcomes can
    /// only raise that number, so the bound stays valid.
    least: u64,
    bound: Bound,
}

/// A lower bound on the boundary. The boundary is the number of favourable outcomes that reaches the threshold. The
/// bound is valid from `from` unfavourable outcomes on. Up to `until` it is a chord of the boundary, and beyond that a
/// line of slope `slope`.
#[derive(Clone, Copy, Debug)]
struct Bound {
    from: u64,
    start: f64,
    until: u64,
    end: f64,
    slope: f64,
}

impl Boundary {
    /// Creates the boundary for tallies whose counts start at zero and only grow. The boundary is where `ln e` reaches
    /// `threshold`, which is above zero.
    pub fn new(mixture: Mixture, threshold: f64) -> Boundary {
        let slope = mixture.rate().success / mixture.rate().failure;
        let bound = Bound { from: 0, start: 0.0, until: 0, end: 0.0, slope };
        let mut boundary = Boundary { mixture, threshold, least: 0, bound };
        boundary.draw_bound(0, 0, -threshold);
        boundary.least = boundary.bound.least_beyond(0);
        boundary
    }

    /// Returns the boundary at the same threshold for another null hypothesis, whose rate of favourable outcomes is
    /// `rate`.
    pub fn at(&self, rate: Rate) -> Boundary {
        if rate == self.mixture.rate() { self.clone() } else { Boundary::new(Mixture::above(rate), self.threshold) }
    }

    /// Returns the same boundary for a new tally, whose counts start at zero.
    pub fn anew(&self) -> Boundary {
        Boundary::new(self.mixture.clone(), self.threshold)
    }

    /// Returns the e-process whose boundary this is.
    pub fn mixture(&self) -> &Mixture {
        &self.mixture
    }

    /// Returns how far `ln e` is above the threshold at a tally with these counts. The result is negative below the
    /// threshold.
    fn surplus(&self, favourable: u64, against: u64) -> f64 {
        self.mixture.log_e(favourable as f64, against as f64) - self.threshold
    }

    /// Returns whether the e-process reaches its threshold at this tally. The result is the same as if the e-process
    /// were evaluated each time, but an evaluation is seldom needed.
    #[inline]
    pub fn is_reached(&mut self, favourable: u64, against: u64) -> bool {
        favourable >= self.least && self.evaluate(favourable, against)
    }

    /// Continues [`Boundary::is_reached`] if the count of favourable outcomes is `least` or more, so that the threshold
    /// may be reached. Raises `least` if the threshold is not reached.
    #[cold]
    fn evaluate(&mut self, favourable: u64, against: u64) -> bool {
        self.least = self.bound.least_beyond(against);
        if favourable < self.least {
            return false;
        }
        let surplus = self.surplus(favourable, against);
        if surplus >= 0.0 {
            return true;
        }
        // In the narrow region between a chord and the boundary a single evaluation is enough.
        if against >= self.bound.until && surplus < -SLACK {
            self.draw_bound(favourable, against, surplus);
        }
        self.least = self.bound.least_beyond(against).max(favourable + 1);
        false
    }

    /// Returns the smallest number of favourable outcomes that reaches the threshold if no outcome is unfavourable.
    pub fn least_reaching(&self) -> u64 {
        let search = Search { step: 1.0, ..self.search(0, 0, -self.threshold) };
        self.last_below(search, 0, self.threshold) as u64 + 1
    }

    /// Replaces the bound by one that begins at this tally. The tally is below the boundary, and `surplus` is its `ln
    /// e` minus the threshold.
    fn draw_bound(&mut self, favourable: u64, against: u64, surplus: f64) {
        let search = self.search(favourable, against, surplus + SLACK);
        let start = self.last_below(search, against, self.threshold - SLACK);
        let slope = self.bound.slope;
        let length = 2 * against.isqrt();
        let is_met_soon = against - self.bound.until < length / 4;
        self.bound = Bound { from: against, start, until: against, end: start, slope };
        if is_met_soon {
            let until = against + length;
            // Guesses the end of the chord. The distance of the boundary from the line of slope `slope` grows like the
            // square root of the number of trials.
            let beyond = start - slope * against as f64;
            let growth = beyond * (libm::sqrt(until as f64 / against as f64) - 1.0);
            let guess = start + slope * length as f64 + growth;
            let search = Search { value_at_low: f64::NAN, guess, give_or_take: 0.1 * growth, ..search };
            self.bound.until = until;
            self.bound.end = self.last_below(search, until, self.threshold - SLACK);
        }
    }

    /// Returns the settings of a search for the boundary that starts from a tally below it. `surplus` is `ln e` minus
    /// the threshold at this tally.
    fn search(&self, favourable: u64, against: u64, surplus: f64) -> Search {
        let (p, trials) = (self.mixture.rate().success, favourable + against);
        let limit = Tally::MAX_TRIALS.saturating_sub(against) as f64;
        let low = favourable as f64;
        // Estimates how much a favourable outcome adds to `ln e`. The estimate uses the observed rate, or a rate
        // noticeably above p if the observed rate is lower.
        let noticeable = p + libm::sqrt(self.threshold * p * (1.0 - p) / (trials + 1) as f64);
        let rate = (low / trials.max(1) as f64).max(noticeable).min(1.0);
        let distance = surplus / libm::log(p / rate);
        let finest = if trials > FINE_UP_TO { 1.0 } else { FINENESS };
        let step = power_of_two_below(distance * RELATIVE_FINENESS).max(finest);
        Search { low, value_at_low: surplus, limit, guess: low + distance, give_or_take: 0.25 * distance, step }
    }

    /// Returns the greatest number of favourable outcomes that stays below the threshold, given `against` unfavourable
    /// ones. Only multiples of the search's step are considered.
    fn last_below(&self, search: Search, against: u64, threshold: f64) -> f64 {
        last_below_zero(|favourable| self.mixture.log_e(favourable, against as f64) - threshold, search)
    }
}

impl Bound {
    /// Returns the smallest whole number of favourable outcomes above the bound, given `against` unfavourable ones.
    /// Rounding can make the result too small, but never too large.
    fn least_beyond(self, against: u64) -> u64 {
        let height = if against < self.until {
            let share = (against - self.from) as f64 / (self.until - self.from) as f64;
            self.start + share * (self.end - self.start)
        } else {
            self.end + self.slope * (against - self.until) as f64
        };
        (height * (1.0 - 4.0 * f64::EPSILON)) as u64 + 1
    }
}

/// Returns the greatest power of two that is at most `x`, which must be above zero.
fn power_of_two_below(x: f64) -> f64 {
    libm::exp2(libm::log2(x).floor())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;
    use crate::eprocess::log_threshold;

    fn boundary(rate: f64, error: f64) -> Boundary {
        Boundary::new(Mixture::new(rate, Verdict::Holds), log_threshold(error))
    }

    /// Tests the worst stream for the judge: each outcome is favourable unless it would reach the boundary. At most a
    /// few of the outcomes may lead to an evaluation.
    #[test]
    fn a_tally_along_the_boundary_is_seldom_evaluated() {
        for rate in [0.01, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999] {
            let mut boundary = boundary(rate, 0.001);
            let (mut favourable, mut against, mut bounds, mut slivers) = (0, 0, 0, 0);
            for _ in 0..40_000 {
                let from = boundary.bound.from;
                let is_met = favourable + 1 >= boundary.bound.least_beyond(against);
                let is_reached = boundary.is_reached(favourable + 1, against);
                bounds += u32::from(boundary.bound.from != from);
                slivers += u32::from(is_met && !is_reached);
                if is_reached {
                    against += 1;
                } else {
                    favourable += 1;
                }
            }
            assert!(bounds < 600 && slivers < 2000, "at {rate}: {bounds} and {slivers}");
        }
    }

    #[test]
    fn the_bound_is_one_at_every_later_tally() {
        for rate in [0.001, 0.2, 0.5, 0.95, 0.9999] {
            let mut boundary = boundary(rate, 0.05);
            for (favourable, against) in [(0, 3), (1, 5), (5, 8), (20, 60), (21, 61), (22, 62), (40, 400)] {
                if boundary.is_reached(favourable, against) {
                    break;
                }
                if against >= boundary.bound.until {
                    boundary.draw_bound(favourable, against, boundary.surplus(favourable, against));
                }
                for later in against..against + 200 {
                    let least = boundary.bound.least_beyond(later);
                    assert!(boundary.surplus(least - 1, later) < 0.0, "at {rate}: {} and {later}", least - 1);
                }
            }
        }
    }
}
