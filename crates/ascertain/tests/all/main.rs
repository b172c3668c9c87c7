//! A bench, the examples, and runs that are stopped, in one test program.
#![allow(missing_docs)]

mod bench;
mod common;
mod examples;
#[cfg(feature = "commands")]
mod stop;
