//! The boundary of an e-process, kept so that most outcomes need no evaluation.
//!
//! After `f` unfavourable outcomes let `x(f)` be the number of favourable ones, not necessarily whole, at which `ln e`
//! reaches its threshold, which is above zero. Three facts about `ln e`, the logarithm of an integral of
//! `exp(s·α − f·β)` over a distribution of `(α, β) ≥ 0` ([`crate::log_e_holds`]):
//!
//! * it is convex in the two counts, so the tallies below the threshold are a convex set and `x` is concave;
//! * where favourable outcomes are no more frequent than the null's rate `p` has them, no likelihood ratio in it is
//!   above 1: `x(f) ≥ f·p/(1−p)`;
//! * so the slope of `x`, which never rises, is never below `p/(1−p)`, or `x` would fall below that line in the end.
//!
//! One known point below the boundary therefore bounds all of it from there on, by a line of slope `p/(1−p)`, and two
//! known points bound it between them, by their chord. A judge compares the count of favourable outcomes with that
//! bound as of some time ago, which is an integer; where that is reached, with the bound; where that is, it evaluates
//! and draws the bound anew. Far from the boundary a point found roughly will do. Where the bound is met again soon, as
//! by a tally that keeps close to the boundary, a chord is drawn, over so many unfavourable outcomes `√f` that the
//! boundary hardly bends between. The decision itself is always an evaluation.

use crate::Tally;
use crate::eprocess::Mixture;
use crate::rate::Rate;
use crate::root::{Search, last_below_zero};

/// More than the padding of `ln e` near any threshold: below the threshold less this, the exact value is below it.
const SLACK: f64 = 1e-9;

/// A point below the boundary is within this share of the tally's distance from it.
const RELATIVE_FINENESS: f64 = 1.0 / 8.0;

/// No point is found more finely than this, in favourable outcomes.
const FINENESS: f64 = 1.0 / 1024.0;

/// Up to so many trials their sum with a multiple of [`FINENESS`] is an exact double.
const FINE_UP_TO: u64 = 1 << 40;

/// The tallies at which one direction's e-process reaches its threshold.
#[derive(Clone, Debug)]
pub(crate) struct Boundary {
    mixture: Mixture,
    threshold: f64,
    /// With fewer favourable outcomes than this the threshold is not reached, now or later.
    least: u64,
    bound: Bound,
}

/// What the boundary is not below, from `from` unfavourable outcomes on: a chord until `until`, then a line of that
/// slope.
#[derive(Clone, Copy, Debug)]
struct Bound {
    from: u64,
    start: f64,
    until: u64,
    end: f64,
    slope: f64,
}

impl Boundary {
    /// The boundary at which `ln e` reaches `threshold`, which is above zero. Counts start at zero and only grow.
    pub fn new(mixture: Mixture, threshold: f64) -> Boundary {
        let slope = mixture.rate().success / mixture.rate().failure;
        let bound = Bound { from: 0, start: 0.0, until: 0, end: 0.0, slope };
        let mut boundary = Boundary { mixture, threshold, least: 0, bound };
        boundary.draw_bound(0, 0, -threshold);
        boundary.least = boundary.bound.least_beyond(0);
        boundary
    }

    /// The boundary at the same threshold for the null's rate of favourable outcomes `rate`.
    pub fn at(&self, rate: Rate) -> Boundary {
        if rate == self.mixture.rate() { self.clone() } else { Boundary::new(Mixture::above(rate), self.threshold) }
    }

    /// The same boundary, for counts that start at zero again.
    pub fn anew(&self) -> Boundary {
        Boundary::new(self.mixture.clone(), self.threshold)
    }

    /// The e-process.
    pub fn mixture(&self) -> &Mixture {
        &self.mixture
    }

    /// By how much `ln e` exceeds the threshold.
    fn surplus(&self, favourable: u64, against: u64) -> f64 {
        self.mixture.log_e(favourable as f64, against as f64) - self.threshold
    }

    /// Whether the threshold is reached: exactly whether an evaluation at this tally says so.
    #[inline]
    pub fn is_reached(&mut self, favourable: u64, against: u64) -> bool {
        favourable >= self.least && self.look(favourable, against)
    }

    /// [`Boundary::is_reached`] where the bound as of some time ago does not answer.
    #[cold]
    fn look(&mut self, favourable: u64, against: u64) -> bool {
        self.least = self.bound.least_beyond(against);
        if favourable < self.least {
            return false;
        }
        let surplus = self.surplus(favourable, against);
        if surplus >= 0.0 {
            return true;
        }
        // In the sliver between a chord and the boundary one evaluation is all it takes.
        if against >= self.bound.until && surplus < -SLACK {
            self.draw_bound(favourable, against, surplus);
        }
        self.least = self.bound.least_beyond(against).max(favourable + 1);
        false
    }

    /// The fewest favourable outcomes that reach the threshold if there are none against.
    pub fn least_reaching(&self) -> u64 {
        let search = Search { step: 1.0, ..self.search(0, 0, -self.threshold) };
        self.last_below(search, 0, self.threshold) as u64 + 1
    }

    /// Draws the bound anew from here on, given the surplus of a tally below the boundary.
    fn draw_bound(&mut self, favourable: u64, against: u64, surplus: f64) {
        let search = self.search(favourable, against, surplus + SLACK);
        let start = self.last_below(search, against, self.threshold - SLACK);
        let slope = self.bound.slope;
        let length = 2 * against.isqrt();
        let is_met_soon = against - self.bound.until < length / 4;
        self.bound = Bound { from: against, start, until: against, end: start, slope };
        if is_met_soon {
            let until = against + length;
            // What the boundary has beyond the mean rises like the root of its length.
            let beyond = start - slope * against as f64;
            let growth = beyond * (libm::sqrt(until as f64 / against as f64) - 1.0);
            let guess = start + slope * length as f64 + growth;
            let search = Search { value_at_low: f64::NAN, guess, give_or_take: 0.1 * growth, ..search };
            self.bound.until = until;
            self.bound.end = self.last_below(search, until, self.threshold - SLACK);
        }
    }

    /// A search for the boundary from a tally below it.
    fn search(&self, favourable: u64, against: u64, surplus: f64) -> Search {
        let (p, trials) = (self.mixture.rate().success, favourable + against);
        let limit = Tally::MAX_TRIALS.saturating_sub(against) as f64;
        let low = favourable as f64;
        // What a favourable outcome adds: of what seems to be the rate, and at least one that is noticeably above p.
        let noticeable = p + libm::sqrt(self.threshold * p * (1.0 - p) / (trials + 1) as f64);
        let rate = (low / trials.max(1) as f64).max(noticeable).min(1.0);
        let distance = surplus / libm::log(p / rate);
        let finest = if trials > FINE_UP_TO { 1.0 } else { FINENESS };
        let step = power_of_two_below(distance * RELATIVE_FINENESS).max(finest);
        Search { low, value_at_low: surplus, limit, guess: low + distance, give_or_take: 0.25 * distance, step }
    }

    /// The last point of a search with `against` unfavourable outcomes that stays below the threshold.
    fn last_below(&self, search: Search, against: u64, threshold: f64) -> f64 {
        last_below_zero(|favourable| self.mixture.log_e(favourable, against as f64) - threshold, search)
    }
}

impl Bound {
    /// The least whole number above the bound; rounding can only make it smaller.
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

/// The greatest power of two that is at most `x`, which is above zero.
fn power_of_two_below(x: f64) -> f64 {
    libm::exp2(libm::log2(x).floor())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eprocess::{Direction, log_threshold};

    fn boundary(rate: f64, error: f64) -> Boundary {
        Boundary::new(Mixture::new(rate, Direction::Above), log_threshold(error))
    }

    /// The worst stream: a favourable outcome whenever it does not reach the boundary. Few may need an evaluation.
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
