//! Kahan's compensated summation.

use super::Method;
use super::compensated::{total, two_sum};
use crate::sum::accumulate::{Accumulator, accumulate};
use crate::sum::element::Element;
use crate::sum::vector::Vector;

/// Carries what each addition added too much into the next term. The error is at most
/// (2u + O(n·u²))·Σ|x|; a term much larger than the sum so far still loses the sum's low digits.
/// Kahan 1965, "Further remarks on reducing truncation errors".
pub struct Kahan;

impl<V: Vector> Method<V> for Kahan {
    #[inline(always)]
    unsafe fn sum<T: Element, const N: usize>(xs: &[T]) -> f64 {
        // SAFETY: the same contract.
        unsafe { accumulate::<Excess<V>, V, T, N>(xs).total(xs) }
    }
}

/// A sum, and by how much it is too large.
#[derive(Clone, Copy)]
pub struct Excess<V> {
    pub sum: V,
    pub excess: V,
}

impl<V: Vector> Excess<V> {
    /// The total of all lanes, gathered from `xs`.
    ///
    /// # Safety
    /// The CPU has the instructions of `V`.
    #[inline(always)]
    pub unsafe fn total<T: Element>(self, xs: &[T]) -> f64 {
        // SAFETY: the same contract.
        unsafe { total(self.sum, V::splat(0.0).sub(self.excess), xs) }
    }
}

impl<V: Vector> Accumulator<V> for Excess<V> {
    #[inline(always)]
    unsafe fn new() -> Self {
        // SAFETY: the same contract.
        unsafe { Excess { sum: V::splat(-0.0), excess: V::splat(0.0) } }
    }

    #[inline(always)]
    unsafe fn push(&mut self, terms: V) {
        // SAFETY: the same contract.
        unsafe {
            let wanted = terms.sub(self.excess);
            let sum = self.sum.add(wanted);
            self.excess = sum.sub(self.sum).sub(wanted);
            self.sum = sum;
        }
    }

    #[inline(always)]
    unsafe fn merge(self, other: Self) -> Self {
        // SAFETY: the same contract.
        unsafe {
            let (sum, error) = two_sum(self.sum, other.sum);
            Excess { sum, excess: self.excess.add(other.excess).sub(error) }
        }
    }
}
