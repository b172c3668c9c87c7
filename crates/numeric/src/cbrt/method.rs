//! The methods of the integer cube root that TCP's congestion control went through, after Hemminger and
//! Tarreau (2007), written afresh from what they say of them: bit by bit, by Newton's iteration r ← (2r + x/r²)/3 from
//! several first guesses with several divisions, by a table of 64 bytes on the number's leading six bits, and the C
//! library's floating-point root, put right.

use super::exact::leading_zeros;
use crate::standard;

/// How many bits a number has; zero is taken for one.
#[inline(always)]
fn bits(x: u64) -> u32 {
    64 - leading_zeros(x | 1)
}

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

/// A power of two that is above the root: from there on Newton's iteration only falls.
fn above(x: u64) -> u64 {
    2 << (bits(x) / 3)
}

/// Two 64-bit divisions an iteration, one by the other, until nothing falls any more; exact.
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

/// One 64-bit division an iteration, until the root moves by one at most.
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

/// Three iterations.
#[inline(always)]
pub fn ncubic(x: u64) -> u32 {
    let mut root = 1 << (bits(x) / 3);
    for _ in 0..3 {
        root = step(root, x / (root * root));
    }
    root as u32
}

/// Three iterations, in 32 bits where the number has no more.
#[inline(always)]
pub fn ncubic32(x: u64) -> u32 {
    let mut root = 1 << (bits(x) / 3);
    for _ in 0..3 {
        root = step(root, divide(x, root * root));
    }
    root as u32
}

/// As [`ncubic32`], divided by r·(r − 1), whose quotient is nearer to the true one where the division rounds down.
///
/// The source tells the method's figures alone, which are those of ncubic32 with less error; the divisor is what it
/// says of such ones.
#[inline(always)]
pub fn ncubic32_1(x: u64) -> u32 {
    let mut root: u64 = 1 << (bits(x) / 3);
    for _ in 0..3 {
        root = step(root, divide(x, (root * (root - 1)).max(1)));
    }
    root as u32
}

/// A guess from the position of the leading bit and the bit after it; not for use.
#[inline(always)]
pub fn div0(x: u64) -> u32 {
    guess(x) as u32
}

/// The guess, and one iteration.
#[inline(always)]
pub fn div1(x: u64) -> u32 {
    refined(x, 1)
}

/// The guess, and two iterations.
#[inline(always)]
pub fn div2(x: u64) -> u32 {
    refined(x, 2)
}

/// As [`div2`], with a multiplication and a shift for the division by three.
#[inline(always)]
pub fn ndiv3(x: u64) -> u32 {
    let mut root = guess(x).max(1);
    for _ in 0..2 {
        root = third(2 * root + divide(x, root * root));
    }
    if x == 0 { 0 } else { root as u32 }
}

/// The guess, and three iterations.
#[inline(always)]
pub fn div3(x: u64) -> u32 {
    refined(x, 3)
}

/// Geometric middles of the roots of 1 to 1.5 and of 1.5 to 2, then of twice and of four times as much, in
/// units of 2^−16.
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

/// A third, nearly: what a product of 32 bits has room for beside a sum of 22 is 341/1024.
fn third(sum: u64) -> u64 {
    ((sum * 341) >> 10).max(1)
}

/// A division of the narrowest kind that will do.
fn divide(x: u64, by: u64) -> u64 {
    match (u32::try_from(x), u32::try_from(by)) {
        (Ok(x), Ok(by)) => u64::from(x / by),
        _ => x / by,
    }
}

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

/// The root of the number as a double, and a comparison on either side; exact.
#[inline(always)]
pub fn libm(x: u64) -> u32 {
    let root = standard::cbrt(x as f64) as u64;
    let beyond = |root: u64| root.wrapping_mul(root).wrapping_mul(root).wrapping_sub(x) as i64 > 0;
    if beyond(root) { root as u32 - 1 } else { root as u32 + u32::from(!beyond(root + 1)) }
}
