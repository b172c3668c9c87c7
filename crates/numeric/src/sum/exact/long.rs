//! The long accumulator: a fixed-point integer that is wide enough for all doubles.

/// Number of bits of a digit. Digits are stored in wider integers, so that carries can wait.
pub const DIGIT_BITS: usize = 32;

/// Number of digits. The largest finite double ends at bit 2,098; two more digits are for carries and the sign.
pub const DIGITS: usize = 68;

/// Number of additions between two rounds of carries. The sum of this many digits below 2^32 still fits into an `i64`.
const ADDITIONS_BEFORE_CARRY: u32 = 1 << 30;

/// Number of stored fraction bits of a double.
const FRACTION_BITS: usize = 52;

/// Limit of the last digit, positive or negative. From this limit on, the sum counts as overflowed. It corresponds to
/// 2^108 times the largest double. A digit of twice the limit still fits into an `i64`, so the last digit can exceed
/// the limit until [`overflow`](LongAccumulator::overflow) is checked.
pub const TOP_LIMIT: i64 = 1 << 62;

/// A fixed-point integer in units of the smallest subnormal, 2^−1074. Kulisch and Miranker 1986, "The arithmetic of the
/// digital computer: a new approach".
#[derive(Clone, Debug)]
pub struct LongAccumulator {
    /// The digits: digit `i` counts 2^(32·i) units.
    pub digits: [i64; DIGITS],
    additions: u32,
}

impl LongAccumulator {
    pub fn new() -> Self {
        Self { digits: [0; DIGITS], additions: 0 }
    }

    /// Adds a finite number.
    pub fn add(&mut self, x: f64) {
        let exponent = (x.to_bits() >> FRACTION_BITS) as usize & 0x7ff;
        let fraction = x.to_bits() & ((1 << FRACTION_BITS) - 1);
        let implicit = u64::from(exponent > 0) << FRACTION_BITS;
        let position = exponent.max(1) - 1;
        self.add_at::<3>(x.is_sign_negative(), u128::from(fraction | implicit), position);
    }

    /// Adds `times` · 2^exponent. `times` is below 2^96 in magnitude, and the exponent is from −1,074 to 900.
    pub fn add_multiple(&mut self, times: i128, exponent: i32) {
        self.add_at::<4>(times < 0, times.unsigned_abs(), (exponent + 1074) as usize);
    }

    /// Adds `number` · 2^`position` units, or subtracts them if `negative`. `TAKEN` is the number of digits that this
    /// changes.
    #[inline]
    fn add_at<const TAKEN: usize>(&mut self, negative: bool, number: u128, position: usize) {
        let mut units = number << (position % DIGIT_BITS);
        for digit in &mut self.digits[position / DIGIT_BITS..][..TAKEN] {
            let part = i64::from(units as u32);
            *digit += if negative { -part } else { part };
            units >>= DIGIT_BITS;
        }
        self.additions += 1;
        if self.additions == ADDITIONS_BEFORE_CARRY {
            self.carry();
        }
    }

    /// Adds the other accumulator. Neither accumulator may have overflowed.
    pub fn merge(&mut self, mut other: LongAccumulator) {
        self.carry();
        other.carry();
        for (digit, more) in self.digits.iter_mut().zip(other.digits) {
            *digit += more;
        }
        self.carry();
    }

    /// Returns the infinity that the digits stand for, if the last digit has reached [`TOP_LIMIT`] after a carry.
    pub fn overflow(&self) -> Option<f64> {
        let top = self.digits[DIGITS - 1];
        (top.unsigned_abs() >= TOP_LIMIT.unsigned_abs()).then(|| f64::INFINITY.copysign(top as f64))
    }

    /// Brings every digit into 0..2^32, except the last, which keeps the sign.
    pub fn carry(&mut self) {
        let mut carry = 0;
        for digit in &mut self.digits[..DIGITS - 1] {
            *digit += carry;
            carry = *digit >> DIGIT_BITS;
            *digit &= i64::from(u32::MAX);
        }
        self.digits[DIGITS - 1] += carry;
        self.additions = 0;
    }

    /// Returns the double nearest to this number.
    pub fn round(mut self) -> f64 {
        self.carry();
        let negative = self.digits[DIGITS - 1] < 0;
        if negative {
            self.digits.iter_mut().for_each(|digit| *digit = -*digit);
            self.carry();
        }
        let magnitude = self.round_magnitude();
        if negative { -magnitude } else { magnitude }
    }

    /// Returns the nearest double, if all digits are in 0..2^32.
    fn round_magnitude(&self) -> f64 {
        let Some(top) = self.digits.iter().rposition(|&digit| digit != 0) else {
            return 0.0;
        };
        let highest_bit = top * DIGIT_BITS + self.digits[top].ilog2() as usize;
        // The number of bits that are dropped: those below a significand of 53 bits.
        let dropped = highest_bit.saturating_sub(FRACTION_BITS);
        if dropped > f64::MAX_EXP as usize + 1021 {
            return f64::INFINITY;
        }
        let (first, shift) = (dropped / DIGIT_BITS, dropped % DIGIT_BITS);
        let window =
            self.digits[first..first + 3].iter().rfold(0_u128, |all, &digit| all << DIGIT_BITS | digit as u128);
        let significand = (window >> shift) as u64 & ((1 << (FRACTION_BITS + 1)) - 1);
        let round_up = dropped > 0 && self.bit(dropped - 1) && (significand & 1 == 1 || self.any_below(dropped - 1));
        // The significand's leading bit adds one to the exponent, and so does a carry out of the significand.
        f64::from_bits(((dropped as u64) << FRACTION_BITS) + significand + u64::from(round_up))
    }

    fn bit(&self, index: usize) -> bool {
        self.digits[index / DIGIT_BITS] >> (index % DIGIT_BITS) & 1 == 1
    }

    /// Returns whether any bit below this index is set.
    fn any_below(&self, index: usize) -> bool {
        let (whole, bits) = (index / DIGIT_BITS, index % DIGIT_BITS);
        self.digits[whole] & ((1 << bits) - 1) != 0 || self.digits[..whole].iter().any(|&digit| digit != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carries_change_nothing() {
        let numbers = [1e300, -1e300, 3.5, f64::MAX, -1e-300, f64::from_bits(1), -2.25, -f64::MAX];
        let mut often = LongAccumulator::new();
        let mut once = LongAccumulator::new();
        for x in numbers.into_iter().cycle().take(1000) {
            often.additions = ADDITIONS_BEFORE_CARRY - 1;
            often.add(x);
            assert_eq!(often.additions, 0);
            once.add(x);
        }
        once.carry();
        assert_eq!(often.digits, once.digits);
        assert_eq!(often.round(), 1.25 * 125.0);
    }

    #[test]
    fn a_digit_has_room_for_the_additions_before_a_carry() {
        let most = i64::from(u32::MAX) * i64::from(ADDITIONS_BEFORE_CARRY);
        assert!(most < i64::MAX - i64::from(u32::MAX), "there is also room for the rest of a carry");
    }
}
