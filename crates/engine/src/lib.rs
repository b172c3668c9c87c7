#![doc = include_str!("../README.md")]
// What only reading a run back makes use of costs nothing where nothing begins to read: it is not compiled to the end.
#![cfg_attr(not(feature = "recorded"), allow(dead_code, unused_imports))]

pub mod batch;
mod block;
pub mod claim;
#[cfg(feature = "claims")]
pub mod claims_file;
pub mod command;
mod error;
pub mod evidence;
pub mod experiment;
pub mod finding;
pub mod function;
mod judging;
mod measure;
pub mod memory;
pub mod names;
mod now;
pub mod observations;
pub mod outcome;
pub mod plan;
pub mod predicate;
pub mod recorded;
pub mod run;
#[cfg(feature = "samples")]
pub mod samples;
mod schedule;
mod summary;
mod time;
pub mod unit;
pub mod values;

pub use error::Error;
pub use plan::share_error;
pub use std::hint::black_box;
