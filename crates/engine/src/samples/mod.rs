//! Reads existing samples from a column of a text file, or from the recorded values of an arm.

mod column;
mod error;
mod recorded;

#[cfg(test)]
mod tests;

pub use column::{Column, read_column};
pub use error::Error;
pub use recorded::{RecordedSample, read_recorded};
