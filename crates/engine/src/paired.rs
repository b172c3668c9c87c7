//! The paired statistic of a claim (a ratio or a difference, one a trial) and the confidence sequence
//! of the quantile that the claim speaks of.

use ascertain_stats::quantile_ranks;

use crate::values::{Bounds, Sorted};

/// A trial's statistic, kept for its quantile.
#[derive(Clone, Debug)]
pub(crate) struct Paired {
    quantile: f64,
    error_low: f64,
    error_high: f64,
    /// Sorted as far as the last look went.
    values: Sorted,
    low: f64,
    high: f64,
}

impl Paired {
    /// For the `quantile`, each end with its own error.
    pub fn new(quantile: f64, error_low: f64, error_high: f64) -> Paired {
        let (low, high) = (f64::NEG_INFINITY, f64::INFINITY);
        Paired { quantile, error_low, error_high, values: Sorted::default(), low, high }
    }

    pub fn push(&mut self, value: Bounds) {
        self.values.push(value);
    }

    /// Brings the interval up to date: the intersection of what every look so far allows.
    pub fn look(&mut self) {
        self.values.sort();
        let n = self.values.as_slice().len() as u64;
        let ranks = quantile_ranks(n, self.quantile, self.error_low, self.error_high);
        let Ok(ranks) = ranks else { return };
        let (low, high) = self.values.between(ranks);
        (self.low, self.high) = (self.low.max(low), self.high.min(high));
    }

    /// The interval at the last look; an end that is not bounded yet is infinite.
    pub fn interval(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// Whether nothing is left of the interval: the values are not alike.
    pub fn is_empty(&self) -> bool {
        self.low > self.high
    }

    /// The quantile of the values at the last look, as far as it is known.
    pub fn estimate(&self) -> Option<Bounds> {
        self.values.quantile(self.quantile)
    }

    /// Half of the interval's width by its middle: `0.01` is "to 1 %".
    pub fn precision(&self) -> f64 {
        let half_width = (self.high - self.low) / 2.0;
        if half_width.is_finite() { half_width / ((self.high + self.low) / 2.0).abs() } else { f64::INFINITY }
    }
}
