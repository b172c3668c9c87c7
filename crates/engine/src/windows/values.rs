//! The values of some windows: their quantiles, in constant memory. A value that was cut off is a range.

use ascertain_stats::quantile_ranks;
use ascertain_streams::{FlatTable, RunError};

use super::{Range, Ranges, WindowSummary};
use crate::values::Bounds;

/// Error of the interval of the median in tables.
const ERROR: f64 = 0.05;
/// Values nearer to zero than this one have a common bucket in a table: 2^−16.
const NEAREST: f64 = 1.0 / 65_536.0;
/// Values from this one on have a common bucket in a table: 2^48.
const FARTHEST: f64 = 281_474_976_710_656.0;

/// Counts of values. The lower bounds and the upper bounds of their ranges are in separate tables, as in
/// [`Sorted`](crate::values::Sorted).
#[derive(Debug)]
pub struct WindowValues {
    highs: FlatTable,
    /// The lower bounds; `None` if no value can be cut off.
    lows: Option<FlatTable>,
    /// The range of the least value.
    least: Bounds,
    /// The range of the greatest value.
    most: Bounds,
    /// `true` if a value may be too near to zero for the table, and is not zero.
    has_near_zero: bool,
    /// Number of values that were cut off.
    cut_off: u64,
}

impl WindowValues {
    /// Allocates the tables. `has_ranges` is `true` if values can be cut off.
    pub fn new(is_signed: bool, has_ranges: bool, carries: usize) -> Result<WindowValues, RunError> {
        let table = || FlatTable::new(is_signed, carries);
        Ok(WindowValues {
            highs: table()?,
            lows: if has_ranges { Some(table()?) } else { None },
            least: Bounds::exact(f64::INFINITY),
            most: Bounds::exact(f64::NEG_INFINITY),
            has_near_zero: false,
            cut_off: 0,
        })
    }

    /// Counts a value, which is not NaN.
    #[inline]
    pub fn insert(&mut self, value: Bounds) {
        let _ = self.highs.insert(value.high);
        let _ = self.lows.as_mut().map(|lows| lows.insert(value.low));
        self.cut_off += u64::from(value.low < value.high);
        self.has_near_zero |= is_near_zero(value.low) || is_near_zero(value.high);
        self.widen(value, value);
    }

    /// Counts values that are known exactly, except for those that are NaN. Calls `each` with each of them. Returns the
    /// number of NaN.
    #[inline]
    #[cfg(any(feature = "commands", test))]
    pub fn insert_all(&mut self, values: &[f64], mut each: impl FnMut(f64)) -> u64 {
        let (mut nulls, mut least, mut most) = (0, f64::INFINITY, f64::NEG_INFINITY);
        for value in values {
            if value.is_nan() {
                nulls += 1;
                continue;
            }
            let _ = self.highs.insert(*value);
            let _ = self.lows.as_mut().map(|lows| lows.insert(*value));
            self.has_near_zero |= is_near_zero(*value);
            (least, most) = (least.min(*value), most.max(*value));
            each(*value);
        }
        self.widen(Bounds::exact(least), Bounds::exact(most));
        nulls
    }

    /// Adds the values of a window that was recorded: its histograms and its figures.
    #[cfg(feature = "recorded")]
    pub fn insert_recorded(&mut self, line: &super::WindowLine) {
        let lows = line.lower_bounds.as_ref().unwrap_or(&line.histogram);
        for (value, count) in &line.histogram {
            let _ = self.highs.insert_times(value.unwrap_or(f64::INFINITY), *count);
        }
        for (value, count) in lows {
            let _ = self.lows.as_mut().map(|lows| lows.insert_times(value.unwrap_or(f64::INFINITY), *count));
        }
        self.has_near_zero |= line.has_near_zero;
        self.cut_off += line.summary.stopped;
        let [least, .., most] = line.summary.figures();
        if !least.is_none() {
            self.widen(least, most);
        }
    }

    /// Adds the values of other windows.
    pub fn merge(&mut self, other: &WindowValues) {
        // With a carry for each bucket, a table is full only after 2^48 values.
        let _ = self.highs.merge(&other.highs);
        let _ = self.lows.as_mut().zip(other.lows.as_ref()).map(|(lows, others)| lows.merge(others));
        self.has_near_zero |= other.has_near_zero;
        self.cut_off += other.cut_off;
        self.widen(other.least, other.most);
    }

    /// Extends the extremes by these ranges of a least and a greatest value.
    fn widen(&mut self, least: Bounds, most: Bounds) {
        let Bounds { low, high } = self.least;
        self.least = Bounds { low: low.min(least.low), high: high.min(least.high) };
        let Bounds { low, high } = self.most;
        self.most = Bounds { low: low.max(most.low), high: high.max(most.high) };
    }

    /// Removes all values.
    pub fn clear(&mut self) {
        self.highs.clear();
        self.lows.iter_mut().for_each(FlatTable::clear);
        (self.least, self.most) = (Bounds::exact(f64::INFINITY), Bounds::exact(f64::NEG_INFINITY));
        (self.has_near_zero, self.cut_off) = (false, 0);
    }

    /// Returns the number of values.
    pub fn count(&self) -> u64 {
        self.highs.values()
    }

    /// Returns the table of the upper bounds, and that of the lower bounds if a value was cut off.
    #[cfg(any(feature = "commands", test))]
    pub fn tables(&self) -> [Option<&FlatTable>; 2] {
        [Some(&self.highs), self.lows.as_ref().filter(|_| self.cut_off > 0)]
    }

    /// Returns whether a value is too near to zero for the table, and not zero.
    #[cfg(any(feature = "commands", test))]
    pub fn has_near_zero(&self) -> bool {
        self.has_near_zero
    }

    /// Returns the range of a quantile; `None` without values. A quantile that is known up to the error of the table
    /// has equal bounds.
    pub fn quantile(&mut self, level: f64) -> Option<Bounds> {
        let high = self.highs.quantile(level)?;
        let low = match &mut self.lows {
            Some(lows) if self.cut_off > 0 => lows.quantile(level).unwrap_or(f64::NEG_INFINITY),
            _ => high,
        };
        let (low, high) = (self.lower(low, level), self.upper(high, level));
        // The extremes are exact, and an estimate of the table may be slightly outside of them.
        let within = |value: f64, least: f64, most: f64| value.max(least).min(most);
        let low = within(low, self.least.low, self.most.low);
        Some(Bounds { low, high: within(high, self.least.high, self.most.high).max(low) })
    }

    /// Returns the bounds of the interval of the median, for tables. A bound is `None` if there are too few values, or
    /// if it is unknown because values were cut off.
    pub fn median_interval(&mut self) -> [Option<f64>; 2] {
        let n = self.count();
        let Ok(ranks) = quantile_ranks(n, 0.5, ERROR / 2.0, ERROR / 2.0) else { return [None; 2] };
        let mut at_rank = |rank: Option<u64>| self.quantile(rank? as f64 / (n - 1).max(1) as f64);
        let [low, high] = [ranks.low, ranks.high].map(&mut at_rank);
        [low.map(|range| range.low), high.map(|range| range.high)].map(|end| end.filter(|end| end.is_finite()))
    }

    /// Returns a lower bound of a quantile with this estimate, for an estimate outside of the table.
    fn lower(&mut self, low: f64, level: f64) -> f64 {
        if low < f64::INFINITY {
            return if self.has_near_zero && low.abs() < NEAREST { -NEAREST } else { low };
        }
        // The estimate may lie between a value of the table and one above it. The former is then a lower bound.
        let last = self.count().saturating_sub(1).max(1) as f64;
        let before = (((level * last).floor() - 0.5) / last).max(0.0);
        let lows = self.lows.as_mut().filter(|_| self.cut_off > 0).unwrap_or(&mut self.highs);
        lows.quantile(before).filter(|before| *before < f64::INFINITY).unwrap_or(FARTHEST)
    }

    /// Returns an upper bound of a quantile with this estimate, for an estimate outside of the table.
    fn upper(&mut self, high: f64, level: f64) -> f64 {
        if high > f64::NEG_INFINITY {
            return if self.has_near_zero && high.abs() < NEAREST { NEAREST } else { high };
        }
        let last = self.count().saturating_sub(1).max(1) as f64;
        let after = (((level * last).ceil() + 0.5) / last).min(1.0);
        self.highs.quantile(after).filter(|after| *after > f64::NEG_INFINITY).unwrap_or(-FARTHEST)
    }

    /// Adds the figures of the values to the counts of their windows.
    pub fn summary(&mut self, counts: WindowSummary) -> WindowSummary {
        let mut figures = [Bounds::NONE; 6];
        if self.count() > 0 {
            let quantiles = [0.5, 0.9, 0.99, 0.999].map(|level| self.quantile(level).unwrap_or(Bounds::NONE));
            figures[0] = self.least;
            figures[1..5].copy_from_slice(&quantiles);
            figures[5] = self.most;
        }
        let [least, median, p90, p99, p999, most] = figures.map(|figure| figure.value());
        let is_known = figures.iter().all(|figure| figure.is_none() || figure.value().is_some());
        let range = |index: usize| Range::of(figures[index]);
        let ranges =
            Ranges { least: range(0), median: range(1), p90: range(2), p99: range(3), p999: range(4), most: range(5) };
        let ranges = (!is_known).then_some(ranges);
        WindowSummary { least, median, p90, p99, p999, most, ranges, ..counts }
    }
}

fn is_near_zero(value: f64) -> bool {
    value.abs() < NEAREST && value != 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(is_signed: bool, all: &[Bounds]) -> WindowValues {
        let mut values = WindowValues::new(is_signed, true, 4).unwrap();
        all.iter().for_each(|value| values.insert(*value));
        values
    }

    fn exact(all: impl IntoIterator<Item = f64>) -> Vec<Bounds> {
        all.into_iter().map(Bounds::exact).collect()
    }

    #[test]
    fn a_quantile_with_cut_off_values_is_a_range() {
        let mut all = exact((1..=96).map(f64::from));
        all.extend([Bounds::above(200.0); 5]);
        let summary = values(false, &all).summary(WindowSummary::default());
        assert!((summary.median.unwrap() / 51.0 - 1.0).abs() < 3.67e-4, "{summary:?}");
        assert_eq!((summary.least, summary.p99, summary.most), (Some(1.0), None, None));
        let ranges = summary.ranges.unwrap();
        assert_eq!((ranges.least, ranges.most), (Range::exact(1.0), Range { low: Some(200.0), high: None }));
        assert_eq!(ranges.p99, Range { low: Some(200.0), high: None });
        assert_eq!(ranges.median.value(), summary.median);
    }

    /// Nothing is known of a value that was cut off before it was printed, so it may be below or above the others.
    #[test]
    fn unknown_values_move_a_quantile_in_both_directions() {
        let mut all = exact((1..=90).map(f64::from));
        all.extend([Bounds { low: 0.0, high: f64::INFINITY }; 10]);
        let median = values(false, &all).quantile(0.5).unwrap();
        assert!((median.low / 40.5 - 1.0).abs() < 1e-3 && (median.high / 50.5 - 1.0).abs() < 1e-3, "{median:?}");
        let summary = values(false, &all).summary(WindowSummary::default());
        assert_eq!(summary.ranges.unwrap().least, Range { low: Some(0.0), high: Some(1.0) });
        assert_eq!(summary.median, None);
    }

    #[test]
    fn values_outside_of_the_table_are_ranges_too() {
        let near = values(false, &exact((1..=14).map(|value| f64::from(value) * 1e-6)));
        let summary = { near }.summary(WindowSummary::default());
        assert_eq!((summary.least, summary.median, summary.most), (Some(1e-6), None, Some(14e-6)));
        assert_eq!(summary.ranges.unwrap().p99, Range { low: Some(1e-6), high: Some(14e-6) });
        let zeros = values(true, &exact([0.0; 9])).quantile(0.5);
        assert_eq!(zeros, Some(Bounds::exact(0.0)));
        let far = values(true, &exact([-1e20, 1e18, 1e19])).quantile(0.5);
        assert_eq!(far, Some(Bounds { low: FARTHEST, high: 1e19 }));
        let between = values(false, &exact([5.0, 1e19])).quantile(0.25);
        assert!(between.is_some_and(|range| range.low < 5.01 && range.high == 1e19), "{between:?}");
        let negative = values(true, &exact([-1e20, -1e19, 3.0])).quantile(0.0);
        assert_eq!(negative, Some(Bounds { low: -1e20, high: -FARTHEST }));
        assert_eq!(values(false, &[]).quantile(0.5), None);
    }

    #[test]
    fn merged_values_have_the_quantiles_of_all() {
        let early = exact((1..=50).map(f64::from));
        let late: Vec<Bounds> =
            exact((51..=100).map(f64::from)).into_iter().chain([Bounds::above(90.0), Bounds::above(1e-6)]).collect();
        let mut merged = values(false, &early);
        merged.merge(&values(false, &late));
        let mut all = values(false, &[early, late].concat());
        assert_eq!(merged.summary(WindowSummary::default()), all.summary(WindowSummary::default()));
        merged.clear();
        assert_eq!(merged.summary(WindowSummary::default()), WindowSummary::default());
    }
}
