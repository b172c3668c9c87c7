//! The root bit by bit, without any division.

use super::bits;

/// A bit is tried by the cube that it would make; exact.
#[inline(always)]
pub fn acbrt(x: u64) -> u32 {
    let mut root = 0_u64;
    for bit in (0..bits(x).div_ceil(3)).rev() {
        let tried = root | 1 << bit;
        // The largest that is tried, 2^22 − 1, has a cube that does not fit.
        if u128::from(tried).pow(3) <= u128::from(x) {
            root = tried;
        }
    }
    root as u32
}

/// As [`acbrt`] in 32 bits: what the number has more is cut off in threes, and a zero put behind the root
/// for each. By shifts and additions alone: rest and three times the square are carried along.
#[inline(always)]
pub fn hcbrt(x: u64) -> u32 {
    let cut = bits(x).saturating_sub(32).div_ceil(3);
    let mut rest = (x >> (3 * cut)) as u32;
    let (mut root, mut square) = (0_u32, 0_u32);
    for third in (0..=10_u8).rev() {
        let shift = 3 * third;
        // (2r + 1)³ − (2r)³ = 3·(4r² + 2r) + 1
        square <<= 2;
        root <<= 1;
        let odd = 3 * (square + root) + 1;
        if rest >> shift >= odd {
            rest -= odd << shift;
            square += 2 * root + 1;
            root += 1;
        }
    }
    root << cut
}
