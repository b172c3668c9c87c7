//! Commands as an experiment.
//!
//! A [`CommandSet`] is plain data; [`CommandExperiment`] measures it. Its variants are the commands,
//! its factors the parameters, and its metrics ([`metrics`]) come from the kernel's own account of
//! each process: `wall`, `user`, `system`, `memory_peak` and `exit`; and where it is asked for, what was counted of it
//! ([`counters`]).

mod experiment;
mod hooks;
mod line;
mod set;

pub(crate) use experiment::EXIT;
pub use experiment::{CommandExperiment, WALL};
pub use set::{CommandError, CommandSet, Input, NamedCommand, OnFailure, Output, counters, metrics};

#[cfg(test)]
mod tests;
