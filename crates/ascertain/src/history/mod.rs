//! Functions for recorded runs: list them, show how a metric changed over time, compare two runs, and delete old ones.

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
