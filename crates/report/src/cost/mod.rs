//! The cost of work on several types of machine: the output of `ascertain cost`.

mod data;
mod finding;
mod output;
mod sentence;

pub use data::{
    ClaimOnCost, CostComparison, CostDecision, CostMean, CostReport, Interval, Load, Offer, Recorded, RecordedFigures,
    WorkloadCost,
};
pub use finding::CostFinding;
