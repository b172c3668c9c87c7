//! Races a cache with its origin: if the cache is slow, the request also goes to the origin.
//!
//! A [`Racer`] applies one [`Policy`] to all its requests. [`Racer::race`] takes two futures. The future that reads the
//! cache is polled at once. The future that fetches from the origin is polled only if the cache fails or is late. If
//! the cache is late, the policy must also permit the race. The first answer wins; the other future is dropped.
//!
//! This module starts no tasks, threads or runtimes. The code that awaits the race polls the futures. The time comes
//! from a [`Clock`], for example [`TokioClock`]. [`replay`] computes, without waiting, the effect of a policy on
//! requests whose durations were recorded.

mod delay;
mod ledger;
mod racer;
mod replay;

pub use ledger::{Counts, InvalidPolicy, Policy};
pub use racer::{Clock, Mismatch, RaceError, RaceResult, Racer, Side, TokioClock, checked};
pub use replay::{ReplayResult, RequestTimes, replay};
