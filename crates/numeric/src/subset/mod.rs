#![doc = include_str!("README.md")]

mod sum;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use sum::{additions, sum};
