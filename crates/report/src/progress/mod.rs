//! Progress: one line on standard error that always moves, and only where that is a terminal.

mod line;
mod words;

pub use line::Line;
pub use words::{Alphabet, of_run};
