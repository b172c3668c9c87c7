//! The boundary of an e-process, kept so that most outcomes need no evaluation.
//!
//! After `f` unfavourable outcomes let `x(f)` be the number of favourable ones, not necessarily whole, at which `ln e` reaches
//! its threshold, which is above zero. Three facts about `ln e`, the logarithm of an integral of
//! `exp(s·α − f·β)` over a distribution of `(α, β) ≥ 0` ([`crate::log_e_holds`]):
//!
//! * it is convex in the two counts, so the tallies below the threshold are a convex set and `x` is concave;
//! * where favourable outcomes are no more frequent than the null's rate `p` has them, no likelihood ratio in it is above 1:
//!   `x(f) ≥ f·p/(1−p)`;
//! * so the slope of `x`, which never rises, is never below `p/(1−p)`, or `x` would fall below that line in the end.
//!
//! One known point below the boundary therefore bounds all of it from there on, by a line of slope `p/(1−p)`. A judge
//! compares the count of favourable outcomes with that line as of some time ago, which is an integer; where that is
//! reached, with the line; where that is, it evaluates, and draws the line anew through the boundary at this `f`. The closer
//! the tally is to the boundary, the more precisely. A tally that stays just below it at `f` unfavourable outcomes meets the
//! line again after about `√f` more, since the boundary is that straight there. The decision itself is always an evaluation.

use crate::Tally;
use crate::eprocess::Mixture;
use crate::root::{Search, last_below_zero};

/// More than the padding of `ln e` near any threshold: below the threshold less this, the exact value is below it.
const SLACK: f64 = 1e-9;

/// The line goes through a point that is known to this share of the tally's distance from the boundary, or better.
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
    line: Line,
}

/// A line below the boundary, from `from` unfavourable outcomes on.
#[derive(Clone, Copy, Debug)]
struct Line {
    from: u64,
    start: f64,
    slope: f64,
}

impl Boundary {
    /// The boundary at which `ln e` reaches `threshold`, which is above zero. Counts start at zero and only grow.
    pub fn new(mixture: Mixture, threshold: f64) -> Boundary {
        let slope = mixture.rate().success / mixture.rate().failure;
        let line = Line { from: 0, start: 0.0, slope };
        let mut boundary = Boundary { mixture, threshold, least: 1, line };
        boundary.draw_line(0, 0, -threshold);
        boundary
    }

    /// The e-process.
    pub fn mixture(&self) -> &Mixture {
        &self.mixture
    }

    /// By how much `ln e` exceeds the threshold.
    pub fn surplus(&self, favourable: u64, against: u64) -> f64 {
        self.mixture.log_e(favourable as f64, against as f64) - self.threshold
    }

    /// Whether the threshold is reached: exactly whether an evaluation at this tally says so.
    #[inline]
    pub fn is_reached(&mut self, favourable: u64, against: u64) -> bool {
        favourable >= self.least && self.look(favourable, against)
    }

    /// [`Boundary::is_reached`] where the bound does not answer; renews the bound.
    #[cold]
    fn look(&mut self, favourable: u64, against: u64) -> bool {
        self.least = self.line.least_beyond(against);
        if favourable < self.least {
            return false;
        }
        let surplus = self.surplus(favourable, against);
        if surplus >= 0.0 {
            return true;
        }
        self.draw_line(favourable, against, surplus);
        // This tally is below the threshold, whatever the line says.
        self.least = self.line.least_beyond(against).max(favourable + 1);
        false
    }

    /// The fewest favourable outcomes that reach the threshold if there are none against.
    pub fn least_reaching(&self) -> u64 {
        let search = Search { step: 1.0, ..self.search(0, 0, -self.threshold) };
        self.last_below(search, 0, self.threshold) as u64 + 1
    }

    /// Draws the line through the boundary, given the surplus of a tally below it.
    fn draw_line(&mut self, favourable: u64, against: u64, surplus: f64) {
        if surplus >= -SLACK {
            return;
        }
        let search = self.search(favourable, against, surplus + SLACK);
        self.line.start = self.last_below(search, against, self.threshold - SLACK);
        self.line.from = against;
        self.least = self.line.least_beyond(against);
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

impl Line {
    /// The least whole number above the line; rounding can only make it smaller.
    fn least_beyond(self, against: u64) -> u64 {
        let height = self.start + self.slope * (against - self.from) as f64;
        (height * (1.0 - 4.0 * f64::EPSILON)) as u64 + 1
    }
}

/// The greatest power of two that is at most `x`, which is above zero.
fn power_of_two_below(x: f64) -> f64 {
    libm::exp2(libm::log2(x).floor())
}
