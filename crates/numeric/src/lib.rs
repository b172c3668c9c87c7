#![doc = include_str!("../README.md")]

pub mod cbrt;
mod code_size;
pub mod decimal;
mod features;
pub mod polynomial;
mod simd;
pub mod subset;
pub mod sum;
