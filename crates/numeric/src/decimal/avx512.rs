//! All digits of a number at once, without a branch, by AVX-512 IFMA and VBMI.
//!
//! Each lane computes one digit of the number x, for its own power 10ᵏ, with two multiplications. The lower half of the
//! first product, x·(2⁵²/10ᵏ), is the fraction of x/10ᵏ to 52 bits. The second multiplication multiplies this fraction
//! by ten. The upper half of its product is the integer part, which is the digit. Two multiplications therefore compute
//! eight digits of any number.

use core::arch::x86_64::*;

/// The features that this module and [`avx512_column`](super::avx512_column) enable. Every CPU with AVX-512 has AVX2.
pub const FEATURES: &[&str] = &["avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512ifma", "avx512vbmi", "lzcnt"];

/// Factors by which [`eight`] multiplies the number x, one per lane: 2⁵²/10⁷ to 2⁵²/10, each rounded up and then
/// reduced by one. The multiplication also adds x, which makes up for the reduction. The first lane needs x itself for
/// the leading digit, so its factor is zero.
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

/// Factors that turn the fractions into digits: 2⁵²/10⁷ rounded up for the first digit, ten for the others.
const TENS: [i64; 8] = [(1 << 52) / 10_000_000 + 1, 10, 10, 10, 10, 10, 10, 10];

const EIGHT: u64 = 100_000_000;

/// The powers 10ᵏ with which [`count`] compares a number to find its number of digits. The entry for k = 0 is zero
/// instead of one, because the number zero has one digit too.
const POWERS: [u64; 20] = {
    let mut powers = [0; 20];
    let mut k = 1;
    while k < powers.len() {
        powers[k] = 10_u64.pow(k as u32);
        k += 1;
    }
    powers
};

/// Returns the byte positions of the digits of the longest possible number, from the first digit to the last. The
/// digits are in the lanes of two registers. A lane has eight bytes, and the second register begins at position 64. The
/// result has three parts:
///
/// 1. `above_count` digits from [`above`]: byte 1 of each of the last `above_count` lanes of the first register.
/// 2. Eight digits that [`eight`] adds to the first register: byte 0 of each lane.
/// 3. Eight digits in the second register: byte 0 of each lane.
///
/// For a number with fewer digits, the caller skips the first entries, which are the positions of leading zeros.
const fn places<const COUNT: usize>(above_count: usize) -> [u8; COUNT] {
    let mut places = [0; COUNT];
    let mut i = 0;
    while i < above_count + 16 && i < COUNT {
        let lane = if i < above_count { 8 - above_count + i } else { i - above_count };
        places[i] = (8 * lane + if i < above_count { 1 } else { 0 }) as u8;
        i += 1;
    }
    places
}

/// Returns the number of digits of `x`. An estimate from the number of bits is right or one too high; a comparison
/// corrects it.
#[inline(always)]
fn count(x: u64) -> usize {
    let bits = 64 - (x | 1).leading_zeros();
    // The number of bits, multiplied by log₁₀(2) ≈ 1233/4096.
    let most = ((bits * 1_233) >> 12) as usize + 1;
    most - usize::from(x < POWERS[most - 1])
}

/// Splits `x`, which is below 10⁸, into eight digits and adds one of them to each lane of `to`, the first digit to the
/// first lane. `tens` is a register with [`TENS`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512ifma,avx512vbmi,lzcnt")]
fn eight(x: u64, tens: __m512i, to: __m512i) -> __m512i {
    // SAFETY: the array has 64 bytes.
    let fractions = unsafe { _mm512_loadu_si512(FRACTIONS.as_ptr().cast()) };
    let x = _mm512_set1_epi64(x as i64);
    _mm512_madd52hi_epu64(to, _mm512_madd52lo_epu64(x, x, fractions), tens)
}

/// Returns the digits of a number below 10⁷ as text. Each lane has `0` in its first byte and a digit in its second.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512ifma,avx512vbmi,lzcnt")]
fn above(x: u64) -> __m512i {
    let digits = eight(x, _mm512_set1_epi64(10 << 8), _mm512_setzero_si512());
    // (digits & 0xff00) | 0x3030 clears the rest of the fraction in the first byte.
    _mm512_ternarylogic_epi64::<0xea>(digits, _mm512_set1_epi64(0xff00), _mm512_set1_epi64(0x3030))
}

/// Writes a magnitude of at most `MOST` digits (10, 19 or 20) to `to`, and returns the number of written digits.
///
/// # Safety
/// The CPU must have [`FEATURES`], and `MOST` bytes must be writable at `to`. The bytes after the text are overwritten
/// too.
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
    // SAFETY: no number has more digits than `MOST`, so the positions are read within their array. No store goes beyond
    // `MOST` bytes.
    unsafe {
        if MOST == 10 {
            let places = _mm_loadu_si128(TEN.as_ptr().add(10 - length).cast());
            let digits = eight(low, tens, above(upper));
            let text = _mm512_castsi512_si128(_mm512_permutexvar_epi8(_mm512_castsi128_si512(places), digits));
            _mm_storeu_si64(to, text);
            to.add(8).cast::<u16>().write_unaligned(_mm_extract_epi16::<4>(text) as u16);
        } else {
            // Divides the magnitude itself: a division of `upper` would have to wait for the first division.
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
