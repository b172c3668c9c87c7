#![doc = include_str!("../README.md")]

pub mod batch;
mod block;
mod bound;
pub mod claim;
pub mod claims_file;
pub mod command;
mod error;
pub mod evidence;
pub mod experiment;
pub mod finding;
pub mod function;
mod judging;
mod likeness;
mod measure;
pub mod memory;
mod names;
pub mod nearest;
pub mod observations;
pub mod outcome;
mod paired;
pub mod permutation;
pub mod plan;
mod planning;
pub mod predicate;
pub mod recorded;
mod replay;
pub mod run;
mod schedule;
mod slots;
mod summary;
mod threats;
pub mod unit;
pub mod values;

pub use error::Error;
pub use planning::share_error;
pub use std::hint::black_box;
