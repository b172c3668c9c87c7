//! Changes in the course of a long measurement: the first windows against the last, and a trend of the medians.

use serde::{Deserialize, Serialize};

use super::{Range, WindowSummary};
use crate::values::Bounds;

/// Smallest number of windows with values for a trend. With fewer windows, even medians that only rise are not notable.
const FEWEST: usize = 11;
/// Deviation, in standard deviations, above which a trend is reported as notable. The signs of unlike trials have the
/// same limit. Without drift, chance alone exceeds it in 1 of 15,000 runs.
const NOTABLE: f64 = 4.0;

/// Figures about changes in the course of a long measurement. Windows without values are left out.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Drift {
    /// Number of windows in each of the two parts that are compared: a quarter of the windows, and at least one.
    pub windows: u64,
    /// Median of the window medians in the first part. It is a range if values were cut off.
    pub median_first: Range,
    /// Median of the window medians in the last part.
    pub median_last: Range,
    /// Median of the 99th percentiles in the first part.
    pub p99_first: Range,
    /// Median of the 99th percentiles in the last part.
    pub p99_last: Range,
    /// The trend of the window medians; `None` if fewer than eleven windows have values.
    pub trend: Option<Trend>,
}

/// The rank correlation of the window medians with time: Kendall's tau, with the test of Mann and Kendall.
///
/// The test assumes that, without drift, the medians of the windows are exchangeable. If neighbouring windows are alike
/// for other reasons, such as a daily rhythm, a trend may be reported without a lasting change.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trend {
    /// Kendall's tau, from −1 (each median is below the one before it) to 1 (each is above).
    pub tau: f64,
    /// Deviation of the number of rising pairs from its mean without drift, in standard deviations.
    pub deviations: f64,
    /// `true` if the deviation is greater than 4 standard deviations.
    pub is_notable: bool,
}

impl Drift {
    /// Computes the figures from the windows of a run. The last window is left out if it is not complete.
    pub(super) fn of(windows: &[WindowSummary], window_ns: u64) -> Option<Drift> {
        let is_whole = |window: &&WindowSummary| window.end_ns - window.start_ns >= window_ns;
        let has_values = |window: &&WindowSummary| !window.median_range().is_none();
        let with_values: Vec<&WindowSummary> = windows.iter().filter(is_whole).filter(has_values).collect();
        if with_values.len() < 2 {
            return None;
        }
        let part = (with_values.len() / 4).max(1);
        let ends = [&with_values[..part], &with_values[with_values.len() - part..]];
        let middle_of = |figure: fn(&WindowSummary) -> Bounds| {
            ends.map(|part| {
                let bound = |of: fn(Bounds) -> f64| middle(part.iter().map(|window| of(figure(window))).collect());
                Range::of(Bounds { low: bound(|range| range.low), high: bound(|range| range.high) })
            })
        };
        let [median_first, median_last] = middle_of(WindowSummary::median_range);
        let [p99_first, p99_last] = middle_of(WindowSummary::p99_range);
        let medians: Vec<Bounds> = with_values.iter().map(|window| window.median_range()).collect();
        Some(Drift { windows: part as u64, median_first, median_last, p99_first, p99_last, trend: trend(&medians) })
    }
}

/// Returns the median of some values; the mean of the two middle values if their number is even.
fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len().is_multiple_of(2) { f64::midpoint(values[half - 1], values[half]) } else { values[half] }
}

/// Returns 1 if the value rises, −1 if it falls, and 0 if it stays the same or if this is unknown.
fn sign(early: Bounds, late: Bounds) -> i64 {
    // The bounds of a range do not belong to it, unless they are equal.
    let is_below = |low: Bounds, high: Bounds| low.high <= high.low && low.low < high.high;
    i64::from(is_below(early, late)) - i64::from(is_below(late, early))
}

/// Returns the trend of values in the order of time.
///
/// The variance is the variance of a rank correlation under all orders of the values, for any signs of the pairs.
/// Without ties and ranges, it equals n (n − 1) (2n + 5) / 18. The formula is from Daniels 1944, "The relation between
/// measures of correlation in the universe of sample permutations".
fn trend(values: &[Bounds]) -> Option<Trend> {
    if values.len() < FEWEST {
        return None;
    }
    let (mut sum, mut decided, mut above) = (0_i64, 0_u64, vec![0_i64; values.len()]);
    for (index, early) in values.iter().enumerate() {
        for (place, late) in values.iter().enumerate().skip(index + 1) {
            let sign = sign(*early, *late);
            sum += sign;
            decided += sign.unsigned_abs();
            above[place] += sign;
            above[index] -= sign;
        }
    }
    let n = values.len() as f64;
    let (pairs, squares) = (2.0 * decided as f64, above.iter().map(|above| (above * above) as f64).sum::<f64>());
    let variance = (squares - pairs) / 3.0 + pairs / 2.0;
    let tau = sum as f64 / (n * (n - 1.0) / 2.0);
    // The continuity correction moves the sum by one towards zero.
    let deviations = if variance > 0.0 { (sum - sum.signum()) as f64 / variance.sqrt() } else { 0.0 };
    Some(Trend { tau, deviations, is_notable: deviations.abs() > NOTABLE })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::windows::Ranges;

    fn windows(medians: impl IntoIterator<Item = f64>) -> Vec<WindowSummary> {
        let window = |(index, median): (u64, f64)| WindowSummary {
            start_ns: index,
            end_ns: index + 1,
            median: Some(median),
            p99: Some(2.0 * median),
            ..WindowSummary::default()
        };
        (0..).zip(medians).map(window).collect()
    }

    fn exact(values: &[f64]) -> Vec<Bounds> {
        values.iter().map(|value| Bounds::exact(*value)).collect()
    }

    #[test]
    fn the_first_windows_are_compared_with_the_last() {
        let drift = Drift::of(&windows((0..40).map(f64::from)), 1).unwrap();
        let range = Range::exact;
        assert_eq!((drift.windows, drift.median_first, drift.median_last), (10, range(4.5), range(34.5)));
        assert_eq!((drift.p99_first, drift.p99_last), (range(9.0), range(69.0)));
        let trend = drift.trend.unwrap();
        assert!(trend.tau == 1.0 && trend.is_notable && trend.deviations > 9.0, "{trend:?}");
        assert_eq!(Drift::of(&windows([1.0]), 1), None);
        assert_eq!(Drift::of(&windows([1.0, 2.0]), 1).unwrap().trend, None);
        // The second window of 1 ns is not complete if windows last 2 ns.
        assert_eq!(Drift::of(&windows([1.0, 2.0]), 2), None);
    }

    #[test]
    fn windows_whose_median_was_cut_off_are_not_left_out() {
        let mut windows = windows((0..60).map(|window| 5.0 + f64::from(window % 7)));
        for window in &mut windows[45..] {
            let above = Range { low: Some(200.0), high: None };
            let ranges =
                Ranges { least: Range::exact(4.0), median: above, p90: above, p99: above, p999: above, most: above };
            *window = WindowSummary { least: Some(4.0), median: None, p99: None, ranges: Some(ranges), ..*window };
        }
        let drift = Drift::of(&windows, 1).unwrap();
        assert_eq!((drift.windows, drift.median_first), (15, Range::exact(8.0)));
        assert_eq!([drift.median_last, drift.p99_last], [Range { low: Some(200.0), high: None }; 2]);
        let trend = drift.trend.unwrap();
        assert!(trend.is_notable && trend.tau > 0.3, "{trend:?}");
    }

    #[test]
    fn ranges_that_overlap_do_not_make_a_trend() {
        let widening = |width: i32| Bounds { low: 100.0 - f64::from(width), high: 100.0 + f64::from(width) };
        let trend = trend(&(1..=40).map(widening).collect::<Vec<_>>()).unwrap();
        assert_eq!((trend.tau, trend.deviations), (0.0, 0.0));
    }

    #[test]
    fn the_fewest_windows_that_can_have_a_notable_trend_have_one() {
        let rising: Vec<f64> = (0..11).map(|window| f64::from(1 << window)).collect();
        assert!(trend(&exact(&rising)).unwrap().is_notable);
        assert_eq!(trend(&exact(&rising[..10])), None);
    }

    /// Of the 55 pairs of these values, 36 rise and 19 fall. The variance is 11 · 10 · 27 / 18.
    #[test]
    fn the_trend_is_that_of_kendall() {
        let trend = trend(&exact(&[3.0, 1.0, 4.0, 1.5, 5.0, 9.0, 2.0, 6.0, 5.5, 3.5, 4.5])).unwrap();
        assert!((trend.tau - 17.0 / 55.0).abs() < 1e-12, "{trend:?}");
        assert!((trend.deviations - 16.0 / 165_f64.sqrt()).abs() < 1e-12, "{trend:?}");
        assert!(!trend.is_notable);
        let equal = super::trend(&exact(&[1.0; 12])).unwrap();
        assert_eq!((equal.tau, equal.deviations, equal.is_notable), (0.0, 0.0, false));
    }

    /// The usual correction of the variance for ties subtracts t (t − 1) (2t + 5) / 18 for each group of t equal
    /// values.
    #[test]
    fn ties_lower_the_variance() {
        let values = [1.0, 1.0, 1.0, 2.0, 2.0, 3.0, 4.0, 5.0, 5.0, 6.0, 7.0, 8.0];
        let spread = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0) / 18.0;
        let variance: f64 = spread(12.0) - spread(3.0) - 2.0 * spread(2.0);
        let trend = trend(&exact(&values)).unwrap();
        assert!((trend.deviations - 60.0 / variance.sqrt()).abs() < 1e-12, "{trend:?}");
    }
}
