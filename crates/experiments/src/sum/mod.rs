//! Summation: speed and error of the ways to add up floating-point numbers.

mod contestants;
mod experiment;
mod session;

pub use experiment::Sum;
