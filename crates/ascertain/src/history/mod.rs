//! Over recorded runs: which there are, how a figure went, two of them side by side, and which to delete.

mod compare;
mod list;
mod prune;
mod trend;

pub use compare::compare;
pub use list::list;
pub use prune::prune;
pub use trend::{TrendRequest, trend};
