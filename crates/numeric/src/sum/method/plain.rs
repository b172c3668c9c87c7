//! The trait of all methods, and the methods without compensation: a plain loop, a balanced tree, and the exact sum.

use crate::sum::Exact;
use crate::sum::accumulate::{Accumulator, accumulate, accumulate_part};
use crate::sum::element::Element;
use crate::sum::exact::add_blocks;
use crate::sum::vector::Vector;

/// A method of summing a slice with registers `V`.
pub trait Method<V: Vector> {
    /// Sums `xs` with `N` accumulators, a power of two.
    ///
    /// # Safety
    /// The CPU must have the instructions of `V`. Implementations are always inlined into a function that enables these
    /// instructions.
    unsafe fn sum<T: Element, const N: usize>(xs: &[T]) -> f64;
}

/// The method that adds in the order of the slice. With one accumulator in one lane this is the usual loop. For n
/// numbers the error is at most n·u·Σ|x|, where u = 2⁻⁵³.
pub struct Naive;

impl<V: Vector> Method<V> for Naive {
    #[inline(always)]
    unsafe fn sum<T: Element, const N: usize>(xs: &[T]) -> f64 {
        // SAFETY: the caller guarantees the same conditions.
        unsafe { accumulate::<Plain<V>, V, T, N>(xs).total() }
    }
}

/// The running state of [`Naive`]: one sum per lane, without compensation.
#[derive(Clone, Copy)]
pub struct Plain<V>(pub V);

impl<V: Vector> Plain<V> {
    /// Returns the sum of all lanes: the upper half is added to the lower half until one lane is left.
    ///
    /// # Safety
    /// The CPU must have the instructions of `V`.
    #[inline(always)]
    pub unsafe fn total(self) -> f64 {
        // SAFETY: the caller guarantees the same conditions.
        unsafe { self.0.sum_lanes() }
    }
}

impl<V: Vector> Accumulator<V> for Plain<V> {
    #[inline(always)]
    unsafe fn new() -> Self {
        // SAFETY: the caller guarantees the same conditions.
        unsafe { Plain(V::splat(-0.0)) }
    }

    #[inline(always)]
    unsafe fn push(&mut self, terms: V) {
        // SAFETY: the caller guarantees the same conditions.
        unsafe { self.0 = self.0.add(terms) }
    }

    #[inline(always)]
    unsafe fn merge(self, other: Self) -> Self {
        // SAFETY: the caller guarantees the same conditions.
        unsafe { Plain(self.0.add(other.0)) }
    }
}

/// Number of registers that are added one after the other before their sum goes into the balanced tree of sums.
const BLOCK: usize = 128;

/// Number of levels of the balanced tree of sums: more than any slice can fill.
const LEVELS: usize = usize::BITS as usize - BLOCK.ilog2() as usize;

/// Sums the numbers of a block one after the other, and adds the sums of the blocks in a balanced tree. For n numbers
/// the error is at most (128 + log₂(n))·u·Σ|x|, where u = 2⁻⁵³, and usually near √log(n)·u·Σ|x|. Higham 1993, "The
/// accuracy of floating point summation".
pub struct Pairwise;

impl<V: Vector> Method<V> for Pairwise {
    /// Sums the blocks in a balanced tree without recursion, so that the slice is read once from its start.
    /// `pending[level]` waits for another sum of equally many (2^level) blocks, like a digit of a binary counter.
    #[inline(always)]
    unsafe fn sum<T: Element, const N: usize>(xs: &[T]) -> f64 {
        // SAFETY: the caller guarantees the same conditions.
        unsafe {
            let mut pending = [V::splat(-0.0); LEVELS];
            let mut blocks = 0_usize;
            for block in xs.chunks(BLOCK * V::LANES) {
                let mut sum = accumulate_part::<Plain<V>, V, T, N>(block).0;
                let carries = blocks.trailing_ones() as usize;
                for earlier in &pending[..carries] {
                    sum = earlier.add(sum);
                }
                pending[carries] = sum;
                blocks += 1;
            }
            // Adds the pending sums, those of the fewest blocks first. The fewer blocks a sum has, the later they are
            // in the slice.
            let mut sum = V::splat(-0.0);
            for (level, earlier) in pending.iter().enumerate() {
                if blocks >> level & 1 == 1 {
                    sum = earlier.add(sum);
                }
            }
            Plain(sum).total()
        }
    }
}

/// The method of [`Exact`], with registers `V`. The result is the double nearest to the true sum.
pub struct ExactSum;

impl<V: Vector<Part = V>> Method<V> for ExactSum {
    #[inline(always)]
    unsafe fn sum<T: Element, const N: usize>(xs: &[T]) -> f64 {
        let mut sum = Exact::new();
        // SAFETY: the caller guarantees the same conditions.
        unsafe { add_blocks::<V, T, N>(&mut sum, xs) };
        sum.round()
    }
}
