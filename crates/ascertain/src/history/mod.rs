//! Over recorded runs: which there are, how a figure went, two of them side by side, and which to delete.

mod compare;
mod list;
mod prune;
#[cfg(feature = "plot")]
mod trend;

pub use compare::compare;
pub use list::list;
pub use prune::prune;
#[cfg(feature = "plot")]
pub use trend::{TrendRequest, trend};
