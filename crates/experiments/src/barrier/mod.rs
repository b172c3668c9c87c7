//! How long the slow side of an asymmetric barrier takes.

mod daemon;
mod experiment;
mod limit;
mod load;
mod methods;
mod program;
mod session;

pub use experiment::Barrier;
