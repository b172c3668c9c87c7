//! All digits at once, without a branch, by AVX-512 IFMA and VBMI.
//!
//! The fraction x/10ᵏ is had to 52 bits by a multiplication whose upper half is thrown away, one k a lane; ten
//! times the fraction then has the digit before its point, which is the upper half of another. Eight digits take
//! two multiplications, whatever the number is.

use std::arch::x86_64::*;

/// The features that this module and [`avx512_column`](super::avx512_column) enable.
pub const FEATURES: &[&str] = &["avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512ifma", "avx512vbmi"];

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

/// Its 32 bytes from the `n`th on, as places in a register, move what is at `n` to the front.
pub static PLACES: [u8; 96] = {
    let mut places = [0; 96];
    let mut place = 0;
    while place < places.len() {
        places[place] = place as u8;
        place += 1;
    }
    places
};

/// The digits of a number below 10⁸ as text, one a 64-bit lane, the first in the first.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512ifma,avx512vbmi")]
fn eight(x: u64) -> __m512i {
    // SAFETY: the array has 64 bytes.
    let fractions = unsafe { _mm512_loadu_si512(FRACTIONS.as_ptr().cast()) };
    let remainder = _mm512_maskz_set1_epi64(1, REMAINDER);
    let fraction = _mm512_madd52lo_epu64(remainder, _mm512_set1_epi64(x as i64), fractions);
    _mm512_madd52hi_epu64(_mm512_set1_epi64(i64::from(b'0')), fraction, _mm512_set1_epi64(10))
}

/// The digits of two numbers below 10⁸ as text.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512ifma,avx512vbmi")]
fn sixteen(upper: u64, low: u64) -> __m128i {
    // The lowest byte of each lane: bytes 0, 8 … 56 of one register, then of the other, which begins at 64.
    let lowest = _mm512_castsi128_si512(_mm_setr_epi8(0, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120));
    _mm512_castsi512_si128(_mm512_permutex2var_epi8(eight(upper), lowest, eight(low)))
}

/// Writes a magnitude of at most `MOST` digits (10, 19 or 20) to `to` and returns how many it has.
///
/// # Safety
/// The CPU has the features; `MOST` bytes are writable at `to`, and what of them is not text is overwritten.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512ifma,avx512vbmi")]
pub unsafe fn digits<const MOST: usize>(magnitude: u64, to: *mut u8) -> usize {
    let (upper, low) = (magnitude / EIGHT, magnitude % EIGHT);
    // SAFETY: the caller vouches for `MOST` bytes, and the features.
    unsafe { if MOST == 10 { few::<MOST>(upper, low, to) } else { many::<MOST>(upper, low, to) } }
}

/// Up to 16 digits, of which those behind `MOST` are not written.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512ifma,avx512vbmi")]
unsafe fn few<const MOST: usize>(upper: u64, low: u64, to: *mut u8) -> usize {
    let digits = sixteen(upper, low);
    // Zero keeps its last digit, the 16th.
    let zeros = (_mm_cmpgt_epi8_mask(digits, _mm_set1_epi8(b'0' as i8)) as u32 | 1 << 15).trailing_zeros() as usize;
    // SAFETY: 16 places are read from below the 16th on; both stores end at `MOST`, or before.
    unsafe {
        let text = _mm_permutexvar_epi8(_mm_loadu_si128(PLACES.as_ptr().add(zeros).cast()), digits);
        _mm_storeu_si64(to, text);
        to.add(MOST - 2).cast::<u16>().write_unaligned(_mm_extract_epi16::<4>(text) as u16);
    }
    16 - zeros
}

/// Up to 20 digits.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512ifma,avx512vbmi")]
unsafe fn many<const MOST: usize>(upper: u64, low: u64, to: *mut u8) -> usize {
    let first = _mm512_cvtepi64_epi8(eight(upper / EIGHT));
    let rest = sixteen(upper % EIGHT, low);
    // Eight bytes of nothing, 8 digits, 16 digits.
    let digits = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(_mm_slli_si128::<8>(first)), rest);
    // Zero keeps its last digit, the 32nd.
    let zeros = (_mm256_cmpgt_epi8_mask(digits, _mm256_set1_epi8(b'0' as i8)) | 1 << 31).trailing_zeros() as usize;
    // SAFETY: 32 places are read from below the 32nd on; the stores end at `MOST`, or before.
    unsafe {
        let text = _mm256_permutexvar_epi8(_mm256_loadu_si256(PLACES.as_ptr().add(zeros).cast()), digits);
        _mm_storeu_si128(to.cast(), _mm256_castsi256_si128(text));
        let last = _mm_cvtsi128_si32(_mm256_extracti128_si256::<1>(text));
        to.add(16).cast::<u16>().write_unaligned(last as u16);
        to.add(MOST - 2).cast::<u16>().write_unaligned((last >> (8 * (MOST - 18))) as u16);
    }
    32 - zeros
}
