#![doc = include_str!("../README.md")]

pub mod subset;
pub mod cbrt;
pub mod sum;
