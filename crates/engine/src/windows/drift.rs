//! Changes in the course of a long measurement: the first windows against the last, and a trend of the medians.

use serde::{Deserialize, Serialize};

use super::WindowSummary;

/// Smallest number of windows with values for a trend. For fewer windows, the normal approximation is not valid.
const FEWEST: usize = 10;
/// Deviation, in standard deviations, above which a trend is reported as notable. The signs of unlike trials have the
/// same limit. Without drift, chance alone exceeds it in 1 of 15,000 runs.
const NOTABLE: f64 = 4.0;

/// Figures about changes in the course of a long measurement. Windows without values are left out.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Drift {
    /// Number of windows in each of the two parts that are compared: a quarter of the windows, and at least one.
    pub windows: u64,
    /// Median of the window medians in the first part.
    pub median_first: f64,
    /// Median of the window medians in the last part.
    pub median_last: f64,
    /// Median of the 99th percentiles in the first part; `None` if it is above the time limit.
    pub p99_first: Option<f64>,
    /// Median of the 99th percentiles in the last part; `None` if it is above the time limit.
    pub p99_last: Option<f64>,
    /// The trend of the window medians; `None` if fewer than ten windows have values.
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
        let with_values: Vec<&WindowSummary> = windows.iter().filter(is_whole).filter(|w| w.median.is_some()).collect();
        if with_values.len() < 2 {
            return None;
        }
        let part = (with_values.len() / 4).max(1);
        let ends = [&with_values[..part], &with_values[with_values.len() - part..]];
        let [median_first, median_last] =
            ends.map(|part| middle(part.iter().map(|window| window.median.unwrap_or(f64::INFINITY)).collect()));
        let [p99_first, p99_last] =
            ends.map(|part| middle(part.iter().map(|window| window.p99.unwrap_or(f64::INFINITY)).collect()));
        let finite = |value: f64| value.is_finite().then_some(value);
        let medians: Vec<f64> = with_values.iter().filter_map(|window| window.median).collect();
        Some(Drift {
            windows: part as u64,
            median_first,
            median_last,
            p99_first: finite(p99_first),
            p99_last: finite(p99_last),
            trend: trend(&medians),
        })
    }
}

/// Returns the median of some values; the mean of the two middle values if their number is even.
fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len().is_multiple_of(2) { f64::midpoint(values[half - 1], values[half]) } else { values[half] }
}

/// Returns the trend of values in the order of time. The variance is corrected for ties.
fn trend(values: &[f64]) -> Option<Trend> {
    if values.len() < FEWEST {
        return None;
    }
    let mut sum = 0_i64;
    for (index, early) in values.iter().enumerate() {
        sum += values[index + 1..].iter().map(|late| i64::from(late > early) - i64::from(late < early)).sum::<i64>();
    }
    let n = values.len() as f64;
    let spread = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0);
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let ties: f64 = sorted.chunk_by(|a, b| a == b).map(|equal| spread(equal.len() as f64)).sum();
    let variance = (spread(n) - ties) / 18.0;
    let tau = sum as f64 / (n * (n - 1.0) / 2.0);
    // The continuity correction moves the sum by one towards zero.
    let deviations = if variance > 0.0 { (sum - sum.signum()) as f64 / variance.sqrt() } else { 0.0 };
    Some(Trend { tau, deviations, is_notable: deviations.abs() > NOTABLE })
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn the_first_windows_are_compared_with_the_last() {
        let drift = Drift::of(&windows((0..40).map(f64::from)), 1).unwrap();
        assert_eq!((drift.windows, drift.median_first, drift.median_last), (10, 4.5, 34.5));
        assert_eq!((drift.p99_first, drift.p99_last), (Some(9.0), Some(69.0)));
        let trend = drift.trend.unwrap();
        assert!(trend.tau == 1.0 && trend.is_notable && trend.deviations > 9.0, "{trend:?}");
        assert_eq!(Drift::of(&windows([1.0]), 1), None);
        assert_eq!(Drift::of(&windows([1.0, 2.0]), 1).unwrap().trend, None);
        // The second window of 1 ns is not complete if windows last 2 ns.
        assert_eq!(Drift::of(&windows([1.0, 2.0]), 2), None);
    }

    /// Of the 45 pairs of these values, 30 rise and 15 fall.
    #[test]
    fn the_trend_is_that_of_kendall() {
        let trend = trend(&[3.0, 1.0, 4.0, 1.5, 5.0, 9.0, 2.0, 6.0, 5.5, 3.5]).unwrap();
        assert!((trend.tau - 15.0 / 45.0).abs() < 1e-12, "{trend:?}");
        assert!(!trend.is_notable);
        let equal = super::trend(&[1.0; 12]).unwrap();
        assert_eq!((equal.tau, equal.deviations, equal.is_notable), (0.0, 0.0, false));
    }
}
