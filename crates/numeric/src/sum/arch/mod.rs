//! The instruction sets, one file each: a register, and the entry that enables its instructions.

#[cfg(target_arch = "x86_64")]
pub mod avx2;
#[cfg(target_arch = "x86_64")]
pub mod avx512;
pub mod scalar;

/// The features that [`scalar`] enables: none.
pub const SCALAR: &[&str] = &[];
/// The features that `avx2` enables.
pub const AVX2: &[&str] = &["avx2", "fma"];
/// The features that `avx512` enables.
pub const AVX512: &[&str] = &["avx512f"];
