//! What the methods need of a register, so that each method is written once for every
//! instruction set.

use super::method::Subtract;

/// The most lanes that any register has.
pub const MAX_LANES: usize = 8;

/// One register of `f64` lanes; [`f64`] itself is the register of one lane.
///
/// # Safety
/// Every function here may be called only on a CPU that has the register's instructions, and is
/// fast only when inlined into a function that enables them.
pub trait Vector: Copy {
    /// On which units the exact subtractions of a loop run best.
    type Subtraction: Subtract<Self>;

    /// How many numbers it holds.
    const LANES: usize;

    /// `value` in every lane.
    unsafe fn splat(value: f64) -> Self;

    /// The `LANES` numbers at `from`, which must be readable; no alignment is needed.
    unsafe fn load_f64(from: *const f64) -> Self;

    /// The `LANES` numbers at `from`, widened.
    unsafe fn load_f32(from: *const f32) -> Self;

    /// The first `count` (1 to `LANES`) numbers at `from`, and −0.0, which adds nothing to any
    /// number, in the other lanes; nothing after them is read.
    unsafe fn load_partial_f64(from: *const f64, count: usize) -> Self;

    /// As [`Vector::load_partial_f64`], widened.
    unsafe fn load_partial_f32(from: *const f32, count: usize) -> Self;

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
}

/// A register whose CPU multiplies and adds in one instruction, perhaps on other ports than it adds.
#[cfg(target_arch = "x86_64")]
pub trait Fma: Vector {}

/// A register as plain bytes.
#[cfg(target_arch = "x86_64")]
pub trait Words: Vector {
    /// The bytes at `from`, as many as the register holds; no alignment is needed.
    unsafe fn load_bytes(from: *const u8) -> Self;

    /// Exclusive or of all bits.
    unsafe fn xor(self, other: Self) -> Self;
}

/// A register that can take `f32` apart by integer operations, beside the conversions.
#[cfg(target_arch = "x86_64")]
pub trait Widen: Fma {
    /// What is 0 in every lane while all numbers seen were finite, and else NaN in some.
    type Poison: Copy;

    /// Nothing was seen.
    unsafe fn no_poison() -> Self::Poison;

    /// Whether all numbers seen were finite.
    unsafe fn all_finite(poison: Self::Poison) -> bool;

    /// The sum of the 16 × `LANES` numbers at `from`, in a balanced tree; unspecified where one is not finite.
    unsafe fn sum_block_f32(from: *const f32, poison: &mut Self::Poison) -> Self;
}
