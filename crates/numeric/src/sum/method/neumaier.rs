//! Neumaier's compensated summation (also called Kahan–Babuška).

use super::Method;
use super::compensated::{total, two_sum};
use crate::sum::accumulate::{Accumulator, accumulate};
use crate::sum::element::Element;
use crate::sum::vector::Vector;

/// Adds up the exact errors of all additions beside the sum, and applies them at the end. The
/// error is at most u·|Σx| + (n·u)²·Σ|x|: as if summed in twice the precision and rounded once.
/// Neumaier 1974, "Rundungsfehleranalyse einiger Verfahren zur Summation endlicher Summen".
pub struct Neumaier;

impl<V: Vector> Method<V> for Neumaier {
    #[inline(always)]
    unsafe fn sum<T: Element, const N: usize>(xs: &[T]) -> f64 {
        // SAFETY: the same contract.
        unsafe {
            let Corrected { sum, correction } = accumulate::<Corrected<V>, V, T, N>(xs);
            total(sum, correction, xs)
        }
    }
}

/// A sum, and what is to be added to it.
#[derive(Clone, Copy)]
struct Corrected<V> {
    sum: V,
    correction: V,
}

impl<V: Vector> Accumulator<V> for Corrected<V> {
    #[inline(always)]
    unsafe fn new() -> Self {
        // SAFETY: the same contract.
        unsafe { Corrected { sum: V::splat(-0.0), correction: V::splat(0.0) } }
    }

    #[inline(always)]
    unsafe fn push(&mut self, terms: V) {
        // SAFETY: the same contract.
        unsafe {
            let (larger, smaller) = self.sum.by_magnitude(terms);
            self.sum = self.sum.add(terms);
            let error = larger.sub(self.sum).add(smaller);
            self.correction = self.correction.add(error);
        }
    }

    #[inline(always)]
    unsafe fn merge(self, other: Self) -> Self {
        // SAFETY: the same contract.
        unsafe {
            let (sum, error) = two_sum(self.sum, other.sum);
            Corrected { sum, correction: self.correction.add(other.correction).add(error) }
        }
    }
}
