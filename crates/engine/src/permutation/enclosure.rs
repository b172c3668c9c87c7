//! A number as it was computed, and two that the exact one lies between.

/// From `low` to `high`, both included. Every operation rounds them outward.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Enclosure {
    pub low: f64,
    /// As it was computed.
    pub value: f64,
    pub high: f64,
}

impl Enclosure {
    /// A value that is off by at most `error`.
    pub fn around(value: f64, error: f64) -> Enclosure {
        Enclosure { low: (value - error).next_down(), value, high: (value + error).next_up() }
    }

    /// `factor · x + term`, for a positive factor.
    pub fn transformed(self, factor: f64, term: f64) -> Enclosure {
        if (factor, term) == (1.0, 0.0) {
            return self;
        }
        let low = (self.low * factor).next_down() + term;
        let high = (self.high * factor).next_up() + term;
        Enclosure { low: low.next_down(), value: self.value * factor + term, high: high.next_up() }
    }

    pub fn less(self, other: Enclosure) -> Enclosure {
        Enclosure {
            low: (self.low - other.high).next_down(),
            value: self.value - other.value,
            high: (self.high - other.low).next_up(),
        }
    }

    /// The quotient of two numbers that are known not to be negative; it is unbounded where the divisor may be zero.
    pub fn divided_by(self, other: Enclosure) -> Enclosure {
        let low = if other.high > 0.0 { (self.low.max(0.0) / other.high).next_down() } else { 0.0 };
        let high = if other.low > 0.0 { (self.high / other.low).next_up() } else { f64::INFINITY };
        Enclosure { low, value: self.value / other.value, high }
    }

    /// The greatest, or the least, of several, as `pick` says.
    pub fn extreme(all: &[Enclosure], pick: fn(f64, f64) -> f64) -> Enclosure {
        let of = |part: fn(&Enclosure) -> f64| all.iter().map(part).reduce(pick).unwrap_or(f64::NAN);
        Enclosure { low: of(|each| each.low), value: of(|each| each.value), high: of(|each| each.high) }
    }
}
