//! The cost of work on several types of machine: the output of `ascertain cost`.

mod data;
mod finding;
mod output;
mod sentence;

pub use data::{
    ClaimOnCost, Comparison, CostReport, Decision, Interval, Load, Offer, Recorded, RecordedFigures, Suite,
    WorkloadCost,
};
pub use finding::CostFinding;
