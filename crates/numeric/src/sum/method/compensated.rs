//! The sums of Kahan, Neumaier and Babuška. Each is an unevaluated pair of a sum and a correction.

use super::Method;
use super::two_sum::blocks;
use crate::simd::{MAX_LANES, Register};
use crate::sum::accumulate::{Accumulator, accumulate};
use crate::sum::element::Element;
use crate::sum::exact::exact;
use crate::sum::vector::Vector;

/// Returns the rounded sum and its exact error, for any magnitudes. Knuth, "The Art of Computer Programming", volume 2,
/// section 4.2.2, theorem B.
///
/// # Safety
/// The CPU must have the instructions of `V`.
#[inline(always)]
pub unsafe fn two_sum<V: Vector>(a: V, b: V) -> (V, V) {
    // SAFETY: the caller guarantees the same conditions.
    unsafe {
        let sum = a.add(b);
        let b_used = sum.sub(a);
        let a_used = sum.sub(b_used);
        (sum, a.sub(a_used).add(b.sub(b_used)))
    }
}

/// Returns the total of all lanes of `sum` and `correction`, the results of adding up `xs`.
///
/// Compensation fails if a sum overflows (∞ − ∞), even if only the partial sum of one lane does. In that case, and if
/// `xs` itself is not finite, the exact sum is returned.
///
/// # Safety
/// The CPU must have the instructions of `V`.
#[inline(always)]
pub unsafe fn total<V: Vector, T: Element>(sum: V, correction: V, xs: &[T]) -> f64 {
    // SAFETY: the caller guarantees the same conditions.
    let total = unsafe { lanes_total(sum, correction) };
    if total.is_finite() { total } else { exact(xs) }
}

/// Returns the total of all lanes of `sum` and `correction`. Unlike [`total`], it does not check whether the result is
/// finite.
///
/// # Safety
/// The CPU must have the instructions of `V`.
#[inline(always)]
pub unsafe fn lanes_total<V: Vector>(sum: V, correction: V) -> f64 {
    // SAFETY: the caller guarantees the same conditions.
    unsafe {
        let mut sums = sum.to_lanes();
        let mut corrections = correction.to_lanes();
        // The halving is unrolled by hand. The compiler would keep a loop, and the loop would keep the lanes in memory.
        if V::LANES > 4 {
            halve::<4>(&mut sums, &mut corrections);
        }
        if V::LANES > 2 {
            halve::<2>(&mut sums, &mut corrections);
        }
        if V::LANES > 1 {
            halve::<1>(&mut sums, &mut corrections);
        }
        // A correction of zero has lost its sign: adding it to −0.0 would give +0.0.
        if corrections[0] == 0.0 { sums[0] } else { sums[0] + corrections[0] }
    }
}

/// Adds the upper half of `2 * HALF` lanes to the lower half. The rounding errors of these additions go to the
/// corrections.
#[inline(always)]
fn halve<const HALF: usize>(sums: &mut [f64; MAX_LANES], corrections: &mut [f64; MAX_LANES]) {
    for i in 0..HALF {
        // SAFETY: one lane needs no special instructions.
        let (sum, error) = unsafe { two_sum(sums[i], sums[i + HALF]) };
        sums[i] = sum;
        // Adds in the same order as `Accumulator::merge`, for the same bits.
        corrections[i] = corrections[i] + corrections[i + HALF] + error;
    }
}

/// A method of subtraction. All methods return the same result, but they use different execution units of the CPU.
pub trait Subtract<V: Register>: Copy {
    /// Creates the constants that the subtractions need.
    ///
    /// # Safety
    /// The CPU must have the instructions of `V`.
    unsafe fn new() -> Self;

    /// Returns `a - b`, rounded once.
    ///
    /// # Safety
    /// The CPU must have the instructions of `V`.
    unsafe fn minus(self, a: V, b: V) -> V;
}

/// Plain subtraction, on the CPU's adders.
#[derive(Clone, Copy)]
pub struct OnAdders;

impl<V: Register> Subtract<V> for OnAdders {
    #[inline(always)]
    unsafe fn new() -> Self {
        OnAdders
    }

    #[inline(always)]
    unsafe fn minus(self, a: V, b: V) -> V {
        // SAFETY: the caller guarantees the same conditions.
        unsafe { a.sub(b) }
    }
}

/// Kahan's method: it carries the rounding error of each addition into the next term. For n numbers the error is at
/// most (2u + O(n·u²))·Σ|x|, where u = 2⁻⁵³. A term much larger than the sum so far still loses the sum's low digits.
/// Kahan 1965, "Further remarks on reducing truncation errors".
pub struct Kahan;

impl<V: Vector> Method<V> for Kahan {
    #[inline(always)]
    unsafe fn sum<T: Element, const N: usize>(xs: &[T]) -> f64 {
        // SAFETY: the caller guarantees the same conditions.
        unsafe { accumulate::<KahanSum<V, OnAdders>, V, T, N>(xs).total(xs) }
    }
}

/// The running state of [`Kahan`]: a sum, and the amount by which it is too large.
#[derive(Clone, Copy)]
pub struct KahanSum<V, S> {
    sum: V,
    excess: V,
    subtract: S,
}

impl<V: Vector, S> KahanSum<V, S> {
    /// Returns the total of all lanes. `xs` are the numbers that were added.
    ///
    /// # Safety
    /// The CPU must have the instructions of `V`.
    #[inline(always)]
    pub unsafe fn total<T: Element>(self, xs: &[T]) -> f64 {
        // SAFETY: the caller guarantees the same conditions.
        unsafe { total(self.sum, V::splat(0.0).sub(self.excess), xs) }
    }
}

impl<V: Vector, S: Subtract<V>> Accumulator<V> for KahanSum<V, S> {
    #[inline(always)]
    unsafe fn new() -> Self {
        // SAFETY: the caller guarantees the same conditions.
        unsafe { KahanSum { sum: V::splat(-0.0), excess: V::splat(0.0), subtract: S::new() } }
    }

    #[inline(always)]
    unsafe fn push(&mut self, terms: V) {
        // SAFETY: the caller guarantees the same conditions.
        unsafe {
            let wanted = self.subtract.minus(terms, self.excess);
            let sum = self.sum.add(wanted);
            self.excess = self.subtract.minus(sum.sub(self.sum), wanted);
            self.sum = sum;
        }
    }

    #[inline(always)]
    unsafe fn merge(self, other: Self) -> Self {
        // SAFETY: the caller guarantees the same conditions.
        unsafe {
            let (sum, error) = two_sum(self.sum, other.sum);
            KahanSum { sum, excess: self.excess.add(other.excess).sub(error), ..self }
        }
    }
}

/// Neumaier's method: it sums the exact errors of all additions separately and adds them at the end. For n numbers the
/// error is at most u·|Σx| + (n·u)²·Σ|x|, where u = 2⁻⁵³: as if summed in twice the precision and rounded once.
/// Neumaier 1974, "Rundungsfehleranalyse einiger Verfahren zur Summation endlicher Summen".
pub struct Neumaier;

impl<V: Vector> Method<V> for Neumaier {
    #[inline(always)]
    unsafe fn sum<T: Element, const N: usize>(xs: &[T]) -> f64 {
        // SAFETY: the caller guarantees the same conditions.
        unsafe {
            let NeumaierSum { sum, correction } = accumulate::<NeumaierSum<V>, V, T, N>(xs);
            total(sum, correction, xs)
        }
    }
}

/// The running state of [`Neumaier`]: a sum, and the correction to add to it.
#[derive(Clone, Copy)]
struct NeumaierSum<V> {
    sum: V,
    correction: V,
}

impl<V: Vector> Accumulator<V> for NeumaierSum<V> {
    #[inline(always)]
    unsafe fn new() -> Self {
        // SAFETY: the caller guarantees the same conditions.
        unsafe { NeumaierSum { sum: V::splat(-0.0), correction: V::splat(0.0) } }
    }

    #[inline(always)]
    unsafe fn push(&mut self, terms: V) {
        // SAFETY: the caller guarantees the same conditions.
        unsafe {
            let (larger, smaller) = self.sum.by_magnitude(terms);
            self.sum = self.sum.add(terms);
            let error = larger.sub(self.sum).add(smaller);
            self.correction = self.correction.add(error);
        }
    }

    #[inline(always)]
    unsafe fn merge(self, other: Self) -> Self {
        // SAFETY: the caller guarantees the same conditions.
        unsafe {
            let (sum, error) = two_sum(self.sum, other.sum);
            NeumaierSum { sum, correction: self.correction.add(other.correction).add(error) }
        }
    }
}

/// Babuška's method: it sums the rounding errors of the additions separately and adds them at the end. It needs as many
/// operations as Kahan's method, but has shorter dependencies. Each addition waits for one operation of the addition
/// before it; in Kahan's method, it waits for four.
///
/// If a term is larger than the sum so far, the error of the addition is known only to u times the term. The error of
/// the result is at most u·|Σx| + (u + O(n·u²))·Σ|x|. For `f32`, numbers are added in blocks without compensation, as
/// in [`BlockTwoSum`](super::BlockTwoSum). This adds 5u·Σ|x| to the error. Babuška 1969, "Numerical stability in
/// mathematical analysis".
pub struct Babuska;

impl<V: Vector> Method<V> for Babuska {
    #[inline(always)]
    unsafe fn sum<T: Element, const N: usize>(xs: &[T]) -> f64 {
        // SAFETY: the caller guarantees the same conditions.
        unsafe { blocks::<BabuskaSum<V, OnAdders>, V, T, N>(xs).total(xs) }
    }
}

/// The running state of [`Babuska`]: a sum, and the correction to add to it.
#[derive(Clone, Copy)]
pub struct BabuskaSum<V, S> {
    sum: V,
    correction: V,
    subtract: S,
}

impl<V: Vector, S> BabuskaSum<V, S> {
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

impl<V: Vector, S: Subtract<V>> Accumulator<V> for BabuskaSum<V, S> {
    #[inline(always)]
    unsafe fn new() -> Self {
        // SAFETY: the caller guarantees the same conditions.
        unsafe { BabuskaSum { sum: V::splat(-0.0), correction: V::splat(0.0), subtract: S::new() } }
    }

    #[inline(always)]
    unsafe fn push(&mut self, terms: V) {
        // SAFETY: the caller guarantees the same conditions.
        unsafe {
            let sum = self.sum.add(terms);
            let used = self.subtract.minus(sum, self.sum);
            self.correction = self.correction.add(self.subtract.minus(terms, used));
            self.sum = sum;
        }
    }

    #[inline(always)]
    unsafe fn merge(self, other: Self) -> Self {
        // SAFETY: the caller guarantees the same conditions.
        unsafe {
            let (sum, error) = two_sum(self.sum, other.sum);
            BabuskaSum { sum, correction: self.correction.add(other.correction).add(error), ..self }
        }
    }
}
