#![doc = include_str!("../README.md")]

mod build;
mod catalog;
mod count;
mod describe;
mod error;
mod expression;
mod graph;
mod parse;
mod plan;
mod ratio;
mod refusal;
mod run;
mod sampled;
mod table;
mod unit;
mod ways;

pub use catalog::{Catalogue, OneClock, Series};
pub use count::{Count, Envelope, Lead, Period};
pub use describe::grouped;
pub use error::{Error, Problem};
pub use expression::{Expression, is_call, quoted_if_needed};
pub use parse::{MOST_BYTES, MOST_DEPTH, parse};
pub use plan::{Memory, Plan, PlanOptions};
pub use ratio::Ratio;
pub use refusal::{Unbounded, Way, WayOut};
pub use run::{Advance, Engine, EngineState, Evidence, Failure, MOST_EXACT, Recorded, Results, RunError};
pub use table::{FlatTable, OCTAVES, RELATIVE_ERROR};
pub use unit::Unit;
