//! Runs of scripted experiments, and what is read back of them.
//!
//! The program compiles with any combination of features. Under `--no-default-features --features recorded` it has the
//! tests of an engine that writes lines alone.
#![allow(missing_docs)]

mod budget;
mod common;
mod conclusions;
#[cfg(feature = "recorded")]
mod continuing;
mod failure;
mod interim;
#[cfg(feature = "commands")]
mod interrupt;
#[cfg(all(feature = "recorded", not(feature = "parquet")))]
mod lines_alone;
#[cfg(feature = "recorded")]
mod memory;
#[cfg(all(feature = "claims", feature = "samples"))]
mod parsers;
mod precision;
#[cfg(all(feature = "parquet", feature = "samples"))]
mod recorded;
