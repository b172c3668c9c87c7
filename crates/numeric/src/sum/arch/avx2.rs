//! AVX2 with FMA: four numbers at a time.

use std::arch::x86_64::*;

use crate::simd::Eight;
use crate::sum::method::OnMultipliers;
use crate::sum::vector::{Fma, Vector, Words};

super::entries!(__m256d, target_feature(enable = "avx2,fma"));
super::exact_entry!(__m256d, target_feature(enable = "avx2,fma"));

impl Vector for __m256d {
    type Part = Self;
    type Subtraction = OnMultipliers<__m256d>;

    #[inline(always)]
    fn parts(&mut self) -> &mut [Self] {
        std::slice::from_mut(self)
    }
}

impl Fma for __m256d {}

/// Eight lanes in two registers.
pub mod by_eight {
    use super::{__m256d, Eight};

    crate::sum::arch::entries!(Eight<__m256d, 2>, target_feature(enable = "avx2,fma"));
    crate::sum::arch::distances_entry!(Eight<__m256d, 2>, target_feature(enable = "avx2,fma"));
}

impl Words for __m256d {
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn load_bytes(from: *const u8) -> Self {
        // SAFETY: the caller promises 32 readable bytes.
        unsafe { _mm256_loadu_pd(from.cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn xor(self, other: Self) -> Self {
        _mm256_xor_pd(self, other)
    }
}
