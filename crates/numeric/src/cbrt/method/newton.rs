//! Newton's iteration r ← (2r + x/r²)/3, from several first guesses, with several divisions.

use super::bits;

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
