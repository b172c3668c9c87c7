//! Whole numbers times powers of two, of any size. Doubles, their sums and their products are such numbers exactly.

use std::cmp::Ordering;

use ascertain_numeric::sum::Exact;
use num_bigint::{BigInt, Sign};

/// The number `digits · 2^exponent`.
#[derive(Clone, Debug)]
pub(crate) struct Dyadic {
    digits: BigInt,
    exponent: i32,
}

impl Dyadic {
    /// Converts a finite double.
    pub fn from_f64(x: f64) -> Dyadic {
        let biased = (x.to_bits() >> 52) as i32 & 0x7ff;
        let significand = (x.to_bits() & ((1 << 52) - 1) | u64::from(biased > 0) << 52) as i64;
        let digits = BigInt::from(if x < 0.0 { -significand } else { significand });
        Dyadic { digits, exponent: biased.max(1) - 1075 }
    }

    pub fn whole(number: u64) -> Dyadic {
        Dyadic { digits: number.into(), exponent: 0 }
    }

    /// Converts a finite sum without rounding. The result is built from the double nearest to the sum, the double
    /// nearest to the remainder, and so on until nothing is left.
    pub fn from_sum(mut sum: Exact) -> Dyadic {
        let mut all = Dyadic::whole(0);
        loop {
            let part = sum.round();
            if part == 0.0 {
                return all;
            }
            all = all.plus(&Dyadic::from_f64(part));
            sum.add(-part);
        }
    }

    pub fn times(&self, other: &Dyadic) -> Dyadic {
        Dyadic { digits: &self.digits * &other.digits, exponent: self.exponent + other.exponent }
    }

    pub fn plus(&self, other: &Dyadic) -> Dyadic {
        let exponent = self.exponent.min(other.exponent);
        Dyadic { digits: self.digits_from(exponent) + other.digits_from(exponent), exponent }
    }

    pub fn minus(&self, other: &Dyadic) -> Dyadic {
        self.plus(&Dyadic { digits: -&other.digits, exponent: other.exponent })
    }

    /// Returns the sign as a comparison with 0.
    pub fn sign(&self) -> Ordering {
        self.digits.sign().cmp(&Sign::NoSign)
    }

    /// Returns this number divided by 2^`exponent`. The result is an integer, because `exponent` must not exceed the
    /// exponent of this number.
    fn digits_from(&self, exponent: i32) -> BigInt {
        &self.digits << (self.exponent - exponent)
    }
}

impl PartialEq for Dyadic {
    fn eq(&self, other: &Dyadic) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Dyadic {}

impl PartialOrd for Dyadic {
    fn partial_cmp(&self, other: &Dyadic) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Dyadic {
    fn cmp(&self, other: &Dyadic) -> Ordering {
        self.minus(other).sign()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of_whole(x: i64) -> Dyadic {
        Dyadic { digits: x.into(), exponent: 0 }
    }

    proptest! {
        #[test]
        fn it_calculates_as_whole_numbers_do(a: i64, b: i64, c: i64, up in 0..40_i32) {
            let [x, y, z] = [a, b, c].map(of_whole);
            let (a, b, c) = (i128::from(a), i128::from(b), i128::from(c));
            let power = Dyadic::from_f64(2f64.powi(up));
            prop_assert_eq!(x.times(&y).cmp(&z.times(&power)), (a * b).cmp(&(c << up)));
            prop_assert_eq!(x.plus(&y).times(&z).cmp(&x.times(&z)), ((a + b) * c).cmp(&(a * c)));
            prop_assert_eq!(x.minus(&y).plus(&y), x.clone());
            // (x + y)·(x − y) = x² − y², with numbers far outside the range of a double.
            let far = Dyadic::from_f64(2f64.powi(-1000));
            let left = x.plus(&y).times(&x.minus(&y)).times(&far).times(&far);
            prop_assert_eq!(left, x.times(&x).minus(&y.times(&y)).times(&far).times(&far));
        }

        #[test]
        fn doubles_and_their_sums_are_what_they_are(xs in proptest::collection::vec(proptest::num::f64::NORMAL | proptest::num::f64::SUBNORMAL, 2..20)) {
            let xs: Vec<f64> = xs.into_iter().map(|x| x / 64.0).collect();
            for pair in xs.windows(2) {
                prop_assert_eq!(Dyadic::from_f64(pair[0]).partial_cmp(&Dyadic::from_f64(pair[1])), pair[0].partial_cmp(&pair[1]));
            }
            let one_by_one = xs.iter().fold(Dyadic::from_f64(0.0), |all, x| all.plus(&Dyadic::from_f64(*x)));
            prop_assert_eq!(Dyadic::from_sum(xs.iter().collect()), one_by_one);
        }
    }
}
