//! Compensated summation by error-free additions, of registers (`f64`) or of blocks of registers (`f32`).

use super::Method;
use super::compensated::{OnAdders, Subtract, total, two_sum};
use crate::simd::Register;
use crate::sum::accumulate::{Accumulator, accumulate, accumulate_few, accumulate_part};
use crate::sum::element::Element;
use crate::sum::vector::Vector;

/// Size in bytes of the pieces in which a slice is processed: a quarter of the smallest L1 cache among CPUs with SIMD
/// instructions. A piece is read once for each CPU register of a vector, and stays in the L1 cache between these reads.
const NEAR_BYTES: usize = 8 << 10;

/// Number of registers in the largest block. The registers of a block are added without compensation.
const MOST: usize = 32;

/// Sums the exact errors of all additions separately, as [`Neumaier`](super::Neumaier) does. Each error is computed
/// with Knuth's six operations, without a comparison. For `f32`, it is computed only once per block of registers.
///
/// A block of `f32` has [`MOST`] = 2⁵ registers, which are added to each other without compensation, in a tree. This
/// costs almost no accuracy, because an `f64` has 29 more bits than an `f32`. The error is at most u·|Σx| + 5u·Σ|x| +
/// (n·u)²·Σ|x|. The middle term is 0 if no number is 2^24 times another number in the same lane of a block. A block of
/// `f64` has one register, so its error has no middle term.
///
/// The method exists only for registers of eight lanes. On CPUs with shorter registers, each consists of several CPU
/// registers. So every machine makes the same additions in the same order if the number of accumulators is the same.
pub struct BlockTwoSum;

impl<V: Vector> Method<V> for BlockTwoSum {
    #[inline(always)]
    unsafe fn sum<T: Element, const N: usize>(xs: &[T]) -> f64 {
        // SAFETY: the caller guarantees the same conditions.
        unsafe { blocks::<Pair<V, OnAdders>, V, T, N>(xs).total(xs) }
    }
}

/// Adds up as [`accumulate`] does, but first adds the registers of each block to each other, and pushes only their sum.
/// The slice is loaded from its beginning, so that its address does not decide which numbers form a block.
///
/// # Safety
/// The CPU must have the instructions of `V`.
#[inline(always)]
pub unsafe fn blocks<A: Accumulator<V>, V: Vector, T: Element, const N: usize>(xs: &[T]) -> A {
    // SAFETY: the caller guarantees the instructions; every load is inside its N × BLOCK × LANES numbers.
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

/// Returns the sum of a block. The registers at even indices are added in one balanced tree and those at odd indices in
/// another; the result is the sum of both.
///
/// # Safety
/// The CPU must have the instructions of `V`, and `BLOCK` × `LANES` numbers must be readable.
#[inline(always)]
unsafe fn block_sum<V: Vector, T: Element>(from: *const T) -> V {
    // SAFETY: the caller guarantees the same conditions; equal parts of two adjacent registers are one register length
    // apart.
    unsafe {
        let mut sum = V::splat(-0.0);
        for (part, sum) in sum.parts().iter_mut().enumerate() {
            let from = from.add(part * V::Part::LANES);
            let mut terms = [V::Part::splat(-0.0); MOST];
            for (i, term) in terms[..T::BLOCK].iter_mut().enumerate() {
                *term = T::load(from.add(i * V::LANES));
            }
            let mut width = T::BLOCK;
            while width > 2 {
                width /= 2;
                for i in 0..width {
                    let first = 2 * i - i % 2;
                    terms[i] = terms[first].add(terms[first + 2]);
                }
            }
            *sum = terms[0].add(terms[1]);
        }
        sum
    }
}

/// The running state of [`BlockTwoSum`]: a sum, and the correction to add to it.
#[derive(Clone, Copy)]
pub struct Pair<V, S> {
    pub sum: V,
    pub correction: V,
    subtract: S,
}

impl<V: Vector, S> Pair<V, S> {
    /// Returns the total of all lanes. `xs` are the numbers that were added.
    ///
    /// # Safety
    /// The CPU must have the instructions of `V`.
    #[inline(always)]
    pub unsafe fn total<T: Element>(self, xs: &[T]) -> f64 {
        // SAFETY: the caller guarantees the same conditions.
        unsafe { total(self.sum, self.correction, xs) }
    }
}

impl<V: Vector, S: Subtract<V::Part>> Pair<V, S> {
    /// Adds one number to each lane of a part, as [`two_sum`] does. A part is one of the CPU registers of `V`, and
    /// `part` is its index. Each call makes seven additions and subtractions. If `turn` is even, three of them use the
    /// execution units that `S` selects; otherwise four do. Both kinds of unit then have the same work.
    ///
    /// # Safety
    /// The CPU must have the instructions of `V`.
    #[inline(always)]
    pub unsafe fn push_part(&mut self, turn: usize, part: usize, terms: V::Part) {
        let (old, correction) = (&mut self.sum.parts()[part], &mut self.correction.parts()[part]);
        // SAFETY: the caller guarantees the same conditions.
        unsafe {
            let sum = old.add(terms);
            let used = self.subtract.minus(sum, *old);
            let rest = if turn.is_multiple_of(2) { sum.sub(used) } else { self.subtract.minus(sum, used) };
            let lost_of_sum = self.subtract.minus(*old, rest);
            let lost_of_terms = self.subtract.minus(terms, used);
            *correction = correction.add(lost_of_sum.add(lost_of_terms));
            *old = sum;
        }
    }
}

impl<V: Vector, S: Subtract<V::Part>> Accumulator<V> for Pair<V, S> {
    #[inline(always)]
    unsafe fn new() -> Self {
        // SAFETY: the caller guarantees the same conditions.
        unsafe { Pair { sum: V::splat(-0.0), correction: V::splat(0.0), subtract: S::new() } }
    }

    #[inline(always)]
    unsafe fn push(&mut self, terms: V) {
        // SAFETY: the caller guarantees the same conditions.
        unsafe { self.push_in_turn(0, terms) }
    }

    #[inline(always)]
    unsafe fn push_in_turn(&mut self, turn: usize, mut terms: V) {
        for (part, &mut terms) in terms.parts().iter_mut().enumerate() {
            // SAFETY: the caller guarantees the same conditions.
            unsafe { self.push_part(turn + part, part, terms) }
        }
    }

    /// Processes the slice in pieces that stay in the L1 cache. Each piece is read once for each part of a register,
    /// because the sums and corrections of all parts together would need more registers than the CPU has.
    #[inline(always)]
    unsafe fn push_rounds<T: Element, const N: usize>(accumulators: &mut [Self; N], rounds: &[T]) {
        let width = N * V::LANES;
        for tile in rounds.chunks(if V::PARTS > 1 { NEAR_BYTES / size_of::<T>() / width * width } else { usize::MAX }) {
            for part in 0..V::PARTS {
                let mut of_part = accumulators.map(|mut all| Pair::<V::Part, S> {
                    sum: all.sum.parts()[part],
                    correction: all.correction.parts()[part],
                    subtract: all.subtract,
                });
                for round in tile.chunks_exact(width) {
                    for (i, pair) in of_part.iter_mut().enumerate() {
                        let from = i * V::LANES + part * V::Part::LANES;
                        // SAFETY: the caller guarantees the same conditions; a round has N × LANES numbers.
                        unsafe { pair.push_in_turn(i, T::load(round.as_ptr().add(from))) }
                    }
                }
                for (all, of_part) in accumulators.iter_mut().zip(of_part) {
                    all.sum.parts()[part] = of_part.sum;
                    all.correction.parts()[part] = of_part.correction;
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn merge(self, other: Self) -> Self {
        // SAFETY: the caller guarantees the same conditions.
        unsafe {
            let (sum, error) = two_sum(self.sum, other.sum);
            Pair { sum, correction: self.correction.add(other.correction).add(error), ..self }
        }
    }
}
