//! Kahan's summation with half of its additions issued as multiplications.

use std::hint::black_box;

use super::Method;
use super::kahan::Excess;
use crate::sum::accumulate::{Accumulator, accumulate};
use crate::sum::element::Element;
use crate::sum::vector::Fma;

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
