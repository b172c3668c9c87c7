//! The operations beyond arithmetic that a register needs for summation.

use super::exact::UnitSum;
use super::method::Subtract;
use crate::simd::{Eight, Register};

/// A register with the operations that summation needs.
pub trait Vector: Register {
    /// The type of one CPU register of this vector: `Self`, unless `Self` takes several CPU registers.
    type Part: Vector<Part = Self::Part>;

    /// Number of CPU registers that `Self` takes.
    const PARTS: usize = Self::LANES / Self::Part::LANES;

    /// The method of subtraction that is the fastest in this crate's loops: on the adders or on the multipliers of the
    /// CPU.
    type Subtraction: Subtract<Self::Part>;

    /// Returns the CPU registers that make up the vector; the first one has the first numbers. A loop over one of them
    /// at a time needs fewer CPU registers than a loop that does each operation for all of them.
    fn parts(&mut self) -> &mut [Self::Part];

    /// Returns the sum of at most 4,096 numbers in units of 2^`unit`, for a `unit` from −127 to 126. Each number should
    /// be a whole number of units below 2^63; the returned exponents show whether this is the case. Returns `None` if
    /// the CPU has no fast way to compute the sum.
    ///
    /// # Safety
    /// The CPU must have the register's instructions.
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

/// A register of a CPU that multiplies and adds in one instruction. The CPU may run this instruction on other execution
/// ports than an addition.
#[cfg(target_arch = "x86_64")]
pub trait Fma: Vector<Part = Self> {}

/// A register that can be used as plain bytes.
#[cfg(target_arch = "x86_64")]
pub trait Words: Vector {
    /// Loads the bytes at `from`, as many as the register holds; no alignment is needed.
    unsafe fn load_bytes(from: *const u8) -> Self;

    /// Returns the bitwise exclusive or of the two registers.
    unsafe fn xor(self, other: Self) -> Self;
}

/// A register that can widen `f32` by integer operations, in addition to the CPU's instructions for conversion.
#[cfg(target_arch = "x86_64")]
pub trait Widen: Fma {
    /// A value that is 0 in every lane as long as all numbers were finite, and otherwise NaN in at least one lane.
    type Poison: Copy;

    /// Returns the initial value: 0 in every lane.
    unsafe fn no_poison() -> Self::Poison;

    /// Returns whether all numbers so far were finite.
    unsafe fn all_finite(poison: Self::Poison) -> bool;

    /// Returns the sum of the 32 × `LANES` numbers at `from`, in a balanced tree. The sum is unspecified if a number is
    /// not finite.
    unsafe fn sum_block_f32(from: *const f32, poison: &mut Self::Poison) -> Self;
}
