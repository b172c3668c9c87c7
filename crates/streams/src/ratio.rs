//! Exact fractions, for rates and offsets.

use std::cmp::Ordering;
use std::fmt;

/// A fraction in lowest terms, with a positive denominator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ratio {
    above: i128,
    below: i128,
}

impl Ratio {
    /// The ratio 0.
    pub const ZERO: Ratio = Ratio::whole(0);
    /// The ratio 1.
    pub const ONE: Ratio = Ratio::whole(1);

    /// Returns a whole number as a fraction.
    #[must_use]
    pub const fn whole(value: i128) -> Ratio {
        Ratio { above: value, below: 1 }
    }

    /// Returns the numerator and the denominator.
    #[must_use]
    pub fn parts(self) -> (i128, i128) {
        (self.above, self.below)
    }

    /// Returns the nearest `f64`.
    #[must_use]
    pub fn value(self) -> f64 {
        self.above as f64 / self.below as f64
    }

    /// Makes a fraction in lowest terms. Returns `None` if a part has more than 62 bits, so that products of two parts
    /// never overflow.
    fn new(above: i128, below: i128) -> Option<Ratio> {
        let divisor = gcd_of(above.unsigned_abs(), below.unsigned_abs()).max(1) as i128;
        let (above, below) = (above / divisor, below / divisor);
        let is_small = above.unsigned_abs() < 1 << 62 && below < 1 << 62;
        is_small.then_some(Ratio { above, below })
    }

    pub(crate) fn plus(self, other: Ratio) -> Option<Ratio> {
        Ratio::new(self.above * other.below + other.above * self.below, self.below * other.below)
    }

    pub(crate) fn minus(self, other: Ratio) -> Option<Ratio> {
        self.plus(Ratio { above: -other.above, ..other })
    }

    pub(crate) fn times(self, n: u64) -> Option<Ratio> {
        Ratio::new(self.above * i128::from(n), self.below)
    }

    pub(crate) fn over(self, n: u64) -> Option<Ratio> {
        Ratio::new(self.above, self.below * i128::from(n))
    }

    /// Returns how many times `other`, which is positive, this fraction is.
    pub(crate) fn relative_to(self, other: Ratio) -> Option<Ratio> {
        Ratio::new(self.above * other.below, self.below * other.above)
    }

    /// Returns the greatest whole number that is not above the fraction. Returns `None` if it is negative.
    pub(crate) fn floor(self) -> Option<u64> {
        u64::try_from(self.above.div_euclid(self.below)).ok()
    }
}

impl PartialOrd for Ratio {
    fn partial_cmp(&self, other: &Ratio) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ratio {
    fn cmp(&self, other: &Ratio) -> Ordering {
        (self.above * other.below).cmp(&(other.above * self.below))
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.below {
            1 => write!(f, "{}", self.above),
            below => write!(f, "{}/{below}", self.above),
        }
    }
}

fn gcd_of(mut a: u128, mut b: u128) -> u128 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Returns the greatest common divisor.
pub(crate) fn gcd(a: u64, b: u64) -> u64 {
    gcd_of(a.into(), b.into()) as u64
}

/// Returns the least common multiple, if a `u64` can hold it.
pub(crate) fn lcm(a: u64, b: u64) -> Option<u64> {
    (a / gcd(a, b).max(1)).checked_mul(b)
}
