//! The call that people should use.

use super::element::Element;

/// The sum of all numbers: accurate, and fast.
///
/// For `f64` it is as accurate as if it were calculated in twice the precision and rounded once: an error of at most
/// u·|Σx| + (n·u)²·Σ|x|, u = 2⁻⁵³. For `f32`, of which 32 at a time are added plainly in `f64`, 5u·Σ|x| is added to
/// that where they differ by more than a factor of 2^24; it is 2^26 times less than what the numbers themselves were
/// rounded by.
///
/// The result has the same bits on every machine, in every run and wherever the slice lies: it is added up in a fixed
/// order, by the instructions that do it fastest on this machine. The first call finds out which those are, in some 30 µs;
/// [`chosen`](super::chosen()) tells. In another order of the numbers the last bit may be another;
/// [`exact`](super::exact) gives the same bits in any order.
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
    T::chosen().sum()(xs)
}
