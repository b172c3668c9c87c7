//! The progress line on standard error, and its text.

mod line;
mod picture;
mod words;

pub use line::{Line, ProgressObserver, note};
pub use picture::LivePicture;
pub use words::headline;
