// Of two definitions the first counts: links that lead to files where the README is read lead to modules here.
//! [`cbrt`]: mod@cbrt
//! [`decimal`]: mod@decimal
//! [`polynomial`]: mod@polynomial
//! [`subset`]: mod@subset
//! [`sum`]: mod@sum
//!
#![doc = include_str!("../README.md")]
#![cfg_attr(not(any(test, feature = "std")), no_std)]

#[cfg(not(any(feature = "std", feature = "libm")))]
compile_error!("without its feature `std`, ascertain-numeric needs `libm` for what the standard library rounds");
#[cfg(all(target_arch = "x86_64", not(target_feature = "sse2")))]
compile_error!("ascertain-numeric does not know an x86-64 without SSE2, as of x86_64-unknown-none");

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
