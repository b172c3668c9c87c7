//! Progress: one line on standard error that always moves, where that is a terminal.

mod line;
mod words;

pub use line::{Line, Watching, note};
pub use words::{headline, of_run};
