//! The mean and the variance.

use super::accumulate::Accumulator;
use super::chosen::sum;
use super::element::Element;
use super::method::{Pair, lanes_total};
use super::vector::Vector;

/// Returns the arithmetic mean: [`sum()`] divided by the count. Returns `None` if there are no numbers.
///
/// NaN and infinities give the same result as the sum does. If the sum of finite numbers exceeds `f64::MAX`, the mean
/// is still right.
///
/// ```
/// use ascertain_numeric::sum::mean;
///
/// assert_eq!(mean(&[1.0, 2.0, 4.5]), Some(2.5));
/// assert_eq!(mean(&[f64::MAX; 3]), Some(f64::MAX));
/// assert_eq!(mean::<f64>(&[]), None);
/// ```
pub fn mean<T: Element>(xs: &[T]) -> Option<f64> {
    mean_of_sum(sum(xs), xs.len(), || xs.iter().map(|&x| x.into()))
}

/// Returns the mean of `count` numbers with the sum `sum`. If this sum has overflowed, adds up `numbers` again, scaled
/// down. Returns `None` if `count` is 0.
pub(super) fn mean_of_sum<I: Iterator<Item = f64>>(
    sum: f64,
    count: usize,
    mut numbers: impl FnMut() -> I,
) -> Option<f64> {
    /// A factor so small that no sum of 2^64 scaled numbers overflows.
    const DOWN: f64 = f64::from_bits((1023 - 64) << 52);
    if count == 0 {
        return None;
    }
    let n = count as f64;
    if sum.is_finite() || numbers().any(|x| !x.is_finite()) {
        return Some(sum / n);
    }
    // Scaling loses bits of small numbers, but these do not matter next to a sum beyond every double.
    let scaled: super::Exact = numbers().map(|x| x * DOWN).collect();
    Some(scaled.round() / n / DOWN)
}

/// Returns the sample variance, with the count less one as the divisor. Returns `None` for fewer than two numbers.
///
/// The method makes two passes. The first computes the mean. The second sums the squared distances from the mean, as if
/// in twice the precision, and corrects the sum for the rounding of the mean. If the standard deviation is at least
/// u·|mean|, where u = 2⁻⁵³, the relative error is at most 10u. For a smaller standard deviation, the error grows with
/// n·u²·mean² / variance.
///
/// The result has the same bits on every machine, like that of [`sum()`].
///
/// The variance is NaN if a number is not finite. Distances from the mean must be between 1e-140 and 1e150, so that
/// their squares stay within the range of a double.
///
/// ```
/// use ascertain_numeric::sum::variance;
///
/// assert_eq!(variance(&[1e9 + 4.0, 1e9 + 7.0, 1e9 + 13.0, 1e9 + 16.0]), Some(30.0));
/// assert_eq!(variance(&[1.0]), None);
/// ```
pub fn variance<T: Element>(xs: &[T]) -> Option<f64> {
    let centre = mean(xs)?;
    let (distances, squares) = T::fastest().distances.get()(xs, centre);
    variance_of_sums(distances, squares, xs.len())
}

/// Returns the variance of `count` numbers from two sums: of the numbers' distances from their approximate mean, and of
/// the squares of these distances.
pub(super) fn variance_of_sums(distances: f64, squares: f64, count: usize) -> Option<f64> {
    let n = count as f64;
    let about_mean = squares - distances * distances / n;
    // If all numbers are equal and their mean is rounded, every number has the same distance from the mean.
    // `about_mean` is then a rounding error, and the variance is 0.
    let is_rounding = about_mean <= 2.0 * f64::EPSILON * squares;
    (count > 1).then(|| if is_rounding { 0.0 } else { about_mean / (n - 1.0) })
}

/// Returns two sums over all numbers: of their distances from `centre`, and of the squares of these distances.
///
/// # Safety
/// The CPU must have the instructions of `V`.
#[inline(always)]
pub unsafe fn distances<V: Vector, T: Element, const N: usize>(xs: &[T], centre: f64) -> (f64, f64) {
    // SAFETY: the caller guarantees the instructions; every load is inside its round, and only existing numbers of the
    // remainder are loaded.
    unsafe {
        let centre_of_all = V::splat(centre);
        let mut sums = [Pair::<V, V::Subtraction>::new(); N];
        let mut squares = [Pair::<V, V::Subtraction>::new(); N];
        let mut rounds = xs.chunks_exact(N * V::LANES);
        for round in &mut rounds {
            for i in 0..N {
                let distances = T::load::<V>(round.as_ptr().add(i * V::LANES)).sub(centre_of_all);
                push_distances(&mut sums[i], &mut squares[i], distances);
            }
        }
        for (i, x) in rounds.remainder().iter().enumerate() {
            // A register with one number; the other lanes are −0.0.
            let distance = [(*x).into() - centre];
            push_distances(&mut sums[i % N], &mut squares[i % N], V::load_partial_f64(distance.as_ptr(), 1));
        }
        let total = |pairs: [Pair<V, V::Subtraction>; N]| {
            let all = pairs.into_iter().reduce(|all, pair| all.merge(pair)).unwrap_or(Pair::new());
            lanes_total(all.sum, all.correction)
        };
        (total(sums), total(squares))
    }
}

/// Adds distances and their squares to the two sums.
///
/// # Safety
/// The CPU must have the instructions of `V`.
#[inline(always)]
unsafe fn push_distances<V: Vector>(
    sums: &mut Pair<V, V::Subtraction>,
    squares: &mut Pair<V, V::Subtraction>,
    distances: V,
) {
    // SAFETY: the caller guarantees the same conditions.
    unsafe {
        sums.push(distances);
        let square = distances.mul(distances);
        squares.push(square);
        squares.correction = squares.correction.add(distances.mul_sub(distances, square));
    }
}
