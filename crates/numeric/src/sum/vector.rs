//! What summation needs of a register beyond arithmetic.

use super::exact::UnitSum;
use super::method::Subtract;
use crate::simd::{Eight, Register};

/// A register to sum in.
pub trait Vector: Register {
    /// What it consists of: itself, unless it takes several of the CPU's registers.
    type Part: Vector<Part = Self::Part>;

    /// How many they are.
    const PARTS: usize = Self::LANES / Self::Part::LANES;

    /// On which units the exact subtractions of a loop run best.
    type Subtraction: Subtract<Self::Part>;

    /// Its parts, the first numbers in the first. A loop that takes one after the other has fewer numbers under way
    /// than one that does each operation for all, and they have to fit into the CPU's registers.
    fn parts(&mut self) -> &mut [Self::Part];

    /// The sum of all numbers (at most 4,096) in units of 2^unit (−127 to 126), of which each should be a whole number,
    /// below 2^63: its exponents tell whether it is. None where the CPU has nothing to do so fast.
    ///
    /// # Safety
    /// The CPU has the register's instructions.
    #[inline(always)]
    unsafe fn sum_units_f32(_xs: &[f32], _unit: i32) -> Option<UnitSum> {
        None
    }
}

impl<V: Vector<Part = V>, const PARTS: usize> Vector for Eight<V, PARTS> {
    type Part = V;
    type Subtraction = V::Subtraction;

    #[inline(always)]
    fn parts(&mut self) -> &mut [V] {
        &mut self.0
    }
}

/// A register whose CPU multiplies and adds in one instruction, perhaps on other ports than it adds.
#[cfg(target_arch = "x86_64")]
pub trait Fma: Vector<Part = Self> {}

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
