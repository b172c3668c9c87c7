//! What the compensated methods share: a sum kept as an unevaluated pair, sum + correction.

use crate::simd::MAX_LANES;
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
