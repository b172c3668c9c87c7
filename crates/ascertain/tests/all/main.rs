//! A bench, the examples, and runs that are stopped, in one test program.
#![allow(missing_docs)]

#[cfg(feature = "recorded")]
mod baselines;
mod bench;
mod common;
mod examples;
#[cfg(feature = "commands")]
mod stop;
