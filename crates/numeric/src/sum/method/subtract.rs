//! On which units of the CPU the exact subtractions of a compensated method run.

use std::hint::black_box;

use crate::sum::vector::{Fma, Vector};

/// A way to subtract.
pub trait Subtract<V: Vector>: Copy {
    /// Ready to subtract.
    ///
    /// # Safety
    /// The CPU has the instructions of `V`.
    unsafe fn new() -> Self;

    /// `a - b`, rounded once.
    ///
    /// # Safety
    /// The CPU has the instructions of `V`.
    unsafe fn minus(self, a: V, b: V) -> V;
}

/// As it is written.
#[derive(Clone, Copy)]
pub struct OnAdders;

impl<V: Vector> Subtract<V> for OnAdders {
    #[inline(always)]
    unsafe fn new() -> Self {
        OnAdders
    }

    #[inline(always)]
    unsafe fn minus(self, a: V, b: V) -> V {
        // SAFETY: the same contract.
        unsafe { a.sub(b) }
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
