//! Tests of a bench, of the examples, and of stopped runs, in one program.
#![allow(missing_docs)]

#[cfg(feature = "recorded")]
mod baselines;
mod bench;
mod common;
mod examples;
#[cfg(feature = "commands")]
mod stop;
