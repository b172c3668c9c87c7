//! Each verdict as one plain sentence.
//!
//! A sentence says what was seen, what follows from it, and how sure that is. What follows is about the
//! rate while it was measured: a verdict does not speak of other times or machines.

mod order;
mod verdict;

pub use verdict::{claim, warning};
