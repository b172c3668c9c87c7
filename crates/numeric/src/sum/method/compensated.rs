//! Kahan's, Neumaier's and Babuška's sums: each is kept as an unevaluated pair, sum and correction.

use super::Method;
use super::two_sum::blocks;
use crate::simd::{MAX_LANES, Register};
use crate::sum::accumulate::{Accumulator, accumulate};
use crate::sum::element::Element;
use crate::sum::exact::exact;
use crate::sum::vector::Vector;

/// The rounded sum and its exact error, in any order of magnitudes. Knuth, "The Art of Computer
/// Programming", volume 2, section 4.2.2, theorem B.
///
/// # Safety
/// The CPU has the instructions of `V`.
#[inline(always)]
pub unsafe fn two_sum<V: Vector>(a: V, b: V) -> (V, V) {
    // SAFETY: the same contract.
    unsafe {
        let sum = a.add(b);
        let b_used = sum.sub(a);
        let a_used = sum.sub(b_used);
        (sum, a.sub(a_used).add(b.sub(b_used)))
    }
}

/// The total of all lanes of `sum` and `correction`, which were gathered from `xs`.
///
/// Compensation breaks down when a sum overflows (∞ − ∞), also where only the partial sum of a
/// lane did; then, and where `xs` itself is not finite, the exact sum decides.
///
/// # Safety
/// The CPU has the instructions of `V`.
#[inline(always)]
pub unsafe fn total<V: Vector, T: Element>(sum: V, correction: V, xs: &[T]) -> f64 {
    // SAFETY: the same contract.
    let total = unsafe { lanes_total(sum, correction) };
    if total.is_finite() { total } else { exact(xs) }
}

/// The total of all lanes of `sum` and `correction`, whether finite or not.
///
/// # Safety
/// The CPU has the instructions of `V`.
#[inline(always)]
pub unsafe fn lanes_total<V: Vector>(sum: V, correction: V) -> f64 {
    // SAFETY: the same contract.
    unsafe {
        let mut sums = sum.to_lanes();
        let mut corrections = correction.to_lanes();
        // No loop, which the compiler would keep, and the lanes in memory with it.
        if V::LANES > 4 {
            halve::<4>(&mut sums, &mut corrections);
        }
        if V::LANES > 2 {
            halve::<2>(&mut sums, &mut corrections);
        }
        if V::LANES > 1 {
            halve::<1>(&mut sums, &mut corrections);
        }
        // A correction of zero has lost its sign: added to −0.0 it would give +0.0.
        if corrections[0] == 0.0 { sums[0] } else { sums[0] + corrections[0] }
    }
}

/// Adds the upper half of twice `HALF` lanes to the lower.
#[inline(always)]
fn halve<const HALF: usize>(sums: &mut [f64; MAX_LANES], corrections: &mut [f64; MAX_LANES]) {
    for i in 0..HALF {
        // SAFETY: one lane needs no special instructions.
        let (sum, error) = unsafe { two_sum(sums[i], sums[i + HALF]) };
        sums[i] = sum;
        // Added up in the order of `Accumulator::merge`, for the same bits.
        corrections[i] = corrections[i] + corrections[i + HALF] + error;
    }
}

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

/// Carries what each addition added too much into the next term. The error is at most
/// (2u + O(n·u²))·Σ|x|; a term much larger than the sum so far still loses the sum's low digits.
/// Kahan 1965, "Further remarks on reducing truncation errors".
pub struct Kahan;

impl<V: Vector> Method<V> for Kahan {
    #[inline(always)]
    unsafe fn sum<T: Element, const N: usize>(xs: &[T]) -> f64 {
        // SAFETY: the same contract.
        unsafe { accumulate::<Excess<V>, V, T, N>(xs).total(xs) }
    }
}

/// A sum, and by how much it is too large.
#[derive(Clone, Copy)]
pub struct Excess<V> {
    pub sum: V,
    pub excess: V,
}

impl<V: Vector> Excess<V> {
    /// The total of all lanes, gathered from `xs`.
    ///
    /// # Safety
    /// The CPU has the instructions of `V`.
    #[inline(always)]
    pub unsafe fn total<T: Element>(self, xs: &[T]) -> f64 {
        // SAFETY: the same contract.
        unsafe { total(self.sum, V::splat(0.0).sub(self.excess), xs) }
    }
}

impl<V: Vector> Accumulator<V> for Excess<V> {
    #[inline(always)]
    unsafe fn new() -> Self {
        // SAFETY: the same contract.
        unsafe { Excess { sum: V::splat(-0.0), excess: V::splat(0.0) } }
    }

    #[inline(always)]
    unsafe fn push(&mut self, terms: V) {
        // SAFETY: the same contract.
        unsafe {
            let wanted = terms.sub(self.excess);
            let sum = self.sum.add(wanted);
            self.excess = sum.sub(self.sum).sub(wanted);
            self.sum = sum;
        }
    }

    #[inline(always)]
    unsafe fn merge(self, other: Self) -> Self {
        // SAFETY: the same contract.
        unsafe {
            let (sum, error) = two_sum(self.sum, other.sum);
            Excess { sum, excess: self.excess.add(other.excess).sub(error) }
        }
    }
}

/// Adds up the exact errors of all additions beside the sum, and applies them at the end. The
/// error is at most u·|Σx| + (n·u)²·Σ|x|: as if summed in twice the precision and rounded once.
/// Neumaier 1974, "Rundungsfehleranalyse einiger Verfahren zur Summation endlicher Summen".
pub struct Neumaier;

impl<V: Vector> Method<V> for Neumaier {
    #[inline(always)]
    unsafe fn sum<T: Element, const N: usize>(xs: &[T]) -> f64 {
        // SAFETY: the same contract.
        unsafe {
            let Corrected { sum, correction } = accumulate::<Corrected<V>, V, T, N>(xs);
            total(sum, correction, xs)
        }
    }
}

/// A sum, and what is to be added to it.
#[derive(Clone, Copy)]
struct Corrected<V> {
    sum: V,
    correction: V,
}

impl<V: Vector> Accumulator<V> for Corrected<V> {
    #[inline(always)]
    unsafe fn new() -> Self {
        // SAFETY: the same contract.
        unsafe { Corrected { sum: V::splat(-0.0), correction: V::splat(0.0) } }
    }

    #[inline(always)]
    unsafe fn push(&mut self, terms: V) {
        // SAFETY: the same contract.
        unsafe {
            let (larger, smaller) = self.sum.by_magnitude(terms);
            self.sum = self.sum.add(terms);
            let error = larger.sub(self.sum).add(smaller);
            self.correction = self.correction.add(error);
        }
    }

    #[inline(always)]
    unsafe fn merge(self, other: Self) -> Self {
        // SAFETY: the same contract.
        unsafe {
            let (sum, error) = two_sum(self.sum, other.sum);
            Corrected { sum, correction: self.correction.add(other.correction).add(error) }
        }
    }
}

/// Adds up what each addition lost beside the sum, and applies it at the end. As many operations as Kahan's, but the
/// next addition waits for one of them instead of four.
///
/// Where a term is larger than the sum so far, what it lost is known only to u times the term: the error is at most
/// u·|Σx| + (u + O(n·u²))·Σ|x|. `f32` is added plainly within blocks, as in [`BlockTwoSum`](super::BlockTwoSum), which
/// adds 5u·Σ|x|. Babuška 1969, "Numerical stability in mathematical analysis".
pub struct Babuska;

impl<V: Vector> Method<V> for Babuska {
    #[inline(always)]
    unsafe fn sum<T: Element, const N: usize>(xs: &[T]) -> f64 {
        // SAFETY: the same contract.
        unsafe { blocks::<Beside<V, OnAdders>, V, T, N>(xs).total(xs) }
    }
}

/// A sum, and what is to be added to it.
#[derive(Clone, Copy)]
pub struct Beside<V, S> {
    sum: V,
    correction: V,
    subtract: S,
}

impl<V: Vector, S> Beside<V, S> {
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

impl<V: Vector, S: Subtract<V>> Accumulator<V> for Beside<V, S> {
    #[inline(always)]
    unsafe fn new() -> Self {
        // SAFETY: the same contract.
        unsafe { Beside { sum: V::splat(-0.0), correction: V::splat(0.0), subtract: S::new() } }
    }

    #[inline(always)]
    unsafe fn push(&mut self, terms: V) {
        // SAFETY: the same contract.
        unsafe {
            let sum = self.sum.add(terms);
            let used = self.subtract.minus(sum, self.sum);
            self.correction = self.correction.add(self.subtract.minus(terms, used));
            self.sum = sum;
        }
    }

    #[inline(always)]
    unsafe fn merge(self, other: Self) -> Self {
        // SAFETY: the same contract.
        unsafe {
            let (sum, error) = two_sum(self.sum, other.sum);
            Beside { sum, correction: self.correction.add(other.correction).add(error), ..self }
        }
    }
}
