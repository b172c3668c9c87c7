//! What the methods need of a register, so that each method is written once for every
//! instruction set.

/// The most lanes that any register has.
pub const MAX_LANES: usize = 8;

/// One register of `f64` lanes; [`f64`] itself is the register of one lane.
///
/// # Safety
/// Every function here may be called only on a CPU that has the register's instructions, and is
/// fast only when inlined into a function that enables them.
pub trait Register: Copy {
    /// How many numbers it holds.
    const LANES: usize;

    /// `value` in every lane.
    unsafe fn splat(value: f64) -> Self;

    /// 0, 1, 2 …
    unsafe fn counting() -> Self;

    /// The `LANES` numbers at `from`, which must be readable; no alignment is needed.
    unsafe fn load_f64(from: *const f64) -> Self;

    /// The `LANES` numbers at `from`, widened.
    unsafe fn load_f32(from: *const f32) -> Self;

    /// The first `count` (1 to `LANES`) numbers at `from`, and −0.0, which adds nothing to any
    /// number, in the other lanes; nothing after them is read.
    unsafe fn load_partial_f64(from: *const f64, count: usize) -> Self;

    /// As [`Register::load_partial_f64`], widened.
    unsafe fn load_partial_f32(from: *const f32, count: usize) -> Self;

    /// Writes the lanes to `to`, which must be writable; no alignment is needed.
    unsafe fn store(self, to: *mut f64);

    /// Writes the first `count` (1 to `LANES`) lanes to `to`, and nothing after them.
    unsafe fn store_partial(self, to: *mut f64, count: usize);

    /// `self + other`, rounded once.
    unsafe fn add(self, other: Self) -> Self;

    /// `self - other`, rounded once.
    unsafe fn sub(self, other: Self) -> Self;

    /// `self * other`, rounded once.
    unsafe fn mul(self, other: Self) -> Self;

    /// `self * factor + other`, rounded once where the CPU has an instruction for it and else twice.
    unsafe fn mul_add(self, factor: Self, other: Self) -> Self;

    /// `self * factor - other`, rounded once. Where the CPU has no instruction for it, as x86-64 without FMA, it is
    /// right all the same, and slow.
    unsafe fn mul_sub(self, factor: Self, other: Self) -> Self;

    /// In each lane, the number of larger magnitude in the first and the other in the second.
    unsafe fn by_magnitude(self, other: Self) -> (Self, Self);

    /// The lanes, first in memory first; those that the register lacks are unspecified.
    unsafe fn to_lanes(self) -> [f64; MAX_LANES];

    /// The sum of the lanes, added by halves.
    #[inline(always)]
    unsafe fn sum_lanes(self) -> f64 {
        // SAFETY: the same contract.
        let mut lanes = unsafe { self.to_lanes() };
        let mut width = Self::LANES;
        while width > 1 {
            width /= 2;
            for i in 0..width {
                lanes[i] += lanes[i + width];
            }
        }
        lanes[0]
    }
}
