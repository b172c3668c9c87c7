//! Compensated summation by error-free additions, of registers (f64) or of blocks of them (f32).

use super::Method;
use super::compensated::{total, two_sum};
use super::subtract::{OnAdders, Subtract};
use crate::sum::accumulate::{Accumulator, accumulate, accumulate_few, accumulate_part};
use crate::sum::element::Element;
use crate::sum::vector::Vector;

/// The most registers of a block.
const MOST: usize = 16;

/// Adds up the exact errors of all additions beside the sum, as [`Neumaier`](super::Neumaier) does, but gets them by
/// Knuth's six operations instead of a comparison, and only once for a block of registers.
///
/// The registers of a block are added plainly, in a balanced tree, which for `f32` costs next to nothing: its 24 bits
/// leave 29 of the 53 of an `f64` for numbers of different sizes and for carries. A block of `f32` is [`MOST`] = 2⁴
/// registers, so that the error is at most u·|Σx| + 4u·Σ|x| + (n·u)²·Σ|x|, and the middle term is 0 where in each
/// lane of a block no number is 2^25 times another. A block of `f64` is one register, and there is no middle term.
pub struct BlockTwoSum;

impl<V: Vector> Method<V> for BlockTwoSum {
    #[inline(always)]
    unsafe fn sum<T: Element, const N: usize>(xs: &[T]) -> f64 {
        // SAFETY: the same contract.
        unsafe { blocks::<Pair<V, OnAdders>, V, T, N>(xs).total(xs) }
    }
}

/// As [`accumulate`], but each push is a block's sum, and the slice is loaded from its beginning: where it lies in
/// memory must not decide which numbers are a block.
///
/// # Safety
/// The CPU has the instructions of `V`.
#[inline(always)]
pub unsafe fn blocks<A: Accumulator<V>, V: Vector, T: Element, const N: usize>(xs: &[T]) -> A {
    // SAFETY: the caller vouches for the instructions; every load is inside its N × BLOCK × LANES numbers.
    unsafe {
        if T::BLOCK == 1 {
            return accumulate::<A, V, T, N>(xs);
        }
        if xs.len() <= V::LANES {
            return accumulate_few(xs);
        }
        let width = T::BLOCK * V::LANES;
        let mut accumulators = [A::new(); N];
        let mut rounds = xs.chunks_exact(N * width);
        for round in &mut rounds {
            for (i, accumulator) in accumulators.iter_mut().enumerate() {
                accumulator.push(block_sum::<V, T>(round.as_ptr().add(i * width)));
            }
        }
        let rest = accumulate_part::<A, V, T, N>(rounds.remainder());
        if xs.len() < N * width {
            return rest;
        }
        accumulators.into_iter().fold(rest, |all, accumulator| all.merge(accumulator))
    }
}

/// The sum of a block's registers, as a balanced tree.
///
/// # Safety
/// The CPU has the instructions of `V`, and `BLOCK` × `LANES` numbers are readable.
#[inline(always)]
unsafe fn block_sum<V: Vector, T: Element>(from: *const T) -> V {
    // SAFETY: the same contract.
    unsafe {
        let mut terms = [V::splat(-0.0); MOST];
        for (i, term) in terms[..T::BLOCK].iter_mut().enumerate() {
            *term = T::load(from.add(i * V::LANES));
        }
        let mut width = T::BLOCK;
        while width > 1 {
            width /= 2;
            for i in 0..width {
                terms[i] = terms[2 * i].add(terms[2 * i + 1]);
            }
        }
        terms[0]
    }
}

/// A sum, and what is to be added to it.
#[derive(Clone, Copy)]
pub struct Pair<V, S> {
    pub sum: V,
    pub correction: V,
    subtract: S,
}

impl<V: Vector, S> Pair<V, S> {
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

impl<V: Vector, S: Subtract<V>> Accumulator<V> for Pair<V, S> {
    #[inline(always)]
    unsafe fn new() -> Self {
        // SAFETY: the same contract.
        unsafe { Pair { sum: V::splat(-0.0), correction: V::splat(0.0), subtract: S::new() } }
    }

    /// [`two_sum`] with half of its subtractions on the units of `S`.
    #[inline(always)]
    unsafe fn push(&mut self, terms: V) {
        // SAFETY: the same contract.
        unsafe {
            let sum = self.sum.add(terms);
            let used = self.subtract.minus(sum, self.sum);
            let lost_of_sum = self.subtract.minus(self.sum, sum.sub(used));
            let lost_of_terms = self.subtract.minus(terms, used);
            self.correction = self.correction.add(lost_of_sum.add(lost_of_terms));
            self.sum = sum;
        }
    }

    #[inline(always)]
    unsafe fn merge(self, other: Self) -> Self {
        // SAFETY: the same contract.
        unsafe {
            let (sum, error) = two_sum(self.sum, other.sum);
            Pair { sum, correction: self.correction.add(other.correction).add(error), ..self }
        }
    }
}
