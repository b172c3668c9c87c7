//! What every method is.

use crate::sum::element::Element;
use crate::sum::vector::Vector;

/// A way to sum a slice with registers `V`.
pub trait Method<V: Vector> {
    /// Sums `xs` with `N` accumulators, a power of two.
    ///
    /// # Safety
    /// The CPU has the instructions of `V`. Implementations are always inlined, into a function
    /// that enables these instructions.
    unsafe fn sum<T: Element, const N: usize>(xs: &[T]) -> f64;
}
