//! The experiments that ship with Ascertain, and the claims about them.
//!
//! An experiment is one folder here and one line in `registry.rs`; its `README.md` is what
//! `ascertain explain` prints.

mod claims;
mod common;
mod registry;

pub use claims::{shipped_claims, source_title};
pub use registry::{fill_rate, per_cpu, registry, reshuffle, sum};
