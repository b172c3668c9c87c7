//! How long a number is.

/// The zeros before the leading bit of a number that is not zero.
///
/// Without LZCNT a compiler takes BSR, which leaves its target as it was where the source is zero, and so waits
/// for whatever last wrote the target: in a loop, for the whole iteration before. Here source and target are
/// one register.
#[cfg(all(target_arch = "x86_64", not(target_feature = "lzcnt"), not(miri)))]
#[inline(always)]
pub fn leading_zeros(x: u64) -> u32 {
    let mut position = x;
    // SAFETY: the instruction reads and writes that register, and flags, alone.
    unsafe { std::arch::asm!("bsr {0}, {0}", inout(reg) position, options(pure, nomem, nostack)) };
    63 - position as u32
}

/// The zeros before the leading bit of a number that is not zero.
#[cfg(not(all(target_arch = "x86_64", not(target_feature = "lzcnt"), not(miri))))]
#[inline(always)]
pub fn leading_zeros(x: u64) -> u32 {
    x.leading_zeros()
}
