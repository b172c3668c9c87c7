//! The progress line on standard error, and its text.

mod line;
mod words;

pub use line::{Line, ProgressObserver, note};
pub use words::headline;
