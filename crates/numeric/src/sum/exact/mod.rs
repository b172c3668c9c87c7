//! The exact sum, rounded once.

mod accumulator;
mod bytes;
mod long;
mod units;
mod window;

pub use accumulator::{Exact, exact};
pub use bytes::ExactBytesError;
pub use units::UnitSum;
pub use window::{Exponents, add_blocks};
