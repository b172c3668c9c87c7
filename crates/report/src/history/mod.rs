//! The output of `ascertain history`: the list of runs, a metric over several runs, its changes, two runs side by side, and deleted
//! runs.
//!
//! Each of these is plain data with its own JSON schema, and can be written in all formats.

#[cfg(feature = "plot")]
pub mod changes;
pub mod comparison;
pub mod list;
pub mod prune;
#[cfg(feature = "plot")]
pub mod trend;

mod words;
