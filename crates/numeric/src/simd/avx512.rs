//! AVX-512: eight numbers at a time.

use core::arch::x86_64::*;

use super::register::{MAX_LANES, Register, with_instructions};

impl Register for __m512d {
    const LANES: usize = 8;

    with_instructions! { "avx512f"
        unsafe fn splat(value: f64) -> Self { _mm512_set1_pd(value) }
        unsafe fn counting() -> Self { _mm512_setr_pd(0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0) }

        unsafe fn load_f64(from: *const f64) -> Self {
            // SAFETY: the caller promises eight readable numbers.
            unsafe { _mm512_loadu_pd(from) }
        }

        unsafe fn load_f32(from: *const f32) -> Self {
            // SAFETY: the caller promises eight readable numbers.
            _mm512_cvtps_pd(unsafe { _mm256_loadu_ps(from) })
        }

        unsafe fn load_partial_f64(from: *const f64, count: usize) -> Self {
            let mask = first(count) as __mmask8;
            // SAFETY: only the first `count` numbers are read, which the caller promises.
            unsafe { _mm512_mask_loadu_pd(_mm512_set1_pd(-0.0), mask, from) }
        }

        unsafe fn load_partial_f32(from: *const f32, count: usize) -> Self {
            // SAFETY: only the first `count` numbers are read, which the caller promises.
            let terms = unsafe { _mm512_mask_loadu_ps(_mm512_set1_ps(-0.0), first(count), from) };
            _mm512_cvtps_pd(_mm512_castps512_ps256(terms))
        }

        unsafe fn store(self, to: *mut f64) {
            // SAFETY: the caller promises eight writable numbers.
            unsafe { _mm512_storeu_pd(to, self) }
        }

        unsafe fn store_partial(self, to: *mut f64, count: usize) {
            // SAFETY: only the first `count` numbers are written, for which the caller promises room.
            unsafe { _mm512_mask_storeu_pd(to, first(count) as __mmask8, self) }
        }

        unsafe fn add(self, other: Self) -> Self { _mm512_add_pd(self, other) }
        unsafe fn sub(self, other: Self) -> Self { _mm512_sub_pd(self, other) }
        unsafe fn mul(self, other: Self) -> Self { _mm512_mul_pd(self, other) }
        unsafe fn mul_add(self, factor: Self, other: Self) -> Self { _mm512_fmadd_pd(self, factor, other) }
        unsafe fn mul_sub(self, factor: Self, other: Self) -> Self { _mm512_fmsub_pd(self, factor, other) }

        unsafe fn by_magnitude(self, other: Self) -> (Self, Self) {
            let (a, b) = (_mm512_abs_pd(self), _mm512_abs_pd(other));
            let other_larger = _mm512_cmp_pd_mask::<_CMP_LT_OQ>(a, b);
            (_mm512_mask_mov_pd(self, other_larger, other), _mm512_mask_mov_pd(other, other_larger, self))
        }

        unsafe fn to_lanes(self) -> [f64; MAX_LANES] {
            let mut lanes = [0.0; MAX_LANES];
            // SAFETY: the array has room for eight numbers.
            unsafe { _mm512_storeu_pd(lanes.as_mut_ptr(), self) };
            lanes
        }
    }
}

/// Returns a mask of the first `count` lanes (0 to 8).
fn first(count: usize) -> __mmask16 {
    (1 << count) - 1
}
