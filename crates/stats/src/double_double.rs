//! Numbers of about 106 bits as the unevaluated sum of two doubles, with the operations that
//! [`Moments`](crate::Moments) needs.
//!
//! T. J. Dekker, *A Floating-Point Technique for Extending the Available Precision*, 1971; Joldes, Muller and Popescu,
//! *Tight and Rigorous Error Bounds for Basic Building Blocks of Double-Word Arithmetic*, 2017.

use std::ops::{Add, Mul, Sub};

/// The number `high + low`, where `low` is at most half a unit in the last place of `high`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct DoubleDouble {
    pub(crate) high: f64,
    pub(crate) low: f64,
}

impl DoubleDouble {
    /// Returns `a + b` exactly (Knuth's two-sum).
    pub(crate) fn sum(a: f64, b: f64) -> Self {
        let high = a + b;
        let b_part = high - a;
        Self { high, low: (a - (high - b_part)) + (b - b_part) }
    }

    /// Returns `a + b` exactly, provided that `|a| ≥ |b|`, with fewer operations than [`DoubleDouble::sum`].
    fn ordered_sum(a: f64, b: f64) -> Self {
        let high = a + b;
        Self { high, low: b - (high - a) }
    }

    /// Returns `a · b` exactly, unless it underflows.
    pub(crate) fn product(a: f64, b: f64) -> Self {
        let high = a * b;
        Self { high, low: a.mul_add(b, -high) }
    }
}

impl Add for DoubleDouble {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let high = Self::sum(self.high, other.high);
        let low = Self::sum(self.low, other.low);
        let partial = Self::ordered_sum(high.high, high.low + low.high);
        Self::ordered_sum(partial.high, partial.low + low.low)
    }
}

impl Sub for DoubleDouble {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self + Self { high: -other.high, low: -other.low }
    }
}

impl Mul for DoubleDouble {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        let high = Self::product(self.high, other.high);
        let cross = self.high * other.low + self.low * other.high;
        Self::ordered_sum(high.high, high.low + cross)
    }
}

impl From<f64> for DoubleDouble {
    fn from(high: f64) -> Self {
        Self { high, low: 0.0 }
    }
}
