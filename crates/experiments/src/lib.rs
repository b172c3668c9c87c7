#![doc = include_str!("../README.md")]

mod claims;
#[cfg(any(feature = "numeric", feature = "sync"))]
mod compiled;
mod registry;
#[cfg(any(feature = "numeric", feature = "sync"))]
mod threads;

pub use claims::{shipped_claims, source_title};
pub use registry::{families, registry};
