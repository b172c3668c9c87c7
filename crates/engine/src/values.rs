//! Numbers of which some are only known to lie above what had been seen when their observation was cut off.

use std::ops::Deref;

use ascertain_stats::{QuantileRanks, quantile_sorted};

use crate::claim::Bound;

/// What is known of a number: it lies between `low` and `high`, and where they are equal it is that.
///
/// A time that met its limit of 20 ms lies between 20 ms and infinity, neither included. An end that nothing bounds is
/// infinite. A number that was not looked for at all is NaN at both ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// It is at least that.
    pub low: f64,
    /// It is at most that.
    pub high: f64,
}

impl Bounds {
    /// It could be anything.
    pub const UNKNOWN: Bounds = Bounds { low: f64::NEG_INFINITY, high: f64::INFINITY };
    /// It was seen until it was cut off, nobody noted where: below every limit.
    pub const CUT_OFF: Bounds = Bounds { low: f64::MIN, high: f64::INFINITY };
    /// Nobody looked for it.
    pub const NONE: Bounds = Bounds { low: f64::NAN, high: f64::NAN };

    /// The number itself.
    pub fn exact(value: f64) -> Bounds {
        Bounds { low: value, high: value }
    }

    /// Something above that.
    pub fn above(low: f64) -> Bounds {
        Bounds { low, high: f64::INFINITY }
    }

    /// The number, where it is known.
    pub fn value(self) -> Option<f64> {
        (self.low == self.high).then_some(self.low)
    }

    /// The number, or the middle of where it lies if that is bounded, which a ratio is not by zero: what tables,
    /// pictures and sentences show of a quantile.
    pub fn estimate(self) -> Option<f64> {
        let is_bounded = self.low.is_finite() && self.high.is_finite() && self.low != 0.0;
        self.value().or_else(|| is_bounded.then(|| self.low + (self.high - self.low) / 2.0))
    }

    /// Whether nobody looked for it.
    pub fn is_none(self) -> bool {
        self.low.is_nan()
    }

    /// Whether it keeps to a bound: `None` where it may or may not. A number that nobody looked for does not.
    pub fn keeps_to(self, bound: Bound) -> Option<bool> {
        match bound {
            _ if self.is_none() => Some(false),
            Bound::AtLeast(least) => self.is_at_least(least),
            Bound::AtMost(most) => self.is_at_most(most),
            Bound::Within(least, most) => and(self.is_at_least(least), self.is_at_most(most)),
        }
    }

    fn is_at_least(self, least: f64) -> Option<bool> {
        match self {
            Bounds { low, .. } if low >= least => Some(true),
            // The ends of what is not known are not included.
            Bounds { low, high } if high < least || (high == least && low < high) => Some(false),
            _ => None,
        }
    }

    fn is_at_most(self, most: f64) -> Option<bool> {
        Bounds { low: -self.high, high: -self.low }.is_at_least(-most)
    }

    /// This number divided by another; both are above zero.
    pub fn over(self, other: Bounds) -> Bounds {
        match (self.value(), other.value()) {
            (Some(value), Some(other)) => Bounds::exact(value / other),
            // What could be anything is still above zero.
            _ => Bounds { low: self.low.max(0.0) / other.high, high: self.high / other.low.max(0.0) },
        }
    }

    /// The natural logarithm of a ratio: infinite where all that is known is that it is above 1, or below; none where
    /// not even that is known.
    pub fn log_ratio(self) -> Option<f64> {
        match self {
            Bounds { low, high } if low >= 1.0 => Some(high.ln()),
            Bounds { low, high } if high <= 1.0 => Some(low.ln()),
            _ => None,
        }
    }

    /// This number and another together.
    pub fn plus(self, other: Bounds) -> Bounds {
        Bounds { low: self.low + other.low, high: self.high + other.high }
    }

    /// This number less another.
    pub fn less(self, other: Bounds) -> Bounds {
        match (self.value(), other.value()) {
            (Some(value), Some(other)) => Bounds::exact(value - other),
            _ => {
                // Nobody noted where that was.
                let other_low = if other.low == Bounds::CUT_OFF.low { f64::NEG_INFINITY } else { other.low };
                Bounds { low: self.low - other.high, high: self.high - other_low }
            }
        }
    }
}

/// Whether both are true, where that is known.
pub(crate) fn and(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

/// Values in the order measured. Read as a slice, one that was cut off is infinite.
///
/// ```
/// use ascertain_engine::values::{Bounds, Values};
/// let times: Values = [Bounds::exact(3.0), Bounds::above(2.0), Bounds::exact(1.0)].into_iter().collect();
/// assert_eq!(&*times, [3.0, f64::INFINITY, 1.0]);
/// assert_eq!(times.limit(), Some(2.0));
/// // The time that was cut off may be the middle one, or the longest.
/// assert_eq!(times.sorted().quantile(0.5), Some(Bounds { low: 2.0, high: 3.0 }));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values {
    highs: Vec<f64>,
    /// What each is at least; empty as long as none was cut off.
    lows: Vec<f64>,
}

impl Values {
    /// Adds one.
    pub fn push(&mut self, value: Bounds) {
        if self.lows.is_empty() && value.low.to_bits() != value.high.to_bits() {
            self.lows = self.highs.clone();
        }
        if !self.lows.is_empty() || value.low.to_bits() != value.high.to_bits() {
            self.lows.push(value.low);
        }
        self.highs.push(value.high);
    }

    /// Keeps the first ones, so many.
    pub fn truncate(&mut self, count: usize) {
        self.highs.truncate(count);
        self.lows.truncate(count);
    }

    /// Takes all away.
    pub fn clear(&mut self) {
        self.highs.clear();
        self.lows.clear();
    }

    /// What is known of the one at `index`.
    ///
    /// # Panics
    /// Where there is none.
    pub fn bounds(&self, index: usize) -> Bounds {
        let high = self.highs[index];
        Bounds { low: self.lows.get(index).copied().unwrap_or(high), high }
    }

    /// What each is at least.
    fn lows(&self) -> &[f64] {
        if self.lows.is_empty() { &self.highs } else { &self.lows }
    }

    /// The most that was seen, also where it was cut off there.
    pub fn most(&self) -> Option<f64> {
        self.lows().iter().copied().filter(|low| *low > Bounds::CUT_OFF.low).reduce(f64::max)
    }

    /// What all of those are above that were cut off; none where none was, or where that is not known.
    pub fn limit(&self) -> Option<f64> {
        let cut = self.lows.iter().zip(&self.highs).filter(|(low, high)| low < high).map(|(low, _)| *low);
        cut.reduce(f64::min).filter(|least| *least > Bounds::CUT_OFF.low)
    }

    /// What was cut off nobody noted where was cut off there.
    pub(crate) fn cut_off_at(&mut self, limit: f64) {
        self.lows.iter_mut().filter(|low| **low == Bounds::CUT_OFF.low).for_each(|low| *low = limit);
    }

    /// The values in ascending order.
    pub fn sorted(&self) -> Sorted {
        let mut sorted = Sorted(self.clone());
        sorted.sort();
        sorted
    }
}

impl Deref for Values {
    type Target = [f64];

    fn deref(&self) -> &[f64] {
        &self.highs
    }
}

impl Extend<Bounds> for Values {
    fn extend<I: IntoIterator<Item = Bounds>>(&mut self, values: I) {
        values.into_iter().for_each(|value| self.push(value));
    }
}

impl FromIterator<Bounds> for Values {
    fn from_iter<I: IntoIterator<Item = Bounds>>(values: I) -> Values {
        let mut all = Values::default();
        all.extend(values);
        all
    }
}

/// Infinite ones were cut off, nobody knows where.
impl From<Vec<f64>> for Values {
    fn from(highs: Vec<f64>) -> Values {
        let low = |high: &f64| if *high == f64::INFINITY { Bounds::CUT_OFF.low } else { *high };
        let lows = if highs.contains(&f64::INFINITY) { highs.iter().map(low).collect() } else { Vec::new() };
        Values { highs, lows }
    }
}

impl FromIterator<f64> for Values {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Values {
        values.into_iter().collect::<Vec<f64>>().into()
    }
}

/// Values in ascending order, to read quantiles from: those that they have at least, and those that they have at most.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sorted(Values);

impl Sorted {
    /// Adds one, which has its place after the next [`sort`](Self::sort).
    pub(crate) fn push(&mut self, value: Bounds) {
        self.0.push(value);
    }

    /// Puts those in order that were added.
    pub(crate) fn sort(&mut self) {
        // Almost sorted already: the standard library's stable sort is linear in that case.
        self.0.highs.sort_by(f64::total_cmp);
        self.0.lows.sort_by(f64::total_cmp);
    }

    /// The values as a slice; those that were cut off are infinite, and last.
    pub fn as_slice(&self) -> &[f64] {
        &self.0.highs
    }

    /// The least of them, or 0 where something below all others was cut off.
    pub(crate) fn least(&self) -> Option<f64> {
        self.0.lows().first().copied()
    }

    /// What the one is that has rank ⌈q n⌉; none where there are no values.
    pub(crate) fn nearest_rank(&self, q: f64) -> Option<Bounds> {
        let n = self.as_slice().len();
        let rank = ((q * n as f64).ceil() as usize).clamp(1, n.max(1));
        Some(Bounds { low: *self.0.lows().get(rank - 1)?, high: self.as_slice()[rank - 1] })
    }

    /// Between which values the quantile `q` lies: [`quantile_sorted`] of what is known.
    pub fn quantile(&self, q: f64) -> Option<Bounds> {
        Some(Bounds { low: quantile_sorted(self.0.lows(), q)?, high: quantile_sorted(self.as_slice(), q)? })
    }

    /// The values at two ranks: the low end is one that was seen, and so is the high end, or it is infinite.
    pub fn between(&self, ranks: QuantileRanks) -> (f64, f64) {
        (ranks.of(self.0.lows()).0, ranks.of(self.as_slice()).1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the numbers are that lie between the bounds, what is said of them is true of them.
    #[test]
    fn what_is_said_of_bounds_is_true_of_all_that_lies_between() {
        let ends = [0.0, 1.0, 2.0, 3.0, f64::INFINITY];
        let inside = |bounds: Bounds| -> Vec<f64> {
            let grid = (1..80).map(|step| f64::from(step) * 0.05);
            grid.filter(|value| bounds.value().map_or(bounds.low < *value && *value < bounds.high, |v| v == *value))
                .collect()
        };
        let pairs = ends.iter().flat_map(|&low| ends.iter().map(move |&high| Bounds { low, high }));
        let all: Vec<Bounds> = pairs.filter(|b| b.low <= b.high && !inside(*b).is_empty()).collect();
        for &bounds in &all {
            for bound in [Bound::AtLeast(1.0), Bound::AtLeast(2.0), Bound::AtMost(2.0), Bound::Within(1.0, 2.0)] {
                let kept: Vec<bool> = inside(bounds).into_iter().map(|value| bound.admits(value)).collect();
                let expected = match (kept.contains(&true), kept.contains(&false)) {
                    (true, true) => None,
                    (true, false) => Some(true),
                    _ => Some(false),
                };
                // Above the grid there is more.
                if bounds.high.is_finite() || expected.is_none() {
                    assert_eq!(bounds.keeps_to(bound), expected, "{bounds:?} {bound}");
                }
            }
            for &other in &all {
                for a in inside(bounds) {
                    for b in inside(other) {
                        let (ratio, difference) = (bounds.over(other), bounds.less(other));
                        assert!(ratio.low <= a / b && a / b <= ratio.high, "{a} {b} {ratio:?}");
                        assert!(difference.low <= a - b && a - b <= difference.high, "{a} {b} {difference:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_time_at_its_limit_is_above_it() {
        let stopped = Bounds::above(20.0);
        assert_eq!(stopped.keeps_to(Bound::AtMost(20.0)), Some(false));
        assert_eq!(stopped.keeps_to(Bound::AtMost(20.1)), None);
        assert_eq!(stopped.keeps_to(Bound::AtLeast(20.0)), Some(true));
        assert_eq!(Bounds::NONE.keeps_to(Bound::AtLeast(0.0)), Some(false));
        assert_eq!(Bounds::UNKNOWN.keeps_to(Bound::AtLeast(0.0)), None);
        // The reference was stopped, the command was, both were.
        let took = Bounds::exact(4.0);
        assert_eq!(stopped.over(took), Bounds::above(5.0));
        assert_eq!(took.over(stopped), Bounds { low: 0.0, high: 0.2 });
        assert_eq!(stopped.over(stopped), Bounds::above(0.0));
        assert_eq!(Bounds::UNKNOWN.over(took), Bounds::above(0.0));
    }

    #[test]
    fn bounds_come_when_the_first_is_cut_off() {
        let mut values = Values::default();
        values.push(Bounds::exact(1.0));
        assert_eq!(values.limit(), None);
        values.push(Bounds::above(0.5));
        values.push(Bounds::exact(2.0));
        assert_eq!((values.bounds(0), values.bounds(1)), (Bounds::exact(1.0), Bounds::above(0.5)));
        assert_eq!(values.limit(), Some(0.5));
        values.truncate(1);
        assert_eq!((values.len(), values.limit()), (1, None));
        let mut unknown = Values::from(vec![1.0, f64::INFINITY]);
        assert_eq!((unknown.bounds(1), unknown.limit()), (Bounds::CUT_OFF, None));
        unknown.cut_off_at(3.0);
        assert_eq!(unknown.limit(), Some(3.0));
    }
}
