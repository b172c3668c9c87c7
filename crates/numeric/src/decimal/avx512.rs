//! All digits at once, without a branch, by AVX-512 IFMA and VBMI.
//!
//! The fraction x/10ᵏ is had to 52 bits by a multiplication whose upper half is thrown away, one k a lane; ten
//! times the fraction then has the digit before its point, which is the upper half of another. Eight digits take
//! two multiplications, whatever the number is.

use core::arch::x86_64::*;

/// The features that this module and [`avx512_column`](super::avx512_column) enable.
pub const FEATURES: &[&str] = &["avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512ifma", "avx512vbmi", "lzcnt"];

/// What x is multiplied with, besides once that it is added: 2⁵²/10⁷ to 2⁵²/10 rounded up, less one. The first digit
/// needs no fraction, since nothing is before it: there x stays.
const FRACTIONS: [i64; 8] = {
    let mut fractions = [0; 8];
    let mut power = 10;
    let mut lane = 7;
    while lane > 0 {
        fractions[lane] = (1 << 52) / power;
        power *= 10;
        lane -= 1;
    }
    fractions
};

/// What then gives the digits: 2⁵²/10⁷ rounded up for the first, ten for the others.
const TENS: [i64; 8] = [(1 << 52) / 10_000_000 + 1, 10, 10, 10, 10, 10, 10, 10];

const EIGHT: u64 = 100_000_000;

/// 10ᵏ from k = 1 on, and nothing before, for zero has a digit too.
const POWERS: [u64; 20] = {
    let mut powers = [0; 20];
    let mut k = 1;
    while k < powers.len() {
        powers[k] = 10_u64.pow(k as u32);
        k += 1;
    }
    powers
};

/// Where each digit is, once the registers are ready: the last `second` digits that [`above`] makes, the eight that
/// [`eight`] adds, and eight in another register, whose bytes count from 64 on. To begin later in it is to leave out
/// the digits before.
const fn places<const COUNT: usize>(second: usize) -> [u8; COUNT] {
    let mut places = [0; COUNT];
    let mut i = 0;
    while i < second + 16 && i < COUNT {
        places[i] = if i < second { 8 * (8 - second + i) + 1 } else { 8 * (i - second) } as u8;
        i += 1;
    }
    places
}

/// How many digits a number has: by its bits, then right or one too many.
#[inline(always)]
fn count(x: u64) -> usize {
    let bits = 64 - (x | 1).leading_zeros();
    // The bits by the logarithm of two to the base of ten.
    let most = ((bits * 1_233) >> 12) as usize + 1;
    most - usize::from(x < POWERS[most - 1])
}

/// Adds to each lane a digit of a number below 10⁸, the first to the first.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512ifma,avx512vbmi,lzcnt")]
fn eight(x: u64, tens: __m512i, to: __m512i) -> __m512i {
    // SAFETY: the array has 64 bytes.
    let fractions = unsafe { _mm512_loadu_si512(FRACTIONS.as_ptr().cast()) };
    let x = _mm512_set1_epi64(x as i64);
    _mm512_madd52hi_epu64(to, _mm512_madd52lo_epu64(x, x, fractions), tens)
}

/// The digits of a number below 10⁷ as text in the second byte of each lane, and `0` in the first.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512ifma,avx512vbmi,lzcnt")]
fn above(x: u64) -> __m512i {
    let digits = eight(x, _mm512_set1_epi64(10 << 8), _mm512_setzero_si512());
    // (digits & 0xff00) | 0x3030: what the fraction leaves in the first byte goes.
    _mm512_ternarylogic_epi64::<0xea>(digits, _mm512_set1_epi64(0xff00), _mm512_set1_epi64(0x3030))
}

/// Writes a magnitude of at most `MOST` digits (10, 19 or 20) to `to` and returns how many it has.
///
/// # Safety
/// The CPU has the features; `MOST` bytes are writable at `to`, and what of them is not text is overwritten.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512ifma,avx512vbmi,lzcnt")]
pub unsafe fn digits<const MOST: usize>(magnitude: u64, to: *mut u8) -> usize {
    const TEN: [u8; 26] = places(2);
    const TWENTY: [u8; 52] = places(4);
    // SAFETY: the array has 64 bytes.
    let tens = unsafe { _mm512_loadu_si512(TENS.as_ptr().cast()) };
    let length = count(magnitude);
    let upper = magnitude / EIGHT;
    let low = magnitude - upper * EIGHT;
    // SAFETY: no number has more digits than `MOST`, so that the places are read within their array; the stores end
    // at `MOST`, or before.
    unsafe {
        if MOST == 10 {
            let places = _mm_loadu_si128(TEN.as_ptr().add(10 - length).cast());
            let digits = eight(low, tens, above(upper));
            let text = _mm512_castsi512_si128(_mm512_permutexvar_epi8(_mm512_castsi128_si512(places), digits));
            _mm_storeu_si64(to, text);
            to.add(8).cast::<u16>().write_unaligned(_mm_extract_epi16::<4>(text) as u16);
        } else {
            // Not by way of the upper digits, for which it would wait.
            let high = magnitude / (EIGHT * EIGHT);
            let places = _mm256_loadu_si256(TWENTY.as_ptr().add(20 - length).cast());
            let front = eight(upper - high * EIGHT, tens, above(high));
            let back = eight(low, tens, _mm512_set1_epi64(i64::from(b'0')));
            let text = _mm512_permutex2var_epi8(front, _mm512_castsi256_si512(places), back);
            _mm_storeu_si128(to.cast(), _mm512_castsi512_si128(text));
            let last = _mm_cvtsi128_si32(_mm512_extracti32x4_epi32::<1>(text));
            to.add(16).cast::<u16>().write_unaligned(last as u16);
            to.add(MOST - 2).cast::<u16>().write_unaligned((last >> (8 * (MOST - 18))) as u16);
        }
    }
    length
}
