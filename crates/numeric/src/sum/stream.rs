//! Sums of numbers that are not a slice: iterators, and every n-th number of a slice.

use alloc::vec::Vec;
use core::iter::{Copied, StepBy};
use core::slice::Iter;

use super::dot::exact_dot;
use super::element::{Element, Load, Term};
use super::exact::Exact;
use super::moments::{mean_of_sum, variance_of_sums};

/// Number of numbers that are gathered before they are passed to a function for slices.
const BLOCK: usize = 1024;

/// Returns every `stride`-th number of a slice, beginning with the first number. An example is a column of a matrix
/// that is stored by rows, or a channel of interleaved sound.
///
/// ```
/// use ascertain_numeric::sum::{strided, sum_of};
///
/// let rows = [1.0, 10.0, 2.0, 20.0, 3.0, 30.0];
/// assert_eq!(sum_of(strided(&rows, 2)), 6.0);
/// assert_eq!(sum_of(strided(&rows[1..], 2)), 60.0);
/// ```
///
/// # Panics
/// Panics if the stride is 0.
pub fn strided<T: Element>(xs: &[T], stride: usize) -> StepBy<Copied<Iter<'_, T>>> {
    assert!(stride > 0, "the stride must be at least 1");
    xs.iter().copied().step_by(stride)
}

/// Returns the exact sum of the numbers of an iterator, rounded once. See [`exact`](super::exact) for special values.
///
/// ```
/// use ascertain_numeric::sum::sum_of;
///
/// assert_eq!(sum_of((1..=10).map(|i| f64::from(i) / 10.0)), 5.5);
/// assert_eq!(sum_of(&vec![0.5_f32; 3]), 1.5);
/// ```
pub fn sum_of<T: Term>(xs: impl IntoIterator<Item = T>) -> f64 {
    xs.into_iter().collect::<Exact>().round()
}

/// Returns the arithmetic mean of the numbers of an iterator: their exact sum divided by the count. Returns `None` if
/// there are no numbers. See [`mean`](super::mean) for special values.
pub fn mean_of<T: Term>(xs: impl IntoIterator<Item = T, IntoIter: Clone>) -> Option<f64> {
    let xs = xs.into_iter();
    let (sum, count) = sum_and_count(xs.clone());
    mean_of_sum(sum, count, || xs.clone().map(|x| x.element().into()))
}

/// Returns the sample variance of the numbers of an iterator. Reads the iterator twice. See
/// [`variance`](super::variance).
pub fn variance_of<T: Term>(xs: impl IntoIterator<Item = T, IntoIter: Clone>) -> Option<f64> {
    let xs = xs.into_iter();
    let centre = mean_of(xs.clone())?;
    let mut xs = xs.map(Term::element);
    let (mut distances, mut squares, mut count) = (Exact::new(), Exact::new(), 0);
    let mut block = Vec::with_capacity(BLOCK);
    loop {
        block.extend(xs.by_ref().take(BLOCK));
        if block.is_empty() {
            return variance_of_sums(distances.round(), squares.round(), count);
        }
        let (block_distances, block_squares) = T::Element::fastest().distances.get()(&block, centre);
        distances.add(block_distances);
        squares.add(block_squares);
        count += block.len();
        block.clear();
    }
}

/// Returns Σ x·y of two iterators. All products and their rounding errors are summed exactly and rounded once. Stops at
/// the end of the shorter iterator. See [`dot`](super::dot()) for special values.
///
/// A product takes a few nanoseconds, tens of times as long as in [`dot`](super::dot()). If you have many numbers and
/// the last bit does not matter, gather the numbers into slices and call `dot`.
///
/// ```
/// use ascertain_numeric::sum::{dot_of, strided};
///
/// let rows = [1.0, 10.0, 2.0, 20.0, 3.0, 30.0];
/// assert_eq!(dot_of(strided(&rows, 2), strided(&rows[1..], 2)), 140.0);
/// ```
pub fn dot_of<X, Y>(xs: impl IntoIterator<Item = X>, ys: impl IntoIterator<Item = Y>) -> f64
where
    X: Term,
    Y: Term<Element = X::Element>,
{
    exact_dot(xs.into_iter().zip(ys).map(|(x, y)| (x.element().into(), y.element().into()))) + 0.0
}

fn sum_and_count<T: Term>(xs: impl Iterator<Item = T>) -> (f64, usize) {
    let mut count = 0;
    (sum_of(xs.inspect(|_| count += 1)), count)
}
