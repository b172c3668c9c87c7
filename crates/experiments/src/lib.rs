#![doc = include_str!("../README.md")]

mod claims;
mod registry;

#[cfg(feature = "networks")]
pub use ascertain_experiments_networks::clean;
pub use claims::shipped_claims;
pub use registry::{Family, families, registry};
