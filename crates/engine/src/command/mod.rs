//! Commands as an experiment.
//!
//! A [`CommandSet`] is plain data; [`CommandExperiment`] measures it. Its variants are the commands,
//! its factors the parameters, and its metrics ([`metrics`]) come from the kernel's own account of
//! each process: `wall`, `user`, `system`, `memory_peak` and `exit`; and where it is asked for, what was counted of it
//! ([`counters`]), and figures that it prints ([`PrintedMetric`]).

#[cfg(feature = "commands")]
mod experiment;
mod printed;
mod set;

#[cfg(feature = "commands")]
pub use experiment::{CommandError, CommandExperiment};
#[cfg(feature = "commands")]
pub use printed::PrintedMetricError;
pub use printed::{Pattern, PrintedMetric};
pub(crate) use set::EXIT;
pub use set::{CommandSet, Input, NamedCommand, OnFailure, Output, WALL, counters, metrics};
