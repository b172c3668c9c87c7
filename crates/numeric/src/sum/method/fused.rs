//! Methods half of whose additions are issued as multiplications, and the one that also widens by integer operations.

use core::hint::black_box;

use super::Method;
use super::compensated::{Beside, Excess, Subtract};
use super::two_sum::{Pair, blocks};
use crate::sum::accumulate::{Accumulator, accumulate, accumulate_few, accumulate_part};
use crate::sum::element::Element;
use crate::sum::exact::exact;
use crate::sum::vector::{Fma, Vector, Widen};

/// [`Kahan`](super::Kahan), bit for bit, for CPUs that add on other ports than they multiply and
/// add (AMD since Zen): a·1 − b is rounded as a − b is, and runs there.
pub struct KahanFma;

impl<V: Fma> Method<V> for KahanFma {
    #[inline(always)]
    unsafe fn sum<T: Element, const N: usize>(xs: &[T]) -> f64 {
        // SAFETY: the same contract.
        unsafe { accumulate::<Fused<V>, V, T, N>(xs).kahan.total(xs) }
    }
}

#[derive(Clone, Copy)]
struct Fused<V> {
    kahan: Excess<V>,
    /// A one that the compiler can't see, or it would turn the multiplications into additions
    /// again. All accumulators share the register.
    one: V,
}

impl<V: Fma> Accumulator<V> for Fused<V> {
    #[inline(always)]
    unsafe fn new() -> Self {
        // SAFETY: the same contract.
        unsafe { Fused { kahan: Excess::new(), one: V::splat(black_box(1.0)) } }
    }

    #[inline(always)]
    unsafe fn push(&mut self, terms: V) {
        // SAFETY: the same contract.
        unsafe {
            let Excess { sum: old, excess } = self.kahan;
            let wanted = terms.mul_sub(self.one, excess);
            let sum = old.add(wanted);
            let excess = sum.sub(old).mul_sub(self.one, wanted);
            self.kahan = Excess { sum, excess };
        }
    }

    #[inline(always)]
    unsafe fn merge(self, other: Self) -> Self {
        // SAFETY: the same contract.
        let kahan = unsafe { Accumulator::<V>::merge(self.kahan, other.kahan) };
        Fused { kahan, ..self }
    }
}

/// As a·1 − b, which gives the same bits. CPUs that add on other ports than they multiply and add (AMD since Zen)
/// then have twice as many for the whole. The one is hidden from the compiler, which would otherwise make subtractions
/// of it again.
#[derive(Clone, Copy)]
pub struct OnMultipliers<V>(V);

impl<V: Fma> Subtract<V> for OnMultipliers<V> {
    #[inline(always)]
    unsafe fn new() -> Self {
        // SAFETY: the same contract.
        OnMultipliers(unsafe { V::splat(black_box(1.0)) })
    }

    #[inline(always)]
    unsafe fn minus(self, a: V, b: V) -> V {
        // SAFETY: the same contract.
        unsafe { a.mul_sub(self.0, b) }
    }
}

/// [`Babuska`](super::Babuska), bit for bit, with half of its additions on the multipliers.
pub struct BabuskaFma;

impl<V: Fma> Method<V> for BabuskaFma {
    #[inline(always)]
    unsafe fn sum<T: Element, const N: usize>(xs: &[T]) -> f64 {
        // SAFETY: the same contract.
        unsafe { blocks::<Beside<V, OnMultipliers<V>>, V, T, N>(xs).total(xs) }
    }
}

/// [`BlockTwoSum`](super::BlockTwoSum), bit for bit, with half of its additions on the multipliers.
pub struct BlockTwoSumFma;

impl<V: Vector> Method<V> for BlockTwoSumFma {
    #[inline(always)]
    unsafe fn sum<T: Element, const N: usize>(xs: &[T]) -> f64 {
        // SAFETY: the same contract.
        unsafe { blocks::<Pair<V, V::Subtraction>, V, T, N>(xs).total(xs) }
    }
}

/// [`BlockTwoSumFma`] where half of the `f32` are widened by integer operations. As `f64` needs no widening, it is the
/// same there.
pub struct BlockTwoSumBits;

impl<V: Widen> Method<V> for BlockTwoSumBits {
    #[inline(always)]
    unsafe fn sum<T: Element, const N: usize>(xs: &[T]) -> f64 {
        // SAFETY: the caller vouches for the instructions; every block is inside of its round.
        unsafe {
            if T::BLOCK == 1 {
                return accumulate::<Pair<V, OnMultipliers<V>>, V, T, N>(xs).total(xs);
            }
            if xs.len() <= V::LANES {
                return accumulate_few::<Pair<V, OnMultipliers<V>>, V, T>(xs).total(xs);
            }
            let width = T::BLOCK * V::LANES;
            let mut accumulators = [Pair::<V, OnMultipliers<V>>::new(); N];
            let mut poison = V::no_poison();
            let mut rounds = xs.chunks_exact(N * width);
            for round in &mut rounds {
                for (i, accumulator) in accumulators.iter_mut().enumerate() {
                    accumulator.push(T::sum_block(round.as_ptr().add(i * width), &mut poison));
                }
            }
            if !V::all_finite(poison) {
                return exact(xs);
            }
            let rest = accumulate_part::<Pair<V, OnMultipliers<V>>, V, T, N>(rounds.remainder());
            if xs.len() < N * width {
                return rest.total(xs);
            }
            accumulators.into_iter().fold(rest, |all, accumulator| all.merge(accumulator)).total(xs)
        }
    }
}
