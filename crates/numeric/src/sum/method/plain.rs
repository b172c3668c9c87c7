//! What every method is, and those that compensate for nothing: one addition after the other, in a tree, or exact.

use crate::sum::Exact;
use crate::sum::accumulate::{Accumulator, accumulate, accumulate_part};
use crate::sum::element::Element;
use crate::sum::exact::add_blocks;
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

/// How many registers are added plainly before their sum goes into the tree.
const BLOCK: usize = 128;

/// Levels of the tree: more than any slice can fill.
const LEVELS: usize = usize::BITS as usize - BLOCK.ilog2() as usize;

/// Sums blocks plainly, and the blocks' sums in a balanced tree. The error is at most
/// (128 + log₂(n))·u·Σ|x|, and near √log(n)·u·Σ|x| as a rule. Higham 1993, "The accuracy of
/// floating point summation".
pub struct Pairwise;

impl<V: Vector> Method<V> for Pairwise {
    /// The recursion, unrolled: the slice is read once from its start, and `pending[level]` waits
    /// for a sum of equally many (2^level) blocks, as the digits of a binary counter do.
    #[inline(always)]
    unsafe fn sum<T: Element, const N: usize>(xs: &[T]) -> f64 {
        // SAFETY: the same contract.
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
            // What waits at the end, the small sums (which are also the last) first.
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
