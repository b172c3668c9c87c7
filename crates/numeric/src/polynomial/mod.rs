#![doc = include_str!("README.md")]

mod method;
mod plain;
mod variant;
mod variants;

pub use plain::{chosen, fill};
pub use variant::{Fill, Variant};
pub use variants::VARIANTS;
