#![doc = include_str!("../README.md")]

pub mod subset;
pub mod cbrt;
mod code_size;
pub mod sum;
