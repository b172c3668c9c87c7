//! What `ascertain history` says: the runs there are, how a figure went from run to run, two runs side by side,
//! and which were deleted.
//!
//! Each is plain data with a schema of its own in JSON, and functions that print it.

pub mod comparison;
pub mod list;
pub mod prune;
#[cfg(feature = "plot")]
pub mod trend;

mod words;
