#![doc = include_str!("../README.md")]

mod claims;
mod registry;

pub use claims::{shipped_claims, source_title};
pub use registry::{families, registry};
