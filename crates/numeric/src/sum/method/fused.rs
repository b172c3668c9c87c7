//! Methods that issue half of their additions as multiply-add instructions. One of these methods also widens `f32` by
//! integer operations.

use core::hint::black_box;

use super::Method;
use super::compensated::{BabuskaSum, KahanSum, Subtract};
use super::two_sum::{Pair, blocks};
use crate::sum::accumulate::{Accumulator, accumulate, accumulate_few, accumulate_part};
use crate::sum::element::Element;
use crate::sum::exact::exact;
use crate::sum::vector::{Fma, Vector, Widen};

/// Computes the same bits as [`Kahan`](super::Kahan), on more execution ports of the CPU. It is for CPUs that have
/// separate ports for additions and for multiply-add (AMD since Zen). On these CPUs, a·1 − b is rounded like a − b, but
/// runs on the ports for multiply-add.
pub struct KahanFma;

impl<V: Fma> Method<V> for KahanFma {
    #[inline(always)]
    unsafe fn sum<T: Element, const N: usize>(xs: &[T]) -> f64 {
        // SAFETY: the caller guarantees the same conditions.
        unsafe { accumulate::<KahanSum<V, OnMultipliers<V>>, V, T, N>(xs).total(xs) }
    }
}

/// Subtraction as a·1 − b, which gives the same bits as a − b. Some CPUs have separate ports for additions and for
/// multiply-add (AMD since Zen), and using both kinds doubles the number of ports. The factor 1 is hidden from the
/// compiler, which would otherwise turn the operation back into a subtraction.
#[derive(Clone, Copy)]
pub struct OnMultipliers<V>(V);

impl<V: Fma> Subtract<V> for OnMultipliers<V> {
    #[inline(always)]
    unsafe fn new() -> Self {
        // SAFETY: the caller guarantees the same conditions.
        OnMultipliers(unsafe { V::splat(black_box(1.0)) })
    }

    #[inline(always)]
    unsafe fn minus(self, a: V, b: V) -> V {
        // SAFETY: the caller guarantees the same conditions.
        unsafe { a.mul_sub(self.0, b) }
    }
}

/// Computes the same bits as [`Babuska`](super::Babuska), with half of the additions by FMA instructions.
pub struct BabuskaFma;

impl<V: Fma> Method<V> for BabuskaFma {
    #[inline(always)]
    unsafe fn sum<T: Element, const N: usize>(xs: &[T]) -> f64 {
        // SAFETY: the caller guarantees the same conditions.
        unsafe { blocks::<BabuskaSum<V, OnMultipliers<V>>, V, T, N>(xs).total(xs) }
    }
}

/// Computes the same bits as [`BlockTwoSum`](super::BlockTwoSum), with half of the additions by FMA instructions.
pub struct BlockTwoSumFma;

impl<V: Vector> Method<V> for BlockTwoSumFma {
    #[inline(always)]
    unsafe fn sum<T: Element, const N: usize>(xs: &[T]) -> f64 {
        // SAFETY: the caller guarantees the same conditions.
        unsafe { blocks::<Pair<V, V::Subtraction>, V, T, N>(xs).total(xs) }
    }
}

/// Computes as [`BlockTwoSumFma`] does, but widens half of the `f32` by integer operations. For `f64`, which needs no
/// widening, both methods are the same.
pub struct BlockTwoSumBits;

impl<V: Widen> Method<V> for BlockTwoSumBits {
    #[inline(always)]
    unsafe fn sum<T: Element, const N: usize>(xs: &[T]) -> f64 {
        // SAFETY: the caller guarantees the instructions; every block is inside its round.
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
