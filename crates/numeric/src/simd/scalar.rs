//! One number at a time, on every machine.

use super::register::{MAX_LANES, Register, with_instructions};
use crate::standard;

/// Returns the same number but hides its origin from the compiler. Otherwise the compiler may pack several accumulators
/// into one SSE2 register, and scalar code would not be scalar.
#[inline(always)]
fn opaque(number: f64) -> f64 {
    #[cfg(target_arch = "x86_64")]
    {
        let same;
        // SAFETY: the assembly has no instruction, and the register keeps its value.
        unsafe {
            core::arch::asm!(
                "/* {0} */",
                inlateout(xmm_reg) number => same,
                options(pure, nomem, nostack, preserves_flags)
            );
        }
        same
    }
    #[cfg(target_arch = "aarch64")]
    {
        let same;
        // SAFETY: as above.
        unsafe {
            core::arch::asm!(
                "/* {0:d} */",
                inlateout(vreg) number => same,
                options(pure, nomem, nostack, preserves_flags)
            );
        }
        same
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    number
}

impl Register for f64 {
    const LANES: usize = 1;

    with_instructions! { none
        unsafe fn splat(value: f64) -> f64 { value }
        unsafe fn counting() -> f64 { 0.0 }

        unsafe fn load_f64(from: *const f64) -> f64 {
            // SAFETY: the caller promises a readable number, and slices are aligned.
            opaque(unsafe { *from })
        }

        unsafe fn load_f32(from: *const f32) -> f64 {
            // SAFETY: as above.
            opaque(f64::from(unsafe { *from }))
        }

        unsafe fn load_partial_f64(from: *const f64, _one: usize) -> f64 {
            // SAFETY: as above; a register of one lane is never partial.
            unsafe { f64::load_f64(from) }
        }

        unsafe fn load_partial_f32(from: *const f32, _one: usize) -> f64 {
            // SAFETY: as above.
            unsafe { f64::load_f32(from) }
        }

        unsafe fn store(self, to: *mut f64) {
            // SAFETY: the caller promises a writable number.
            unsafe { to.write(self) }
        }

        unsafe fn store_partial(self, to: *mut f64, _one: usize) {
            // SAFETY: as above; a register of one lane is never partial.
            unsafe { to.write(self) }
        }

        unsafe fn add(self, other: f64) -> f64 { opaque(self + other) }
        unsafe fn sub(self, other: f64) -> f64 { opaque(self - other) }
        unsafe fn mul(self, other: f64) -> f64 { opaque(self * other) }
        unsafe fn mul_add(self, factor: f64, other: f64) -> f64 { opaque(self * factor + other) }
        unsafe fn mul_sub(self, factor: f64, other: f64) -> f64 { standard::mul_add(self, factor, -other) }

        unsafe fn by_magnitude(self, other: f64) -> (f64, f64) {
            if self.abs() >= other.abs() { (self, other) } else { (other, self) }
        }

        unsafe fn to_lanes(self) -> [f64; MAX_LANES] { [self; MAX_LANES] }
    }
}
