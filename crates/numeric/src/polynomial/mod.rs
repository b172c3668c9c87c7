#![doc = include_str!("README.md")]

mod method;
mod plain;
mod variant;
mod variants;

pub use plain::fill;
pub use variant::{Fill, Variant};
pub use variants::VARIANTS;
