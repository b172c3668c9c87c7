//! Event counts: what a publication costs with nobody waiting, and with a sleeper.

mod contestants;
mod experiment;
mod session;
mod sleeper;
mod tasks;

pub use experiment::EventCount;
