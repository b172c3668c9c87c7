//! Columns of numbers by AVX2, each followed by a delimiter.
//!
//! Numbers below 10⁸ are written four at a time:
//!
//! 1. Each lane of a register has one number. Its eight digits are computed as in [`portable`](super::portable), but in
//!    all four lanes at once.
//! 2. The texts are written from the last number to the first. Each text is stored with its leading zeros in front of
//!    it, and the number before it overwrites the zeros. So no text has to be shifted.
//! 3. The texts of a block are moved to the front together.

use core::arch::x86_64::*;

use super::avx2;
use super::pairs::EIGHT;
use super::portable::TABLE_END;
use super::write::{Integer, one_by_one};

/// Number of bytes before the texts that [`few`] may overwrite.
pub const PADDING: usize = 8;

/// Number of numbers in a block. All of them are written with the same method. Their texts are short enough that moving
/// them takes no special instruction, which would be slow for memory that overlaps.
const BLOCK: usize = 64;

/// A function that writes each value, followed by the delimiter, and returns the number of bytes written.
pub type Write<I> = unsafe fn(&[I], u8, *mut u8) -> usize;

/// Writes each value, followed by the delimiter, and returns the number of bytes written. Blocks with a number from 10⁸
/// on are written by `any`.
///
/// # Safety
/// The CPU must have AVX2 and the features that `any` needs. At `to` there must be room for the longest text of each
/// number, the delimiters, [`PADDING`] and what `any` may overwrite.
#[target_feature(enable = "avx2")]
pub unsafe fn write_block<I: Integer>(values: &[I], delimiter: u8, to: *mut u8, any: Write<I>) -> usize {
    let mut at = to;
    for block in values.chunks(BLOCK) {
        // No number is greater than the bits of all numbers together, which take the least time to compute.
        let all_bits = block.iter().fold(0, |all, value| all | value.parts().1);
        // SAFETY: the caller guarantees the features and the room.
        at = unsafe {
            match all_bits {
                // The texts of these numbers are in a table.
                0..TABLE_END => at.add(one_by_one(block, delimiter, at, avx2::digits::<20>)),
                TABLE_END..EIGHT => few(block, delimiter, at),
                _ => at.add(any(block, delimiter, at)),
            }
        };
    }
    at.addr() - to.addr()
}

/// Writes each value, followed by the delimiter, one after the other. Returns the number of bytes written.
///
/// # Safety
/// As for [`write_block`].
#[target_feature(enable = "avx2")]
pub unsafe fn each<I: Integer>(values: &[I], delimiter: u8, to: *mut u8) -> usize {
    // SAFETY: the caller guarantees the features and the room.
    unsafe { one_by_one(values, delimiter, to, avx2::digits::<20>) }
}

/// Writes numbers below 10⁸, each followed by the delimiter. Returns the position after them.
///
/// # Safety
/// As for [`write_block`].
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn few<I: Integer>(values: &[I], delimiter: u8, to: *mut u8) -> *mut u8 {
    let (fours, rest) = values.as_chunks::<4>();
    // SAFETY: the caller guarantees the room, here and below.
    let end = unsafe { to.add(PADDING + 4 * fours.len() * (I::MOST_BYTES + 1)) };
    let mut at = end;
    for four in fours.iter().rev() {
        let [a, b, c, d] = four.map(|value| value.parts().1 as i64);
        let digits = each_of_fours(split(_mm256_setr_epi64x(a, b, c, d)));
        // The number zero keeps its last digit, which is the last of eight.
        let nonzero = _mm256_movemask_epi8(_mm256_cmpgt_epi8(digits, _mm256_setzero_si256())) as u32 | 0x8080_8080;
        let text = _mm256_or_si256(digits, _mm256_set1_epi8(b'0' as i8));
        let (front, back) = (_mm256_castsi256_si128(text), _mm256_extracti128_si256::<1>(text));
        let texts = [front, _mm_unpackhi_epi64(front, front), back, _mm_unpackhi_epi64(back, back)];
        for i in (0..4).rev() {
            let zeros = (nonzero >> (8 * i)).trailing_zeros() as usize;
            // SAFETY: as above.
            unsafe {
                at.sub(1).write(delimiter);
                _mm_storeu_si64(at.sub(9), texts[i]);
                at = signed(four[i], at.sub(9 - zeros));
            }
        }
    }
    let length = end.addr() - at.addr();
    // SAFETY: as above.
    unsafe {
        to.copy_from(at, length);
        to.add(length + each(rest, delimiter, to.add(length)))
    }
}

/// Writes a sign before `at` if the number is negative, and returns its position.
#[inline(always)]
unsafe fn signed<I: Integer>(value: I, at: *mut u8) -> *mut u8 {
    if !I::IS_SIGNED {
        return at;
    }
    // SAFETY: the caller guarantees the room.
    unsafe {
        at.sub(1).write(b'-');
        at.sub(usize::from(value.parts().0))
    }
}

/// Splits each number below 10⁸ into its first and its last four digits. The first four go to the lower half of the
/// lane, the last four to the upper half. Only the lower 32 bits of `x` are used.
#[inline]
#[target_feature(enable = "avx2")]
fn split(x: __m256i) -> __m256i {
    // floor(x / 10,000) for x below 10⁸.
    let first = _mm256_srli_epi64::<45>(_mm256_mul_epu32(x, _mm256_set1_epi64x(3_518_437_209)));
    let last = _mm256_sub_epi32(x, _mm256_mul_epu32(first, _mm256_set1_epi64x(10_000)));
    _mm256_or_si256(first, _mm256_slli_epi64::<32>(last))
}

/// Returns the four digits, one per byte, of each 32-bit number below 10⁴.
#[inline]
#[target_feature(enable = "avx2")]
fn each_of_fours(x: __m256i) -> __m256i {
    // floor(x / 100) for x below 10,000.
    let hundreds = _mm256_srli_epi16::<3>(_mm256_mulhi_epu16(x, _mm256_set1_epi16(5_243)));
    let rest = _mm256_sub_epi16(x, _mm256_mullo_epi16(hundreds, _mm256_set1_epi16(100)));
    let pairs = _mm256_or_si256(hundreds, _mm256_slli_epi32::<16>(rest));
    // floor(x / 10) for x below 100. Then 256·x − (2,560 − 1)·tens has the tens in the lower byte and the ones in the
    // upper byte.
    let tens = _mm256_mulhi_epu16(pairs, _mm256_set1_epi16(6_554));
    _mm256_sub_epi16(_mm256_slli_epi16::<8>(pairs), _mm256_mullo_epi16(tens, _mm256_set1_epi16(2_559)))
}
