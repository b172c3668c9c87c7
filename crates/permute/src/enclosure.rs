//! A computed number with a lower and an upper bound of the exact number.

use crate::pool;

/// The range of a number that is not known exactly: from `low` to `high`, both included. Operations round both bounds
/// outward. A difference or multiple that is exact is not rounded, so both bounds of an exact number stay equal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Enclosure {
    pub low: f64,
    /// The computed number, with ordinary rounding.
    pub value: f64,
    pub high: f64,
}

impl Enclosure {
    pub fn exact(value: f64) -> Enclosure {
        Enclosure { low: value, value, high: value }
    }

    /// Creates an enclosure of a value that is off by at most `error`.
    pub fn around(value: f64, error: f64) -> Enclosure {
        if error == 0.0 {
            return Enclosure::exact(value);
        }
        Enclosure { low: (value - error).next_down(), value, high: (value + error).next_up() }
    }

    /// Returns `factor · x + term`, for a positive factor.
    pub fn transformed(self, factor: f64, term: f64) -> Enclosure {
        if (factor, term) == (1.0, 0.0) {
            return self;
        }
        let low = (self.low * factor).next_down() + term;
        let high = (self.high * factor).next_up() + term;
        Enclosure { low: low.next_down(), value: self.value * factor + term, high: high.next_up() }
    }

    pub fn less(self, other: Enclosure) -> Enclosure {
        let ((low, lost_low), (high, lost_high)) = (pool::less(self.low, other.high), pool::less(self.high, other.low));
        Enclosure {
            low: if lost_low == 0.0 { low } else { low.next_down() },
            value: self.value - other.value,
            high: if lost_high == 0.0 { high } else { high.next_up() },
        }
    }

    /// Returns the enclosure of `factor · x`, for a positive whole number `factor`.
    pub fn times(self, factor: f64) -> Enclosure {
        let (low, high) = (self.low * factor, self.high * factor);
        let is_exact = |x: f64, product: f64| x.mul_add(factor, -product) == 0.0;
        Enclosure {
            low: if is_exact(self.low, low) { low } else { low.next_down() },
            value: self.value * factor,
            high: if is_exact(self.high, high) { high } else { high.next_up() },
        }
    }

    /// Returns the quotient of two numbers that are at least 0. It is unbounded if the divisor may be zero.
    pub fn divided_by(self, other: Enclosure) -> Enclosure {
        if self.low == self.high && self.low == other.low && self.low == other.high && self.low > 0.0 {
            return Enclosure::exact(1.0);
        }
        let low = if other.high > 0.0 { (self.low.max(0.0) / other.high).next_down() } else { 0.0 };
        let high = if other.low > 0.0 { (self.high / other.low).next_up() } else { f64::INFINITY };
        Enclosure { low, value: self.value / other.value, high }
    }

    /// Returns the enclosure of the greatest or the smallest of several numbers. `pick` is the function that returns
    /// the greater or the smaller of two.
    pub fn extreme(all: &[Enclosure], pick: fn(f64, f64) -> f64) -> Enclosure {
        let of = |part: fn(&Enclosure) -> f64| all.iter().map(part).reduce(pick).unwrap_or(f64::NAN);
        Enclosure { low: of(|each| each.low), value: of(|each| each.value), high: of(|each| each.high) }
    }
}
