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
mod labelled;
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
    /// What it is a picture of.
    pub kind: PictureKind,
    /// The plot.
    pub plot: Plot,
    /// Its key numbers.
    pub table: Table,
}

/// What a picture shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PictureKind {
    /// All claims of a run.
    Overview,
    /// A claim's evidence, trial by trial.
    Evidence,
    /// A claim's paired ratios or differences, in the order measured.
    Ratios,
    /// Where a claim's rate lies.
    Rate,
    /// The values that a claim's predicate speaks of.
    Values,
    /// A metric by quantile.
    Quantiles,
    /// A metric trial by trial.
    Trials,
    /// Medians side by side.
    Medians,
    /// A metric over a factor's levels.
    Sweep,
    /// A value for each pair.
    Matrix,
    /// A metric over time.
    Curve,
}
