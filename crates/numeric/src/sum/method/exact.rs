//! The exact sum, as one of the methods.

use super::Method;
use crate::sum::Exact;
use crate::sum::element::Element;
use crate::sum::exact::add_blocks;
use crate::sum::vector::Vector;

/// [`Exact`] with given registers: the nearest double to the true sum.
pub struct ExactSum;

impl<V: Vector<Part = V>> Method<V> for ExactSum {
    #[inline(always)]
    unsafe fn sum<T: Element, const N: usize>(xs: &[T]) -> f64 {
        let mut sum = Exact::new();
        // SAFETY: the same contract.
        unsafe { add_blocks::<V, T, N>(&mut sum, xs) };
        sum.round()
    }
}
