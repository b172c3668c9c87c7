//! Mean and variance.

use super::accumulate::Accumulator;
use super::chosen::sum;
use super::element::Element;
use super::method::{Pair, lanes_total};
use super::vector::Vector;

/// The arithmetic mean: [`sum()`], divided by the count. None of nothing.
///
/// NaN and infinities give what the sum gives. Where only the sum is beyond `f64::MAX`, the mean is that of the
/// numbers all the same.
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

/// The mean of `count` numbers that have this sum.
pub(super) fn mean_of_sum<I: Iterator<Item = f64>>(
    sum: f64,
    count: usize,
    mut numbers: impl FnMut() -> I,
) -> Option<f64> {
    /// So far below `f64::MAX` that no sum of 2^64 numbers overflows.
    const DOWN: f64 = f64::from_bits((1023 - 64) << 52);
    if count == 0 {
        return None;
    }
    let n = count as f64;
    if sum.is_finite() || numbers().any(|x| !x.is_finite()) {
        return Some(sum / n);
    }
    // What this loses of small numbers, the sum, which is beyond any double, can't tell.
    let scaled: super::Exact = numbers().map(|x| x * DOWN).collect();
    Some(scaled.round() / n / DOWN)
}

/// The sample variance, with one less than the count below; none of fewer than two numbers.
///
/// In two passes: the mean, then the squares of the distances from it, summed as if in twice the precision and
/// corrected for what the mean was rounded. Where the standard deviation is at least u·|mean|, the relative error is
/// at most 10u, u = 2⁻⁵³; below that it grows with n·u²·mean² / variance.
///
/// The result has the same bits on every machine, as that of [`sum()`] has.
///
/// NaN where a number is not finite. Squares of distances must stay within the range of a double: distances between
/// 1e-140 and 1e150.
///
/// ```
/// use ascertain_numeric::sum::variance;
///
/// assert_eq!(variance(&[1e9 + 4.0, 1e9 + 7.0, 1e9 + 13.0, 1e9 + 16.0]), Some(30.0));
/// assert_eq!(variance(&[1.0]), None);
/// ```
pub fn variance<T: Element>(xs: &[T]) -> Option<f64> {
    let centre = mean(xs)?;
    let (distances, squares) = T::chosen().distances()(xs, centre);
    variance_of_sums(distances, squares, xs.len())
}

/// The variance of `count` numbers with these sums of distances from about their mean, and of squares of them.
pub(super) fn variance_of_sums(distances: f64, squares: f64, count: usize) -> Option<f64> {
    let n = count as f64;
    let about_mean = squares - distances * distances / n;
    // What is left when equal numbers lie beside their rounded mean is rounding, and no variance.
    let is_rounding = about_mean <= 2.0 * f64::EPSILON * squares;
    (count > 1).then(|| if is_rounding { 0.0 } else { about_mean / (n - 1.0) })
}

/// The sums of the distances from `centre` and of their squares.
///
/// # Safety
/// The CPU has the instructions of `V`.
#[inline(always)]
pub unsafe fn distances<V: Vector, T: Element, const N: usize>(xs: &[T], centre: f64) -> (f64, f64) {
    // SAFETY: the caller vouches for the instructions; every load is inside its round, and of the rest only the numbers
    // that are there are loaded.
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
            // One number in a register of zeros.
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

/// # Safety
/// The CPU has the instructions of `V`.
#[inline(always)]
unsafe fn push_distances<V: Vector>(
    sums: &mut Pair<V, V::Subtraction>,
    squares: &mut Pair<V, V::Subtraction>,
    distances: V,
) {
    // SAFETY: the same contract.
    unsafe {
        sums.push(distances);
        let square = distances.mul(distances);
        squares.push(square);
        squares.correction = squares.correction.add(distances.mul_sub(distances, square));
    }
}
