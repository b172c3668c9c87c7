//! An experiment that measures commands.
//!
//! A [`CommandSet`] is plain data; a [`CommandExperiment`] measures it. The variants are the commands, and the factors
//! are their parameters. The [`metrics`] come from the kernel's accounting of each process: `wall`, `user`, `system`,
//! `memory_peak` and `exit`. On request there are also [`counters`], and figures that the commands print
//! ([`PrintedMetric`]).

#[cfg(feature = "commands")]
mod experiment;
mod printed;
mod set;

#[cfg(feature = "commands")]
pub(crate) use experiment::piped_command;
#[cfg(feature = "commands")]
pub use experiment::{CommandError, CommandExperiment};
#[cfg(feature = "commands")]
pub use printed::PrintedMetricError;
pub use printed::{Pattern, PrintedMetric};
pub(crate) use set::EXIT;
pub use set::{
    BuildPaths, CommandSet, Input, LineMetric, NamedCommand, OnFailure, Output, ProgramRevision, VALUE, WALL, counters,
    metrics,
};
