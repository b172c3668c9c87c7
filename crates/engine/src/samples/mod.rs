//! Reads existing samples from a column of a text file, or from the recorded values of an arm; and reads tables.

mod column;
mod error;
mod recorded;
mod table;

#[cfg(test)]
mod tests;

pub use column::{Column, read_column};
pub use error::Error;
pub use recorded::{RecordedSample, read_recorded};
pub use table::{Table, TableRow, read_table};
