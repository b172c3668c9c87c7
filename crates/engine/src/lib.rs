#![doc = include_str!("../README.md")]
// Without the features `claims` and `recorded`, some code is unused, and the compiler omits it.
#![cfg_attr(not(all(feature = "claims", feature = "recorded")), allow(dead_code, unused_imports))]

pub mod batch;
mod block;
#[cfg(feature = "commands")]
pub mod calibration;
pub mod claim;
#[cfg(feature = "claims")]
pub mod claims_file;
pub mod command;
mod derived;
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
mod observer;
pub mod outcome;
pub mod plan;
pub mod predicate;
#[cfg(feature = "recorded")]
pub mod pyperf;
pub mod recorded;
mod recording;
pub mod result;
pub mod run;
#[cfg(feature = "samples")]
pub mod samples;
#[cfg(feature = "recorded")]
pub mod series;
pub mod suite;
mod summary;
mod time;
pub mod unit;
pub mod values;
pub mod windows;

pub use error::Error;
pub use plan::share_error;
pub use result::RunResult;
pub use std::hint::black_box;
