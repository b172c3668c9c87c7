//! Integers to text: ours, the libraries that people use, and the methods that the source compares.

pub(super) mod check;
mod compiled;
pub(super) mod contestants;
mod distribution;
mod experiment;
mod limits;
mod session;

pub use experiment::Decimal;
