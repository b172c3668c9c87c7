//! How precisely values and their statistics are known.

/// Half a unit in the last place of 1.
pub(super) const UNIT: f64 = f64::EPSILON / 2.0;

/// Bounds of what rounding did to the pooled values before they came here: each was read from decimals, and the second
/// sample's had a shift and a scale undone. With `D/S` their quotient, that is at most `3u (|x| + |D/S|)` for a value `x`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Precision {
    /// `|D/S|`.
    undone: f64,
    sum: f64,
    root_of_squares: f64,
    /// What no sum of squares, and no square of a sum, is above.
    greatest_square: f64,
}

impl Precision {
    /// Of pooled values, given that `undone` is the magnitude of what was subtracted, on the scale of the first sample.
    pub fn new(values: &[f64], undone: f64) -> Precision {
        let count = values.len() as f64;
        let sum: f64 = values.iter().map(|x| x.abs()).sum();
        let squares: f64 = values.iter().map(|x| x * x).sum();
        Precision {
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
        3.01 * UNIT * (value.abs() + self.undone) + f64::MIN_POSITIVE
    }

    /// Of the mean of any `count` of the values.
    pub fn of_mean(&self, count: usize) -> f64 {
        self.sum / count as f64
    }

    /// Of the standard deviation of any `count` of the values: that of a sum is at most the sum of the deviations.
    pub fn of_deviation(&self, count: usize) -> f64 {
        self.root_of_squares / (count as f64 - 1.0).sqrt()
    }
}
