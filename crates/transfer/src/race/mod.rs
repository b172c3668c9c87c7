//! A cache before an origin, and the origin asked too where the cache is slow.
//!
//! A [`Racer`] has a [`Policy`], and is shared by all requests. [`Racer::race`] takes two futures: what reads the cache
//! is polled at once, what asks the origin only when the cache has failed, or when it is late and the policy lets the
//! request race. Who answers first has won; the other future is dropped.
//!
//! Nothing here starts a task, a thread or a runtime: futures are polled where the race is awaited. Time comes from a
//! [`Clock`]; [`TokioClock`] is tokio's. [`replay`] tells what a policy would have made of requests whose times are
//! known, without waiting for them.

mod delay;
mod ledger;
mod racer;
mod replay;

pub use ledger::{BadPolicy, Counts, Policy};
pub use racer::{BothFailed, Clock, Mismatch, Racer, Side, TokioClock, Won, checked};
pub use replay::{Replayed, Times, replay};
