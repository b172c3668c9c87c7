//! NEON: two numbers at a time.

use core::arch::aarch64::*;

use super::register::{MAX_LANES, Register, with_instructions};

impl Register for float64x2_t {
    const LANES: usize = 2;

    with_instructions! { "neon"
        unsafe fn splat(value: f64) -> Self { vdupq_n_f64(value) }

        unsafe fn counting() -> Self {
            // SAFETY: the array has two numbers.
            unsafe { vld1q_f64([0.0, 1.0].as_ptr()) }
        }

        unsafe fn load_f64(from: *const f64) -> Self {
            // SAFETY: the caller promises two readable numbers.
            unsafe { vld1q_f64(from) }
        }

        unsafe fn load_f32(from: *const f32) -> Self {
            // SAFETY: the caller promises two readable numbers.
            vcvt_f64_f32(unsafe { vld1_f32(from) })
        }

        unsafe fn load_partial_f64(from: *const f64, count: usize) -> Self {
            // SAFETY: the caller promises the first number, and both if there are two.
            unsafe { if count < 2 { vld1q_lane_f64::<0>(from, vdupq_n_f64(-0.0)) } else { vld1q_f64(from) } }
        }

        unsafe fn load_partial_f32(from: *const f32, count: usize) -> Self {
            // SAFETY: as above.
            vcvt_f64_f32(unsafe { if count < 2 { vld1_lane_f32::<0>(from, vdup_n_f32(-0.0)) } else { vld1_f32(from) } })
        }

        unsafe fn store(self, to: *mut f64) {
            // SAFETY: the caller promises two writable numbers.
            unsafe { vst1q_f64(to, self) }
        }

        unsafe fn store_partial(self, to: *mut f64, count: usize) {
            // SAFETY: the caller promises room for the first number, and for both if there are two.
            unsafe { if count < 2 { vst1q_lane_f64::<0>(to, self) } else { vst1q_f64(to, self) } }
        }

        unsafe fn add(self, other: Self) -> Self { vaddq_f64(self, other) }
        unsafe fn sub(self, other: Self) -> Self { vsubq_f64(self, other) }
        unsafe fn mul(self, other: Self) -> Self { vmulq_f64(self, other) }
        unsafe fn mul_add(self, factor: Self, other: Self) -> Self { vfmaq_f64(other, self, factor) }
        unsafe fn mul_sub(self, factor: Self, other: Self) -> Self { vfmaq_f64(vnegq_f64(other), self, factor) }

        unsafe fn by_magnitude(self, other: Self) -> (Self, Self) {
            let other_larger = vcaltq_f64(self, other);
            (vbslq_f64(other_larger, other, self), vbslq_f64(other_larger, self, other))
        }

        unsafe fn to_lanes(self) -> [f64; MAX_LANES] {
            let mut lanes = [0.0; MAX_LANES];
            // SAFETY: the array has room for two numbers.
            unsafe { vst1q_f64(lanes.as_mut_ptr(), self) };
            lanes
        }
    }
}
