#![doc = include_str!("README.md")]

mod method;
mod variants;

pub use variants::{Fill, VARIANTS, Variant, chosen, fill};
