//! The output of `ascertain history`: the list of runs, a metric over several runs, two runs side by side, and deleted
//! runs.
//!
//! Each of these is plain data with its own JSON schema, and can be written in all formats.

pub mod comparison;
pub mod list;
pub mod prune;
#[cfg(feature = "plot")]
pub mod trend;

mod words;
