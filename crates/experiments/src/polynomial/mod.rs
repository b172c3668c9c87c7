//! Strength reduction: polynomials by multiplications and by additions, in Rust and in C at every level.

mod compiled;
mod experiment;
mod machine_code;
mod session;

pub use experiment::Polynomial;
