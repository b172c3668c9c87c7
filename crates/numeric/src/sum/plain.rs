//! The call that people should use.

use super::element::Element;

/// What [`sum`] takes, the first that the machine has: accurate first, fast second.
const CHOICES: &[(&str, u32)] = &[("neumaier-avx512", 4), ("neumaier-avx2", 4), ("neumaier", 2)];

/// The sum of all numbers: accurate, and fast.
///
/// It is as accurate as if it were calculated in twice the precision of `f64` and rounded once
/// (an error of at most u·|Σx| + (n·u)²·Σ|x|, u = 2⁻⁵³), and uses the widest instructions that the
/// machine has, chosen at the first call. The last bit may therefore differ from machine to
/// machine; [`exact`](super::exact) gives the same bits everywhere.
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
    T::chosen().get_or_init(choose)(xs)
}

fn choose<T: Element>() -> fn(&[T]) -> f64 {
    CHOICES
        .iter()
        .find_map(|&(name, accumulators)| T::variant(name)?.function(accumulators))
        .expect("the scalar variant runs on every machine")
}
