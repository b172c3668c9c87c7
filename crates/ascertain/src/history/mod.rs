//! Functions for recorded runs: list them, show how a metric changed over time, find the
//! runs at which it changed, compare two runs, and delete old ones.

#[cfg(feature = "plot")]
mod changes;
mod compare;
mod list;
mod prune;
#[cfg(feature = "plot")]
mod trend;

#[cfg(feature = "plot")]
pub use changes::changes;
pub use compare::compare;
pub use list::list;
pub use prune::prune;
#[cfg(feature = "plot")]
pub use trend::{TrendRequest, trend};
