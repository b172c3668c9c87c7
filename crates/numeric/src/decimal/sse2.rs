//! Sixteen digits at once, by SSE2, which every x86-64 CPU has.
//!
//! A number below 10¹⁶ is split by 10⁸ into the two halves of a register. Each half is split by 10⁴, 10² and 10, as in
//! [`portable`](super::portable), but in both halves at once. The leading zeros are counted and shifted out. So numbers
//! of one to sixteen digits take the same time. The idea is Wojciech Muła's, "SSE: conversion integers to decimal
//! representation" (2011).

use core::arch::x86_64::*;

use super::SIXTEEN;
use super::pairs::{EIGHT, leading};
use super::portable::store;

/// Writes a magnitude of at most `MOST` digits (10, 19 or 20) to `to`, and returns the number of written digits.
///
/// # Safety
/// `MOST` bytes must be writable at `to`. The bytes after the text are overwritten too.
#[inline(always)]
pub unsafe fn digits<const MOST: usize>(magnitude: u64, to: *mut u8) -> usize {
    // SAFETY: no number has more digits than `MOST`. Every x86-64 CPU has SSE2.
    unsafe {
        if MOST > 10 && magnitude >= SIXTEEN {
            let length = leading(magnitude / SIXTEEN, to);
            _mm_storeu_si128(to.add(length).cast(), text(sixteen(magnitude % SIXTEEN)));
            return length + 16;
        }
        let digits = sixteen(magnitude);
        // The number zero keeps its last digit.
        let others = _mm_movemask_epi8(_mm_cmpgt_epi8(digits, _mm_setzero_si128())) | 1 << 15;
        let zeros = others.trailing_zeros() as usize;
        let text = text(digits);
        let (first, last) = (_mm_cvtsi128_si64(text) as u64, _mm_cvtsi128_si64(_mm_unpackhi_epi64(text, text)) as u64);
        if MOST == 10 {
            let text = (u128::from(first) | u128::from(last) << 64) >> (8 * zeros);
            store(text as u64, to);
            to.add(8).cast::<u16>().write_unaligned((text >> 64) as u16);
        } else {
            // If the first half has digits, the second half follows them. Otherwise the text is the end of the second
            // half; the second half is stored once more after the text, and the caller allows any bytes there.
            let front = if zeros < 8 { first } else { last };
            store(front >> (8 * (zeros % 8)), to);
            store(last, to.add(8 - zeros % 8));
        }
        16 - zeros
    }
}

/// Multiplies, shifts and stores as [`digits`] does for a number of sixteen digits, but does not look for zeros.
/// Returns 16. The result is not a text unless the number has sixteen digits.
///
/// # Safety
/// Sixteen bytes must be writable at `to`.
#[inline(always)]
pub unsafe fn limit(magnitude: u64, to: *mut u8) -> usize {
    // SAFETY: the caller guarantees sixteen bytes. Every x86-64 CPU has SSE2.
    unsafe {
        let text = text(sixteen(magnitude));
        store(_mm_cvtsi128_si64(text) as u64, to);
        store(_mm_cvtsi128_si64(_mm_unpackhi_epi64(text, text)) as u64, to.add(8));
    }
    16
}

/// Returns the digits of a number below 10¹⁶, one per byte, the first in the lowest byte.
#[inline]
#[target_feature(enable = "sse2")]
pub fn sixteen(x: u64) -> __m128i {
    let (upper, low) = (x / EIGHT, x % EIGHT);
    // Both halves are below 2³². The compiler does not know this of 64-bit registers, and would multiply in three
    // steps.
    let halves = _mm_unpacklo_epi64(_mm_cvtsi32_si128(upper as i32), _mm_cvtsi32_si128(low as i32));
    // floor(x / 10,000) for x below 10⁸, in each 64 bits.
    let quotient = _mm_srli_epi64::<45>(_mm_mul_epu32(halves, _mm_set1_epi64x(3_518_437_209)));
    let rest = _mm_sub_epi32(halves, _mm_mul_epu32(quotient, _mm_set1_epi64x(10_000)));
    let fours = _mm_or_si128(quotient, _mm_slli_epi64::<32>(rest));
    // floor(x / 100) for x below 10,000, in each 32 bits.
    let hundreds = _mm_srli_epi16::<3>(_mm_mulhi_epu16(fours, _mm_set1_epi16(5_243)));
    let rest = _mm_sub_epi16(fours, _mm_mullo_epi16(hundreds, _mm_set1_epi16(100)));
    let pairs = _mm_or_si128(hundreds, _mm_slli_epi32::<16>(rest));
    // floor(x / 10) for x below 100, in each 16 bits. Then 256·x − (2,560 − 1)·tens has the tens in the lower byte and
    // the ones in the upper byte.
    let tens = _mm_mulhi_epu16(pairs, _mm_set1_epi16(6_554));
    _mm_sub_epi16(_mm_slli_epi16::<8>(pairs), _mm_mullo_epi16(tens, _mm_set1_epi16(2_559)))
}

/// Turns digits into text.
#[inline]
#[target_feature(enable = "sse2")]
pub fn text(digits: __m128i) -> __m128i {
    _mm_or_si128(digits, _mm_set1_epi8(b'0' as i8))
}
