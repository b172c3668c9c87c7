//! AVX-512: eight numbers at a time.

use std::arch::asm;
use std::arch::x86_64::*;

use crate::sum::method::OnMultipliers;
use crate::sum::vector::{Fma, MAX_LANES, Vector, Widen, Words};

super::entries!(__m512d, target_feature(enable = "avx512f"));

impl Vector for __m512d {
    type Subtraction = OnMultipliers<__m512d>;

    const LANES: usize = 8;

    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn splat(value: f64) -> Self {
        _mm512_set1_pd(value)
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn load_f64(from: *const f64) -> Self {
        // SAFETY: the caller promises eight readable numbers.
        unsafe { _mm512_loadu_pd(from) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn load_f32(from: *const f32) -> Self {
        // SAFETY: the caller promises eight readable numbers.
        _mm512_cvtps_pd(unsafe { _mm256_loadu_ps(from) })
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn load_partial_f64(from: *const f64, count: usize) -> Self {
        let mask = first(count) as __mmask8;
        // SAFETY: only the first `count` numbers are read, which the caller promises.
        unsafe { _mm512_mask_loadu_pd(_mm512_set1_pd(-0.0), mask, from) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn load_partial_f32(from: *const f32, count: usize) -> Self {
        // SAFETY: only the first `count` numbers are read, which the caller promises.
        let terms = unsafe { _mm512_mask_loadu_ps(_mm512_set1_ps(-0.0), first(count), from) };
        _mm512_cvtps_pd(_mm512_castps512_ps256(terms))
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn add(self, other: Self) -> Self {
        _mm512_add_pd(self, other)
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn sub(self, other: Self) -> Self {
        _mm512_sub_pd(self, other)
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn mul(self, other: Self) -> Self {
        _mm512_mul_pd(self, other)
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn mul_add(self, factor: Self, other: Self) -> Self {
        _mm512_fmadd_pd(self, factor, other)
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn mul_sub(self, factor: Self, other: Self) -> Self {
        _mm512_fmsub_pd(self, factor, other)
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn by_magnitude(self, other: Self) -> (Self, Self) {
        let (a, b) = (_mm512_abs_pd(self), _mm512_abs_pd(other));
        let other_larger = _mm512_cmp_pd_mask::<_CMP_LT_OQ>(a, b);
        (_mm512_mask_mov_pd(self, other_larger, other), _mm512_mask_mov_pd(other, other_larger, self))
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn to_lanes(self) -> [f64; MAX_LANES] {
        let mut lanes = [0.0; MAX_LANES];
        // SAFETY: the array has room for eight numbers.
        unsafe { _mm512_storeu_pd(lanes.as_mut_ptr(), self) };
        lanes
    }
}

impl Fma for __m512d {}

impl Words for __m512d {
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn load_bytes(from: *const u8) -> Self {
        // SAFETY: the caller promises 64 readable bytes.
        unsafe { _mm512_loadu_pd(from.cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn xor(self, other: Self) -> Self {
        // The exclusive or of doubles is in AVX-512 DQ only.
        let (a, b) = (_mm512_castpd_si512(self), _mm512_castpd_si512(other));
        _mm512_castsi512_pd(_mm512_xor_si512(a, b))
    }
}

impl Widen for __m512d {
    type Poison = [__m512; 2];

    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn no_poison() -> [__m512; 2] {
        [_mm512_setzero_ps(); 2]
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn all_finite(poison: [__m512; 2]) -> bool {
        _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(poison[0], poison[1]) == 0
    }

    /// The CPU converts eight numbers a cycle, and has integer units that lie idle: half of the numbers go there.
    ///
    /// The bits of an `f32`, 29 further up and with the sign on top again, are those of an `f64` that is 2^896 times
    /// smaller, also for subnormals. Infinities and NaN become numbers: they are found by multiplying with 0.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn sum_block_f32(from: *const f32, poison: &mut [__m512; 2]) -> Self {
        const SCALE: f64 = f64::from_bits((896 + 1023) << 52);
        let sign_and_number = _mm512_set1_epi64((0x8fff_ffff_e000_0000_u64).cast_signed());
        let mut up = _mm512_set1_epi64(1 << 29);
        // SAFETY: there is no instruction. Unseen by the compiler, which would make two shifts of the multiplication.
        unsafe {
            asm!("/* {0} */", inlateout(zmm_reg) up, options(pure, nomem, nostack, preserves_flags));
        }
        let mut shifted = [_mm512_setzero_pd(); 8];
        let mut converted = [_mm512_setzero_pd(); 8];
        for i in 0..4 {
            // SAFETY: the caller promises 128 readable numbers; here are the first 64.
            let singles = unsafe { _mm512_loadu_ps(from.add(16 * i)) };
            poison[i % 2] = _mm512_fmadd_ps(singles, _mm512_setzero_ps(), poison[i % 2]);
            let pairs = _mm512_castps_si512(singles);
            let odd = _mm512_srai_epi64::<3>(pairs);
            let even = _mm512_mul_epi32(pairs, up);
            shifted[2 * i] = _mm512_castsi512_pd(_mm512_and_si512(odd, sign_and_number));
            shifted[2 * i + 1] = _mm512_castsi512_pd(_mm512_and_si512(even, sign_and_number));
        }
        for (i, eight) in converted.iter_mut().enumerate() {
            // SAFETY: as above; here are the last 64.
            *eight = _mm512_cvtps_pd(unsafe { _mm256_loadu_ps(from.add(64 + 8 * i)) });
        }
        for width in [4, 2, 1] {
            for i in 0..width {
                shifted[i] = _mm512_add_pd(shifted[2 * i], shifted[2 * i + 1]);
                converted[i] = _mm512_add_pd(converted[2 * i], converted[2 * i + 1]);
            }
        }
        _mm512_fmadd_pd(shifted[0], _mm512_set1_pd(SCALE), converted[0])
    }
}

/// A mask of the first `count` lanes (0 to 8).
fn first(count: usize) -> __mmask16 {
    (1 << count) - 1
}
