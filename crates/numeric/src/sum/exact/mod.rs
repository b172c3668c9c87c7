//! The exact sum, rounded once.

mod accumulator;
mod bytes;
mod long;
mod window;

pub use accumulator::{Exact, exact};
pub use bytes::ExactBytesError;
pub use window::{Exponents, add_blocks};
