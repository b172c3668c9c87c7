//! Plain addition.

use super::Method;
use crate::sum::accumulate::{Accumulator, accumulate};
use crate::sum::element::Element;
use crate::sum::vector::Vector;

/// Adds in the order of the slice (with one accumulator in one lane: the loop that everybody
/// writes). The error is at most n·u·Σ|x|.
pub struct Naive;

impl<V: Vector> Method<V> for Naive {
    #[inline(always)]
    unsafe fn sum<T: Element, const N: usize>(xs: &[T]) -> f64 {
        // SAFETY: the same contract.
        unsafe { accumulate::<Plain<V>, V, T, N>(xs).total() }
    }
}

/// A sum without compensation.
#[derive(Clone, Copy)]
pub struct Plain<V>(pub V);

impl<V: Vector> Plain<V> {
    /// All lanes added up, by halves.
    ///
    /// # Safety
    /// The CPU has the instructions of `V`.
    #[inline(always)]
    pub unsafe fn total(self) -> f64 {
        // SAFETY: the same contract.
        unsafe { self.0.sum_lanes() }
    }
}

impl<V: Vector> Accumulator<V> for Plain<V> {
    #[inline(always)]
    unsafe fn new() -> Self {
        // SAFETY: the same contract.
        unsafe { Plain(V::splat(-0.0)) }
    }

    #[inline(always)]
    unsafe fn push(&mut self, terms: V) {
        // SAFETY: the same contract.
        unsafe { self.0 = self.0.add(terms) }
    }

    #[inline(always)]
    unsafe fn merge(self, other: Self) -> Self {
        // SAFETY: the same contract.
        unsafe { Plain(self.0.add(other.0)) }
    }
}
