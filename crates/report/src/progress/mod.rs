//! Progress: one line on standard error that always moves, and only where that is a terminal.

mod line;
mod watching;
mod words;

pub use line::Line;
pub use watching::{Watching, note};
pub use words::{headline, of_run};
