//! Pictures of runs: what was recorded, turned into [`Plot`]s, each with a small table that says the same in
//! numbers.
//!
//! A picture is there only if it has something to show. Values that were cut off are known to be above what was seen:
//! they take part in every rank, are drawn there as rings, and quantiles and ends that only they bound are unbounded above. Intervals and bands are those of a quantile at 95 % each ([`ascertain_stats::quantile_ranks`]),
//! but for those of claims, which are at the claim's own error.

mod bounds;
mod claim;
mod constant;
mod curve;
mod evidence;
mod experiment;
mod forest;
mod matrix;
mod measured;
mod names;
mod overview;
mod paired;
mod quantiles;
mod rate;
mod sweep;
mod table;
mod terminal;
mod trials;
mod values;

use serde::Serialize;

use crate::plot::Plot;

pub use claim::of_claim;
pub(crate) use constant::constants;
pub(crate) use evidence::statements;
pub use experiment::of_experiment;
pub(crate) use forest::is_constant;
pub use overview::overview;
pub(crate) use overview::undrawn;
pub use table::Table;
pub use terminal::for_terminal;

/// A plot with what it says as a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Picture {
    /// The plot.
    pub plot: Plot,
    /// Its key numbers.
    pub table: Table,
}
