#![doc = include_str!("README.md")]

mod awaitable;
mod contract;
mod flagged;
#[cfg(model = "tso")]
mod impatient;
mod polled;
mod sleep;
mod two_word;

pub use awaitable::{Awaitable, VersionChange};
pub use contract::{EventCount, Version};
pub use flagged::{Flagged, MultiProducer, OneWord};
#[cfg(model = "tso")]
pub use impatient::Impatient;
pub use polled::{Backoff, Polled};
pub use two_word::TwoWord;

/// The cheapest single-producer event count that can wake sleepers on this machine. It uses one word if the processor
/// adds to memory in one instruction and keeps its stores in order, and two words otherwise.
#[cfg(target_arch = "x86_64")]
pub type SingleProducer = OneWord;
/// The cheapest single-producer event count that can wake sleepers on this machine. It uses one word if the processor
/// adds to memory in one instruction and keeps its stores in order, and two words otherwise.
#[cfg(not(target_arch = "x86_64"))]
pub type SingleProducer = TwoWord;
