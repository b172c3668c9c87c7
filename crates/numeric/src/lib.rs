// In the README these links lead to files, but in the documentation they must lead to modules. The first definition of
// a link counts, so these definitions precede the README.
//! [`cbrt`]: mod@cbrt
//! [`decimal`]: mod@decimal
//! [`polynomial`]: mod@polynomial
//! [`subset`]: mod@subset
//! [`sum`]: mod@sum
//!
#![doc = include_str!("../README.md")]
#![cfg_attr(not(any(test, feature = "std")), no_std)]

#[cfg(not(any(feature = "std", feature = "libm")))]
compile_error!("ascertain-numeric needs the feature `std` or `libm`; enable one of them");
#[cfg(all(target_arch = "x86_64", not(target_feature = "sse2")))]
compile_error!("ascertain-numeric does not support x86-64 without SSE2, such as x86_64-unknown-none");

extern crate alloc;

pub mod cbrt;
mod code_size;
pub mod decimal;
mod features;
#[cfg(feature = "polynomial")]
pub mod polynomial;
mod simd;
mod standard;
pub mod subset;
pub mod sum;
