//! How precisely values and their statistics are known.

/// Half a unit in the last place of 1.
pub(crate) const UNIT: f64 = f64::EPSILON / 2.0;

/// Bounds of what rounding did to the pooled values: nothing if they are exact. Else the second sample's had a shift
/// and a scale undone, and before that each was read from decimals. With `D/S` the quotient of the shift and the scale,
/// that is at most `3u (|x| + |D/S|)` for a value `x`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Precision {
    pub is_exact: bool,
    /// Whether the sum of any of the values is a double, in whatever order they are added: small multiples of one
    /// number.
    pub adds_exactly: bool,
    /// `|D/S|`.
    undone: f64,
    sum: f64,
    root_of_squares: f64,
    /// What no sum of squares, and no square of a sum, is above.
    greatest_square: f64,
}

impl Precision {
    /// Of pooled values, given that `undone` is the magnitude of what was subtracted, on the scale of the first sample.
    pub fn new(values: &[f64], undone: f64, is_exact: bool) -> Precision {
        let count = values.len() as f64;
        let sum: f64 = values.iter().map(|x| x.abs()).sum();
        let squares: f64 = values.iter().map(|x| x * x).sum();
        Precision {
            is_exact,
            adds_exactly: is_exact && adds_exactly(values),
            undone,
            sum: 3.01 * UNIT * (sum + count * undone) + f64::MIN_POSITIVE,
            root_of_squares: 3.01 * UNIT * (squares.sqrt() + count.sqrt() * undone) + f64::MIN_POSITIVE.sqrt(),
            greatest_square: count * squares,
        }
    }

    /// Whether sums, and where they are needed squares, are within a double's range.
    pub fn is_finite(&self, with_squares: bool) -> bool {
        self.sum.is_finite() && (!with_squares || self.greatest_square.is_finite())
    }

    /// Of one value.
    pub fn of_value(&self, value: f64) -> f64 {
        if self.is_exact { 0.0 } else { 3.01 * UNIT * (value.abs() + self.undone) + f64::MIN_POSITIVE }
    }

    /// Of the sum of any of the values.
    pub fn of_sum(&self) -> f64 {
        if self.is_exact { 0.0 } else { self.sum }
    }

    /// Of the standard deviation of any `count` of the values: that of a sum is at most the sum of the deviations. Also
    /// of what calculating it with so many digits does, for values that are exact.
    pub fn of_deviation(&self, count: usize) -> f64 {
        self.root_of_squares / (count as f64 - 1.0).sqrt()
    }
}

/// Whether every sum of some of the numbers is a double, and therefore exact in any order: whole multiples of one power
/// of two of which all together are at most 2^53.
pub(crate) fn adds_exactly(numbers: &[f64]) -> bool {
    let last_bit = |x: f64| {
        let (exponent, fraction) = ((x.to_bits() >> 52) as i32 & 0x7ff, x.to_bits() & ((1 << 52) - 1));
        let significand = fraction | u64::from(exponent > 0) << 52;
        exponent.max(1) - 1075 + significand.trailing_zeros() as i32
    };
    let Some(least) = numbers.iter().filter(|x| **x != 0.0).map(|x| last_bit(*x)).min() else { return true };
    // An addition that rounds leaves a sum that is no less than 2^53 of the last bit, and it grows from there.
    numbers.iter().map(|x| x.abs()).sum::<f64>() < 2f64.powi(least.saturating_add(53).min(1023))
}
