//! Speed limits for all methods: reading the numbers, alone or with operations that do not depend on each other.

use core::hint::black_box;

use super::Method;
#[cfg(target_arch = "x86_64")]
use crate::simd::MAX_LANES;
use crate::sum::accumulate::{Accumulator, accumulate};
use crate::sum::element::Element;
use crate::sum::vector::Vector;
#[cfg(target_arch = "x86_64")]
use crate::sum::vector::{Fma, Words};

/// The speed limit of sums: loads each register and does `K` operations with it, alternately on the adders and on the
/// multipliers. Of these operations, only the last one waits for an earlier register. The speed is therefore limited by
/// the operations that the CPU starts per cycle, or by the loads. The result is always 0, and therefore not a sum.
#[cfg(target_arch = "x86_64")]
pub struct Limit<const K: usize>;

#[cfg(target_arch = "x86_64")]
impl<V: Fma, const K: usize> Method<V> for Limit<K> {
    #[inline(always)]
    unsafe fn sum<T: Element, const N: usize>(xs: &[T]) -> f64 {
        // SAFETY: the caller guarantees the same conditions.
        black_box(unsafe { accumulate::<Work<V, K>, V, T, N>(xs) });
        0.0
    }
}

/// The running state of [`Limit`]: the result of its operations so far, which only keep the CPU busy.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub struct Work<V, const K: usize> {
    sum: V,
    one: V,
}

#[cfg(target_arch = "x86_64")]
impl<V: Fma, const K: usize> Accumulator<V> for Work<V, K> {
    #[inline(always)]
    unsafe fn new() -> Self {
        // SAFETY: the caller guarantees the same conditions.
        unsafe { Work { sum: V::splat(0.0), one: V::splat(black_box(1.0)) } }
    }

    #[inline(always)]
    unsafe fn push(&mut self, mut terms: V) {
        // SAFETY: the caller guarantees the same conditions.
        unsafe {
            for i in 1..K {
                terms = if i % 2 == 0 { terms.add(self.one) } else { terms.mul_sub(self.one, self.one) };
            }
            self.sum = self.sum.add(terms);
        }
    }

    #[inline(always)]
    unsafe fn merge(self, other: Self) -> Self {
        // SAFETY: the caller guarantees the same conditions.
        unsafe { Work { sum: self.sum.add(other.sum), ..self } }
    }
}

/// The speed limit of sums on the adders alone: loads each register and makes `K` additions with it, of which only the
/// last waits for an earlier register. The result is always 0, and therefore not a sum.
pub struct LimitOfAdders<const K: usize>;

impl<V: Vector, const K: usize> Method<V> for LimitOfAdders<K> {
    #[inline(always)]
    unsafe fn sum<T: Element, const N: usize>(xs: &[T]) -> f64 {
        // SAFETY: the caller guarantees the same conditions.
        black_box(unsafe { accumulate::<Additions<V, K>, V, T, N>(xs) });
        0.0
    }
}

/// The running state of [`LimitOfAdders`].
#[derive(Clone, Copy)]
pub struct Additions<V, const K: usize> {
    sum: V,
    one: V,
}

impl<V: Vector, const K: usize> Accumulator<V> for Additions<V, K> {
    #[inline(always)]
    unsafe fn new() -> Self {
        // SAFETY: the caller guarantees the same conditions.
        unsafe { Additions { sum: V::splat(0.0), one: V::splat(black_box(1.0)) } }
    }

    #[inline(always)]
    unsafe fn push(&mut self, mut terms: V) {
        // SAFETY: the caller guarantees the same conditions.
        unsafe {
            for _ in 1..K {
                terms = terms.add(self.one);
            }
            self.sum = self.sum.add(terms);
        }
    }

    #[inline(always)]
    unsafe fn merge(self, other: Self) -> Self {
        // SAFETY: the caller guarantees the same conditions.
        unsafe { Additions { sum: self.sum.add(other.sum), ..self } }
    }
}

/// The method that only loads the slice. Its result is the exclusive or of all 64-bit words (the last word is filled
/// with zeros), as a number. This is not a sum, but computing a sum cannot take less time.
#[cfg(target_arch = "x86_64")]
pub struct LoadOnly;

#[cfg(target_arch = "x86_64")]
impl<V: Words> Method<V> for LoadOnly {
    #[inline(always)]
    unsafe fn sum<T: Element, const N: usize>(xs: &[T]) -> f64 {
        let width = size_of::<V>();
        // SAFETY: the bytes are those of `xs`, which holds floats without padding; loads are inside their blocks and
        // the buffer; the caller guarantees the instructions.
        let lanes = unsafe {
            let bytes = core::slice::from_raw_parts(xs.as_ptr().cast::<u8>(), size_of_val(xs));
            // Starts at an aligned address, so that no load crosses a cache line. If that would split words, starts at
            // the beginning.
            let unaligned = bytes.as_ptr().align_offset(width);
            let (head, body) = bytes.split_at(if unaligned % 8 == 0 { unaligned.min(bytes.len()) } else { 0 });
            let mut seen = [V::splat(0.0); N];
            let mut blocks = body.chunks_exact(N * width);
            for block in &mut blocks {
                for (i, seen) in seen.iter_mut().enumerate() {
                    *seen = seen.xor(V::load_bytes(block.as_ptr().add(i * width)));
                }
            }
            let mut all = seen[0];
            for other in &seen[1..] {
                all = all.xor(*other);
            }
            for piece in blocks.remainder().chunks(width).chain([head]) {
                let mut buffer = [0_u8; MAX_LANES * size_of::<f64>()];
                buffer[..piece.len()].copy_from_slice(piece);
                all = all.xor(V::load_bytes(buffer.as_ptr()));
            }
            all.to_lanes()
        };
        lanes[..V::LANES].iter().fold(0, |all, lane| all ^ lane.to_bits()) as f64
    }
}
