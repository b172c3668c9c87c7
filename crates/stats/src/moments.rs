//! The count, mean, variance and extremes of a stream, in constant space.

use crate::double_double::DoubleDouble;

/// The count, mean, variance, smallest and greatest value of a stream.
///
/// The distances of the values from the first value, and the squares of these distances, are summed to about 106 bits.
/// A small spread on a large offset, such as nanoseconds since an epoch, therefore loses no digits. Up to 10^8 values,
/// the mean is off by at most a unit in its last place, and the variance by a relative 1e-14. This holds whatever the
/// first value is. (Welford's recurrence in doubles is less precise: with so many values on a large offset, its mean no
/// longer changes.) Merging keeps this precision, so threads and workers may each have their own `Moments`. Each value
/// costs about 30 operations and no division.
///
/// An infinity (a timeout) makes the mean infinite and the variance NaN. A NaN makes mean and variance NaN, and is
/// ignored by the extremes. Distances must be between 1e-140 and 1e150, so that their squares stay within a double's
/// range.
///
/// ```
/// use ascertain_stats::Moments;
/// let moments: Moments = [1e9 + 4.0, 1e9 + 7.0, 1e9 + 13.0, 1e9 + 16.0].into_iter().collect();
/// assert_eq!(moments.count(), 4);
/// assert_eq!(moments.mean(), Some(1e9 + 10.0));
/// assert_eq!(moments.variance(), Some(30.0));
/// assert_eq!((moments.min(), moments.max()), (Some(1e9 + 4.0), Some(1e9 + 16.0)));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Moments {
    count: u64,
    /// The first finite value. The sums below are of distances from it, so that a large offset loses no digits.
    origin: f64,
    /// The sum of the finite values' distances from the origin.
    sum: DoubleDouble,
    /// The sum of the squares of the finite values' distances from the origin.
    sum_of_squares: DoubleDouble,
    finite_count: u64,
    /// The plain `f64` sum of the infinite and NaN values, or 0 if all values are finite.
    non_finite: f64,
    min: f64,
    max: f64,
}

impl Default for Moments {
    fn default() -> Self {
        Self {
            count: 0,
            origin: 0.0,
            sum: DoubleDouble::default(),
            sum_of_squares: DoubleDouble::default(),
            finite_count: 0,
            non_finite: 0.0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
        }
    }
}

impl Moments {
    /// Creates the moments of a stream without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one value.
    pub fn push(&mut self, value: f64) {
        self.count += 1;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        if !value.is_finite() {
            self.non_finite += value;
            return;
        }
        if self.finite_count == 0 {
            self.origin = value;
        }
        self.finite_count += 1;
        let distance = DoubleDouble::sum(value, -self.origin);
        self.sum = self.sum + distance;
        self.sum_of_squares = self.sum_of_squares + distance * distance;
    }

    /// Adds all values that `other` summarises, as if they had been pushed one by one.
    pub fn merge(&mut self, other: &Moments) {
        self.count += other.count;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.non_finite += other.non_finite;
        if self.finite_count == 0 {
            self.origin = other.origin;
        }
        self.finite_count += other.finite_count;
        // `other` has distances x from its own origin. Measured from the origin of `self` they are x + d, where d is
        // the distance between the two origins. This adds Σ(x + d) and Σ(x + d)².
        let shift = DoubleDouble::sum(other.origin, -self.origin);
        let shift_sum = DoubleDouble::from(other.finite_count as f64) * shift;
        let twice_sum = other.sum + other.sum;
        self.sum = self.sum + other.sum + shift_sum;
        self.sum_of_squares = self.sum_of_squares + other.sum_of_squares + shift * (twice_sum + shift_sum);
    }

    /// Returns the number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the arithmetic mean, or `None` if there are no values.
    pub fn mean(&self) -> Option<f64> {
        if self.count == 0 {
            return None;
        }
        if self.count > self.finite_count {
            return Some(self.non_finite);
        }
        // This division is accurate to the last bit of both halves: the quotient, then the quotient of the remainder.
        let n = self.count as f64;
        let quotient = self.sum.high / n;
        let remainder = (-quotient).mul_add(n, self.sum.high) + self.sum.low;
        let mean = DoubleDouble::sum(self.origin, quotient);
        Some(mean.high + (mean.low + remainder / n))
    }

    /// Returns the sample variance, in the square of the values' unit, with `count − 1` as the divisor. Returns `None`
    /// for fewer than two values.
    pub fn variance(&self) -> Option<f64> {
        if self.count < 2 {
            return None;
        }
        if self.count > self.finite_count {
            return Some(f64::NAN);
        }
        let n = self.count as f64;
        let scaled = DoubleDouble::from(n) * self.sum_of_squares - self.sum * self.sum;
        Some((scaled.high / (n * (n - 1.0))).max(0.0))
    }

    /// Returns the sample standard deviation, the root of [`variance`](Self::variance). Returns `None` for fewer than
    /// two values.
    pub fn standard_deviation(&self) -> Option<f64> {
        self.variance().map(f64::sqrt)
    }

    /// Returns the smallest value, or `None` if there are no values.
    pub fn min(&self) -> Option<f64> {
        (self.min <= self.max).then_some(self.min)
    }

    /// Returns the greatest value, or `None` if there are no values.
    pub fn max(&self) -> Option<f64> {
        (self.min <= self.max).then_some(self.max)
    }
}

impl Extend<f64> for Moments {
    fn extend<I: IntoIterator<Item = f64>>(&mut self, values: I) {
        values.into_iter().for_each(|value| self.push(value));
    }
}

impl FromIterator<f64> for Moments {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let mut moments = Self::new();
        moments.extend(values);
        moments
    }
}
