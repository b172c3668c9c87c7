//! A table of 64 bytes on the number's leading six bits.

use super::bits;

/// Roots of the middles of 0 to 1, 1 to 2, and so on, in units of 2^−6.
static ROOTS: [u8; 64] = {
    let mut table = [0; 64];
    let mut i = 0;
    while i < 64 {
        // (i + 1/2)·2^18 = (2i + 1)·2^17
        let cube = (2 * i as u64 + 1) << 17;
        let mut root: u64 = 1;
        while (root + 1) * (root + 1) * (root + 1) <= cube {
            root += 1;
        }
        table[i] = root as u8;
        i += 1;
    }
    table
};

/// The table alone: no division at all.
#[inline(always)]
pub fn tab0(x: u64) -> u32 {
    // The number is cut down by a power of eight to its last six bits, and the root grown by one of two.
    let cut = bits(x).saturating_sub(6).div_ceil(3);
    let root = u32::from(ROOTS[(x >> (3 * cut)) as usize & 63]);
    (root << cut) >> 6
}

/// The table and one iteration of Newton's, with the one 64-bit division: by r·(r − 1), which makes up for
/// what the division cuts off, and with a multiplication for the third.
#[inline(always)]
pub fn tab1(x: u64) -> u32 {
    let root = u64::from(tab0(x));
    if root < 2 {
        return root as u32;
    }
    (((2 * root + x / (root * (root - 1))) * 43_691) >> 17) as u32
}
