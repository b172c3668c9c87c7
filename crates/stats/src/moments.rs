//! Count, mean, variance and extremes of a stream, in constant space.

use crate::double_double::DoubleDouble;

/// The count, mean, variance, least and greatest of a stream of values.
///
/// Values are summed as their distance from the first one, and that distance squared, both to about 106 bits. So a
/// small spread on a large offset, such as nanoseconds since an epoch, costs no digits: up to 10^8 values the mean is
/// off by at most a unit in its last place, and the variance by a relative 1e-14, wherever the first value lies.
/// (Welford's recurrence in doubles no longer moves its mean there.) A merge keeps this, so threads and workers may
/// each have their own. Taking in a value costs some 30 operations and no division.
///
/// An infinity (a time-out) makes the mean infinite and the variance NaN. A NaN makes both NaN and is left out of the
/// extremes. Squares of distances must stay within a double's range: between 1e-140 and 1e150 for a distance.
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
    /// The first finite value.
    origin: f64,
    /// Finite values less the origin, summed.
    sum: DoubleDouble,
    /// Finite values less the origin, squared and summed.
    sum_of_squares: DoubleDouble,
    finite_count: u64,
    /// The plain sum of all values that are not finite.
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
    /// Moments of no values yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in one value.
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

    /// Takes in all the values that `other` has taken in.
    pub fn merge(&mut self, other: &Moments) {
        self.count += other.count;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.non_finite += other.non_finite;
        if self.finite_count == 0 {
            self.origin = other.origin;
        }
        self.finite_count += other.finite_count;
        // Σ(x + d) and Σ(x + d)² for the distance d between the two origins.
        let shift = DoubleDouble::sum(other.origin, -self.origin);
        let shift_sum = DoubleDouble::from(other.finite_count as f64) * shift;
        let twice_sum = other.sum + other.sum;
        self.sum = self.sum + other.sum + shift_sum;
        self.sum_of_squares = self.sum_of_squares + other.sum_of_squares + shift * (twice_sum + shift_sum);
    }

    /// Values taken in.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The arithmetic mean; none without values.
    pub fn mean(&self) -> Option<f64> {
        if self.count == 0 {
            return None;
        }
        if self.count > self.finite_count {
            return Some(self.non_finite);
        }
        // A division that is good to the last bit of both halves: quotient, then quotient of the remainder.
        let n = self.count as f64;
        let quotient = self.sum.high / n;
        let remainder = (-quotient).mul_add(n, self.sum.high) + self.sum.low;
        let mean = DoubleDouble::sum(self.origin, quotient);
        Some(mean.high + (mean.low + remainder / n))
    }

    /// The sample variance, with `count − 1` below, in the square of the values' unit; none below two values.
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

    /// The sample standard deviation, the root of [`variance`](Self::variance); none below two values.
    pub fn standard_deviation(&self) -> Option<f64> {
        self.variance().map(f64::sqrt)
    }

    /// The least value; none without values.
    pub fn min(&self) -> Option<f64> {
        (self.min <= self.max).then_some(self.min)
    }

    /// The greatest value; none without values.
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
