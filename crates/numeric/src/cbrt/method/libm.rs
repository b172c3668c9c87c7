//! The C library's floating-point root, put right.

/// The root of the number as a double, and a comparison on either side; exact.
#[inline(always)]
pub fn libm(x: u64) -> u32 {
    let root = (x as f64).cbrt() as u64;
    let beyond = |root: u64| root.wrapping_mul(root).wrapping_mul(root).wrapping_sub(x) as i64 > 0;
    if beyond(root) { root as u32 - 1 } else { root as u32 + u32::from(!beyond(root + 1)) }
}
