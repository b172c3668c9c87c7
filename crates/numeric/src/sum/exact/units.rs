//! Blocks of `f32` that are summed as integers: whole multiples of a power of two.

use super::window::Exponents;
use crate::standard;

/// Exponent of the unit that is tried first. A unit is a power of two, and each number of a block must be a whole
/// multiple of it. This unit fits numbers from 2^−25 to 2^15.
pub const FIRST_UNIT: i32 = -48;

/// Exponent of the smallest unit, the power of two whose multiples are counted. To convert numbers
/// to this unit, they are multiplied by 2^127, which is still a finite `f32`.
const LEAST_UNIT: i32 = -127;

/// Largest number of bits of a number that is counted in units: a signed 64-bit integer has 63 bits in addition to its
/// sign.
const BITS: i32 = 63;

/// Number of bits that stay free above the greatest number of a block when a unit is chosen for it. The unit then also
/// fits a next block with slightly greater numbers.
const SPARE_BITS: i32 = 2;

/// The sum of a block in units of a power of two, computed without checking whether the numbers [fit](UnitSum::fits).
#[derive(Clone, Copy)]
pub struct UnitSum {
    /// The sum modulo 2^64.
    pub low: i64,
    /// An approximation of the sum, off by at most 2^60 units.
    pub about: f64,
    /// The range of the exponents of the block's numbers.
    pub exponents: Exponents,
}

impl UnitSum {
    /// Returns whether the sum is valid: every number of the block was a whole multiple of 2^unit and fitted into an
    /// integer.
    pub fn fits(&self, unit: i32) -> bool {
        match self.exponents {
            Exponents::Between { least, greatest } => least - LAST_BIT >= unit && greatest < unit + BITS,
            Exponents::Zeros => true,
            Exponents::Special => false,
        }
    }

    /// Returns the sum, provided that the numbers fit.
    ///
    /// `low` is the sum modulo 2^64, and `about` shows which multiple of 2^64 is missing. `about` is the sum of at most
    /// 4,096 numbers below 2^63, in 32 chains of 128 additions. The error of an addition is at most 2^−24 times the sum
    /// of its chain. All chains together are below 2^75, so the errors in the chains are at most 128·2^−24·2^75 = 2^58.
    /// Adding the chains to each other makes the error slightly larger.
    pub fn total(&self) -> i128 {
        const WRAP: f64 = (1_u128 << 64) as f64;
        let wraps = standard::round((self.about - self.low as f64) / WRAP) as i128;
        i128::from(self.low) + (wraps << 64)
    }
}

/// Distance in bits from the first bit of an `f32` number's significand to the last.
const LAST_BIT: i32 = f32::MANTISSA_DIGITS as i32 - 1;

/// Returns the exponent of a unit that fits numbers with these exponents, if there is one.
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
