//! The call that people should use.

use super::element::Element;

/// The sum of all numbers: accurate, and fast.
///
/// For `f64` it is as accurate as if it were calculated in twice the precision and rounded once: an error of at most
/// u·|Σx| + (n·u)²·Σ|x|, u = 2⁻⁵³. For `f32`, of which 16 at a time are added plainly in `f64`, 4u·Σ|x| is added to
/// that where they differ by more than a factor of 2^25; it is 2^27 times less than what the numbers themselves were
/// rounded by. It uses the widest instructions that the machine has, chosen at the first call. The last bit may
/// therefore differ from machine to machine: [`chosen`](super::chosen()) tells which variant is taken, and
/// [`exact`](super::exact) gives the same bits everywhere.
///
/// NaN, infinities, signed zeros and sums that overflow only on the way give what
/// [`exact`](super::exact) gives. The sum of nothing is −0.0, as in the standard library.
///
/// ```
/// use ascertain_numeric::sum::sum;
///
/// assert_eq!(sum(&[0.5_f32; 3]), 1.5);
/// assert_eq!(sum(&[1.0, 1e100, 1.0, -1e100]), 2.0);
/// ```
pub fn sum<T: Element>(xs: &[T]) -> f64 {
    (T::chosen().sum)(xs)
}
