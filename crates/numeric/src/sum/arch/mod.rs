//! The instruction sets, one file each: a register, and the entries that enable its instructions.

/// The functions that users reach a register through, each of which enables its instructions.
macro_rules! entries {
    ($register:ty, $enable:meta) => {
        /// Sums with method `M` and `N` accumulators.
        #[$enable]
        pub fn sum<M: crate::sum::method::Method<$register>, T: crate::sum::Element, const N: usize>(xs: &[T]) -> f64 {
            // SAFETY: the instructions are enabled here.
            unsafe { M::sum::<T, N>(xs) }
        }

        /// The dot product by method `M` and `N` accumulators; of the longer slice, as much as the shorter has.
        #[$enable]
        pub fn dot<M: crate::sum::dot::DotMethod<$register>, T: crate::sum::Element, const N: usize>(
            xs: &[T],
            ys: &[T],
        ) -> f64 {
            // SAFETY: the instructions are enabled here.
            unsafe { M::dot::<T, N>(xs, ys) }
        }
    };
}
use entries;

/// What needs no order, so that any register will do.
macro_rules! exact_entry {
    ($register:ty, $enable:meta) => {
        /// Adds to an exact sum.
        #[$enable]
        pub fn add_exactly<T: crate::sum::Element>(sum: &mut crate::sum::Exact, xs: &[T]) {
            // SAFETY: the instructions are enabled here.
            unsafe { crate::sum::exact::add_blocks::<$register, T, 4>(sum, xs) }
        }
    };
}
use exact_entry;

/// What is offered in eight lanes alone, for the same bits everywhere.
macro_rules! distances_entry {
    ($register:ty, $enable:meta) => {
        /// The sums of the distances from `centre` and of their squares.
        #[$enable]
        pub fn distances<T: crate::sum::Element>(xs: &[T], centre: f64) -> (f64, f64) {
            // SAFETY: the instructions are enabled here.
            unsafe { crate::sum::moments::distances::<$register, T, 2>(xs, centre) }
        }
    };
}
use distances_entry;

#[cfg(target_arch = "x86_64")]
pub mod avx2;
#[cfg(target_arch = "x86_64")]
pub mod avx512;
#[cfg(target_arch = "aarch64")]
pub mod neon;
pub mod scalar;

/// The features that [`scalar`] enables: none.
pub const SCALAR: &[&str] = &[];
/// The features that `avx2` enables.
pub const AVX2: &[&str] = &["avx2", "fma"];
/// The features that `avx512` enables.
pub const AVX512: &[&str] = &["avx512f", "avx512dq"];
/// The features that `neon` enables, which every machine of its architecture has.
pub const NEON: &[&str] = if cfg!(target_arch = "aarch64") { &[] } else { &["neon"] };
