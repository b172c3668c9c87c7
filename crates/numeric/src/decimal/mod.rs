#![doc = include_str!("README.md")]

#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod avx512_column;
mod column;
mod integer;
mod portable;
mod small;
mod variant;
mod write;

pub use column::append_column;
pub use integer::Integer;
pub use variant::{VARIANTS, Variant};
pub use write::{TooShort, append, write, write_within};
