#![doc = include_str!("README.md")]

mod exact;
mod table;

pub use exact::{cbrt_u32, cbrt_u64};
