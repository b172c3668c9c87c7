//! Eight numbers at once by AVX-512, each followed by a delimiter.
//!
//! 1. Each lane of a register has one number. Each number is split into its first 4, next 8 and last 8 digits, and
//!    these parts into groups of four digits.
//! 2. The groups of one number are moved next to each other, in the 32 bytes of half a register. With four zeros in
//!    front, the digits take 24 bytes; the delimiter follows. So a register has two numbers.
//! 3. The digits of both numbers are computed from the groups of four, with two multiplications per stage as in
//!    [`portable`](super::portable).
//! 4. Each number is finished alone: its leading zeros are counted, and its text is stored.

use core::arch::x86_64::*;

use super::avx512::digits;
use super::portable::{store, trimmed};
use super::write::Integer;

const EIGHT: i64 = 100_000_000;

/// The byte positions 0 to 95, for a permutation that shifts a register's bytes. If the permutation reads the entries
/// from index `n` on, byte `n` becomes the first.
const PLACES: [u8; 96] = {
    let mut places = [0; 96];
    let mut place = 0;
    while place < places.len() {
        places[place] = place as u8;
        place += 1;
    }
    places
};

/// The magnitudes of eight numbers, and for each whether it is negative.
struct Magnitudes {
    are_negative: [bool; 8],
    values: __m512i,
}

/// Writes each value, followed by the delimiter, and returns the number of bytes written.
///
/// # Safety
/// The CPU must have [the features](super::avx512::FEATURES). At `to` there must be room for the texts, the delimiters
/// and 32 more bytes, any of which may be overwritten.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512ifma,avx512vbmi,lzcnt")]
pub unsafe fn write_block<I: Integer>(values: &[I], delimiter: u8, to: *mut u8) -> usize {
    let mut at = to;
    let (eights, rest) = values.as_chunks::<8>();
    for eight in eights {
        let (mut are_negative, mut magnitudes) = ([false; 8], [0; 8]);
        for (i, value) in eight.iter().enumerate() {
            (are_negative[i], magnitudes[i]) = value.parts();
        }
        // SAFETY: the array has 64 bytes.
        let values = unsafe { _mm512_loadu_si512(magnitudes.as_ptr().cast()) };
        let numbers = Magnitudes { are_negative, values };
        // Decides once for all eight numbers. In most columns the decision is the same for every eight numbers.
        let are_few = _mm512_cmplt_epu64_mask(values, _mm512_set1_epi64(EIGHT)) == 0xff;
        // SAFETY: the caller guarantees the features and the room.
        at = unsafe { if are_few { few::<I>(numbers, delimiter, at) } else { many::<I>(numbers, delimiter, at) } };
    }
    for value in rest {
        let (is_negative, magnitude) = value.parts();
        // SAFETY: the caller guarantees the features and the room.
        unsafe {
            at = signed::<I>(is_negative, at);
            at = at.add(digits::<20>(magnitude, at));
            at.write(delimiter);
            at = at.add(1);
        }
    }
    at.addr() - to.addr()
}

/// Writes a sign if the number is negative, and returns the position after it.
#[inline(always)]
unsafe fn signed<I: Integer>(is_negative: bool, to: *mut u8) -> *mut u8 {
    if !I::IS_SIGNED {
        return to;
    }
    // SAFETY: the caller guarantees the room.
    unsafe {
        to.write(b'-');
        to.add(usize::from(is_negative))
    }
}

/// Writes eight numbers below 10⁸, each followed by the delimiter. Returns the position after them.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512ifma,avx512vbmi,lzcnt")]
unsafe fn few<I: Integer>(numbers: Magnitudes, delimiter: u8, mut at: *mut u8) -> *mut u8 {
    let mut all = [0_u64; 8];
    // SAFETY: the array has 64 bytes; the caller guarantees the room.
    unsafe {
        _mm512_storeu_si512(all.as_mut_ptr().cast(), each_of_fours(fours(numbers.values)));
        for (digits, is_negative) in all.into_iter().zip(numbers.are_negative) {
            at = signed::<I>(is_negative, at);
            let (text, length) = trimmed(digits);
            store(text, at);
            at.add(length).write(delimiter);
            at = at.add(length + 1);
        }
    }
    at
}

/// Writes eight numbers of any size, each followed by the delimiter. Returns the position after them.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512ifma,avx512vbmi,lzcnt")]
unsafe fn many<I: Integer>(numbers: Magnitudes, delimiter: u8, mut at: *mut u8) -> *mut u8 {
    let (high, middle, low) = parts(numbers.values);
    let (high, middle, low) = (_mm512_slli_epi64::<32>(high), fours(middle), fours(low));
    // The texts of two numbers are made from one of the registers `even` and `odd`, and from `low`. `even` has the
    // upper parts of numbers 0, 2, 4 and 6, and `odd` has those of numbers 1, 3, 5 and 7. The permutation counts the
    // lanes of `even` or `odd` from 0, and those of `low` from 8.
    let (even, odd) = (_mm512_unpacklo_epi64(high, middle), _mm512_unpackhi_epi64(high, middle));
    let halves = [
        (even, _mm512_setr_epi64(0, 1, 8, 0, 2, 3, 10, 0)),
        (odd, _mm512_setr_epi64(0, 1, 9, 0, 2, 3, 11, 0)),
        (even, _mm512_setr_epi64(4, 5, 12, 0, 6, 7, 14, 0)),
        (odd, _mm512_setr_epi64(4, 5, 13, 0, 6, 7, 15, 0)),
    ];
    // Turns the digits into text, and the zero bytes after them into the delimiter.
    let ascii = _mm256_setr_epi64x(ASCII, ASCII, ASCII, i64::from(delimiter));
    let ascii = _mm512_broadcast_i64x4(ascii);
    let (mut texts, mut first) = ([_mm512_setzero_si512(); 4], [0; 4]);
    for (i, (front, lanes)) in halves.into_iter().enumerate() {
        let digits = each_of_fours(_mm512_maskz_permutex2var_epi64(0b0111_0111, front, lanes, low));
        // The number zero keeps its last digit, which is the 24th.
        first[i] = _mm512_test_epi8_mask(digits, digits) | 1 << 23 | 1 << (32 + 23);
        texts[i] = _mm512_or_si512(digits, ascii);
    }
    for (i, is_negative) in numbers.are_negative.into_iter().enumerate() {
        let (register, half) = (i / 4 * 2 + i % 2, i / 2 % 2 * 32);
        let zeros = (first[register] >> half).trailing_zeros() as usize;
        // SAFETY: the 32 positions are read from index 55 or lower; the caller guarantees the room.
        unsafe {
            at = signed::<I>(is_negative, at);
            let places = _mm256_loadu_si256(PLACES.as_ptr().add(half + zeros).cast());
            let text = _mm512_permutexvar_epi8(_mm512_castsi256_si512(places), texts[register]);
            _mm256_storeu_si256(at.cast(), _mm512_castsi512_si256(text));
            at = at.add(25 - zeros);
        }
    }
    at
}

/// The byte 0x30, which is ASCII `0`, eight times.
const ASCII: i64 = 0x3030_3030_3030_3030;

/// Returns the first 4, the next 8 and the last 8 digits of each of eight numbers. Of the middle part, only the lower
/// 52 bits are valid.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512ifma,avx512vbmi,lzcnt")]
fn parts(x: __m512i) -> (__m512i, __m512i, __m512i) {
    /// A factor slightly below 10⁻⁸, for dividing by 10⁸. It is so low that three roundings cannot make the quotient
    /// too great, but its relative difference from 10⁻⁸ is less than 2⁻⁵⁰.
    const BELOW: f64 = 1e-8 * (1.0 - 1.0 / (1_u64 << 51) as f64);
    /// The number 2⁷⁸/10⁸, rounded up. Multiplying by it and dropping 78 bits divides numbers below 2³⁸ exactly by 10⁸.
    const FRACTION: i64 = ((1_u128 << 78) / EIGHT as u128 + 1) as i64;
    let (zero, eight) = (_mm512_setzero_si512(), _mm512_set1_epi64(EIGHT));
    // The quotient is below 2³⁸. With `BELOW` as the factor it is right or one too low.
    let quotient = _mm512_cvttpd_epu64(_mm512_mul_pd(_mm512_cvtepu64_pd(x), _mm512_set1_pd(BELOW)));
    let low = _mm512_sub_epi64(x, _mm512_mullo_epi64(quotient, eight));
    let is_too_low = _mm512_cmpge_epu64_mask(low, eight);
    let low = _mm512_mask_sub_epi64(low, is_too_low, low, eight);
    let upper = _mm512_mask_add_epi64(quotient, is_too_low, quotient, _mm512_set1_epi64(1));
    let high = _mm512_srli_epi64::<26>(_mm512_madd52hi_epu64(zero, upper, _mm512_set1_epi64(FRACTION)));
    (high, _mm512_madd52lo_epu64(upper, high, _mm512_set1_epi64((1 << 52) - EIGHT)), low)
}

/// Splits each number below 10⁸ into its first and its last four digits. The first four go to the lower half of the
/// lane, the last four to the upper half. Only the lower 52 bits of `x` are used.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512ifma,avx512vbmi,lzcnt")]
fn fours(x: __m512i) -> __m512i {
    const FRACTION: i64 = (1 << 52) / 10_000 + 1;
    let first = _mm512_madd52hi_epu64(_mm512_setzero_si512(), x, _mm512_set1_epi64(FRACTION));
    // first + (x − 10⁴·first)·2³²
    let back = _mm512_mullo_epi64(first, _mm512_set1_epi64(1 - (10_000 << 32)));
    _mm512_add_epi64(_mm512_slli_epi64::<32>(x), back)
}

/// Returns the four digits, one per byte, of each 32-bit number below 10⁴.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512ifma,avx512vbmi,lzcnt")]
fn each_of_fours(x: __m512i) -> __m512i {
    // floor(x / 100) for x below 10,000; the remainder is computed as in `fours`.
    let hundreds = _mm512_srli_epi32::<3>(_mm512_mulhi_epu16(x, _mm512_set1_epi32(5_243)));
    let back = _mm512_mullo_epi32(hundreds, _mm512_set1_epi32(1 - (100 << 16)));
    let x = _mm512_add_epi32(_mm512_slli_epi32::<16>(x), back);
    // floor(x / 10) for x below 100.
    let tens = _mm512_mulhi_epu16(x, _mm512_set1_epi16(6_554));
    let back = _mm512_mullo_epi16(tens, _mm512_set1_epi16(1 - (10 << 8)));
    _mm512_add_epi16(_mm512_slli_epi16::<8>(x), back)
}
