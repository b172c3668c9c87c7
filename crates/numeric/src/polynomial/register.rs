//! What the methods need of a register, so that each is written once for every instruction set.

/// A register of `f64` lanes; [`f64`] itself is the register of one lane.
///
/// # Safety
/// Every function here may be called only on a CPU that has the register's instructions.
pub trait Register: Copy {
    /// How many numbers it holds.
    const LANES: usize;

    /// `value` in every lane.
    unsafe fn splat(value: f64) -> Self;

    /// 0, 1, 2 …
    unsafe fn counting() -> Self;

    /// `self + other`.
    unsafe fn add(self, other: Self) -> Self;

    /// `self · factor + other`, rounded once where the instruction set can.
    unsafe fn mul_add(self, factor: Self, other: Self) -> Self;

    /// Writes the lanes to `to`, which must be writable; no alignment is needed.
    unsafe fn store(self, to: *mut f64);
}

impl Register for f64 {
    const LANES: usize = 1;

    #[inline(always)]
    unsafe fn splat(value: f64) -> f64 {
        value
    }

    #[inline(always)]
    unsafe fn counting() -> f64 {
        0.0
    }

    #[inline(always)]
    unsafe fn add(self, other: f64) -> f64 {
        self + other
    }

    #[inline(always)]
    unsafe fn mul_add(self, factor: f64, other: f64) -> f64 {
        self * factor + other
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f64) {
        // SAFETY: the caller promises a writable number.
        unsafe { to.write(self) }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::Register;

    impl Register for __m256d {
        const LANES: usize = 4;

        #[inline]
        #[target_feature(enable = "avx2,fma")]
        unsafe fn splat(value: f64) -> Self {
            _mm256_set1_pd(value)
        }

        #[inline]
        #[target_feature(enable = "avx2,fma")]
        unsafe fn counting() -> Self {
            _mm256_setr_pd(0.0, 1.0, 2.0, 3.0)
        }

        #[inline]
        #[target_feature(enable = "avx2,fma")]
        unsafe fn add(self, other: Self) -> Self {
            _mm256_add_pd(self, other)
        }

        #[inline]
        #[target_feature(enable = "avx2,fma")]
        unsafe fn mul_add(self, factor: Self, other: Self) -> Self {
            _mm256_fmadd_pd(self, factor, other)
        }

        #[inline]
        #[target_feature(enable = "avx2,fma")]
        unsafe fn store(self, to: *mut f64) {
            // SAFETY: the caller promises four writable numbers.
            unsafe { _mm256_storeu_pd(to, self) }
        }
    }

    impl Register for __m512d {
        const LANES: usize = 8;

        #[inline]
        #[target_feature(enable = "avx512f")]
        unsafe fn splat(value: f64) -> Self {
            _mm512_set1_pd(value)
        }

        #[inline]
        #[target_feature(enable = "avx512f")]
        unsafe fn counting() -> Self {
            _mm512_setr_pd(0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0)
        }

        #[inline]
        #[target_feature(enable = "avx512f")]
        unsafe fn add(self, other: Self) -> Self {
            _mm512_add_pd(self, other)
        }

        #[inline]
        #[target_feature(enable = "avx512f")]
        unsafe fn mul_add(self, factor: Self, other: Self) -> Self {
            _mm512_fmadd_pd(self, factor, other)
        }

        #[inline]
        #[target_feature(enable = "avx512f")]
        unsafe fn store(self, to: *mut f64) {
            // SAFETY: the caller promises eight writable numbers.
            unsafe { _mm512_storeu_pd(to, self) }
        }
    }
}
