//! The loop that all methods share: several independent accumulators, one after the other.

use super::element::Element;
use super::vector::Vector;

/// The running state of one method in one register width.
///
/// # Safety
/// Every function may be called only on a CPU that has the instructions of `V`.
pub trait Accumulator<V: Vector>: Copy {
    /// The sum of nothing, −0.0 in every lane.
    unsafe fn new() -> Self;

    /// Adds one number to each lane.
    unsafe fn push(&mut self, terms: V);

    /// The sum of both, lane by lane.
    unsafe fn merge(self, other: Self) -> Self;
}

/// Adds up all numbers, lane by lane, with `N` accumulators that take turns, so that an addition
/// need not wait for the one before it.
///
/// # Safety
/// The CPU has the instructions of `V`.
#[inline(always)]
pub unsafe fn accumulate<A, V, T, const N: usize>(xs: &[T]) -> A
where
    A: Accumulator<V>,
    V: Vector,
    T: Element,
{
    // SAFETY: the caller vouches for the instructions; every load is inside its block: a whole one
    // has N × LANES numbers, and of the rest only the `count` that are there are loaded.
    unsafe {
        let mut accumulators = [A::new(); N];
        let mut blocks = xs.chunks_exact(N * V::LANES);
        for block in &mut blocks {
            for (i, accumulator) in accumulators.iter_mut().enumerate() {
                accumulator.push(T::load(block.as_ptr().add(i * V::LANES)));
            }
        }
        let rest = blocks.remainder();
        for (i, accumulator) in accumulators.iter_mut().enumerate() {
            let start = i * V::LANES;
            if start < rest.len() {
                let count = (rest.len() - start).min(V::LANES);
                accumulator.push(T::load_partial(rest.as_ptr().add(start), count));
            }
        }
        // By halves, as the lanes are later, so that 8 × 1, 2 × 4 and 1 × 8 give the same bits.
        let mut width = N;
        while width > 1 {
            width /= 2;
            for i in 0..width {
                accumulators[i] = accumulators[i].merge(accumulators[i + width]);
            }
        }
        accumulators[0]
    }
}
