//! Sixteen digits at once, without a branch, by NEON. `avx2` uses the same method.

use core::arch::aarch64::*;

use super::pairs::{EIGHT, leading};
use super::{PLACES, SIXTEEN};

/// Writes a magnitude of at most `MOST` digits (10, 19 or 20) to `to`, and returns the number of written digits.
///
/// # Safety
/// `MOST` bytes must be writable at `to`. The bytes after the text are overwritten too.
#[inline(always)]
pub unsafe fn digits<const MOST: usize>(magnitude: u64, to: *mut u8) -> usize {
    // SAFETY: no number has more digits than `MOST`. The array has sixteen entries from each index up to 15 on. Every
    // 64-bit Arm processor has NEON.
    unsafe {
        if MOST > 10 && magnitude >= SIXTEEN {
            let length = leading(magnitude / SIXTEEN, to);
            vst1q_u8(to.add(length), text(sixteen(magnitude % SIXTEEN)));
            return length + 16;
        }
        let digits = sixteen(magnitude);
        // Four bits for each byte, all of them set if the byte is not zero.
        let others = vshrn_n_u16::<4>(vreinterpretq_u16_u8(vtstq_u8(digits, digits)));
        let others = vget_lane_u64::<0>(vreinterpret_u64_u8(others));
        // The number zero keeps its last digit.
        let zeros = (others | 1 << 60).trailing_zeros() as usize / 4;
        let text = vqtbl1q_u8(text(digits), vld1q_u8(PLACES.as_ptr().add(zeros)));
        if MOST == 10 {
            vst1_u8(to, vget_low_u8(text));
            to.add(8).cast::<u16>().write_unaligned(vgetq_lane_u16::<4>(vreinterpretq_u16_u8(text)));
        } else {
            vst1q_u8(to, text);
        }
        16 - zeros
    }
}

/// Multiplies and stores as [`digits`] does, but does not look for zeros. Returns 16. The result is not a text unless
/// the number has sixteen digits.
///
/// # Safety
/// Sixteen bytes must be writable at `to`.
#[inline(always)]
pub unsafe fn limit(magnitude: u64, to: *mut u8) -> usize {
    // SAFETY: the caller guarantees sixteen bytes. Every 64-bit Arm processor has NEON.
    unsafe { vst1q_u8(to, text(sixteen(magnitude))) };
    16
}

/// Returns the digits of a number below 10¹⁶, one per byte, the first in the lowest byte.
#[inline(always)]
unsafe fn sixteen(x: u64) -> uint8x16_t {
    // SAFETY: every 64-bit Arm processor has NEON.
    unsafe {
        let halves = vcreate_u32((x / EIGHT) | ((x % EIGHT) << 32));
        // floor(x / 10,000) for x below 10⁸, in both halves.
        let quotient = vshrn_n_u64::<32>(vmull_n_u32(halves, 3_518_437_209));
        let quotient = vshr_n_u32::<13>(quotient);
        let rest = vmls_n_u32(halves, quotient, 10_000);
        let fours = vreinterpretq_s16_u64(vsliq_n_u64::<32>(vmovl_u32(quotient), vmovl_u32(rest)));
        // floor(x / 100) for x below 10,000, in each 32 bits: the instruction returns the upper half of twice the
        // product.
        let hundreds = vshrq_n_s16::<4>(vqdmulhq_n_s16(fours, 5_243));
        let rest = vmlsq_n_s16(fours, hundreds, 100);
        let pairs = vsliq_n_u32::<16>(vreinterpretq_u32_s16(hundreds), vreinterpretq_u32_s16(rest));
        // floor(x / 10) for x below 100, in each 16 bits.
        let pairs = vreinterpretq_s16_u32(pairs);
        let tens = vqdmulhq_n_s16(pairs, 3_277);
        let ones = vmlsq_n_s16(pairs, tens, 10);
        vreinterpretq_u8_u16(vsliq_n_u16::<8>(vreinterpretq_u16_s16(tens), vreinterpretq_u16_s16(ones)))
    }
}

#[inline(always)]
unsafe fn text(digits: uint8x16_t) -> uint8x16_t {
    // SAFETY: every 64-bit Arm processor has NEON.
    unsafe { vorrq_u8(digits, vdupq_n_u8(b'0')) }
}
