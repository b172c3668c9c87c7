//! Numbers that may be known only as a range, because their observation was cut off.

use std::ops::Deref;

use ascertain_stats::{QuantileRanks, quantile_sorted};

use crate::claim::Bound;
use crate::unit::Unit;

/// The range of a number, which lies between `low` and `high`. If both are equal, the number is known exactly.
///
/// For example, an execution was stopped at its limit of 20 ms. Its duration lies between 20 ms and infinity, both
/// excluded. A missing bound is infinite. For a number that was not observed, both bounds are NaN.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// The lower bound of the number.
    pub low: f64,
    /// The upper bound of the number.
    pub high: f64,
}

impl Bounds {
    /// The range of a number that may have any value.
    pub const UNKNOWN: Bounds = Bounds { low: f64::NEG_INFINITY, high: f64::INFINITY };
    /// The range of a number whose observation was cut off at an unknown value. It differs from
    /// [`UNKNOWN`](Self::UNKNOWN) by its lower bound, `f64::MIN`.
    pub const CUT_OFF: Bounds = Bounds { low: f64::MIN, high: f64::INFINITY };
    /// The range of a number that was not observed.
    pub const NONE: Bounds = Bounds { low: f64::NAN, high: f64::NAN };

    /// Returns the range of a number that is known exactly.
    pub fn exact(value: f64) -> Bounds {
        Bounds { low: value, high: value }
    }

    /// Returns the range of a number above `low`.
    pub fn above(low: f64) -> Bounds {
        Bounds { low, high: f64::INFINITY }
    }

    /// Returns the range with the bounds that numbers of the unit have. If the observation was cut off at an unknown
    /// value, only the unit bounds the number: only numbers without a unit can be negative.
    pub(crate) fn in_unit(self, unit: Unit) -> Bounds {
        match self {
            Bounds { low, high } if low == Bounds::CUT_OFF.low && high == f64::INFINITY => match unit {
                Unit::One => Bounds::UNKNOWN,
                _ => Bounds { low: 0.0, high },
            },
            known => known,
        }
    }

    /// Returns the number, if it is known exactly.
    pub fn value(self) -> Option<f64> {
        (self.low == self.high).then_some(self.low)
    }

    /// Returns the number if it is known exactly. Otherwise returns the middle of its range, or `None` if a bound is
    /// infinite or the lower bound is zero. A lower bound of zero carries no information about a time or a ratio.
    /// Tables, plots and sentences show this value.
    pub fn estimate(self) -> Option<f64> {
        let is_bounded = self.low.is_finite() && self.high.is_finite() && self.low != 0.0;
        self.value().or_else(|| is_bounded.then(|| self.low + (self.high - self.low) / 2.0))
    }

    /// Returns whether the number was not observed.
    pub fn is_none(self) -> bool {
        self.low.is_nan()
    }

    /// Returns whether the number satisfies the bound. Returns `None` if some numbers in the range satisfy the bound
    /// and others do not, and `Some(false)` if the number was not observed.
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
            // The bounds of a range do not belong to it, unless they are equal.
            Bounds { low, high } if high < least || (high == least && low < high) => Some(false),
            _ => None,
        }
    }

    fn is_at_most(self, most: f64) -> Option<bool> {
        Bounds { low: -self.high, high: -self.low }.is_at_least(-most)
    }

    /// Returns the range of this number divided by another. Both numbers must be positive.
    pub fn over(self, other: Bounds) -> Bounds {
        match (self.value(), other.value()) {
            (Some(value), Some(other)) => Bounds::exact(value / other),
            // Both numbers are positive, even if a lower bound is negative or unknown.
            _ => Bounds { low: self.low.max(0.0) / other.high, high: self.high / other.low.max(0.0) },
        }
    }

    /// Returns the natural logarithm of this number, which must be a ratio. If the ratio is a range on one side of 1,
    /// uses the end that is farther from 1. The result may then be infinite. Returns `None` if the ratio may be above
    /// or below 1.
    pub fn log_ratio(self) -> Option<f64> {
        match self {
            Bounds { low, high } if low >= 1.0 => Some(high.ln()),
            Bounds { low, high } if high <= 1.0 => Some(low.ln()),
            _ => None,
        }
    }

    /// Returns the range of the sum of two numbers.
    pub fn plus(self, other: Bounds) -> Bounds {
        Bounds { low: self.low + other.low, high: self.high + other.high }
    }

    /// Returns the range of this number minus another.
    pub fn less(self, other: Bounds) -> Bounds {
        match (self.value(), other.value()) {
            (Some(value), Some(other)) => Bounds::exact(value - other),
            _ => {
                // `CUT_OFF` means that it is unknown how far `other` had come, so the range of `other` has no lower
                // bound.
                let other_low = if other.low == Bounds::CUT_OFF.low { f64::NEG_INFINITY } else { other.low };
                Bounds { low: self.low - other.high, high: self.high - other_low }
            }
        }
    }
}

/// Returns whether both conditions are true. `None` stands for unknown, both in the conditions and in the result.
pub(crate) fn and(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

/// Returns half of the width of the interval from `low` to `high`, divided by its middle: `0.01` means "to ±1 %".
/// Returns `None` if the interval is infinite.
pub(crate) fn relative_half_width((low, high): (f64, f64)) -> Option<f64> {
    let half_width = (high - low) / 2.0;
    half_width.is_finite().then(|| half_width / ((high + low) / 2.0).abs())
}

/// Values in the order in which they were measured. They dereference to a slice of numbers, which has infinity for each
/// value that was cut off.
///
/// ```
/// use ascertain_engine::values::{Bounds, Values};
/// let times: Values = [Bounds::exact(3.0), Bounds::above(2.0), Bounds::exact(1.0)].into_iter().collect();
/// assert_eq!(&*times, [3.0, f64::INFINITY, 1.0]);
/// assert_eq!(times.limit(), Some(2.0));
/// // The time that was cut off may be the middle one or the longest.
/// assert_eq!(times.sorted().quantile(0.5), Some(Bounds { low: 2.0, high: 3.0 }));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values {
    highs: Vec<f64>,
    /// Lower bound of each value's range; empty as long as all values are known exactly.
    lows: Vec<f64>,
}

impl Values {
    /// Appends a value.
    pub fn push(&mut self, value: Bounds) {
        if self.lows.is_empty() && value.low.to_bits() != value.high.to_bits() {
            self.lows = self.highs.clone();
        }
        if !self.lows.is_empty() || value.low.to_bits() != value.high.to_bits() {
            self.lows.push(value.low);
        }
        self.highs.push(value.high);
    }

    /// Keeps only the first `count` values.
    pub fn truncate(&mut self, count: usize) {
        self.highs.truncate(count);
        self.lows.truncate(count);
    }

    /// Removes all values.
    pub fn clear(&mut self) {
        self.highs.clear();
        self.lows.clear();
    }

    /// Returns the range of the value at `index`.
    ///
    /// # Panics
    /// If there is no such value.
    pub fn bounds(&self, index: usize) -> Bounds {
        let high = self.highs[index];
        Bounds { low: self.lows.get(index).copied().unwrap_or(high), high }
    }

    fn lows(&self) -> &[f64] {
        if self.lows.is_empty() { &self.highs } else { &self.lows }
    }

    /// Returns the largest number that was observed. For a value that was cut off, this is the number that it had
    /// reached. Returns `None` if there is no such number.
    pub fn most(&self) -> Option<f64> {
        self.lows().iter().copied().filter(|low| *low > Bounds::CUT_OFF.low).reduce(f64::max)
    }

    /// Returns the smallest number that a value had reached when it was cut off. Returns `None` if no value was cut
    /// off, or if that number is unknown.
    pub fn limit(&self) -> Option<f64> {
        let cut = self.lows.iter().zip(&self.highs).filter(|(low, high)| low < high).map(|(low, _)| *low);
        cut.reduce(f64::min).filter(|least| *least > Bounds::CUT_OFF.low)
    }

    /// Returns a sorted copy of the values, for quantiles.
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

/// Converts plain numbers to values. Infinity stands for a value that was cut off at an unknown number.
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

/// Sorted values, for quantiles. The lower bounds and the upper bounds of their ranges are sorted separately, in
/// ascending order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sorted(Values);

impl Sorted {
    /// Appends a value; call [`sort`](Self::sort) before reading quantiles.
    pub(crate) fn push(&mut self, value: Bounds) {
        self.0.push(value);
    }

    pub(crate) fn sort(&mut self) {
        // Most values are sorted already, and the standard library's stable sort is linear in that case.
        self.0.highs.sort_by(f64::total_cmp);
        self.0.lows.sort_by(f64::total_cmp);
    }

    /// Returns the upper bounds of the values in ascending order. Values that were cut off are infinite and come last.
    pub fn as_slice(&self) -> &[f64] {
        &self.0.highs
    }

    /// Returns the lower bound of the smallest value; `None` if there are no values.
    pub(crate) fn least(&self) -> Option<f64> {
        self.0.lows().first().copied()
    }

    /// Returns the range of the value with the rank ⌈q n⌉; `None` if there are no values.
    pub(crate) fn nearest_rank(&self, q: f64) -> Option<Bounds> {
        let n = self.as_slice().len();
        let rank = ((q * n as f64).ceil() as usize).clamp(1, n.max(1));
        Some(Bounds { low: *self.0.lows().get(rank - 1)?, high: self.as_slice()[rank - 1] })
    }

    /// Returns the range of the quantile `q` (see [`quantile_sorted`]): from the quantile of all lower bounds to the
    /// quantile of all upper bounds. Returns `None` if there are no values.
    pub fn quantile(&self, q: f64) -> Option<Bounds> {
        Some(Bounds { low: quantile_sorted(self.0.lows(), q)?, high: quantile_sorted(self.as_slice(), q)? })
    }

    /// Returns an interval between the values at two ranks: the lower bound of the first value and the upper bound of
    /// the second value. If a rank is `None`, that end of the interval is infinite.
    pub fn between(&self, ranks: QuantileRanks) -> (f64, f64) {
        (ranks.interval_in(self.0.lows()).0, ranks.interval_in(self.as_slice()).1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Results that are computed from bounds must be true for all numbers within the bounds.
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
                // The grid lacks the large values of a range without an upper bound. For such a range, only a mixed
                // result is conclusive.
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
        // In turn, the reference was stopped at its time limit, the command was, or both were.
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
        let unknown = Values::from(vec![1.0, f64::INFINITY]);
        assert_eq!((unknown.bounds(1), unknown.limit()), (Bounds::CUT_OFF, None));
    }
}
