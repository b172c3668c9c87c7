//! The Kahan–Babuška summation, without Neumaier's comparison.

use super::Method;
use super::compensated::{total, two_sum};
use super::subtract::{OnAdders, Subtract};
use super::two_sum::blocks;
use crate::sum::accumulate::Accumulator;
use crate::sum::element::Element;
use crate::sum::vector::Vector;

/// Adds up what each addition lost beside the sum, and applies it at the end. As many operations as Kahan's, but the
/// next addition waits for one of them instead of four.
///
/// Where a term is larger than the sum so far, what it lost is known only to u times the term: the error is at most
/// u·|Σx| + (u + O(n·u²))·Σ|x|. `f32` is added plainly within blocks, as in [`BlockTwoSum`](super::BlockTwoSum), which
/// adds 5u·Σ|x|. Babuška 1969, "Numerical stability in mathematical analysis".
pub struct Babuska;

impl<V: Vector> Method<V> for Babuska {
    #[inline(always)]
    unsafe fn sum<T: Element, const N: usize>(xs: &[T]) -> f64 {
        // SAFETY: the same contract.
        unsafe { blocks::<Beside<V, OnAdders>, V, T, N>(xs).total(xs) }
    }
}

/// A sum, and what is to be added to it.
#[derive(Clone, Copy)]
pub struct Beside<V, S> {
    sum: V,
    correction: V,
    subtract: S,
}

impl<V: Vector, S> Beside<V, S> {
    /// The total of all lanes, gathered from `xs`.
    ///
    /// # Safety
    /// The CPU has the instructions of `V`.
    #[inline(always)]
    pub unsafe fn total<T: Element>(self, xs: &[T]) -> f64 {
        // SAFETY: the same contract.
        unsafe { total(self.sum, self.correction, xs) }
    }
}

impl<V: Vector, S: Subtract<V>> Accumulator<V> for Beside<V, S> {
    #[inline(always)]
    unsafe fn new() -> Self {
        // SAFETY: the same contract.
        unsafe { Beside { sum: V::splat(-0.0), correction: V::splat(0.0), subtract: S::new() } }
    }

    #[inline(always)]
    unsafe fn push(&mut self, terms: V) {
        // SAFETY: the same contract.
        unsafe {
            let sum = self.sum.add(terms);
            let used = self.subtract.minus(sum, self.sum);
            self.correction = self.correction.add(self.subtract.minus(terms, used));
            self.sum = sum;
        }
    }

    #[inline(always)]
    unsafe fn merge(self, other: Self) -> Self {
        // SAFETY: the same contract.
        unsafe {
            let (sum, error) = two_sum(self.sum, other.sum);
            Beside { sum, correction: self.correction.add(other.correction).add(error), ..self }
        }
    }
}
