#![doc = include_str!("../README.md")]

pub mod cbrt;
mod code_size;
pub mod subset;
pub mod sum;
