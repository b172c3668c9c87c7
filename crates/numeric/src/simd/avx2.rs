//! AVX2 with FMA: four numbers at a time.

use core::arch::x86_64::*;

use super::register::{MAX_LANES, Register, with_instructions};

impl Register for __m256d {
    const LANES: usize = 4;

    with_instructions! { "avx2,fma"
        unsafe fn splat(value: f64) -> Self { _mm256_set1_pd(value) }
        unsafe fn counting() -> Self { _mm256_setr_pd(0.0, 1.0, 2.0, 3.0) }

        unsafe fn load_f64(from: *const f64) -> Self {
            // SAFETY: the caller promises four readable numbers.
            unsafe { _mm256_loadu_pd(from) }
        }

        unsafe fn load_f32(from: *const f32) -> Self {
            // SAFETY: the caller promises four readable numbers.
            _mm256_cvtps_pd(unsafe { _mm_loadu_ps(from) })
        }

        unsafe fn load_partial_f64(from: *const f64, count: usize) -> Self {
            let wanted = _mm256_set1_epi64x(count as i64);
            let mask = _mm256_cmpgt_epi64(wanted, _mm256_setr_epi64x(0, 1, 2, 3));
            // SAFETY: only the first `count` numbers are read, which the caller promises.
            let terms = unsafe { _mm256_maskload_pd(from, mask) };
            _mm256_blendv_pd(_mm256_set1_pd(-0.0), terms, _mm256_castsi256_pd(mask))
        }

        unsafe fn load_partial_f32(from: *const f32, count: usize) -> Self {
            let wanted = _mm_set1_epi32(count as i32);
            let mask = _mm_cmpgt_epi32(wanted, _mm_setr_epi32(0, 1, 2, 3));
            // SAFETY: only the first `count` numbers are read, which the caller promises.
            let terms = unsafe { _mm_maskload_ps(from, mask) };
            _mm256_cvtps_pd(_mm_blendv_ps(_mm_set1_ps(-0.0), terms, _mm_castsi128_ps(mask)))
        }

        unsafe fn store(self, to: *mut f64) {
            // SAFETY: the caller promises four writable numbers.
            unsafe { _mm256_storeu_pd(to, self) }
        }

        unsafe fn store_partial(self, to: *mut f64, count: usize) {
            let mask = _mm256_cmpgt_epi64(_mm256_set1_epi64x(count as i64), _mm256_setr_epi64x(0, 1, 2, 3));
            // SAFETY: only the first `count` numbers are written, for which the caller promises room.
            unsafe { _mm256_maskstore_pd(to, mask, self) }
        }

        unsafe fn add(self, other: Self) -> Self { _mm256_add_pd(self, other) }
        unsafe fn sub(self, other: Self) -> Self { _mm256_sub_pd(self, other) }
        unsafe fn mul(self, other: Self) -> Self { _mm256_mul_pd(self, other) }
        unsafe fn mul_add(self, factor: Self, other: Self) -> Self { _mm256_fmadd_pd(self, factor, other) }
        unsafe fn mul_sub(self, factor: Self, other: Self) -> Self { _mm256_fmsub_pd(self, factor, other) }

        unsafe fn by_magnitude(self, other: Self) -> (Self, Self) {
            let sign = _mm256_set1_pd(-0.0);
            let (a, b) = (_mm256_andnot_pd(sign, self), _mm256_andnot_pd(sign, other));
            let other_larger = _mm256_cmp_pd::<_CMP_LT_OQ>(a, b);
            (_mm256_blendv_pd(self, other, other_larger), _mm256_blendv_pd(other, self, other_larger))
        }

        unsafe fn to_lanes(self) -> [f64; MAX_LANES] {
            let mut lanes = [0.0; MAX_LANES];
            // SAFETY: the array has room for four numbers.
            unsafe { _mm256_storeu_pd(lanes.as_mut_ptr(), self) };
            lanes
        }
    }
}

/// Converts each unsigned number to a double, rounded once.
#[inline]
#[target_feature(enable = "avx2")]
pub fn to_doubles(x: __m256i) -> __m256d {
    // The upper 32 bits are the last bits of a double that is 2⁸⁴ greater, and the lower 32 bits of one that is 2⁵²
    // greater.
    let [upper, lower] = [84, 52].map(|exponent: u64| (1023 + exponent) << 52);
    let high = _mm256_or_si256(_mm256_srli_epi64::<32>(x), _mm256_set1_epi64x(upper as i64));
    let low = _mm256_blend_epi32::<0b1010_1010>(x, _mm256_set1_epi64x(lower as i64));
    let both = _mm256_set1_pd(f64::from_bits(upper) + f64::from_bits(lower));
    _mm256_add_pd(_mm256_sub_pd(_mm256_castsi256_pd(high), both), _mm256_castsi256_pd(low))
}
