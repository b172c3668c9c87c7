//! Commands as an experiment.
//!
//! A [`CommandSet`] is plain data; [`CommandExperiment`] measures it. Its variants are the commands,
//! its factors the parameters, and its metrics ([`metrics`]) come from the kernel's own account of
//! each process: `wall`, `user`, `system`, `memory_peak` and `exit`.

mod check;
mod error;
mod experiment;
mod hooks;
mod line;
mod outcome;
mod requests;
mod session;
mod set;

pub use error::CommandError;
pub use experiment::CommandExperiment;
pub(crate) use outcome::{EXIT, WALL};
pub use set::{CommandSet, Input, NamedCommand, OnFailure, Output, metrics};

#[cfg(test)]
mod tests;
