//! Synchronisation whose fast side costs next to nothing.
//!
//! Each module is a technique that can be used alone, with its guarantee, its cost as measured and
//! when not to use it in a `README.md` of its own.

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
