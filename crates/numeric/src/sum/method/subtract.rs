//! On which units of the CPU the exact subtractions of a compensated method run.

use crate::simd::Register;

/// A way to subtract.
pub trait Subtract<V: Register>: Copy {
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

impl<V: Register> Subtract<V> for OnAdders {
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
