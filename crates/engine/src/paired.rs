//! The paired statistic of a claim (a ratio or a difference, one a trial) and the confidence sequence
//! of the quantile that the claim speaks of.

use ascertain_stats::{quantile_ranks, quantile_sorted};

/// A trial's statistic, kept for its quantile.
#[derive(Clone, Debug)]
pub(crate) struct Paired {
    quantile: f64,
    error_low: f64,
    error_high: f64,
    /// Sorted as far as the last look went.
    values: Vec<f64>,
    low: f64,
    high: f64,
}

impl Paired {
    /// For the `quantile`, each end with its own error.
    pub fn new(quantile: f64, error_low: f64, error_high: f64) -> Paired {
        let (low, high) = (f64::NEG_INFINITY, f64::INFINITY);
        Paired { quantile, error_low, error_high, values: Vec::new(), low, high }
    }

    pub fn push(&mut self, value: f64) {
        self.values.push(value);
    }

    /// Brings the interval up to date: the intersection of what every look so far allows.
    pub fn look(&mut self) {
        // Almost sorted already: the standard library's stable sort is linear in that case.
        self.values.sort_by(f64::total_cmp);
        let n = self.values.len() as u64;
        let ranks = quantile_ranks(n, self.quantile, self.error_low, self.error_high);
        let Ok(ranks) = ranks else { return };
        if let Some(rank) = ranks.low {
            self.low = self.low.max(self.values[rank as usize]);
        }
        if let Some(rank) = ranks.high {
            self.high = self.high.min(self.values[rank as usize]);
        }
    }

    /// The interval at the last look; an end that is not bounded yet is infinite.
    pub fn interval(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// Whether nothing is left of the interval: the values are not alike.
    pub fn is_empty(&self) -> bool {
        self.low > self.high
    }

    /// The quantile of the values at the last look.
    pub fn estimate(&self) -> Option<f64> {
        quantile_sorted(&self.values, self.quantile)
    }

    /// Half of the interval's width by its middle: `0.01` is "to 1 %".
    pub fn precision(&self) -> f64 {
        let half_width = (self.high - self.low) / 2.0;
        if half_width.is_finite() { half_width / ((self.high + self.low) / 2.0).abs() } else { f64::INFINITY }
    }
}
