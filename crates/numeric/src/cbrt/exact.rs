use super::length::leading_zeros;
use super::table::{LINE_BITS, LINES, PARABOLA_BITS, PARABOLAS};

/// The cube root of a 64-bit number, rounded down: exact for all of them.
///
/// A table of 6 KB on the leading byte, two multiplications for a parabola that is never below the root,
/// and one comparison that takes off the one that it may be too much.
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
    // Zero is treated as one is, whose root the comparison then takes down.
    let third = leading_zeros(x | 1) / 3;
    let shifted = (x | 1) << (3 * third);
    let near = &PARABOLAS[(shifted >> 56) as usize];
    let fraction = shifted << 8;
    let slope = near.linear - multiply_high(fraction, near.quadratic);
    let root = (near.constant + multiply_high(fraction, slope)) >> (PARABOLA_BITS + third);
    // The cube is within 2^45 of x: where it wraps around, so does the difference.
    let over = root.wrapping_mul(root).wrapping_mul(root).wrapping_sub(x) as i64;
    root as u32 - u32::from(over > 0)
}

/// The cube root of each number, rounded down: as many as the shorter slice has.
///
/// Eight at a time where the machine has AVX-512 (F and DQ), else [`cbrt_u64`] for each.
///
/// ```
/// let mut roots = [0; 3];
/// ascertain_numeric::cbrt::cbrt_each(&[8, 26, 1_000_000], &mut roots);
/// assert_eq!(roots, [2, 2, 100]);
/// ```
pub fn cbrt_each(numbers: &[u64], roots: &mut [u32]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512dq") {
        // SAFETY: the machine has the instructions.
        return unsafe { super::avx512::each(numbers, roots) };
    }
    for (number, root) in numbers.iter().zip(roots) {
        *root = cbrt_u64(*number);
    }
}

/// The cube root of a 32-bit number, rounded down: exact for all of them.
///
/// As [`cbrt_u64`], with a table of 2 KB, a line instead of a parabola, and one multiplication for it.
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
    // As above, within 2^24.
    let over = root.wrapping_mul(root).wrapping_mul(root).wrapping_sub(x) as i32;
    root - u32::from(over > 0)
}

/// The upper half of a product.
fn multiply_high(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> 64) as u64
}
