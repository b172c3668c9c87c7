//! An interval of rates.

/// The rates from `low` to `high`, both included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The least rate.
    pub low: f64,
    /// The greatest rate.
    pub high: f64,
}

impl Interval {
    /// Every rate.
    pub const ALL: Interval = Interval { low: 0.0, high: 1.0 };

    /// Whether no rate is left: where intervals of one sequence have nothing in common, its trials are not alike.
    pub fn is_empty(&self) -> bool {
        self.low > self.high
    }

    /// Whether `rate` is in it.
    pub fn contains(&self, rate: f64) -> bool {
        self.low <= rate && rate <= self.high
    }

    /// What both have in common.
    pub fn intersection(&self, other: Interval) -> Interval {
        Interval { low: self.low.max(other.low), high: self.high.min(other.high) }
    }
}
