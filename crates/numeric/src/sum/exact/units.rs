//! Blocks of `f32` summed as integers: whole multiples of a power of two.

use super::window::Exponents;
use crate::standard;

/// The unit that is tried first: right for numbers from 2^−25 up to 2^15.
pub const FIRST_UNIT: i32 = -48;

/// The least unit: two to the power of its opposite is a finite `f32`.
const LEAST_UNIT: i32 = -127;

/// Bits that numbers may have above the unit: integers have 63 and a sign.
const BITS: i32 = 63;

/// Powers of two above a block's greatest number, so that the next block may have somewhat greater ones.
const SPARE_BITS: i32 = 2;

/// A block's sum in units of a power of two, by a CPU that did not look whether the numbers [fit](UnitSum::fits).
#[derive(Clone, Copy)]
pub struct UnitSum {
    /// The sum modulo 2^64.
    pub low: i64,
    /// The sum but for at most 2^60.
    pub about: f64,
    /// Of the numbers.
    pub exponents: Exponents,
}

impl UnitSum {
    /// Whether every number was a whole multiple of 2^unit, and had room in an integer.
    pub fn fits(&self, unit: i32) -> bool {
        match self.exponents {
            Exponents::Between { least, greatest } => least - LAST_BIT >= unit && greatest < unit + BITS,
            Exponents::Zeros => true,
            Exponents::Special => false,
        }
    }

    /// The sum, if it fits.
    ///
    /// What wrapped is a multiple of 2^64, and what the sum is about tells which. That is the sum of at most 4,096
    /// numbers below 2^63 by 32 chains of 128 additions, each with an error of at most 2^−24 of the chain: at most
    /// 128·2^−24·2^75 = 2^58, and a little for adding up the chains.
    pub fn total(&self) -> i128 {
        const WRAP: f64 = (1_u128 << 64) as f64;
        let wraps = standard::round((self.about - self.low as f64) / WRAP) as i128;
        i128::from(self.low) + (wraps << 64)
    }
}

/// The last bit of a number's significand is that far below its first.
const LAST_BIT: i32 = f32::MANTISSA_DIGITS as i32 - 1;

/// A unit that numbers with these exponents fit, if there is one.
pub fn unit_of(exponents: Exponents) -> Option<i32> {
    let Exponents::Between { least, greatest } = exponents else { return None };
    let unit = (greatest + 1 + SPARE_BITS - BITS).max(LEAST_UNIT).min(least - LAST_BIT);
    (unit >= LEAST_UNIT && greatest < unit + BITS).then_some(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_fits_what_it_was_made_for() {
        for least in -126..128 {
            for greatest in least..128 {
                let exponents = Exponents::Between { least, greatest };
                let sum = UnitSum { low: 0, about: 0.0, exponents };
                match unit_of(exponents) {
                    Some(unit) => {
                        assert!(sum.fits(unit) && (LEAST_UNIT..127).contains(&unit), "{exponents:?}: {unit}");
                        assert!(!sum.fits(least - LAST_BIT + 1) && !sum.fits(greatest - BITS), "{exponents:?}");
                    }
                    None => assert!(greatest - least > BITS - 1 - LAST_BIT || least < LEAST_UNIT + LAST_BIT),
                }
            }
        }
    }

    #[test]
    fn what_wrapped_is_found_again() {
        let largest = (1_i128 << 63) - (1 << 39);
        for total in [0, 1, -1, largest, -largest, 4096 * largest, -4096 * largest, 1000 * largest + 12_345] {
            for off_by in [0.0, 0.9, -0.9] {
                let about = total as f64 + off_by * (1_u64 << 60) as f64;
                let sum = UnitSum { low: total as i64, about, exponents: Exponents::Zeros };
                assert_eq!(sum.total(), total);
            }
        }
    }
}
