#![doc = include_str!("README.md")]

#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod avx512_column;
mod column;
pub mod historical;
mod integer;
mod portable;
mod small;
mod variant;
mod write;

pub use column::append_column;
pub use integer::Integer;
pub use variant::{VARIANTS, Variant, chosen};
pub use write::{TooShort, append, append_to_string, write, write_within};
