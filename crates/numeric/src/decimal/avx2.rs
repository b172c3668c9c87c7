//! Sixteen digits at once, without a branch, by AVX2. The digits are computed as in [`sse2`](super::sse2). One
//! instruction moves the leading zeros out of the register.

use core::arch::x86_64::*;

use super::pairs::leading;
use super::sse2::{sixteen, text};
use super::{PLACES, SIXTEEN};

/// Writes a magnitude of at most `MOST` digits (10, 19 or 20) to `to`, and returns the number of written digits.
///
/// # Safety
/// The CPU must have AVX2, and `MOST` bytes must be writable at `to`. The bytes after the text are overwritten too.
#[inline]
#[target_feature(enable = "avx2")]
pub unsafe fn digits<const MOST: usize>(magnitude: u64, to: *mut u8) -> usize {
    // SAFETY: no number has more digits than `MOST`. The array has sixteen entries from each index up to 15 on.
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
        let text = _mm_shuffle_epi8(text(digits), _mm_loadu_si128(PLACES.as_ptr().add(zeros).cast()));
        if MOST == 10 {
            _mm_storeu_si64(to, text);
            to.add(8).cast::<u16>().write_unaligned(_mm_extract_epi16::<4>(text) as u16);
        } else {
            _mm_storeu_si128(to.cast(), text);
        }
        16 - zeros
    }
}
