//! The instruction sets: the register of each, and the entry functions that enable its instructions.

#[cfg(target_arch = "x86_64")]
pub(super) use super::avx512;

/// Defines the entry functions of a register. Each entry function enables the register's instructions.
macro_rules! entries {
    ($register:ty, $enable:meta) => {
        /// Sums with method `M` and `N` accumulators.
        #[$enable]
        pub fn sum<M: crate::sum::method::Method<$register>, T: crate::sum::Element, const N: usize>(xs: &[T]) -> f64 {
            // SAFETY: the instructions are enabled here.
            unsafe { M::sum::<T, N>(xs) }
        }

        /// Returns the dot product by method `M` with `N` accumulators. Stops at the end of the shorter slice.
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

/// Defines the entry function of the exact sum, whose result does not depend on the register.
macro_rules! exact_entry {
    ($register:ty, $enable:meta) => {
        /// Adds the numbers to an exact sum.
        #[$enable]
        pub fn add_exactly<T: crate::sum::Element>(sum: &mut crate::sum::Exact, xs: &[T]) {
            // SAFETY: the instructions are enabled here.
            unsafe { crate::sum::exact::add_blocks::<$register, T, 4>(sum, xs) }
        }
    };
}

/// Defines the entry function for the mean and the variance. It exists only for registers of eight lanes, so that the
/// bits are the same everywhere.
macro_rules! distances_entry {
    ($register:ty, $enable:meta) => {
        /// Returns the sum of the distances from `centre`, and the sum of their squares.
        #[$enable]
        pub fn distances<T: crate::sum::Element>(xs: &[T], centre: f64) -> (f64, f64) {
            // SAFETY: the instructions are enabled here.
            unsafe { crate::sum::moments::distances::<$register, T, 2>(xs, centre) }
        }
    };
}

/// Implements `Vector` for a register that is a single CPU register. `$subtraction` is the type that implements
/// `Subtract` for the register.
macro_rules! one_part {
    ($register:ty, $subtraction:ty) => {
        impl crate::sum::vector::Vector for $register {
            type Part = Self;
            type Subtraction = $subtraction;

            #[inline(always)]
            fn parts(&mut self) -> &mut [Self] {
                core::slice::from_mut(self)
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
pub(super) use {distances_entry, entries, exact_entry};

/// The features that [`scalar`] enables: none.
pub const SCALAR: &[&str] = &[];
/// The features that `sse2` enables. Every x86-64 machine has them.
pub const SSE2: &[&str] = if cfg!(target_arch = "x86_64") { &[] } else { &["sse2"] };
/// The features that `avx2` enables.
pub const AVX2: &[&str] = &["avx2", "fma"];
/// The features that `avx512` enables.
pub const AVX512: &[&str] = &["avx512f", "avx512dq"];
/// The features that `neon` enables. Every AArch64 machine has them.
pub const NEON: &[&str] = if cfg!(target_arch = "aarch64") { &[] } else { &["neon"] };

/// Kernels for one number at a time, on every machine.
pub mod scalar {
    use crate::simd::Eight;
    use crate::sum::method::OnAdders;

    entries!(f64, inline);
    #[cfg(not(target_arch = "x86_64"))]
    exact_entry!(f64, inline);

    one_part!(f64, OnAdders);

    /// Kernels for registers of eight lanes. Each lane takes a CPU register of its own.
    pub mod by_eight {
        use super::Eight;

        entries!(Eight<f64, 8>, inline);
        #[cfg(not(target_arch = "x86_64"))]
        distances_entry!(Eight<f64, 8>, inline);
    }
}

/// Kernels with SSE2 for two numbers at a time.
#[cfg(target_arch = "x86_64")]
pub mod sse2 {
    use core::arch::x86_64::*;

    use crate::simd::Eight;
    use crate::sum::method::OnAdders;

    entries!(__m128d, inline);
    exact_entry!(__m128d, inline);

    one_part!(__m128d, OnAdders);

    /// Kernels for registers of eight lanes. They take four CPU registers of two lanes.
    pub mod by_eight {
        use super::{__m128d, Eight};

        entries!(Eight<__m128d, 4>, inline);
        distances_entry!(Eight<__m128d, 4>, inline);
    }
}

/// Kernels with AVX2 and FMA for four numbers at a time.
#[cfg(target_arch = "x86_64")]
pub mod avx2 {
    use core::arch::x86_64::*;

    use crate::simd::Eight;
    use crate::sum::method::OnMultipliers;
    use crate::sum::vector::{Fma, Words};

    entries!(__m256d, target_feature(enable = "avx2,fma"));
    exact_entry!(__m256d, target_feature(enable = "avx2,fma"));

    one_part!(__m256d, OnMultipliers<__m256d>);

    impl Fma for __m256d {}

    /// Kernels for registers of eight lanes. They take two CPU registers of four lanes.
    pub mod by_eight {
        use super::{__m256d, Eight};

        entries!(Eight<__m256d, 2>, target_feature(enable = "avx2,fma"));
        distances_entry!(Eight<__m256d, 2>, target_feature(enable = "avx2,fma"));
    }

    impl Words for __m256d {
        #[inline]
        #[target_feature(enable = "avx2,fma")]
        unsafe fn load_bytes(from: *const u8) -> Self {
            // SAFETY: the caller promises 32 readable bytes.
            unsafe { _mm256_loadu_pd(from.cast()) }
        }

        #[inline]
        #[target_feature(enable = "avx2,fma")]
        unsafe fn xor(self, other: Self) -> Self {
            _mm256_xor_pd(self, other)
        }
    }
}

/// Kernels with NEON for two numbers at a time.
#[cfg(target_arch = "aarch64")]
pub mod neon {
    use core::arch::aarch64::*;

    use crate::simd::Eight;
    use crate::sum::method::OnAdders;

    entries!(float64x2_t, target_feature(enable = "neon"));
    exact_entry!(float64x2_t, target_feature(enable = "neon"));

    one_part!(float64x2_t, OnAdders);

    /// Kernels for registers of eight lanes. They take four CPU registers of two lanes.
    pub mod by_eight {
        use super::{Eight, float64x2_t};

        entries!(Eight<float64x2_t, 4>, target_feature(enable = "neon"));
        distances_entry!(Eight<float64x2_t, 4>, target_feature(enable = "neon"));
    }
}
