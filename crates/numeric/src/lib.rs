// Of two definitions the first counts: links that lead to files where the README is read lead to modules here.
//! [`cbrt`]: mod@cbrt
//! [`decimal`]: mod@decimal
//! [`polynomial`]: mod@polynomial
//! [`subset`]: mod@subset
//! [`sum`]: mod@sum
//!
#![doc = include_str!("../README.md")]

pub mod cbrt;
mod code_size;
pub mod decimal;
mod features;
pub mod polynomial;
mod simd;
pub mod subset;
pub mod sum;
