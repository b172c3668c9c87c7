//! The methods of the integer cube root that TCP's congestion control has used over time, after Hemminger and Tarreau
//! (2007). The code was written anew from their description.
//!
//! - bit by bit;
//! - Newton's iteration r ← (2r + x/r²)/3, from several first guesses and with several kinds of division;
//! - a table of 64 bytes, indexed by the leading six bits;
//! - the floating-point root of the C library, corrected to the exact integer.

use super::exact::leading_zeros;
use crate::standard;

/// Returns the number of bits of `x`; zero counts as one bit.
#[inline(always)]
fn bits(x: u64) -> u32 {
    64 - leading_zeros(x | 1)
}

/// Finds the root bit by bit: sets one bit at a time and compares the cube of the result with `x`. The root is exact.
#[inline(always)]
pub fn acbrt(x: u64) -> u32 {
    let mut root = 0_u64;
    for bit in (0..bits(x).div_ceil(3)).rev() {
        let tried = root | 1 << bit;
        // The largest root tried is 2^22 − 1, whose cube does not fit into 64 bits.
        if u128::from(tried).pow(3) <= u128::from(x) {
            root = tried;
        }
    }
    root as u32
}

/// Works like [`acbrt`], but with only 32-bit shifts and additions.
///
/// Numbers of more than 32 bits lose their lowest bits, in groups of three. For each such group, a zero bit is appended
/// to the root. The loop updates the remainder and the square of the root along with the root.
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

/// Returns a power of two above the root, as the first guess. From such a guess, the values of Newton's iteration
/// decrease until they reach the root.
fn above(x: u64) -> u64 {
    2 << (bits(x) / 3)
}

/// Runs Newton's iteration with two 64-bit divisions per step, until the value no longer decreases. The root is exact.
#[inline(always)]
pub fn bictcp(x: u64) -> u32 {
    let mut root = above(x);
    loop {
        let next = (2 * root + x / root / root) / 3;
        if next >= root || next == 0 {
            return root.min(x) as u32;
        }
        root = next;
    }
}

/// Runs Newton's iteration with one 64-bit division per step, until the root changes by at most one.
#[inline(always)]
pub fn ocubic(x: u64) -> u32 {
    let mut root = above(x);
    loop {
        let next = step(root, x / (root * root));
        if root.abs_diff(next) <= 1 {
            return next as u32;
        }
        root = next;
    }
}

/// Runs three steps of Newton's iteration, with 64-bit divisions.
#[inline(always)]
pub fn ncubic(x: u64) -> u32 {
    let mut root = 1 << (bits(x) / 3);
    for _ in 0..3 {
        root = step(root, x / (root * root));
    }
    root as u32
}

/// Runs three steps of Newton's iteration. Divides in 32 bits if both operands fit, otherwise in 64 bits.
#[inline(always)]
pub fn ncubic32(x: u64) -> u32 {
    let mut root = 1 << (bits(x) / 3);
    for _ in 0..3 {
        root = step(root, divide(x, root * root));
    }
    root as u32
}

/// Works like [`ncubic32`] but divides by r·(r − 1). The smaller divisor makes up for most of the division's rounding
/// error.
///
/// Hemminger and Tarreau publish figures for this method, but not its formula. In their figures, it takes as long as
/// `ncubic32` and has a smaller error. The divisor r·(r − 1) is taken from similar methods that they describe.
#[inline(always)]
pub fn ncubic32_1(x: u64) -> u32 {
    let mut root: u64 = 1 << (bits(x) / 3);
    for _ in 0..3 {
        root = step(root, divide(x, (root * (root - 1)).max(1)));
    }
    root as u32
}

/// Returns a first guess of the root, from the position of the leading bit and the bit after it. The guess is too
/// inaccurate to be used as the root.
#[inline(always)]
pub fn div0(x: u64) -> u32 {
    guess(x) as u32
}

/// Improves the guess of [`div0`] by one Newton step.
#[inline(always)]
pub fn div1(x: u64) -> u32 {
    refined(x, 1)
}

/// Improves the guess of [`div0`] by two Newton steps.
#[inline(always)]
pub fn div2(x: u64) -> u32 {
    refined(x, 2)
}

/// Works like [`div2`], with a multiplication and a shift instead of the division by three.
#[inline(always)]
pub fn ndiv3(x: u64) -> u32 {
    let mut root = guess(x).max(1);
    for _ in 0..2 {
        root = third(2 * root + divide(x, root * root));
    }
    if x == 0 { 0 } else { root as u32 }
}

/// Improves the guess of [`div0`] by three Newton steps.
#[inline(always)]
pub fn div3(x: u64) -> u32 {
    refined(x, 3)
}

/// First guesses of the root, in units of 2^−16, for the intervals that begin at 1, 1.5, 2, 3, 4 and 6. The first two
/// guesses are close to the geometric mean of the roots at the two ends of their interval. The other intervals are
/// these two, multiplied by 2 or 4. Their guesses are the first two guesses, multiplied by the cube root of 2 or 4.
const GUESSES: [u64; 6] = [70_116, 78_683, 88_340, 99_134, 111_302, 124_902];

#[inline(always)]
fn guess(x: u64) -> u64 {
    let leading = bits(x) - 1;
    let next = if leading == 0 { 0 } else { x >> (leading - 1) & 1 };
    let middle = GUESSES[(2 * (leading % 3)) as usize + next as usize];
    (middle << (leading / 3)) >> 16
}

#[inline(always)]
fn refined(x: u64, iterations: u32) -> u32 {
    let mut root = guess(x).max(1);
    for _ in 0..iterations {
        root = step(root, divide(x, root * root)).max(1);
    }
    if x == 0 { 0 } else { root as u32 }
}

fn step(root: u64, quotient: u64) -> u64 {
    ((2 * root + quotient) / 3).max(1)
}

/// Divides by three approximately: multiplies by 341/1024, the closest fraction whose product with a 22-bit sum fits
/// into 32 bits.
fn third(sum: u64) -> u64 {
    ((sum * 341) >> 10).max(1)
}

/// Divides in 32 bits if both operands fit, otherwise in 64 bits.
fn divide(x: u64, by: u64) -> u64 {
    match (u32::try_from(x), u32::try_from(by)) {
        (Ok(x), Ok(by)) => u64::from(x / by),
        _ => x / by,
    }
}

/// Cube roots of 0.5, 1.5, 2.5, and so on, in units of 2^−6. Entry `i` serves all numbers from `i` to `i + 1`, so it is
/// the root of the middle of this interval.
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

/// Looks the root up in a table of 64 bytes, without any division.
#[inline(always)]
pub fn tab0(x: u64) -> u32 {
    // Shifting right by `3 * cut` bits leaves at most six bits. The root of the rest is shifted back by only `cut`
    // bits.
    let cut = bits(x).saturating_sub(6).div_ceil(3);
    let root = u32::from(ROOTS[(x >> (3 * cut)) as usize & 63]);
    (root << cut) >> 6
}

/// Improves the root of [`tab0`] by one Newton step with a single 64-bit division. The divisor r·(r − 1) makes up for
/// the division's rounding error, and a multiplication replaces the division by three.
#[inline(always)]
pub fn tab1(x: u64) -> u32 {
    let root = u64::from(tab0(x));
    if root < 2 {
        return root as u32;
    }
    (((2 * root + x / (root * (root - 1))) * 43_691) >> 17) as u32
}

/// Computes the root of the number as a double and checks the neighbours on both sides. The root is exact.
#[inline(always)]
pub fn libm(x: u64) -> u32 {
    let root = standard::cbrt(x as f64) as u64;
    let beyond = |root: u64| root.wrapping_mul(root).wrapping_mul(root).wrapping_sub(x) as i64 > 0;
    if beyond(root) { root as u32 - 1 } else { root as u32 + u32::from(!beyond(root + 1)) }
}
