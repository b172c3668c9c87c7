//! The exact cube root: an estimate from a table, corrected by one comparison. The tables are computed at compile time.
//!
//! A number is shifted left by a multiple of three bits, so that its leading byte is 32 to 255. The table has one entry
//! for each such byte. Among the numbers with the same leading byte, the root is nearly a parabola. For 32-bit numbers
//! a line is close enough.

#[cfg(target_arch = "x86_64")]
use crate::features::detected;

/// Returns the cube root of a 64-bit number, rounded down. The result is exact for every number.
///
/// The function looks up the leading byte in a table of 6 KB and evaluates a parabola with two multiplications. The
/// parabola is never below the root and at most one above; one comparison corrects it.
///
/// ```
/// use ascertain_numeric::cbrt::cbrt_u64;
///
/// assert_eq!(cbrt_u64(26), 2);
/// assert_eq!(cbrt_u64(27), 3);
/// assert_eq!(cbrt_u64(u64::MAX), 2_642_245);
/// ```
#[inline]
pub fn cbrt_u64(x: u64) -> u32 {
    root(x, leading_zeros(x | 1))
}

/// Returns the cube root as [`cbrt_u64`] does, by instructions that only newer CPUs have.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "lzcnt,bmi2")]
pub fn cbrt_by_lzcnt(x: u64) -> u32 {
    root(x, (x | 1).leading_zeros())
}

/// Returns the cube root of `x`. `zeros` is the number of zeros before the leading bit of `x | 1`: zero has no leading
/// bit, so it is treated like the number 1. The comparison at the end then corrects the root.
#[inline(always)]
fn root(x: u64, zeros: u32) -> u32 {
    let third = zeros / 3;
    let shifted = (x | 1) << (3 * third);
    let near = &PARABOLAS[(shifted >> 56) as usize];
    let fraction = shifted << 8;
    let slope = near.linear - multiply_high(fraction, near.quadratic);
    let root = (near.constant + multiply_high(fraction, slope)) >> (PARABOLA_BITS + third);
    // The cube of `root` is within 2^45 of x, so the difference is right even if the cube wraps around.
    let over = root.wrapping_mul(root).wrapping_mul(root).wrapping_sub(x) as i64;
    root as u32 - u32::from(over > 0)
}

/// Writes the cube root of each number, rounded down. Stops at the end of the shorter slice.
///
/// Computes eight roots at a time if the machine has AVX-512 (F and DQ), and four at a time if it has AVX2 and FMA.
/// Otherwise calls [`cbrt_u64`] for each number.
///
/// ```
/// let mut roots = [0; 3];
/// ascertain_numeric::cbrt::cbrt_each(&[8, 26, 1_000_000], &mut roots);
/// assert_eq!(roots, [2, 2, 100]);
/// ```
pub fn cbrt_each(numbers: &[u64], roots: &mut [u32]) {
    #[cfg(target_arch = "x86_64")]
    if detected!("avx512f", "avx512dq") {
        // SAFETY: the machine has the instructions.
        return unsafe { super::avx512::each(numbers, roots) };
    }
    #[cfg(target_arch = "x86_64")]
    if detected!("avx2", "fma") {
        // SAFETY: as above.
        return unsafe { super::avx2::each(numbers, roots) };
    }
    for (number, root) in numbers.iter().zip(roots) {
        *root = cbrt_u64(*number);
    }
}

/// Returns the cube root of a 32-bit number, rounded down. The result is exact for every number.
///
/// Works like [`cbrt_u64`], but with a table of 2 KB and lines instead of parabolas. A line needs only one
/// multiplication.
///
/// ```
/// use ascertain_numeric::cbrt::cbrt_u32;
///
/// assert_eq!(cbrt_u32(1_000_000), 100);
/// assert_eq!(cbrt_u32(u32::MAX), 1_625);
/// ```
#[inline]
pub fn cbrt_u32(x: u32) -> u32 {
    let third = (leading_zeros(u64::from(x | 1)) - 32) / 3;
    let shifted = (x | 1) << (3 * third);
    let near = &LINES[(shifted >> 24) as usize];
    let rise = (u64::from(shifted << 8) * u64::from(near.linear)) >> 32;
    let root = (near.constant + rise as u32) >> (LINE_BITS + third);
    // As in `cbrt_u64`; here the cube is within 2^24 of x.
    let over = root.wrapping_mul(root).wrapping_mul(root).wrapping_sub(x) as i32;
    root - u32::from(over > 0)
}

/// Multiplies as often as [`cbrt_u64`] does, and does nothing else: two products of 128 bits, two of 64 bits, and one
/// for the division by three. No multiplication waits for another one. The result is not a root.
#[inline(always)]
pub fn limit(x: u64) -> u32 {
    // Any odd numbers do, as long as the compiler cannot multiply by shifts and additions.
    const FACTORS: [u64; 4] = [0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb, 0xaaaa_aaab];
    let products = multiply_high(x, FACTORS[0]) ^ multiply_high(x, FACTORS[1]);
    let powers = x.wrapping_mul(x) ^ x.wrapping_mul(FACTORS[2]);
    (products ^ powers) as u32 ^ (x as u32).wrapping_mul(FACTORS[3] as u32)
}

/// Returns the upper half of the product.
fn multiply_high(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> 64) as u64
}

/// Returns the number of zeros before the leading bit of a number that is not zero.
///
/// Without LZCNT a compiler uses BSR, which leaves its target register unchanged if the source is zero. BSR therefore
/// waits for the previous write to the target, which in a loop means the whole previous iteration. Here source and
/// target are the same register, so there is nothing else to wait for.
#[cfg(all(target_arch = "x86_64", not(target_feature = "lzcnt"), not(miri)))]
#[inline(always)]
pub fn leading_zeros(x: u64) -> u32 {
    let mut position = x;
    // SAFETY: the instruction reads and writes only that register and the flags.
    unsafe { core::arch::asm!("bsr {0}, {0}", inout(reg) position, options(pure, nomem, nostack)) };
    63 - position as u32
}

/// Returns the number of zeros before the leading bit of a number that is not zero.
#[cfg(not(all(target_arch = "x86_64", not(target_feature = "lzcnt"), not(miri))))]
#[inline(always)]
pub fn leading_zeros(x: u64) -> u32 {
    x.leading_zeros()
}

/// Smallest leading byte that a number has after it is shifted left. The table entries below this index are never used.
const FIRST_BYTE: usize = 32;

/// Fractional bits of the fixed-point numbers in [`Parabola`].
pub const PARABOLA_BITS: u32 = 21;

/// Fractional bits of the fixed-point numbers in [`Line`].
pub const LINE_BITS: u32 = 20;

/// Approximates the cube root of 64-bit numbers within one interval by `constant + linear·f − quadratic·f²`. The
/// fraction f is the position within the interval, from 0 to 1.
#[derive(Clone, Copy)]
pub struct Parabola {
    pub constant: u64,
    pub linear: u64,
    pub quadratic: u64,
}

/// Approximates the cube root of 32-bit numbers within one interval by `constant + linear·f`. The fraction f is the
/// position within the interval, from 0 to 1.
#[derive(Clone, Copy)]
pub struct Line {
    pub constant: u32,
    pub linear: u32,
}

/// One parabola for each leading byte of a shifted number. Everywhere in the byte's interval the parabola is above the
/// cube root, by less than a quarter.
pub static PARABOLAS: [Parabola; 256] = {
    let mut table = [Parabola { constant: 0, linear: 0, quadratic: 0 }; 256];
    let mut byte = FIRST_BYTE;
    while byte < 256 {
        table[byte] = parabola(byte as u128);
        byte += 1;
    }
    table
};

/// One line for each leading byte of a shifted number. Everywhere in the byte's interval the line is above the cube
/// root, by less than a tenth.
pub static LINES: [Line; 256] = {
    let mut table = [Line { constant: 0, linear: 0 }; 256];
    let mut byte = FIRST_BYTE;
    while byte < 256 {
        table[byte] = line(byte as u128);
        byte += 1;
    }
    table
};

/// Returns the parabola for a leading byte. It passes through the cube root at 1/16, 8/16 and 15/16 of the byte's
/// interval, near the Chebyshev points, and is off by at most 0.078. It is then raised by an eighth, which puts it
/// above the root everywhere.
const fn parabola(byte: u128) -> Parabola {
    let y = [root64(16 * byte + 1), root64(16 * byte + 8), root64(16 * byte + 15)];
    // Newton's form: y = y0 + first·u − second·u·(u−1)/2, where u = (16·f − 1)/7 counts steps from 1/16. Therefore
    // u·(u−1) = (256·f² − 144·f + 8)/49.
    let first = y[1] - y[0];
    let second = first - (y[2] - y[1]);
    let raise = 1 << (PARABOLA_BITS - 3);
    Parabola {
        constant: (y[0] - first / 7 - second * 8 / 98 + raise) as u64,
        linear: (first * 16 / 7 + second * 144 / 98) as u64,
        quadratic: (second * 256 / 98) as u64,
    }
}

/// Returns the cube root of `sixteenths`·2^52, in units of 2^−[`PARABOLA_BITS`].
const fn root64(sixteenths: u128) -> u128 {
    cube_root(sixteenths << (52 + 3 * PARABOLA_BITS))
}

/// Returns the line for a leading byte: the chord of the cube root over the byte's interval, raised by a sixteenth. The
/// chord itself is at most 0.023 below the root.
const fn line(byte: u128) -> Line {
    let (low, high) = (cube_root(byte << (24 + 3 * LINE_BITS)), cube_root((byte + 1) << (24 + 3 * LINE_BITS)));
    let raise = 1 << (LINE_BITS - 4);
    Line { constant: (low + raise) as u32, linear: (high - low) as u32 }
}

/// Returns the cube root, rounded down. Every root of a `u128` is below 2^43, so the function determines the bits from
/// bit 42 down to bit 0.
const fn cube_root(cube: u128) -> u128 {
    let mut root: u128 = 0;
    let mut bit = 1_u128 << 42;
    while bit > 0 {
        let tried = root | bit;
        // Compares with a quotient because the cube of `tried` may not fit into 128 bits.
        if tried * tried <= cube / tried {
            root = tried;
        }
        bit >>= 1;
    }
    root
}
