//! Pictures of runs: recorded values as [`Plot`](ascertain_plot::Plot)s, each with a small table of its numbers.
//!
//! There is no picture if all values are equal. A value that was stopped at a time limit is only known to be above the
//! observed one. In ranks it counts as larger than all others, and it is drawn as a hollow dot at the observed value.
//! If the rank of a quantile, or of an end of an interval, is among such values, the quantile or end is unbounded
//! above. Intervals and bands are 95 % intervals of a quantile ([`ascertain_stats::quantile_ranks`]). The intervals of
//! a claim have the error probability of the claim instead.

mod claim;
mod curve;
mod derived;
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
mod suite;
mod sweep;
mod trials;
mod waterfall;
mod windows;

pub use claim::of_claim;
pub(crate) use claim::statements;
pub(crate) use derived::{derived, table_of};
pub(crate) use experiment::constants;
pub use experiment::of_experiment;
pub(crate) use facts::facts;
pub use forest::for_terminal;
pub use overview::overview;
pub use picture::{Picture, PictureKind, Table};
pub use suite::{forests, forests_in_short};
pub(crate) use windows::{of_live_series, percentiles, windows};
