//! Synchronisation techniques whose frequent operations cost almost nothing.
//!
//! Each module can be used alone. Its `README.md` describes its guarantee, its measured cost, and when not to use it.

pub mod barrier;
pub mod barrierd;
mod drop_all;
pub mod epoch;
pub mod event_count;
pub mod hazard;
pub mod per_cpu;
mod primitives;
mod reclaim;
pub mod ring;

#[cfg(all(test, model = "tso"))]
extern crate self as ascertain_sync;
#[cfg(all(test, model = "tso"))]
#[path = "../tests/tso/mod.rs"]
mod tso;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
