//! The limit of a method of `K` operations: reading the numbers, and as much work on each register that waits for nothing.

use std::hint::black_box;

use super::Method;
use crate::sum::accumulate::{Accumulator, accumulate};
use crate::sum::element::Element;
use crate::sum::vector::Fma;

/// Loads each register and does `K` operations with it, by turns on the adders and on the multipliers, of which only the
/// last waits for what came before: the limit is how many operations the CPU starts in a cycle, or what it loads. Not a
/// sum: the result is 0.
pub struct Limit<const K: usize>;

impl<V: Fma, const K: usize> Method<V> for Limit<K> {
    #[inline(always)]
    unsafe fn sum<T: Element, const N: usize>(xs: &[T]) -> f64 {
        // SAFETY: the same contract.
        black_box(unsafe { accumulate::<Work<V, K>, V, T, N>(xs) });
        0.0
    }
}

/// What the work on all registers came to.
#[derive(Clone, Copy)]
pub struct Work<V, const K: usize> {
    sum: V,
    one: V,
}

impl<V: Fma, const K: usize> Accumulator<V> for Work<V, K> {
    #[inline(always)]
    unsafe fn new() -> Self {
        // SAFETY: the same contract.
        unsafe { Work { sum: V::splat(0.0), one: V::splat(black_box(1.0)) } }
    }

    #[inline(always)]
    unsafe fn push(&mut self, mut terms: V) {
        // SAFETY: the same contract.
        unsafe {
            for i in 1..K {
                terms = if i % 2 == 0 { terms.add(self.one) } else { terms.mul_sub(self.one, self.one) };
            }
            self.sum = self.sum.add(terms);
        }
    }

    #[inline(always)]
    unsafe fn merge(self, other: Self) -> Self {
        // SAFETY: the same contract.
        unsafe { Work { sum: self.sum.add(other.sum), ..self } }
    }
}
