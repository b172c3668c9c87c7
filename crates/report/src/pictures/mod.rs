//! Pictures of runs: what was recorded, turned into [`Plot`](ascertain_plot::Plot)s, each with a small table that says
//! the same in numbers.
//!
//! A picture is there only if it has something to show. Values that were cut off are known to be above what was seen:
//! they take part in every rank, are drawn there as rings, and quantiles and ends that only they bound are unbounded
//! above. Intervals and bands are those of a quantile at 95 % each ([`ascertain_stats::quantile_ranks`]), but for those
//! of claims, which are at the claim's own error.

mod claim;
mod curve;
mod experiment;
mod facts;
mod forest;
mod labelled;
mod matrix;
mod measured;
mod names;
mod overview;
mod paired;
mod picture;
mod quantiles;
mod sweep;
mod trials;
mod waterfall;

pub use claim::of_claim;
pub(crate) use claim::statements;
pub(crate) use experiment::constants;
pub use experiment::of_experiment;
pub(crate) use facts::facts;
pub use forest::for_terminal;
pub use overview::overview;
pub use picture::{Picture, PictureKind, Table};
