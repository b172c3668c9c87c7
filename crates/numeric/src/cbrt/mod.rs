#![doc = include_str!("README.md")]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod exact;
mod method;
mod variants;

pub use exact::{cbrt_each, cbrt_u32, cbrt_u64};
pub use variants::{VARIANTS, Variant};
