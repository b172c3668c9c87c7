//! The precision of the values and of their statistics.

/// The unit roundoff: half a unit in the last place of 1.
pub(crate) const UNIT: f64 = f64::EPSILON / 2.0;

/// Bounds of the rounding errors in the pooled values. For exact values all bounds are zero. Other values were read
/// from decimals, and a shift `D` and a scale `S` were then removed from the second sample. The error of such a value
/// `x` is at most `3u (|x| + |D/S|)`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Precision {
    pub is_exact: bool,
    /// `true` if every sum of values is exact, in any order, because the values are small multiples of one number.
    pub adds_exactly: bool,
    /// The quotient `|D/S|`: the shift that was removed from the second sample, divided by the scale.
    undone: f64,
    sum: f64,
    root_of_squares: f64,
    /// Upper bound of every sum of squares, and of the square of every sum.
    greatest_square: f64,
}

impl Precision {
    /// Computes the bounds of pooled values. `undone` is the magnitude of the shift that was removed, on the scale of
    /// the first sample.
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

    /// Returns whether sums and, if `with_squares`, squares are within a double's range.
    pub fn is_finite(&self, with_squares: bool) -> bool {
        self.sum.is_finite() && (!with_squares || self.greatest_square.is_finite())
    }

    /// Returns the error bound for one value.
    pub fn of_value(&self, value: f64) -> f64 {
        if self.is_exact { 0.0 } else { 3.01 * UNIT * (value.abs() + self.undone) + f64::MIN_POSITIVE }
    }

    /// Returns an error bound for the sum of any of the values.
    pub fn of_sum(&self) -> f64 {
        if self.is_exact { 0.0 } else { self.sum }
    }

    /// Returns the error bound for the standard deviation of any `count` values. Errors in the values change the
    /// standard deviation by at most the standard deviation of these errors. If the values are exact, the bound covers
    /// only the rounding of the calculation.
    pub fn of_deviation(&self, count: usize) -> f64 {
        self.root_of_squares / (count as f64 - 1.0).sqrt()
    }
}

/// Returns whether every sum of some of the numbers is a double, and therefore exact in any order. This holds for whole
/// multiples of a power of two whose magnitudes add up to at most 2^53 times that power.
pub(crate) fn adds_exactly(numbers: &[f64]) -> bool {
    let last_bit = |x: f64| {
        let (exponent, fraction) = ((x.to_bits() >> 52) as i32 & 0x7ff, x.to_bits() & ((1 << 52) - 1));
        let significand = fraction | u64::from(exponent > 0) << 52;
        exponent.max(1) - 1075 + significand.trailing_zeros() as i32
    };
    let Some(least) = numbers.iter().filter(|x| **x != 0.0).map(|x| last_bit(*x)).min() else { return true };
    // An addition can round only if its result is at least 2^53 times the last bit, and later sums only grow.
    numbers.iter().map(|x| x.abs()).sum::<f64>() < 2f64.powi(least.saturating_add(53).min(1023))
}
