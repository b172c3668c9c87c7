#![doc = include_str!("README.md")]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod avx512_column;
pub mod historical;
#[cfg(target_arch = "aarch64")]
mod neon;
mod pairs;
mod portable;
mod variants;
mod write;

pub use variants::{VARIANTS, Variant, chosen};
pub use write::{Integer, TooShort, append, append_column, append_to_string, write, write_within};
