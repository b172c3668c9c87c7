//! Tests that run scripted experiments and read their evidence.
//!
//! This test program compiles with any combination of features. With `--no-default-features --features recorded` it
//! contains the tests of an engine that only writes lines.
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
#[cfg(feature = "recorded")]
mod suites;
