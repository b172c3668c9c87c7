//! Integer cube roots: the methods that TCP's congestion control went through, and exact ones.

mod experiment;
mod session;

pub use experiment::Cbrt;
