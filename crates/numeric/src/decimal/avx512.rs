//! All digits at once, without a branch, by AVX-512 IFMA and VBMI.
//!
//! The fraction x/10ᵏ is had to 52 bits by a multiplication whose upper half is thrown away, one k a lane; ten
//! times the fraction then has the digit before its point, which is the upper half of another. Eight digits take
//! two multiplications, whatever the number is.

use std::arch::x86_64::*;

use super::portable::{store, trimmed};

/// The features that this module enables.
pub const FEATURES: &[&str] = &["avx512f", "avx512bw", "avx512vl", "avx512ifma", "avx512vbmi"];

/// 2⁵²/10⁸ rounded down, and 2⁵²/10⁷ to 2⁵²/10 rounded up.
const FRACTIONS: [i64; 8] = {
    let mut fractions = [0; 8];
    let mut power = 10;
    let mut lane = 8;
    while lane > 0 {
        lane -= 1;
        fractions[lane] = ((1 << 52) + power - 1) / power;
        power *= 10;
    }
    fractions[0] -= 1;
    fractions
};

/// What makes up for rounding 2⁵²/10⁸ down, for every number below 10⁸: rounding up would be wrong by more than
/// one in the eighth digit.
const REMAINDER: i64 = 27_370_496;

const EIGHT: u64 = 100_000_000;

/// The digits of a number below 10⁸ as text, one a 64-bit lane, the first in the first.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma,avx512vbmi")]
fn eight(x: u64) -> __m512i {
    // SAFETY: the array has 64 bytes.
    let fractions = unsafe { _mm512_loadu_si512(FRACTIONS.as_ptr().cast()) };
    let remainder = _mm512_maskz_set1_epi64(1, REMAINDER);
    let fraction = _mm512_madd52lo_epu64(remainder, _mm512_set1_epi64(x as i64), fractions);
    _mm512_madd52hi_epu64(_mm512_set1_epi64(i64::from(b'0')), fraction, _mm512_set1_epi64(10))
}

/// The text of a magnitude and then `after`, at the front of a register, and the number of digits.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma,avx512vbmi")]
fn text(magnitude: u64, after: u8) -> (__m256i, usize) {
    let (upper, low) = (magnitude / EIGHT, magnitude % EIGHT);
    let (high, middle) = (upper / EIGHT, upper % EIGHT);
    // The lowest byte of each lane: bytes 0, 8 … 56 of one register, then of the other, which begins at 64.
    let lowest = _mm512_castsi128_si512(_mm_setr_epi8(0, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120));
    let sixteen = _mm512_castsi512_si128(_mm512_permutex2var_epi8(eight(middle), lowest, eight(low)));
    let first = _mm512_cvtepi64_epi8(eight(high));
    // 8, 16, and `after` in the byte behind them.
    let front = _mm256_inserti128_si256::<1>(
        _mm256_castsi128_si256(_mm_unpacklo_epi64(first, sixteen)),
        _mm_insert_epi8::<8>(_mm_srli_si128::<8>(sixteen), after as i32),
    );
    // Zero keeps its last digit, the 24th.
    let digits = _mm256_cmpneq_epi8_mask(front, _mm256_set1_epi8(b'0' as i8)) | 1 << 23;
    let zeros = digits.trailing_zeros();
    let from = _mm256_add_epi8(
        _mm256_setr_epi8(
            0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28,
            29, 30, 31,
        ),
        _mm256_set1_epi8(zeros as i8),
    );
    (_mm256_permutexvar_epi8(from, front), 24 - zeros as usize)
}

/// Writes a magnitude of at most `MOST` digits (10, 19 or 20) to `to` and returns how many it has.
///
/// # Safety
/// The CPU has the features; `MOST` bytes are writable at `to`, and what of them is not text is overwritten.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma,avx512vbmi")]
pub unsafe fn digits<const MOST: usize>(magnitude: u64, to: *mut u8) -> usize {
    let (text, length) = text(magnitude, 0);
    let front = _mm256_castsi256_si128(text);
    // SAFETY: both stores end at `MOST`, or before.
    unsafe {
        if MOST == 10 {
            _mm_storeu_si64(to, front);
            to.add(8).cast::<u16>().write_unaligned(_mm_extract_epi16::<4>(front) as u16);
        } else {
            _mm_storeu_si128(to.cast(), front);
            let rest = _mm256_extracti128_si256::<1>(text);
            to.add(16).cast::<u16>().write_unaligned(_mm_cvtsi128_si32(rest) as u16);
            let last = to.add(MOST - 2).cast::<u16>();
            let last_two = if MOST == 20 { _mm_extract_epi16::<1>(rest) } else { _mm_cvtsi128_si32(rest) >> 8 };
            last.write_unaligned(last_two as u16);
        }
    }
    length
}

/// Writes a magnitude and a byte behind it to `to` and returns how many bytes that is.
///
/// # Safety
/// The CPU has the features; 32 bytes are writable at `to`, and what of them is not text is overwritten.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma,avx512vbmi")]
pub unsafe fn digits_and(magnitude: u64, after: u8, to: *mut u8) -> usize {
    let (text, length) = text(magnitude, after);
    // SAFETY: the caller vouches for 32 bytes.
    unsafe { _mm256_storeu_si256(to.cast(), text) };
    length + 1
}

/// As [`digits_and`] for a magnitude below 10⁸: 9 bytes are writable at `to`.
///
/// # Safety
/// As said, and the CPU has the features.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma,avx512vbmi")]
pub unsafe fn few_digits_and(magnitude: u64, after: u8, to: *mut u8) -> usize {
    let text = _mm_cvtsi128_si64(_mm512_cvtepi64_epi8(eight(magnitude))) as u64;
    let (text, length) = trimmed(text & 0x0f0f_0f0f_0f0f_0f0f);
    // SAFETY: eight bytes, and one that is the ninth at most.
    unsafe {
        store(text, to);
        to.add(length).write(after);
    }
    length + 1
}
