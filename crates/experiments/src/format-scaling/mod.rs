//! Formatting over threads: who takes turns.

mod experiment;
mod session;

pub use experiment::FormatScaling;
