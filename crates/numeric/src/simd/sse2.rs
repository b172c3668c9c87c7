//! SSE2: two numbers at a time, on every x86-64 CPU.

use core::arch::x86_64::*;

use super::register::{MAX_LANES, Register, with_instructions};
use crate::standard;

impl Register for __m128d {
    const LANES: usize = 2;

    with_instructions! { "sse2"
        unsafe fn splat(value: f64) -> Self { _mm_set1_pd(value) }
        unsafe fn counting() -> Self { _mm_setr_pd(0.0, 1.0) }

        unsafe fn load_f64(from: *const f64) -> Self {
            // SAFETY: the caller promises two readable numbers.
            unsafe { _mm_loadu_pd(from) }
        }

        unsafe fn load_f32(from: *const f32) -> Self {
            // SAFETY: the caller promises two readable numbers.
            _mm_cvtps_pd(_mm_castpd_ps(unsafe { _mm_load_sd(from.cast()) }))
        }

        unsafe fn load_partial_f64(from: *const f64, count: usize) -> Self {
            // SAFETY: the caller promises the first number, and both if there are two.
            unsafe { if count < 2 { _mm_setr_pd(*from, -0.0) } else { _mm_loadu_pd(from) } }
        }

        unsafe fn load_partial_f32(from: *const f32, count: usize) -> Self {
            // SAFETY: as above.
            unsafe { if count < 2 { _mm_setr_pd(f64::from(*from), -0.0) } else { Self::load_f32(from) } }
        }

        unsafe fn store(self, to: *mut f64) {
            // SAFETY: the caller promises two writable numbers.
            unsafe { _mm_storeu_pd(to, self) }
        }

        unsafe fn store_partial(self, to: *mut f64, count: usize) {
            // SAFETY: the caller promises room for the first number, and for both if there are two.
            unsafe { if count < 2 { _mm_storel_pd(to, self) } else { _mm_storeu_pd(to, self) } }
        }

        unsafe fn add(self, other: Self) -> Self { _mm_add_pd(self, other) }
        unsafe fn sub(self, other: Self) -> Self { _mm_sub_pd(self, other) }
        unsafe fn mul(self, other: Self) -> Self { _mm_mul_pd(self, other) }
        unsafe fn mul_add(self, factor: Self, other: Self) -> Self { _mm_add_pd(_mm_mul_pd(self, factor), other) }

        unsafe fn mul_sub(self, factor: Self, other: Self) -> Self {
            // SAFETY: SSE2 is part of x86-64.
            let [a, b, c] = unsafe { [self.to_lanes(), factor.to_lanes(), other.to_lanes()] };
            let lane = |i: usize| standard::mul_add(a[i], b[i], -c[i]);
            _mm_setr_pd(lane(0), lane(1))
        }

        unsafe fn by_magnitude(self, other: Self) -> (Self, Self) {
            let sign = _mm_set1_pd(-0.0);
            let other_larger = _mm_cmplt_pd(_mm_andnot_pd(sign, self), _mm_andnot_pd(sign, other));
            let swapped = _mm_and_pd(_mm_xor_pd(self, other), other_larger);
            (_mm_xor_pd(self, swapped), _mm_xor_pd(other, swapped))
        }

        unsafe fn to_lanes(self) -> [f64; MAX_LANES] {
            let mut lanes = [0.0; MAX_LANES];
            // SAFETY: the array has room for two numbers.
            unsafe { _mm_storeu_pd(lanes.as_mut_ptr(), self) };
            lanes
        }
    }
}
